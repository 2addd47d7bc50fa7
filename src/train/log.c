/* A run that was killed after its last checkpoint does some steps again when it is resumed,
 * and its last line may be cut short: both are cut off before the log continues. */
#define _POSIX_C_SOURCE 200809L
#include "train/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { LINE_MOST = 64 << 10 };

struct tess_log {
    FILE *file;
    char *path;
};

/* True for a line of a step that the resumed run will not do again. */
static bool is_kept(const char *line, size_t length, int64_t resumed_at)
{
    tess_json *record = NULL;
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

static tess_status open_file(tess_log *log, int64_t resumed_at, tess_error *error)
{
    struct stat about;
    const int flags = O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC | (resumed_at < 0 ? O_TRUNC : 0);
    const int fd = open(log->path, flags, 0666);
    if (fd < 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || !(log->file = fdopen(fd, "r+"))) {
        close(fd);
        return tess_fail(error, TESS_IO_FAILED, "cannot be written: it is not a regular file");
    }
    return resumed_at < 0 ? TESS_OK : cut(log->file, resumed_at, error);
}

tess_status tess_log_open(const char *path, int64_t resumed_at, tess_log **out, tess_error *error)
{
    tess_log *log = tess_small_alloc(1, sizeof *log);
    *out = NULL;
    if (!log || !(log->path = tess_small_strdup(path))) {
        tess_log_close(log);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", path);
    }
    const tess_status status = open_file(log, resumed_at, error);
    if (status == TESS_OK) {
        *out = log;
        return TESS_OK;
    }
    tess_log_close(log);
    return tess_fail_prefix(error, status, path);
}

tess_status tess_log_line(tess_log *log, tess_json *record, tess_error *error)
{
    char *text = tess_json_dump(record, false);
    tess_json_free(record);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for a line", log->path);
    const bool done = fputs(text, log->file) >= 0 && fputc('\n', log->file) != EOF && fflush(log->file) == 0;
    tess_small_free(text);
    return done ? TESS_OK
                : tess_fail(error, TESS_IO_FAILED, "%s: cannot be written: %s", log->path, strerror(errno));
}

void tess_log_close(tess_log *log)
{
    if (!log)
        return;
    if (log->file)
        fclose(log->file);
    tess_small_free(log->path);
    tess_small_free(log);
}
