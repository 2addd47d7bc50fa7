#include "physics/overlap.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

int64_t tess_overlap_height(const tess_share *share, int64_t height, int64_t reach)
{
    return tess_share_rows(share, height) + 2 * reach;
}

void tess_overlap_lay_out(tess_overlap *o, tess_share *share, int64_t height, int64_t reach, tess_tensor rows)
{
    *o = (tess_overlap){.share = share, .height = height, .reach = reach, .rows = rows};
}

static int owner_of(const tess_share *share, int64_t row)
{
    int rank = 0;
    while (share->from[rank + 1] <= row)
        rank++;
    return rank;
}

/* Adds the pieces of the rows that `rank` needs besides its strip, in one order on all ranks; with `pieces` NULL, counts them. */
static int pieces_of(const tess_overlap *o, int rank, tess_overlap_piece *pieces)
{
    const tess_share *share = o->share;
    const int64_t *from = share->from, starts[2] = {from[rank] - o->reach, from[rank + 1]};
    const int me = share->dist->rank;
    int count = 0;
    for (int side = 0; side < 2; side++) {
        const int64_t end = starts[side] + o->reach;
        for (int64_t row = starts[side], some; row < end; row += some) {
            const int64_t there = o->around ? ((row % o->height) + o->height) % o->height : row;
            some = there < 0 ? tess_min_i64(-there, end - row) : end - row;
            if (there < 0 || there >= o->height)
                continue;
            const int owner = owner_of(share, there);
            some = tess_min_i64(some, from[owner + 1] - there);
            if (rank != me && owner != me)
                continue;
            if (pieces)
                pieces[count] = (tess_overlap_piece){.peer = rank == me ? owner : rank,
                                                     .sends = owner == me,
                                                     .receives = rank == me,
                                                     .from = there - from[owner],
                                                     .to = row - starts[0],
                                                     .count = some};
            count++;
        }
    }
    return count;
}

tess_status tess_overlap_open(tess_overlap *o, tess_error *error)
{
    const int size = o->share->dist->size;
    int count = 0;
    for (int r = 0; r < size; r++)
        count += pieces_of(o, r, NULL);
    o->pieces = tess_small_alloc((size_t)count + 1, sizeof *o->pieces);
    o->list = tess_small_alloc((size_t)count + 1, sizeof *o->list);
    if (!o->pieces || !o->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the rows of neighbours");
    for (int r = 0; r < size; r++)
        o->count += pieces_of(o, r, o->pieces + o->count);
    return tess_dist_exchange_create(o->share->dist, count + 1, &o->exchange, error);
}

void tess_overlap_close(tess_overlap *o)
{
    tess_small_free(o->pieces);
    tess_small_free(o->list);
    tess_dist_exchange_destroy(o->exchange);
    *o = (tess_overlap){0};
}

static size_t row_bytes(const tess_overlap *o)
{
    return (size_t)(o->rows.w * o->rows.c) * sizeof(float);
}

/* Ranks compute in host memory, where work is done when its call returns. */
void tess_overlap_gather(const tess_overlap *o, const void *strip, void *rows)
{
    const size_t row = row_bytes(o);
    const int64_t own = tess_share_rows(o->share, o->height), end = o->reach + own;
    const char *from = strip;
    char *to = rows;
    tess_error error;
    memset(to, 0, (size_t)o->reach * row);
    memset(to + (size_t)end * row, 0, (size_t)(o->rows.h - end) * row);
    for (int i = 0; i < o->count; i++) {
        const tess_overlap_piece *p = &o->pieces[i];
        const size_t bytes = (size_t)p->count * row;
        o->list[i] = (tess_dist_transfer){.peer = p->peer,
                                          .send = p->sends ? from + (size_t)p->from * row : NULL,
                                          .send_bytes = p->sends ? bytes : 0,
                                          .receive = p->receives ? to + (size_t)p->to * row : NULL,
                                          .receive_bytes = p->receives ? bytes : 0};
    }
    tess_status status = tess_dist_exchange_begin(o->exchange, o->list, o->count, &error);
    memcpy(to + (size_t)o->reach * row, from, (size_t)own * row);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(o->exchange, &error);
    (void)!tess_share_keep(o->share, status, &error); /* several ranks: it is kept */
}

void tess_overlap_own(const tess_overlap *o, const void *rows, void *strip)
{
    const size_t row = row_bytes(o);
    memcpy(strip, (const char *)rows + (size_t)o->reach * row,
           (size_t)tess_share_rows(o->share, o->height) * row);
}
