#include "physics/rays_bands.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "geometry/ray3.h"

enum { BUFFER_BYTES = 16 << 20 };

int64_t tess_bands_first(const tess_bands *b, int rank)
{
    return b->views * rank / b->dist->size;
}

tess_bands_portion tess_bands_portion_of(const tess_bands *b, int owner, int64_t round)
{
    const int64_t end = tess_bands_first(b, owner + 1),
                  first = tess_min_i64(tess_bands_first(b, owner) + round * b->most, end);
    return (tess_bands_portion){first, tess_min_i64(b->most, end - first)};
}

static const tess_shadow_rows *theirs_of(const tess_bands *b, int64_t view, int rank)
{
    return &b->theirs[(view - tess_bands_first(b, b->dist->rank)) * b->dist->size + rank];
}

static size_t bytes_of(const tess_bands *b, const tess_shadow_rows *rows)
{
    return (size_t)((rows->end - rows->first) * b->columns) * sizeof(float);
}

static size_t mine_bytes(const tess_bands *b, tess_bands_portion p)
{
    size_t bytes = 0;
    for (int64_t view = p.first; view < p.first + p.count; view++)
        bytes += bytes_of(b, &b->mine[view]);
    return bytes;
}

static size_t theirs_bytes(const tess_bands *b, tess_bands_portion p, int rank)
{
    size_t bytes = 0;
    for (int64_t view = p.first; view < p.first + p.count; view++)
        bytes += bytes_of(b, theirs_of(b, view, rank));
    return bytes;
}

/* Where a view's band begins. */
static int64_t place(const tess_bands *b, tess_bands_portion p, int64_t view, const tess_shadow_rows *rows)
{
    return ((view - p.first) * b->rows + rows->first) * b->columns;
}

char *tess_bands_take_mine(const tess_bands *b, tess_bands_portion p, const float *views, char *mine)
{
    for (int64_t view = p.first; view < p.first + p.count; view++) {
        const tess_shadow_rows *rows = &b->mine[view];
        memcpy(mine, views + place(b, p, view, rows), bytes_of(b, rows));
        mine += bytes_of(b, rows);
    }
    return mine;
}

const char *tess_bands_put_mine(const tess_bands *b, tess_bands_portion p, const char *mine, float *views)
{
    memset(views, 0, (size_t)(p.count * b->rows * b->columns) * sizeof *views);
    for (int64_t view = p.first; view < p.first + p.count; view++) {
        const tess_shadow_rows *rows = &b->mine[view];
        memcpy(views + place(b, p, view, rows), mine, bytes_of(b, rows));
        mine += bytes_of(b, rows);
    }
    return mine;
}

char *tess_bands_take_theirs(const tess_bands *b, tess_bands_portion p, int rank, const float *views,
                             char *theirs)
{
    for (int64_t view = p.first; view < p.first + p.count; view++) {
        const tess_shadow_rows *rows = theirs_of(b, view, rank);
        memcpy(theirs, views + place(b, p, view, rows), bytes_of(b, rows));
        theirs += bytes_of(b, rows);
    }
    return theirs;
}

const char *tess_bands_add_theirs(const tess_bands *b, tess_bands_portion p, int rank, const char *theirs,
                                  float *views)
{
    for (int64_t view = p.first; view < p.first + p.count; view++) {
        const tess_shadow_rows *rows = theirs_of(b, view, rank);
        const int64_t count = (rows->end - rows->first) * b->columns;
        const float *from = (const float *)(const void *)theirs;
        float *to = views + place(b, p, view, rows);
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
        theirs += bytes_of(b, rows);
    }
    return theirs;
}

static tess_status exchange(tess_bands *b, int count, tess_error *error)
{
    const tess_status status = tess_dist_exchange_begin(b->exchange, b->list, count, error);
    return status == TESS_OK ? tess_dist_exchange_end(b->exchange, error) : status;
}

tess_status tess_bands_to_owners(tess_bands *b, int64_t round, char *mine, char *theirs, tess_error *error)
{
    const tess_bands_portion own = tess_bands_portion_of(b, b->dist->rank, round);
    for (int r = 0; r < b->dist->size; r++) {
        const size_t out = mine_bytes(b, tess_bands_portion_of(b, r, round)), in = theirs_bytes(b, own, r);
        b->list[r] = (tess_dist_transfer){
            .peer = r, .send = mine, .send_bytes = out, .receive = theirs, .receive_bytes = in};
        mine += out;
        theirs += in;
    }
    return exchange(b, b->dist->size, error);
}

tess_status tess_bands_from_owners(tess_bands *b, int64_t round, char *mine, char *theirs, tess_error *error)
{
    const tess_bands_portion own = tess_bands_portion_of(b, b->dist->rank, round);
    for (int r = 0; r < b->dist->size; r++) {
        const size_t in = mine_bytes(b, tess_bands_portion_of(b, r, round)), out = theirs_bytes(b, own, r);
        b->list[r] = (tess_dist_transfer){
            .peer = r, .send = theirs, .send_bytes = out, .receive = mine, .receive_bytes = in};
        mine += in;
        theirs += out;
    }
    return exchange(b, b->dist->size, error);
}

tess_status tess_bands_spread(tess_bands *b, int owner, int64_t view, size_t row_bytes, char *rows,
                              tess_error *error)
{
    int count = 0;
    if (b->dist->rank != owner) {
        const tess_shadow_rows *band = &b->mine[view];
        memset(rows, 0, (size_t)b->rows * row_bytes);
        b->list[count++] =
            (tess_dist_transfer){.peer = owner,
                                 .receive = rows + (size_t)band->first * row_bytes,
                                 .receive_bytes = (size_t)(band->end - band->first) * row_bytes};
    } else {
        for (int r = 0; r < b->dist->size; r++) {
            const tess_shadow_rows *band = theirs_of(b, view, r);
            if (r != owner)
                b->list[count++] =
                    (tess_dist_transfer){.peer = r,
                                         .send = rows + (size_t)band->first * row_bytes,
                                         .send_bytes = (size_t)(band->end - band->first) * row_bytes};
        }
    }
    return exchange(b, count, error);
}

/* Finds the bands, and the most rows that a view of a round takes in a buffer of any rank: all ranks must come to the same number. */
static int64_t find_bands(tess_bands *b, const tess_rays_settings *s)
{
    const int64_t *from = s->share->from;
    int64_t widest = 0, together = 0;
    for (int64_t view = 0; view < b->views; view++) {
        const bool own =
            view >= tess_bands_first(b, b->dist->rank) && view < tess_bands_first(b, b->dist->rank + 1);
        int64_t all = 0;
        for (int r = 0; r < b->dist->size; r++) {
            const tess_shadow_rows rows =
                tess_rays_shadow(s, from[r], from[r + 1] - from[r], s->vectors + view * TESS_VIEW3_NUMBERS);
            if (r == b->dist->rank)
                b->mine[view] = rows;
            if (own)
                b->theirs[(view - tess_bands_first(b, b->dist->rank)) * b->dist->size + r] = rows;
            widest = tess_max_i64(widest, rows.end - rows.first);
            all += rows.end - rows.first;
        }
        together = tess_max_i64(together, all);
    }
    return tess_max_i64(together, widest * b->dist->size);
}

/* The sizes of the buffers: those of the largest round. */
static void size_buffers(tess_bands *b)
{
    for (int64_t round = 0; round < b->rounds; round++) {
        size_t mine = 0, theirs = 0;
        for (int r = 0; r < b->dist->size; r++) {
            mine += mine_bytes(b, tess_bands_portion_of(b, r, round));
            theirs += theirs_bytes(b, tess_bands_portion_of(b, b->dist->rank, round), r);
        }
        b->mine_bytes = mine > b->mine_bytes ? mine : b->mine_bytes;
        b->theirs_bytes = theirs > b->theirs_bytes ? theirs : b->theirs_bytes;
    }
}

tess_status tess_bands_open(const tess_rays_settings *s, tess_bands *b, tess_error *error)
{
    tess_dist *dist = s->share->dist;
    *b = (tess_bands){.dist = dist, .views = s->views, .rows = s->rows, .columns = s->columns};
    const int64_t own = tess_bands_first(b, dist->rank + 1) - tess_bands_first(b, dist->rank);
    b->mine = tess_small_alloc((size_t)s->views, sizeof *b->mine);
    b->theirs = tess_small_alloc((size_t)(own * dist->size + 1), sizeof *b->theirs);
    b->list = tess_small_alloc((size_t)dist->size, sizeof *b->list);
    tess_status status = b->mine && b->theirs && b->list
                             ? tess_dist_exchange_create(dist, dist->size, &b->exchange, error)
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for the shadows of slabs");
    if (status != TESS_OK) {
        tess_bands_clear(b);
        return status;
    }
    const int64_t rows = tess_max_i64(find_bands(b, s), s->rows),
                  fit = BUFFER_BYTES / (rows * s->columns * (int64_t)sizeof(float));
    b->most = tess_max_i64(1, tess_min_i64(TESS_BANDS_MOST_VIEWS, fit));
    b->rounds = tess_ceil_div(tess_ceil_div(s->views, dist->size), b->most);
    size_buffers(b);
    return TESS_OK;
}

void tess_bands_clear(tess_bands *b)
{
    tess_dist_exchange_destroy(b->exchange);
    tess_small_free(b->list);
    tess_small_free(b->theirs);
    tess_small_free(b->mine);
    *b = (tess_bands){0};
}
