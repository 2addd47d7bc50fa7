/* fill_journal_file.c: opens, locks and checks the file of a journal. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/fill/fill_journal_impl.h"
#include "train/checksum.h"

const char tess_journal_magic[8] = "TESSFIL3";

uint64_t tess_journal_checksum(const tess_journal_entry *head, const float *values)
{
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    tess_xxh64_add(&sum, &head->tile, sizeof head->tile);
    tess_xxh64_add(&sum, &head->count, sizeof head->count);
    tess_xxh64_add(&sum, values, (size_t)head->count * sizeof *values);
    return tess_xxh64_end(&sum);
}

bool tess_journal_read_at(int file, void *data, size_t bytes, int64_t at)
{
    for (char *to = data; bytes > 0;) {
        const ssize_t got = pread(file, to, bytes, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got, at += got, bytes -= (size_t)got;
    }
    return true;
}

tess_status tess_journal_open_file(tess_fill_journal *j, int create, bool lock, tess_error *error)
{
    struct stat facts;
    j->file = open(j->path, O_RDWR | create | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (j->file < 0 && errno == ENOENT && !create)
        return TESS_OK;
    if (j->file < 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s", j->path, strerror(errno));
    if (fstat(j->file, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid())
        return tess_fail(error, TESS_BAD_INPUT, "%s: is no file of yours; delete it", j->path);
    if (lock && flock(j->file, LOCK_EX | LOCK_NB) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: another run is using it; wait for its end", j->path);
    return TESS_OK;
}

bool tess_journal_name(tess_fill_journal *j, const char *output)
{
    const size_t length = strlen(output) + sizeof ".unfinished";
    j->file = -1;
    j->path = tess_small_alloc(length, 1);
    if (j->path)
        snprintf(j->path, length, "%s.unfinished", output);
    return j->path != NULL;
}

bool tess_journal_has_entry(int file)
{
    enum { MOST = 4 << 20 }; /* values of the largest tiles, with their deviations */
    struct stat facts;
    tess_journal_head head;
    tess_journal_entry entry;
    bool whole = false;
    float *values = NULL;
    if (fstat(file, &facts) != 0 || !tess_journal_read_at(file, &head, sizeof head, 0) ||
        memcmp(head.magic, tess_journal_magic, sizeof tess_journal_magic) != 0)
        return false;
    for (int64_t at = TESS_JOURNAL_PAGE; !whole && at < facts.st_size; at += TESS_JOURNAL_PAGE) {
        if (!tess_journal_read_at(file, &entry, sizeof entry, at) || entry.tile < 0 ||
            entry.tile >= head.tiles || entry.count < 1 || entry.count > MOST)
            continue;
        float *larger = tess_small_realloc(values, (size_t)entry.count, sizeof *values);
        if (!larger)
            break;
        values = larger;
        whole = tess_journal_read_at(file, values, (size_t)entry.count * sizeof *values,
                                     at + (int64_t)sizeof entry) &&
                tess_journal_checksum(&entry, values) == entry.checksum;
    }
    tess_small_free(values);
    return whole;
}

tess_status tess_fill_journal_check(const char *output, bool resume, tess_error *error)
{
    tess_fill_journal j = {0};
    if (!tess_journal_name(&j, output))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of tiles");
    tess_status status = tess_journal_open_file(&j, 0, true, error);
    if (status == TESS_OK && j.file >= 0 && !resume && tess_journal_has_entry(j.file))
        status = tess_fail(
            error, TESS_BAD_INPUT,
            "%s: has finished tiles of an earlier run; use `resume` to go on, or delete the file", j.path);
    if (j.file >= 0)
        close(j.file);
    tess_small_free(j.path);
    return status;
}
