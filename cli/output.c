#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t interrupted;
static bool line_open; /* a progress line without its end */

static void on_interrupt(int number)
{
    interrupted = number;
}

/* The first Ctrl-C stops cleanly at the next window; a second one ends the program at once. */
void cli_watch_interrupts(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_progress(void *user, int64_t done, int64_t total, double seconds)
{
    const cli_shared *shared = user;
    static double last;
    const bool terminal = isatty(STDERR_FILENO);
    if (interrupted)
        return false;
    if (shared->quiet || total <= 0 || (done < total && seconds - last < (terminal ? 0.2 : 10)))
        return true;
    if (!terminal && seconds < 10)
        return true;
    last = seconds;
    line_open = terminal && done < total;
    double share = (double)done / (double)total, left = share > 0 ? seconds * (1 - share) / share : 0;
    fprintf(stderr, "%s%3.0f %%  %.2f megapixels a second  %.0f s left%s", terminal ? "\r" : "", 100 * share,
            seconds > 0 ? 1e-6 * (double)done / seconds : 0, left, terminal && done < total ? "   " : "\n");
    return true;
}

static int write_record(const char *path, const char *record)
{
    if (strcmp(path, "-") == 0) {
        if (puts(record) >= 0 && fflush(stdout) == 0)
            return CLI_DONE;
        fprintf(stderr, "tessera: --json -: standard output: %s\n", strerror(errno));
        return CLI_FAILED;
    }
    FILE *file = fopen(path, "w");
    bool good = file && fprintf(file, "%s\n", record) > 0;
    if (file)
        good = fclose(file) == 0 && good;
    if (!good)
        fprintf(stderr, "tessera: --json %s: %s\n", path, strerror(errno));
    return good ? CLI_DONE : CLI_FAILED;
}

/* Would the record find a place? As the system sees it now: 0, or its errno. */
static int trouble_with(const char *path, const char *folder)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return access(folder, W_OK | X_OK) == 0 ? 0 : errno;
    return S_ISDIR(about.st_mode) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
}

/* The same folder, of which a job makes the one that is its output. */
static bool same_folder(const char *one, const char *other)
{
    size_t length = strlen(one), same = strlen(other);
    while (length > 1 && one[length - 1] == '/')
        length--;
    while (same > 1 && other[same - 1] == '/')
        same--;
    return length == same && memcmp(one, other, same) == 0;
}

int cli_json_ready(const cli_shared *shared, const char *const *files, int count)
{
    const char *json = shared->json, *slash = json ? strrchr(json, '/') : NULL;
    char folder[4096]; /* no system opens a longer name */
    bool made = false;
    if (!json || strcmp(json, "-") == 0)
        return -1;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - json) + 1 : 1, slash ? json : ".");
    for (int i = 0; i < count; i++) {
        if (files[i] && tess_same_target(json, files[i]))
            return cli_complain("--json %s: is a file of this job; write the record to another name", json);
        made |= files[i] && same_folder(folder, files[i]);
    }
    const int why = trouble_with(json, folder);
    if (why == 0 || (why == ENOENT && made))
        return -1;
    cli_complain("--json %s: %s", json, strerror(why));
    return CLI_FAILED;
}

int cli_finish(tess_context *context, tess_status status, char *record, const cli_shared *shared)
{
    int result = status == TESS_OK ? CLI_DONE : status == TESS_BAD_OPTION ? CLI_USAGE : CLI_FAILED;
    char message[1024];
    snprintf(message, sizeof message, "%s", tess_context_error(context));
    if (record && shared->json && write_record(shared->json, record) != CLI_DONE)
        result = CLI_FAILED;
    bool show = record && !shared->quiet && !(shared->json && strcmp(shared->json, "-") == 0);
    char *text = NULL;
    if (show && tess_record_summary(context, record, &text) == TESS_OK)
        fputs(text, stdout);
    tess_record_free(text);
    if (status != TESS_OK)
        fprintf(stderr, "%stessera: %s\n", line_open ? "\n" : "", message);
    tess_record_free(record);
    tess_context_destroy(context);
    return result;
}
