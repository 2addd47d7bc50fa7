#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "tessera_ranks.h"
#include "tessera_study.h"

enum { MOST_NAMES = 16, MOST_VALUES = 256, TEXT = 2048 };

typedef struct bench_names {
    char text[TEXT];
    const char *list[MOST_NAMES];
    int count;
} bench_names;

typedef struct bench_list {
    int64_t values[MOST_VALUES];
    int count;
} bench_list;

typedef struct bench_target {
    tess_bench_settings settings;
    bench_names models, precisions, samplers, machines, problems;
    bench_list widths, patches, batches, sizes, ranks, simulate;
} bench_target;

/* Names separated by commas. */
static bool names(const cli_option *option, const char *text, void *target)
{
    bench_names *n = cli_field(option, target);
    if (strlen(text) >= sizeof n->text)
        return cli_refuse(option, text, "a shorter list");
    strcpy(n->text, text);
    n->count = 0;
    for (char *at = strtok(n->text, ","); at; at = strtok(NULL, ",")) {
        if (n->count == MOST_NAMES)
            return cli_refuse(option, text, "at most 16 names");
        n->list[n->count++] = at;
    }
    return n->count > 0 || cli_refuse(option, text, "names between commas");
}

/* from:to:step; adds to the list. */
static bool add_range(const cli_option *option, const char *word, bench_list *list)
{
    long long from = 0, to = 0, step = 0;
    char end = 0;
    if (sscanf(word, "%lld:%lld:%lld%c", &from, &to, &step, &end) != 3 || from < 1 || to < from || step < 1 ||
        to > option->most || (to - from) / step >= MOST_VALUES - list->count)
        return cli_refuse(option, word, "numbers between commas, or from:to:step, at most 256 of them");
    for (; from <= to; from += step)
        list->values[list->count++] = from;
    return true;
}

static bool numbers(const cli_option *option, const char *text, void *target)
{
    bench_list *list = cli_field(option, target);
    char copy[TEXT];
    if (strlen(text) >= sizeof copy)
        return cli_refuse(option, text, "a shorter list");
    strcpy(copy, text);
    list->count = 0;
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        const bool added =
            strchr(word, ':') || list->count == MOST_VALUES
                ? add_range(option, word, list)
                : cli_read_integer(option, word, option->least, option->most, &list->values[list->count++]);
        if (!added)
            return false;
    }
    return list->count > 0 || cli_refuse(option, text, "a list that is not empty");
}

#define AT(field) offsetof(bench_target, field)

static const cli_option options[] = {
    {"--models", "A,B", names, AT(models),
     "bundled models, weight files, or random:drunet, random:unet, random:dncnn (default: these three; "
     "batch: random:drunet; dem: random:diffusion)",
     CLI_MODELS " " CLI_FILES},
    {"--model", "A,B", names, AT(models), "the same as --models", CLI_MODELS " " CLI_FILES},
    {"--widths", "LIST", numbers, AT(widths),
     "size: 1024,1092 or from:to:step (default 1024:2048:64,1024:2048:68)", NULL, 1, 1 << 20},
    {"--height", "H", cli_integer, AT(settings.height),
     "of the images (default 2048); batch cuts H x H into patches", NULL, 1, 1 << 20},
    {"--patches", "LIST", numbers, AT(patches),
     "batch: sides of the patches (default 128,256,512); scaling: of deepinv's tiles (default 448)", NULL, 1,
     1 << 20},
    {"--batches", "LIST", numbers, AT(batches),
     "batch, dem: patches or tiles at once (default 1,2,4,8,16,32,64; dem: 1,4,16,64, on the CPU 1,4); "
     "scaling: deepinv's (default 32)",
     NULL, 1, 1 << 20},
    {"--precisions", "LIST", names, AT(precisions),
     "dem, phase 2 of stats: of fp32, tf32, fp16, bf16 (default: --precision, or all that the device is "
     "made for)"},
    {"--samplers", "LIST", names, AT(samplers), "dem: of dpmpp, ddim, ddpm (default: all)"},
    {"--steps", "N", cli_integer, AT(settings.steps), "dem: steps of a sampler (default 20)", NULL, 1, 10000},
    {"--tile", "N", cli_integer, AT(settings.tile), "dem: side of a tile in pixels (default 128)", NULL, 1,
     1024},
    {"--halo", "H", cli_halo, AT(settings.halo),
     "size, where --memory makes it cut the image: auto, exact or N pixels; scaling: of deepinv's tiles "
     "(default 32)",
     "auto exact"},
    {"--repeats", "N", cli_small, AT(settings.repeats),
     "passes that are timed (default 9); the median counts. device: runs on each device, up to 3; the best "
     "counts",
     NULL, 1, 1000},
    {"--seconds", "S", cli_from_0, AT(settings.seconds),
     "dem: further passes are timed until so many seconds are over (default 2); stats: no further ones"},
    {"--phase", "P", cli_text, AT(settings.phase),
     "stats: 1, fitting statistics (default); 2, an epoch of training; both", "1 2 both"},
    {"--machine", "LIST", names, AT(machines),
     "device: machine files; jobs are predicted for this CPU and for them, and nothing is run. scaling: the "
     "machine that --simulate is about",
     CLI_FILES},
    {"--problems", "LIST", names, AT(problems), "scaling: of deblur, tomo2d, tomo3d (default: all)"},
    {"--sizes", "LIST", numbers, AT(sizes),
     "scaling: longest sides of images and volumes (default 1024,2048,4096; tomo3d 512)", NULL, 16, 1 << 20},
    {"--ranks", "LIST", numbers, AT(ranks),
     "scaling: how many of the ranks under mpirun share an image (default 1,2,4,... all)", NULL, 1, 4096},
    {"--simulate", "LIST", numbers, AT(simulate),
     "scaling: numbers of ranks that are simulated on --machine; nothing is run", NULL, 1, 4096},
    {"--scheme", "S", cli_text, AT(settings.scheme),
     "scaling, simulated: strips (default), or deepinv: tiles with halos, whole images summed over all "
     "ranks",
     "strips deepinv"},
    {"--avoid", "N", cli_integer, AT(settings.avoid),
     "scaling, simulated: up to N convolutions share an exchange, where that is faster (default 1)", NULL, 1,
     64},
    {"--slabs", NULL, cli_flag, AT(settings.slabs),
     "scaling, simulated: volumes are divided by slices where that is faster, which is not built yet"},
    {"--copies", "N", cli_small, AT(settings.copies),
     "scaling, measured: N times between the passes over one image, all ranks denoise a whole image each, "
     "independently; the record "
     "compares both (default 0)",
     NULL, 0, 100},
    {"--square", NULL, cli_flag, AT(settings.square),
     "scaling: images of deblur are square; else photographs of 3:2"},
    {"--only", "TEXT", cli_text, AT(settings.only),
     "device, stats: only jobs or workloads whose name has this in it, such as guide, samples, batch, size, "
     "b32"},
    {"--slurm", "DIR", cli_text, AT(settings.slurm),
     "scaling: write scripts of Slurm jobs, one process per card, into this folder, and run nothing (--sizes "
     "and --ranks: default those of deepinv's published study); "
     "DIR/submit.sh checks program, models, data and modules before it queues them",
     CLI_FILES},
    {"--per-node", "N", cli_small, AT(settings.per_node), "--slurm: cards of a node (default 4)", NULL, 1,
     4096},
};

typedef struct line_target {
    FILE *file;
    bool failed;
} line_target;

static bool write_line(void *user, const char *line)
{
    line_target *to = user;
    char *told = cli_with_command(line);
    cli_print(to->file, "%s\n", told ? told : line);
    free(told);
    to->failed = to->file == stdout ? cli_output_failed() : fflush(to->file) != 0 || ferror(to->file);
    return !to->failed && !cli_signal_caught();
}

static void connect_lists(bench_target *t)
{
    tess_bench_settings *s = &t->settings;
    s->widths = t->widths.count ? t->widths.values : NULL;
    s->width_count = t->widths.count;
    s->patches = t->patches.count ? t->patches.values : NULL;
    s->patch_count = t->patches.count;
    s->batches = t->batches.count ? t->batches.values : NULL;
    s->batch_count = t->batches.count;
    s->models = t->models.list;
    s->model_count = t->models.count;
    s->precisions = t->precisions.list;
    s->precision_count = t->precisions.count;
    s->samplers = t->samplers.list;
    s->sampler_count = t->samplers.count;
    s->machines = t->machines.list;
    s->machine_count = t->machines.count;
    s->problems = t->problems.list;
    s->problem_count = t->problems.count;
    s->sizes = t->sizes.values;
    s->size_count = t->sizes.count;
    s->ranks = t->ranks.values;
    s->rank_count = t->ranks.count;
    s->simulate = t->simulate.values;
    s->simulate_count = t->simulate.count;
}

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    static bench_target target;
    static line_target to; /* static as what points to it, the settings in `target` */
    tess_bench_settings *s = &target.settings;
    tess_bench_settings_init(s);
    cli_shared shared;
    tess_context *context = NULL;
    int count, status = cli_parse(&cli_bench, argc, argv, &shared, &target, &count);
    if (status < 0)
        status = cli_record_apart(&shared, target.models.list, target.models.count);
    if (status < 0)
        status = cli_begin(&shared, true, NULL, &context);
    if (status >= 0)
        return status;
    const char *file = shared.common.record_file;
    const bool writes = file && cli_speaks(); /* lines are rank 0's */
    to = (line_target){.file = writes ? fopen(file, "w") : stdout};
    const int reason = errno;
    if (tess_context_agree(context, to.file ? TESS_OK : TESS_IO_FAILED, "") != TESS_OK) {
        if (writes)
            cli_complain("--json %s: %s", file, strerror(reason));
        return CLI_FAILED;
    }
    connect_lists(&target);
    s->study = argv[0];
    s->program = "/proc/self/exe";
    s->common = shared.common;
    s->common.progress = cli_poll;
    s->line = write_line;
    s->line_user = &to;
    const tess_status result = tess_bench(context, s);
    if (writes && (fclose(to.file) != 0 || to.failed)) {
        cli_complain("--json %s: %s", file, strerror(errno));
        to.failed = true;
    }
    if (!to.failed)
        return cli_finish(context, result, NULL, &shared);
    return CLI_FAILED; /* the failure was printed already, or cli_close_output will print it */
}

const cli_verb cli_bench = {
    .name = "bench",
    .what = "studies of speed and memory, as JSON lines",
    .usage = "size|batch|dem|device|stats|scaling",
    .text =
        "size: memory and time against the width of the image.\nbatch: one image in patches, several at a "
        "time.\ndem: the diffusion sampler of fill on made-up tiles, by batch, precision and "
        "sampler.\ndevice: "
        "jobs of all verbs on each device, what --device auto predicted and chose, and what that choice "
        "cost.\nstats: statistics of hyperspectral cubes on each device, from where on a card pays, and "
        "training.\nscaling: one iteration of reconstruction over the ranks of mpirun, or simulated on a "
        "machine; --slurm: as jobs of a cluster."
        "\nOne JSON object a line goes to standard output, or to the file of --json, as soon as a point "
        "is measured.",
    .example = "tessera bench size --models random:dncnn --widths 1024:1280:64 --device cuda",
    .choices = "size batch dem device stats scaling",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .watched = 1,
    .least = 1,
    .most = 1,
    .run = run,
};
