#define _GNU_SOURCE
#include "job/fill/fill_journal_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/temp.h"

static size_t table_bytes(int64_t tiles)
{
    return (size_t)tess_round_up((tiles + 1) * (int64_t)sizeof(int64_t), 64);
}

static size_t flag_bytes(int64_t tiles)
{
    return (size_t)tess_round_up(tiles, 64);
}

static size_t all_bytes(const tess_fill_journal_settings *s)
{
    return table_bytes(s->tiles) + flag_bytes(s->tiles) + (size_t)s->most * sizeof(float);
}

size_t tess_fill_journal_bytes(const tess_fill_journal_settings *settings)
{
    return tess_block_granted(all_bytes(settings));
}

/* Values of an entry that fit into its place. */
static int64_t room_for(const tess_fill_journal *j, int64_t tile)
{
    return (j->at[tile + 1] - j->at[tile] - (int64_t)sizeof(tess_journal_entry)) / (int64_t)sizeof(float);
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

/* Whether the tile has a whole entry, which is then in `values`. */
static bool read_entry(const tess_fill_journal *j, int64_t tile, float *values)
{
    tess_journal_entry head;
    return tess_journal_read_at(j->file, &head, sizeof head, j->at[tile]) && head.tile == tile &&
           head.count >= 0 && head.count <= room_for(j, tile) && head.count <= j->most &&
           tess_journal_read_at(j->file, values, (size_t)head.count * sizeof(float),
                                j->at[tile] + (int64_t)sizeof head) &&
           tess_journal_checksum(&head, values) == head.checksum;
}

static void scan(tess_fill_journal *j)
{
    for (int64_t tile = 0; tile < j->tiles; tile++) {
        j->has[tile] = read_entry(j, tile, j->values);
        j->count += j->has[tile];
    }
}

static tess_status begin(tess_fill_journal *j, const tess_fill_journal_settings *s, tess_error *error)
{
    const tess_journal_head mine = {.fingerprint = s->fingerprint, .tiles = s->tiles, .most = s->most};
    tess_journal_head head;
    const bool there = tess_journal_read_at(j->file, &head, sizeof head, 0);
    const bool ours = there && memcmp(head.magic, tess_journal_magic, sizeof tess_journal_magic) == 0,
               same = ours && head.fingerprint == mine.fingerprint && head.tiles == mine.tiles &&
                      head.most == mine.most;
    if (same)
        scan(j);
    /* A run that was killed before its first tile has left nothing to go on with. */
    const bool empty = ours && !same && !tess_journal_has_entry(j->file);
    if (there && !same && !empty)
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
    if (empty && ftruncate(j->file, 0) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s", j->path, strerror(errno));
    tess_journal_head fresh = mine;
    memcpy(fresh.magic, tess_journal_magic, sizeof tess_journal_magic);
    return same ? TESS_OK : write_at(j, &fresh, sizeof fresh, 0, error);
}

/* Memory, and the places of the entries. */
static tess_status lay_out(tess_fill_journal *j, const tess_fill_journal_settings *s, tess_error *error)
{
    TESS_TRY(tess_block_alloc(s->memory, &j->block, TESS_MEM_HOST, all_bytes(s), error));
    char *data = j->block.data;
    j->at = j->block.data;
    j->has = (uint8_t *)data + table_bytes(s->tiles);
    j->values = (float *)(void *)(data + table_bytes(s->tiles) + flag_bytes(s->tiles));
    memset(j->has, 0, flag_bytes(s->tiles));
    j->at[0] = TESS_JOURNAL_PAGE;
    for (int64_t tile = 0; tile < s->tiles; tile++) {
        const int64_t bytes = s->count_of(s->user, tile) * (int64_t)sizeof(float);
        j->at[tile + 1] =
            j->at[tile] + tess_round_up(bytes + (int64_t)sizeof(tess_journal_entry), TESS_JOURNAL_PAGE);
    }
    return TESS_OK;
}

static tess_status open_first(tess_fill_journal *j, const tess_fill_journal_settings *s, tess_error *error)
{
    TESS_TRY(lay_out(j, s, error));
    if (j->dist && j->dist->rank > 0)
        return TESS_OK;
    TESS_TRY(tess_journal_open_file(j, O_CREAT, true, error));
    return begin(j, s, error);
}

/* The ranks behind rank 0 open what rank 0 has found or made. */
static tess_status follow(tess_fill_journal *j, tess_error *error)
{
    tess_status status = TESS_OK;
    if (!j->dist)
        return TESS_OK;
    if (j->dist->rank > 0)
        status = tess_journal_open_file(j, 0, false, error);
    if (status == TESS_OK && j->file < 0)
        status = tess_fail(error, TESS_BAD_INPUT,
                           "%s: rank 0 has made this file, and it is not here; all ranks need the same "
                           "folder for the output",
                           j->path);
    TESS_TRY(tess_dist_agree(j->dist, status, error));
    TESS_TRY(tess_dist_broadcast(j->dist, 0, &j->count, sizeof j->count, error));
    return tess_dist_broadcast(j->dist, 0, j->has, (size_t)j->tiles, error);
}

tess_status tess_fill_journal_open(const tess_fill_journal_settings *settings, tess_fill_journal **out,
                                   tess_error *error)
{
    tess_dist *dist = settings->dist && settings->dist->size > 1 ? settings->dist : NULL;
    tess_fill_journal *j = tess_small_alloc(1, sizeof *j);
    tess_status status = TESS_OK;
    *out = NULL;
    if (!j || !tess_journal_name(j, settings->output))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for the list of tiles");
    if (status == TESS_OK) {
        j->dist = dist;
        j->tiles = settings->tiles;
        j->most = settings->most;
        status = open_first(j, settings, error);
    }
    if (dist)
        status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = follow(j, error);
    if (status != TESS_OK) {
        tess_fill_journal_close(j, false);
        return status;
    }
    *out = j;
    return TESS_OK;
}

tess_status tess_fill_journal_share(tess_fill_journal *j, tess_error *error)
{
    tess_status status = TESS_OK;
    if (!j->dist)
        return TESS_OK;
    uint8_t *theirs = tess_small_alloc((size_t)j->tiles + 1, 1);
    j->doubt = true;
    if (!theirs)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for the list of tiles");
    else if (fdatasync(j->file) != 0)
        status = tess_fail(error, TESS_BAD_INPUT, "%s: %s", j->path, strerror(errno));
    status = tess_dist_agree(j->dist, status, error);
    for (int r = 0; r < j->dist->size && status == TESS_OK; r++) {
        memcpy(theirs, j->has, (size_t)j->tiles);
        status = tess_dist_broadcast(j->dist, r, theirs, (size_t)j->tiles, error);
        for (int64_t tile = 0; tile < j->tiles && status == TESS_OK; tile++) {
            j->count += theirs[tile] && !j->has[tile];
            j->has[tile] |= theirs[tile];
        }
    }
    tess_small_free(theirs);
    j->doubt = status != TESS_OK;
    const int again =
        open(j->path, O_RDONLY | O_CLOEXEC); /* a network file system then looks for what is new */
    if (again >= 0)
        close(again);
    return status;
}

int64_t tess_fill_journal_count(const tess_fill_journal *journal)
{
    return journal->count;
}

bool tess_fill_journal_has(const tess_fill_journal *journal, int64_t tile)
{
    return journal->has[tile];
}

tess_status tess_fill_journal_add(tess_fill_journal *journal, int64_t tile, const float *values,
                                  int64_t count, tess_error *error)
{
    tess_journal_entry head = {.tile = tile, .count = count};
    const int64_t at = journal->at[tile];
    if (count > room_for(journal, tile))
        return tess_fail(error, TESS_INTERNAL, "%lld values do not fit the place of tile %lld",
                         (long long)count, (long long)tile);
    head.checksum = tess_journal_checksum(&head, values);
    TESS_TRY(write_at(journal, values, (size_t)count * sizeof *values, at + (int64_t)sizeof head, error));
    TESS_TRY(write_at(journal, &head, sizeof head, at, error));
    journal->count += !journal->has[tile];
    journal->has[tile] = 1;
    return TESS_OK;
}

tess_status tess_fill_journal_read(tess_fill_journal *journal, int64_t tile, float *values, int64_t count,
                                   tess_error *error)
{
    if (count > room_for(journal, tile) || !read_entry(journal, tile, journal->values))
        return tess_fail(error, TESS_BAD_INPUT, "%s: cannot be read back; start again without it",
                         journal->path);
    memcpy(values, journal->values, (size_t)count * sizeof *values);
    return TESS_OK;
}

void tess_fill_journal_close(tess_fill_journal *journal, bool done)
{
    if (!journal)
        return;
    const bool empty = journal->count == 0 && !journal->doubt; /* of no use */
    if (journal->mine && (done || empty))
        unlink(journal->path);
    if (journal->file >= 0)
        close(journal->file);
    tess_block_free(&journal->block);
    tess_small_free(journal->path);
    tess_small_free(journal);
}
