#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { MOST_MODELS = 16, MOST_VALUES = 256, TEXT = 2048 };

static const char help[] =
    "tessera bench size [options]          memory and time against the width of the image\n"
    "tessera bench batch [options]         one image in patches, so many at a time\n\n"
    "One JSON object a line on standard output, or in the file of --json, as soon as a point is measured.\n\n"
    "  --models A,B        bundled models, weight files, or random:drunet, random:unet, random:dncnn\n"
    "  --widths LIST       of size: 1024,1092 or from:to:step (default: 1024:2048:64 and 1024:2048:68)\n"
    "  --height H          of the images (default 2048); batch cuts H x H into patches\n"
    "  --patches LIST      of batch (default 128,256,512)\n"
    "  --batches LIST      of batch (default 1,2,4,8,16,32,64)\n"
    "  --halo H            auto, exact or N pixels, where --memory makes size cut the image\n"
    "  --repeats N         passes that are timed (default 9); the median is told\n\n"
    "Example: tessera bench size --models random:dncnn --widths 1024:1280:64 --device cuda\n";

typedef struct bench_target {
    tess_bench_settings settings;
    char names[TEXT];
    const char *models[MOST_MODELS];
    int64_t widths[MOST_VALUES], patches[MOST_VALUES], batches[MOST_VALUES];
} bench_target;

/* Names between commas. */
static bool names_option(bench_target *t, const char *name, const char *value)
{
    if (strlen(value) >= sizeof t->names) {
        cli_complain("%s: the list is too long", name);
        return false;
    }
    strcpy(t->names, value);
    t->settings.model_count = 0;
    for (char *at = strtok(t->names, ","); at; at = strtok(NULL, ",")) {
        if (t->settings.model_count == MOST_MODELS) {
            cli_complain("%s: more than %d models", name, MOST_MODELS);
            return false;
        }
        t->models[t->settings.model_count++] = at;
    }
    t->settings.models = t->models;
    return true;
}

/* from:to:step; adds to the list. */
static bool range(const char *name, const char *word, int64_t *list, int *count)
{
    long long from = 0, to = 0, step = 0;
    char end = 0;
    if (sscanf(word, "%lld:%lld:%lld%c", &from, &to, &step, &end) != 3 || from < 1 || to < from || step < 1 ||
        (to - from) / step >= MOST_VALUES - *count) {
        cli_complain("%s %s: use numbers between commas, or from:to:step, at most %d of them", name, word,
                     MOST_VALUES);
        return false;
    }
    for (; from <= to; from += step)
        list[(*count)++] = from;
    return true;
}

static bool list_option(const char *name, const char *value, int64_t *list, int *count)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%s", value);
    *count = 0;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        if (strchr(word, ':') || *count == MOST_VALUES) {
            if (!range(name, word, list, count))
                return false;
        } else if (!cli_integer(name, word, 1, 1 << 20, &list[(*count)++]))
            return false;
    }
    if (*count == 0)
        cli_complain("%s %s: the list is empty", name, value);
    return *count > 0;
}

static bool option(void *target, const char *name, const char *value, bool *known)
{
    bench_target *t = target;
    tess_bench_settings *s = &t->settings;
    int64_t number = 0;
    *known = true;
    if (strcmp(name, "--models") == 0 || strcmp(name, "--model") == 0)
        return names_option(t, name, value);
    if (strcmp(name, "--widths") == 0) {
        s->widths = t->widths;
        return list_option(name, value, t->widths, &s->width_count);
    }
    if (strcmp(name, "--patches") == 0) {
        s->patches = t->patches;
        return list_option(name, value, t->patches, &s->patch_count);
    }
    if (strcmp(name, "--batches") == 0) {
        s->batches = t->batches;
        return list_option(name, value, t->batches, &s->batch_count);
    }
    if (strcmp(name, "--height") == 0)
        return cli_integer(name, value, 1, 1 << 20, &s->height);
    if (strcmp(name, "--halo") == 0)
        return cli_halo(name, value, &s->halo);
    if (strcmp(name, "--repeats") == 0) {
        bool right = cli_integer(name, value, 1, 1000, &number);
        s->repeats = (int)number;
        return right;
    }
    *known = false;
    return true;
}

/* Where the lines go. */
typedef struct line_target {
    FILE *file;
    cli_shared *shared;
    bool failed;
} line_target;

static bool write_line(void *user, const char *line)
{
    line_target *to = user;
    to->failed = fprintf(to->file, "%s\n", line) < 0 || fflush(to->file) != 0;
    return !to->failed && cli_progress(to->shared, 0, 0, 0); /* which knows whether to stop */
}

int cli_bench(int argc, char **argv)
{
    const cli_verb verb = {
        .name = "bench", .help = help, .positional_least = 1, .positional_most = 1, .option = option};
    static bench_target target;
    tess_bench_settings_init(&target.settings);
    cli_shared shared = {.common = &target.settings.common};
    int count, status = cli_parse(&verb, argc, argv, &shared, &target, &target.settings.study, &count);
    if (status < 0)
        status = cli_json_ready(&shared, target.settings.models, target.settings.model_count);
    if (status >= 0)
        return status;
    line_target to = {.file = stdout, .shared = &shared};
    if (shared.json && strcmp(shared.json, "-") != 0)
        to.file = fopen(shared.json, "w");
    if (!to.file) {
        cli_complain("--json %s: %s", shared.json, strerror(errno));
        return CLI_FAILED;
    }
    target.settings.line = write_line;
    target.settings.line_user = &to;
    tess_context *context = NULL;
    tess_status result = tess_context_create(&context);
    if (result == TESS_OK) {
        cli_watch_interrupts();
        result = tess_bench(context, &target.settings);
    }
    if (to.file != stdout)
        to.failed |= fclose(to.file) != 0;
    if (to.failed)
        fprintf(stderr, "tessera: --json %s: %s\n", shared.json ? shared.json : "-", strerror(errno));
    else
        return context ? cli_finish(context, result, NULL, &shared) : CLI_FAILED;
    tess_context_destroy(context);
    return CLI_FAILED;
}
