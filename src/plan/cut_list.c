/* The ways of cutting an image. Each axis is cut into 1, 2, 3, ... pieces; every way of cutting the rows goes with every
 * way of cutting the columns. Bytes of the pairs are estimated by a straight line in the pixels of a window. The line
 * orders the pairs well but not exactly, so whoever wants a certain number measures the first of them. */
#include <math.h>

#include "base/checked.h"
#include "model/halo.h"
#include "plan/cut_impl.h"

enum { MEASURED = 24 }; /* pairs with the least estimates, of which one takes the least */

int64_t tess_cut_longest_run(const tess_axis *cols)
{
    int64_t most = 1;
    for (int64_t i = 0, run; i < cols->tiles; i += run) {
        run = tess_axis_run(cols, i, cols->tiles);
        most = tess_max_i64(most, run);
    }
    return most;
}

/* The batch that was asked for, as far as the cut can fill it; 1 until the best is looked for. */
static void set_batch(const chooser *c, tess_cut_plan *choice)
{
    choice->batch =
        c->request->batch > 0 ? tess_min_i64(c->request->batch, tess_cut_longest_run(&choice->cols)) : 1;
}

/* More than an output value depends on would change nothing. */
int64_t tess_cut_halo(const chooser *c, int64_t size, int64_t tiles)
{
    const tess_cut_request *w = c->request;
    int64_t halo = w->halo[TESS_HEIGHT];
    if (halo == TESS_HALO_EXACT)
        halo = c->reach;
    if (halo == TESS_HALO_AUTO)
        halo = tess_min_i64(tess_max_i64(w->halo_times, 1) * tess_halo_for(c->model, size, tiles), c->reach);
    return tess_round_up(halo, c->alignment);
}

static tess_axis cut_axis(const chooser *c, int64_t size, int64_t tile)
{
    tess_axis axis = tess_axis_cut(size, tile, 0, c->alignment);
    axis.halo = tess_cut_halo(c, size, axis.tiles);
    return axis;
}

void tess_cut_by_tile(const chooser *c, int64_t tile_h, int64_t tile_w, tess_cut_plan *choice)
{
    choice->rows = cut_axis(c, c->padded_h, tile_h);
    choice->cols = cut_axis(c, c->padded_w, tile_w);
    set_batch(c, choice);
}

/* 1, 2, 3, ... 16 pieces, then ever larger steps, up to the most that the alignment allows. */
static int64_t pieces(int index, int64_t size, int64_t alignment)
{
    double wanted = index < 16 ? index + 1 : 16 * pow(1.25, index - 15);
    return tess_min_i64((int64_t)wanted, tess_ceil_div(size, alignment));
}

static int cost_axis(const chooser *c, int64_t size, bool rows, axis_cost costs[TESS_MOST_CUTS])
{
    const tess_cut_request *w = c->request;
    int count = 0;
    for (int i = 0; i < TESS_MOST_CUTS; i++) {
        const int64_t tiles = pieces(i, size, c->alignment);
        const tess_axis axis = tess_axis_split(size, tiles, tess_cut_halo(c, size, tiles), c->alignment);
        if (count && costs[count - 1].axis.tiles == axis.tiles)
            continue;
        axis_cost *cost = &costs[count++];
        cost->axis = axis;
        cost->window = (double)tess_axis_largest_window(&axis);
        cost->total = (double)tess_axis_total_window(&axis);
        cost->batch = w->batch > 0 ? (double)tess_min_i64(w->batch, tess_cut_longest_run(&axis)) : 1;
        cost->io_bytes =
            rows ? (double)tess_align_size(
                       tess_ring_bytes(&axis, w->size[TESS_HEIGHT], w->in_row_bytes, w->out_row_bytes), 64)
                 : (double)w->row_scratch_bytes * cost->window;
        cost->host = rows && w->separate_memory &&
                     cost->io_bytes + (double)(w->fixed_io_bytes + w->held_bytes) > (double)w->host_limit;
        if (w->separate_memory)
            cost->io_bytes = 0; /* the stages go with the pixels */
    }
    return count;
}

void tess_cut_list(chooser *c)
{
    c->row_count = cost_axis(c, c->padded_h, true, c->rows);
    c->col_count = cost_axis(c, c->padded_w, false, c->cols);
}

static double estimate_of(const chooser *c, const axis_cost *rows, const axis_cost *cols)
{
    return c->fixed_bytes + rows->io_bytes + cols->io_bytes +
           c->bytes_per_pixel * rows->window * cols->window * cols->batch;
}

static void take(const chooser *c, const axis_cost *rows, const axis_cost *cols, tess_cut_plan *choice)
{
    choice->rows = rows->axis;
    choice->cols = cols->axis;
    set_batch(c, choice);
}

bool tess_cut_best(const chooser *c, double most, tess_cut_plan *choice, double *estimate)
{
    double least = INFINITY;
    for (int r = 0; r < c->row_count; r++)
        for (int k = 0; k < c->col_count; k++) {
            const axis_cost *rows = &c->rows[r], *cols = &c->cols[k];
            const double bytes = estimate_of(c, rows, cols), area = rows->total * cols->total;
            if (bytes > most || rows->host || area >= least)
                continue;
            least = area;
            *estimate = bytes;
            take(c, rows, cols, choice);
        }
    return isfinite(least);
}

tess_status tess_cut_least(const chooser *c, tess_cut_plan *choice, tess_error *error)
{
    tess_cut_plan trial = *choice;
    double last = -INFINITY;
    int last_pair = -1;
    uint64_t least = UINT64_MAX;
    /* Pairs in the order of their estimates. */
    for (int i = 0; i < MEASURED; i++) {
        double next = INFINITY;
        int next_pair = -1;
        for (int pair = 0; pair < c->row_count * c->col_count; pair++) {
            const axis_cost *rows = &c->rows[pair / c->col_count];
            const double bytes = estimate_of(c, rows, &c->cols[pair % c->col_count]);
            const bool done = bytes < last || (bytes == last && pair <= last_pair);
            if (done || bytes >= next || rows->host)
                continue;
            next = bytes;
            next_pair = pair;
        }
        if (next_pair < 0)
            break;
        last = next;
        last_pair = next_pair;
        take(c, &c->rows[next_pair / c->col_count], &c->cols[next_pair % c->col_count], &trial);
        TESS_TRY(tess_cut_measure(c, &trial, error));
        if (tess_cut_total(c->request, &trial) < least) {
            least = tess_cut_total(c->request, &trial);
            *choice = trial;
        }
    }
    return TESS_OK;
}
