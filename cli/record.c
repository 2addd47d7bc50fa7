/* The file of --json. It is written in the same folder under a random name and renamed when it is complete: a reader
 * never sees half a record, and a full disk does not destroy the older one. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { LONGEST = 4096 }; /* no system opens a longer path */
static char temporary[LONGEST + 32];
static volatile int temporary_there;

void cli_record_cleanup(void)
{
    if (temporary_there)
        unlink(temporary);
}

/* Resolves a link to the file itself, so that the link stays. */
static void resolve(const char *path, char place[LONGEST])
{
    char *real = realpath(path, NULL);
    snprintf(place, LONGEST, "%s", real && strlen(real) < LONGEST ? real : path);
    free(real);
}

static void folder_of(const char *path, char folder[LONGEST])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, LONGEST, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* Devices and pipes are written to directly; files are replaced. */
static bool is_replaced(const char *path, struct stat *about)
{
    return stat(path, about) != 0 || S_ISREG(about->st_mode);
}

static bool write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t part = write(file, text, length);
        if (part < 0 && errno != EINTR)
            return false;
        text += part > 0 ? part : 0;
        length -= part > 0 ? (size_t)part : 0;
    }
    return true;
}

static bool write_line(int file, const char *record)
{
    return write_all(file, record, strlen(record)) && write_all(file, "\n", 1);
}

/* A pipe is opened before the work and kept open. Opening fails if there is no reader, since waiting for one could
 * take forever; closing it in between would look like the end to the reader. -1: no pipe. */
static int held = -1;

static bool hold_pipe(const char *path)
{
    held = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return held >= 0 && fcntl(held, F_SETFL, 0) == 0; /* writes may wait for the reader */
}

static bool write_direct(const char *path, const char *record)
{
    const int file = held >= 0 ? held : open(path, O_WRONLY | O_CLOEXEC);
    held = -1;
    if (file < 0)
        return false;
    const bool good = write_line(file, record);
    return close(file) == 0 && good;
}

bool cli_record_write(const char *path, const char *record)
{
    struct stat about = {0};
    uint64_t number;
    char place[LONGEST];
    if (!is_replaced(path, &about))
        return write_direct(path, record);
    resolve(path, place);
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    snprintf(temporary, sizeof temporary, "%s.tmp-%016llx", place, (unsigned long long)number);
    cli_hold_signals(true);
    temporary_there = 1;
    const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    bool good = file >= 0;
    if (good) {
        /* A replaced record keeps its permissions. */
        good = write_line(file, record) && (!about.st_mode || fchmod(file, about.st_mode & 0777) == 0);
        good = close(file) == 0 && good && rename(temporary, place) == 0;
        if (!good) {
            const int why = errno;
            unlink(temporary);
            errno = why;
        }
    }
    temporary_there = 0;
    cli_hold_signals(false);
    return good;
}

int cli_record_apart(const cli_shared *shared, const char *const *files, int count)
{
    const char *json = shared->common.record_file, *trace = shared->common.trace_file;
    for (int i = 0; json && i < count; i++)
        if (files[i] && tess_same_target(json, files[i]))
            return cli_complain("--json %s: is a file of this job; write the record to another name", json);
    for (int i = 0; trace && i < count; i++)
        if (files[i] && tess_same_target(trace, files[i]))
            return cli_complain("--trace %s: is a file of this job; write the trace to another name", trace);
    if (json && trace && tess_same_target(json, trace))
        return cli_complain("--trace %s: is the file of --json; write the trace to another name", trace);
    return -1;
}

/* Returns 0, or why a record cannot be written now. */
static int trouble_with(const char *path, char folder[LONGEST])
{
    struct stat about;
    char place[LONGEST];
    resolve(path, place);
    folder_of(place, folder);
    const bool there = stat(path, &about) == 0;
    if (there && S_ISDIR(about.st_mode))
        return EISDIR;
    if (there && access(path, W_OK) != 0)
        return errno;
    return (there && !S_ISREG(about.st_mode)) || access(folder, W_OK | X_OK) == 0 ? 0 : errno;
}

/* The same folder by its name, with or without slashes at the end. */
static bool same_folder(const char *one, const char *other)
{
    size_t length = strlen(one), same = strlen(other);
    while (length > 1 && one[length - 1] == '/')
        length--;
    while (same > 1 && other[same - 1] == '/')
        same--;
    return length == same && memcmp(one, other, same) == 0;
}

/* A trace is written to a file that can be replaced. */
static int trace_ready(const cli_shared *shared, const char *output)
{
    char folder[LONGEST];
    struct stat about;
    if (!shared->common.trace_file)
        return -1;
    int why = trouble_with(shared->common.trace_file, folder);
    if (why == ENOENT && output && same_folder(folder, output))
        why = 0;
    if (why == 0 && stat(shared->common.trace_file, &about) == 0 && !S_ISREG(about.st_mode))
        why = EINVAL;
    if (why == 0)
        return -1;
    cli_complain("--trace %s: %s", shared->common.trace_file,
                 why == EINVAL ? "is not a regular file" : strerror(why));
    return CLI_FAILED;
}

static int json_ready(const cli_shared *shared, const char *output)
{
    const char *json = shared->common.record_file;
    char folder[LONGEST];
    struct stat about;
    const int why = json ? trouble_with(json, folder) : 0;
    if (json && why == 0 && stat(json, &about) == 0 && S_ISFIFO(about.st_mode) && !hold_pipe(json)) {
        cli_complain("--json %s: %s", json,
                     errno == ENXIO ? "is a pipe that no program reads; start its reader first"
                                    : strerror(errno));
        return CLI_FAILED;
    }
    if (why == 0 || (why == ENOENT && output && same_folder(folder, output)))
        return -1;
    cli_complain("--json %s: %s", json, strerror(why));
    return CLI_FAILED;
}

int cli_record_ready(const cli_shared *shared, const char *output)
{
    const int status = json_ready(shared, output);
    return status >= 0 ? status : trace_ready(shared, output);
}
