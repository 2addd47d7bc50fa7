#define _GNU_SOURCE
#include "job/fill/fill_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/temp.h"
#include "train/checksum.h"

static const char MAGIC[8] = "TESSFIL1";

typedef struct journal_head {
    char magic[8];
    uint64_t fingerprint;
    int64_t tiles, most;
} journal_head;

/* Followed by the values. The checksum is of tile, count and the values. */
typedef struct entry_head {
    int64_t tile, count;
    uint64_t checksum;
} entry_head;

struct tess_fill_journal {
    int file;
    char *path;
    bool mine;                       /* not another run's */
    int64_t tiles, most, count, end; /* end: where the next entry goes */
    int64_t *at;                     /* of each tile's values in the file; 0: not there */
    tess_block block;
    float *values; /* of one entry, for reading */
};

static size_t table_bytes(const tess_fill_journal_settings *s)
{
    return (size_t)tess_round_up(s->tiles * (int64_t)sizeof(int64_t), 64);
}

size_t tess_fill_journal_bytes(const tess_fill_journal_settings *settings)
{
    return tess_block_granted(table_bytes(settings) + (size_t)settings->most * sizeof(float));
}

static uint64_t checksum(const entry_head *head, const float *values)
{
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    tess_xxh64_add(&sum, &head->tile, sizeof head->tile);
    tess_xxh64_add(&sum, &head->count, sizeof head->count);
    tess_xxh64_add(&sum, values, (size_t)head->count * sizeof *values);
    return tess_xxh64_end(&sum);
}

static bool read_at(int file, void *data, size_t bytes, int64_t at)
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

static tess_status write_at(const tess_fill_journal *j, const void *data, size_t bytes, int64_t at,
                            tess_error *error)
{
    for (const char *from = data; bytes > 0;) {
        const ssize_t put = pwrite(j->file, from, bytes, at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            (void)tess_temp_fail(put < 0 ? errno : ENOSPC, error);
            return tess_fail_prefix(error, TESS_BAD_INPUT, j->path);
        }
        from += put, at += put, bytes -= (size_t)put;
    }
    return TESS_OK;
}

/* Finds the whole entries; the rest of the file is overwritten. */
static void scan(tess_fill_journal *j)
{
    entry_head head;
    while (read_at(j->file, &head, sizeof head, j->end) && head.tile >= 0 && head.tile < j->tiles &&
           head.count >= 0 && head.count <= j->most &&
           read_at(j->file, j->values, (size_t)head.count * sizeof(float), j->end + (int64_t)sizeof head) &&
           checksum(&head, j->values) == head.checksum) {
        j->count += j->at[head.tile] == 0;
        j->at[head.tile] = j->end + (int64_t)sizeof head;
        j->end = j->at[head.tile] + head.count * (int64_t)sizeof(float);
    }
}

static tess_status begin(tess_fill_journal *j, const tess_fill_journal_settings *s, tess_error *error)
{
    const journal_head mine = {.fingerprint = s->fingerprint, .tiles = s->tiles, .most = s->most};
    journal_head head;
    j->end = (int64_t)sizeof head;
    const bool there = read_at(j->file, &head, sizeof head, 0);
    const bool same = there && memcmp(head.magic, MAGIC, sizeof MAGIC) == 0 &&
                      head.fingerprint == mine.fingerprint && head.tiles == mine.tiles &&
                      head.most == mine.most;
    if (same)
        scan(j);
    if (there && !same)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: belongs to a run with other settings, or with files of other sizes or dates; use those with "
            "`resume`, or delete the file",
            j->path);
    if (j->count > 0 && !s->resume)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has %lld finished tiles of this job; use `resume` to go on, or delete the file",
                         j->path, (long long)j->count);
    j->mine = true;
    journal_head fresh = mine;
    memcpy(fresh.magic, MAGIC, sizeof MAGIC);
    if (!same)
        TESS_TRY(write_at(j, &fresh, sizeof fresh, 0, error));
    if (ftruncate(j->file, j->end) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s", j->path, strerror(errno));
    return TESS_OK;
}

/* `create`: O_CREAT, or 0: a file that is not there stays so. */
static tess_status open_file(tess_fill_journal *j, int create, tess_error *error)
{
    struct stat facts;
    j->file = open(j->path, O_RDWR | create | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (j->file < 0 && errno == ENOENT && !create)
        return TESS_OK;
    if (j->file < 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s", j->path, strerror(errno));
    if (fstat(j->file, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid())
        return tess_fail(error, TESS_BAD_INPUT, "%s: is no file of yours; delete it", j->path);
    if (flock(j->file, LOCK_EX | LOCK_NB) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: another run is using it; wait for its end", j->path);
    return TESS_OK;
}

static bool name_file(tess_fill_journal *j, const char *output)
{
    const size_t length = strlen(output) + sizeof ".unfinished";
    j->file = -1;
    j->path = tess_small_alloc(length, 1);
    if (j->path)
        snprintf(j->path, length, "%s.unfinished", output);
    return j->path != NULL;
}

/* Whether a file of ours begins with a whole entry. */
static bool has_entry(int file)
{
    enum { MOST = 4 << 20 }; /* values of the largest tiles, with their deviations */
    journal_head head;
    entry_head entry;
    if (!read_at(file, &head, sizeof head, 0) || memcmp(head.magic, MAGIC, sizeof MAGIC) != 0 ||
        !read_at(file, &entry, sizeof entry, sizeof head) || entry.count < 0 || entry.count > MOST)
        return false;
    float *values = tess_small_alloc((size_t)entry.count + 1, sizeof *values);
    const bool whole =
        values && read_at(file, values, (size_t)entry.count * sizeof *values, sizeof head + sizeof entry) &&
        checksum(&entry, values) == entry.checksum;
    tess_small_free(values);
    return whole;
}

tess_status tess_fill_journal_check(const char *output, bool resume, tess_error *error)
{
    tess_fill_journal j = {0};
    if (!name_file(&j, output))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of tiles");
    tess_status status = open_file(&j, 0, error);
    if (status == TESS_OK && j.file >= 0 && !resume && has_entry(j.file))
        status = tess_fail(
            error, TESS_BAD_INPUT,
            "%s: has finished tiles of an earlier run; use `resume` to go on, or delete the file", j.path);
    if (j.file >= 0)
        close(j.file);
    tess_small_free(j.path);
    return status;
}

tess_status tess_fill_journal_open(const tess_fill_journal_settings *settings, tess_fill_journal **out,
                                   tess_error *error)
{
    tess_fill_journal *j = tess_small_alloc(1, sizeof *j);
    *out = NULL;
    if (!j || !name_file(j, settings->output)) {
        tess_small_free(j);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of tiles");
    }
    j->tiles = settings->tiles;
    j->most = settings->most;
    tess_status status =
        tess_block_alloc(settings->memory, &j->block, TESS_MEM_HOST,
                         table_bytes(settings) + (size_t)settings->most * sizeof(float), error);
    if (status == TESS_OK) {
        j->at = j->block.data;
        memset(j->at, 0, table_bytes(settings));
        j->values = (float *)(void *)((char *)j->block.data + table_bytes(settings));
        status = open_file(j, O_CREAT, error);
    }
    if (status == TESS_OK)
        status = begin(j, settings, error);
    if (status != TESS_OK) {
        tess_fill_journal_close(j, false);
        return status;
    }
    *out = j;
    return TESS_OK;
}

int64_t tess_fill_journal_count(const tess_fill_journal *journal)
{
    return journal->count;
}

bool tess_fill_journal_has(const tess_fill_journal *journal, int64_t tile)
{
    return journal->at[tile] != 0;
}

tess_status tess_fill_journal_add(tess_fill_journal *journal, int64_t tile, const float *values,
                                  int64_t count, tess_error *error)
{
    entry_head head = {.tile = tile, .count = count};
    const int64_t at = journal->end + (int64_t)sizeof head;
    head.checksum = checksum(&head, values);
    TESS_TRY(write_at(journal, values, (size_t)count * sizeof *values, at, error));
    TESS_TRY(write_at(journal, &head, sizeof head, journal->end, error));
    journal->count += journal->at[tile] == 0;
    journal->at[tile] = at;
    journal->end = at + count * (int64_t)sizeof *values;
    return TESS_OK;
}

tess_status tess_fill_journal_read(tess_fill_journal *journal, int64_t tile, float *values, int64_t count,
                                   tess_error *error)
{
    if (!read_at(journal->file, values, (size_t)count * sizeof *values, journal->at[tile]))
        return tess_fail(error, TESS_BAD_INPUT, "%s: cannot be read back; start again without it",
                         journal->path);
    return TESS_OK;
}

void tess_fill_journal_close(tess_fill_journal *journal, bool done)
{
    if (!journal)
        return;
    if (done || (journal->mine && journal->count == 0)) /* one without tiles is of no use */
        unlink(journal->path);
    if (journal->file >= 0)
        close(journal->file);
    tess_block_free(&journal->block);
    tess_small_free(journal->path);
    tess_small_free(journal);
}
