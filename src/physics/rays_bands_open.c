/* Which rows are whose, and how many views a round has. All ranks know all slabs and all views, so nobody has to ask. */
#include "base/checked.h"
#include "base/mem.h"
#include "geometry/ray3.h"
#include "physics/rays_bands_impl.h"

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

tess_shadow_rows tess_bands_rows(const tess_bands *b, tess_bands_part part, int64_t view)
{
    const tess_shadow_rows *members = b->inside + view * b->members;
    switch (part.kind) {
    case TESS_BANDS_ALL:
        break;
    case TESS_BANDS_MEMBER:
        return members[part.index];
    case TESS_BANDS_NODE:
        return tess_shadow_union(members, b->members);
    case TESS_BANDS_OTHER:
        return b->theirs[(view - tess_bands_first(b, b->dist->rank)) * b->nodes.count + part.index];
    }
    return (tess_shadow_rows){0, (int32_t)b->rows};
}

size_t tess_bands_bytes(const tess_bands *b, tess_bands_portion p, tess_bands_part part)
{
    int64_t rows = 0;
    for (int64_t view = p.first; view < p.first + p.count; view++) {
        const tess_shadow_rows r = tess_bands_rows(b, part, view);
        rows += r.end - r.first;
    }
    return (size_t)(rows * b->columns) * sizeof(float);
}

/* Finds the bands, and the rows of the widest one of all ranks. */
static int64_t find_bands(tess_bands *b, const tess_rays_settings *s)
{
    const int64_t *from = s->share->from, own = tess_bands_first(b, b->dist->rank),
                  end = tess_bands_first(b, b->dist->rank + 1);
    int64_t widest = 0;
    for (int64_t view = 0; view < b->views; view++)
        for (int n = 0; n < b->nodes.count; n++) {
            tess_shadow_rows node = {0, 0};
            for (int m = 0; m < tess_ray_nodes_members(&b->nodes, n); m++) {
                const int r = tess_ray_nodes_member(&b->nodes, n, m);
                const tess_shadow_rows rows = tess_rays_shadow(s, from[r], from[r + 1] - from[r],
                                                               s->vectors + view * TESS_VIEW3_NUMBERS);
                if (n == b->node)
                    b->inside[view * b->members + m] = rows;
                node = tess_shadow_union((const tess_shadow_rows[2]){node, rows}, 2);
                widest = tess_max_i64(widest, rows.end - rows.first);
            }
            if (view >= own && view < end)
                b->theirs[(view - own) * b->nodes.count + n] = node;
        }
    return widest;
}

int64_t tess_bands_most(int ranks, int64_t rows, int64_t columns, int64_t widest)
{
    const int64_t most = tess_max_i64(widest * ranks, rows),
                  fit = BUFFER_BYTES / (most * columns * (int64_t)sizeof(float));
    return tess_max_i64(1, tess_min_i64(TESS_BANDS_MOST_VIEWS, fit));
}

/* The same rounds on all ranks; the buffers are this one's. */
static void size_rounds(tess_bands *b, int64_t widest)
{
    b->most = tess_bands_most(b->dist->size, b->rows, b->columns, widest);
    b->rounds = tess_ceil_div(tess_ceil_div(b->views, b->dist->size), b->most);
    for (int64_t round = 0; round < b->rounds; round++) {
        size_t own = 0, node = 0, members = 0, all = 0;
        for (int r = 0; r < b->dist->size; r++)
            own += tess_bands_bytes(b, tess_bands_portion_of(b, r, round), tess_bands_mine(b));
        for (int i = 0; i < b->serving; i++) {
            const tess_bands_portion p = tess_bands_portion_of(b, b->served[i], round);
            node += tess_bands_bytes(b, p, (tess_bands_part){TESS_BANDS_NODE});
            for (int m = 0; m < b->members; m++)
                members += tess_bands_bytes(b, p, (tess_bands_part){TESS_BANDS_MEMBER, m});
        }
        for (int n = 0; n < b->nodes.count; n++)
            all += tess_bands_bytes(b, tess_bands_portion_of(b, b->dist->rank, round),
                                    (tess_bands_part){TESS_BANDS_OTHER, n});
        const size_t most[2] = {own > node ? own : node, members > all ? members : all};
        for (int i = 0; i < 2; i++)
            b->bytes[i] = most[i] > b->bytes[i] ? most[i] : b->bytes[i];
    }
}

static tess_status make_room(tess_bands *b, tess_error *error)
{
    const int size = b->dist->size;
    const int64_t own = tess_bands_first(b, b->dist->rank + 1) - tess_bands_first(b, b->dist->rank);
    b->served = tess_small_alloc((size_t)size, sizeof *b->served);
    b->inside = tess_small_alloc((size_t)(b->views * b->members), sizeof *b->inside);
    b->theirs = tess_small_alloc((size_t)(own * b->nodes.count + 1), sizeof *b->theirs);
    if (!b->served || !b->inside || !b->theirs)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the shadows of slabs");
    for (int owner = 0; owner < size; owner++)
        if (tess_ray_nodes_agent(&b->nodes, b->node, owner) == b->dist->rank)
            b->served[b->serving++] = owner;
    const int most = size + b->serving * b->members + b->nodes.count;
    b->list = tess_small_alloc((size_t)most, sizeof *b->list);
    return b->list ? tess_dist_exchange_create(b->dist, most, &b->exchange, error)
                   : tess_fail(error, TESS_NO_MEMORY, "no memory for the bands of ranks");
}

tess_status tess_bands_open(const tess_rays_settings *s, tess_bands *b, tess_error *error)
{
    *b = (tess_bands){.dist = s->share->dist, .views = s->views, .rows = s->rows, .columns = s->columns};
    TESS_TRY(tess_ray_nodes_open(b->dist, &b->nodes, error));
    b->node = b->nodes.of[b->dist->rank];
    b->members = tess_ray_nodes_members(&b->nodes, b->node);
    while (tess_ray_nodes_member(&b->nodes, b->node, b->member) != b->dist->rank)
        b->member++;
    const tess_status status = make_room(b, error);
    if (status != TESS_OK)
        tess_bands_clear(b);
    else
        size_rounds(b, find_bands(b, s));
    return status;
}

void tess_bands_clear(tess_bands *b)
{
    tess_dist_exchange_destroy(b->exchange);
    tess_small_free(b->list);
    tess_small_free(b->theirs);
    tess_small_free(b->inside);
    tess_small_free(b->served);
    tess_ray_nodes_clear(&b->nodes);
    *b = (tess_bands){0};
}
