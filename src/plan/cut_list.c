/* Lists the ways of cutting an image or a volume. Each axis is cut into 1, 2, 3, ... pieces, and every way of
 * cutting one axis is combined with every way of cutting the others. The bytes of these cuts are estimated by a
 * straight line in the pixels of a window. The line orders the cuts well but not exactly, so code that needs
 * the exact bytes measures the first few. */
#include <math.h>

#include "base/checked.h"
#include "model/halo.h"
#include "plan/cut_impl.h"

/* A 2-D network takes the slices of a volume as separate images. */
static bool sliced(const tess_cutter *c, int axis)
{
    return axis == TESS_DEPTH && !c->model->volume;
}

/* If a layer depends on everything and the result must be exact, every window would be the whole image, so
 * nothing is cut. */
bool tess_cut_never(const tess_cutter *c, int axis)
{
    return c->request->halo[axis] == TESS_HALO_EXACT && c->reach[axis] >= TESS_REACH_ALL && !sliced(c, axis);
}

int64_t tess_cut_longest_run(const tess_axis *cols)
{
    int64_t most = 1;
    for (int64_t i = 0, run; i < cols->tiles; i += run) {
        run = tess_axis_run(cols, i, cols->tiles);
        most = tess_max_i64(most, run);
    }
    return most;
}

/* The requested batch, as far as the columns can fill it; 1 if the planner is to choose it later. */
static int64_t batch_for(const tess_cutter *c, const tess_axis *cols)
{
    return c->request->batch > 0 ? tess_min_i64(c->request->batch, tess_cut_longest_run(cols)) : 1;
}

static int64_t auto_halo(const tess_cutter *c, int axis, int64_t tiles)
{
    return tess_max_i64(c->request->halo_times, 1) *
           (axis == TESS_DEPTH ? c->model->halo_depth : tess_halo_for(c->model, c->padded[axis], tiles));
}

/* The halo of an axis with so many tiles. A halo beyond the reach of an output value would change nothing. */
static int64_t halo_for(const tess_cutter *c, int axis, int64_t tiles)
{
    int64_t halo = c->request->halo[axis];
    if (sliced(c, axis))
        return 0;
    if (halo == TESS_HALO_EXACT)
        halo = c->reach[axis];
    if (halo == TESS_HALO_AUTO)
        halo = tess_min_i64(auto_halo(c, axis, tiles), c->reach[axis]);
    return tess_round_up(halo, c->alignment[axis]);
}

void tess_cut_by_tile(const tess_cutter *c, const int64_t tile[TESS_SPATIAL], tess_cut_plan *plan)
{
    for (int i = 0; i < TESS_SPATIAL; i++) {
        tess_axis *axis = &plan->axis[i];
        *axis = tess_axis_cut(c->padded[i], sliced(c, i) ? 1 : tile[i], 0, c->alignment[i]);
        axis->halo = halo_for(c, i, axis->tiles);
    }
    plan->batch = batch_for(c, &plan->cols);
}

/* 1, 2, 3, ... 16 pieces, then increasing steps, up to the most that the alignment allows. A 2-D network gets
 * single slices. */
static int64_t pieces(const tess_cutter *c, int axis, int index)
{
    const int64_t most = tess_ceil_div(c->padded[axis], c->alignment[axis]);
    const double wanted = index < 16 ? index + 1 : 16 * pow(1.25, index - 15);
    if (tess_cut_never(c, axis))
        return 1;
    return sliced(c, axis) ? most : tess_min_i64((int64_t)wanted, most);
}

static tess_cut_way way_of(const tess_cutter *c, int i, tess_axis axis)
{
    const tess_cut_request *r = c->request;
    tess_cut_way way = {.axis = axis,
                        .window = (double)tess_axis_largest_window(&axis),
                        .total = (double)tess_axis_total_window(&axis),
                        .batch = i == TESS_WIDTH ? (double)batch_for(c, &axis) : 1};
    if (i == TESS_HEIGHT)
        way.io_bytes = (double)tess_align_size(
            tess_ring_bytes(&axis, r->size[TESS_HEIGHT], r->in_row_bytes, r->out_row_bytes), 64);
    if (i == TESS_WIDTH)
        way.io_bytes = (double)r->row_scratch_bytes * way.window;
    if (r->separate_memory) {
        way.over_host = i == TESS_HEIGHT &&
                        way.io_bytes + (double)(r->fixed_io_bytes + r->held_bytes) > (double)r->host_limit;
        way.io_bytes = 0; /* the stages are counted by pixel */
    }
    return way;
}

void tess_cut_list(tess_cutter *c)
{
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        tess_cut_way *ways = c->ways[axis];
        int count = 0;
        for (int i = 0; i < TESS_MOST_CUTS; i++) {
            const int64_t tiles = pieces(c, axis, i);
            if (count && ways[count - 1].axis.tiles == tiles)
                continue;
            ways[count++] =
                way_of(c, axis,
                       tess_axis_split(c->padded[axis], tiles, halo_for(c, axis, tiles), c->alignment[axis]));
        }
        c->way_count[axis] = count;
    }
}

/* Every cut has an index. Among cuts that compute the same number of pixels the first is chosen, so the axis
 * that varies fastest is cut first: the columns of an image, whose windows can run in one batch, and the depth
 * of a volume, whose slabs are contiguous in memory. */
typedef struct cut {
    const tess_cut_way *way[TESS_SPATIAL];
} cut;

static cut cut_at(const tess_cutter *c, int index)
{
    static const int image[] = {TESS_WIDTH, TESS_HEIGHT, TESS_DEPTH},
                     volume[] = {TESS_DEPTH, TESS_HEIGHT, TESS_WIDTH};
    const int *order = c->model->volume ? volume : image;
    cut at;
    for (int i = 0; i < TESS_SPATIAL; i++) {
        const int axis = order[i];
        at.way[axis] = &c->ways[axis][index % c->way_count[axis]];
        index /= c->way_count[axis];
    }
    return at;
}

static int cut_count(const tess_cutter *c)
{
    return c->way_count[TESS_DEPTH] * c->way_count[TESS_HEIGHT] * c->way_count[TESS_WIDTH];
}

static double estimate_of(const tess_cutter *c, const cut *at)
{
    double bytes = c->fixed_bytes, growing = c->bytes_per_pixel;
    for (int i = 0; i < TESS_SPATIAL; i++) {
        bytes += at->way[i]->io_bytes;
        growing *= at->way[i]->window * at->way[i]->batch;
    }
    return bytes + growing;
}

static void take(const tess_cutter *c, int index, tess_cut_plan *plan)
{
    const cut at = cut_at(c, index);
    for (int i = 0; i < TESS_SPATIAL; i++)
        plan->axis[i] = at.way[i]->axis;
    plan->batch = batch_for(c, &plan->cols);
}

bool tess_cut_best(const tess_cutter *c, double most, tess_cut_plan *plan, double *estimate)
{
    double least = INFINITY;
    int best = -1;
    for (int i = 0; i < cut_count(c); i++) {
        const cut at = cut_at(c, i);
        const double computed =
            at.way[TESS_DEPTH]->total * at.way[TESS_HEIGHT]->total * at.way[TESS_WIDTH]->total;
        const double bytes = estimate_of(c, &at);
        if (bytes > most || at.way[TESS_HEIGHT]->over_host || computed >= least)
            continue;
        least = computed;
        *estimate = bytes;
        best = i;
    }
    if (best >= 0)
        take(c, best, plan);
    return best >= 0;
}

bool tess_cut_next(const tess_cutter *c, tess_cut_walk *walk, tess_cut_plan *plan)
{
    tess_cut_walk next = {INFINITY, -1};
    for (int i = 0; i < cut_count(c); i++) {
        const cut at = cut_at(c, i);
        const double bytes = estimate_of(c, &at);
        const bool done = bytes < walk->bytes || (bytes == walk->bytes && i <= walk->index);
        if (done || bytes >= next.bytes || at.way[TESS_HEIGHT]->over_host)
            continue;
        next = (tess_cut_walk){bytes, i};
    }
    if (next.index < 0)
        return false;
    take(c, next.index, plan);
    *walk = next;
    return true;
}
