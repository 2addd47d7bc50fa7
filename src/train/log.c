/* A run that was killed after its last checkpoint does some steps again when it is resumed,
 * and its last line may be cut short: both are cut off before the log continues. They are cut off with the first new line:
 * a run that fails before it leaves the file as it was. */
#define _DEFAULT_SOURCE
#include "train/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { LINE_MOST = 64 << 10 };

struct tess_log {
    FILE *file;
    char *path;
    int64_t resumed_at;
    bool made, begun; /* the file is new; a line was written */
};

static const char BEGIN[] = "{\"step\":"; /* of every line */

/* True for a line of a step that the resumed run will not do again; never in a new run. */
static bool is_kept(const char *line, size_t length, int64_t resumed_at)
{
    tess_json *record = NULL;
    if (resumed_at < 0)
        return false;
    if (!length || line[length - 1] != '\n' || tess_json_parse(line, length, &record, NULL) != TESS_OK)
        return false;
    const bool kept = tess_json_get_int(record, "step", 0) <= resumed_at;
    tess_json_free(record);
    return kept;
}

/* Cuts the file before the first line that is not kept. */
static tess_status cut(FILE *file, int64_t resumed_at, tess_error *error)
{
    char *line = tess_small_alloc(LINE_MOST, 1);
    if (!line)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to read it");
    off_t end = 0;
    while (fgets(line, LINE_MOST, file)) {
        const size_t length = strlen(line);
        if (!is_kept(line, length, resumed_at))
            break;
        end += (off_t)length;
    }
    tess_small_free(line);
    if (fseeko(file, end, SEEK_SET) != 0 || ftruncate(fileno(file), end) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    return TESS_OK;
}

/* A name that was mistaken must not cost its file: only what begins as a log is continued or replaced. */
static tess_status check_ours(int fd, tess_error *error)
{
    char head[sizeof BEGIN];
    const ssize_t got = pread(fd, head, sizeof BEGIN - 1, 0);
    if (got < 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be read: %s", strerror(errno));
    if (memcmp(head, BEGIN, (size_t)got) == 0)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "exists and is not a log of training; set another log, or remove it");
}

static tess_status open_file(tess_log *log, tess_error *error)
{
    struct stat about;
    const int flags = O_RDWR | O_NONBLOCK | O_CLOEXEC;
    int fd = open(log->path, flags);
    if (fd < 0 && errno == ENOENT) {
        fd = open(log->path, flags | O_CREAT | O_EXCL, 0666);
        log->made = fd >= 0;
        if (fd < 0 && errno == EEXIST) /* a link whose file does not exist */
            fd = open(log->path, flags | O_CREAT, 0666);
    }
    if (fd < 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || !(log->file = fdopen(fd, "r+"))) {
        close(fd);
        return tess_fail(error, TESS_IO_FAILED, "cannot be written: it is not a regular file");
    }
    /* File systems without locks are used without. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        log->made = false;
        return tess_fail(error, TESS_BAD_INPUT,
                         "another run is writing this log; wait for it, or set another log");
    }
    return check_ours(fd, error);
}

tess_status tess_log_open(const char *path, tess_log **out, tess_error *error)
{
    tess_log *log = tess_small_alloc(1, sizeof *log);
    *out = NULL;
    if (!log || !(log->path = tess_small_strdup(path))) {
        tess_log_close(log);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", path);
    }
    log->resumed_at = -1;
    const tess_status status = open_file(log, error);
    if (status == TESS_OK) {
        *out = log;
        return TESS_OK;
    }
    tess_log_close(log);
    return tess_fail_prefix(error, status, path);
}

void tess_log_resume(tess_log *log, int64_t resumed_at)
{
    log->resumed_at = resumed_at;
}

static tess_status write_line(tess_log *log, const char *text, tess_error *error)
{
    if (!log->begun)
        TESS_TRY(cut(log->file, log->resumed_at, error));
    log->begun = true;
    if (fputs(text, log->file) >= 0 && fputc('\n', log->file) != EOF && fflush(log->file) == 0)
        return TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
}

tess_status tess_log_line(tess_log *log, tess_json *record, tess_error *error)
{
    char *text = tess_json_dump(record, false);
    tess_json_free(record);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for a line", log->path);
    const tess_status status = write_line(log, text, error);
    tess_small_free(text);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, log->path);
}

void tess_log_close(tess_log *log)
{
    if (!log)
        return;
    if (log->made && !log->begun)
        (void)unlink(log->path);
    if (log->file)
        fclose(log->file);
    tess_small_free(log->path);
    tess_small_free(log);
}
