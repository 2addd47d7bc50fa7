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

static bool same(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Of a file that need not be there yet: the name after its folder. */
static const char *split_name(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

bool cli_json_apart(const cli_shared *shared, const char *const *files, int count)
{
    char own[4096], folder[4096]; /* no system opens a longer name */
    if (!shared->json || strcmp(shared->json, "-") == 0)
        return true;
    const char *name = split_name(shared->json, own, sizeof own);
    for (int i = 0; i < count; i++) {
        if (!files[i])
            continue;
        const bool alike = strcmp(name, split_name(files[i], folder, sizeof folder)) == 0;
        if (same(shared->json, files[i]) || (alike && same(own, folder))) {
            cli_complain("--json %s: is a file of this job; write the record to another name", shared->json);
            return false;
        }
    }
    return true;
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
