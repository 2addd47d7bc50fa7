#include "window/cut.h"

#include "base/checked.h"

tess_cut tess_cut_image(const tess_axis *rows, const tess_axis *cols, int64_t batch)
{
    return (tess_cut){.axis = {tess_axis_cut(1, 1, 0, 1), *rows, *cols}, .batch = batch};
}

/* Sets the fields that follow from slab, strip and first. */
static bool set(const tess_cut *cut, tess_window_batch *b)
{
    b->depth = tess_axis_span(&cut->axis[TESS_DEPTH], b->slab);
    b->rows = tess_axis_span(&cut->axis[TESS_HEIGHT], b->strip);
    b->n = tess_axis_run(&b->cols, b->first, cut->batch);
    return true;
}

bool tess_batch_first(const tess_cut *cut, int64_t strip, tess_window_batch *b)
{
    *b = (tess_window_batch){.cols = cut->axis[TESS_WIDTH],
                             .strip = tess_max_i64(strip, 0),
                             .above = cut->above,
                             .below = cut->below,
                             .left = cut->left,
                             .right = cut->right,
                             .slices = cut->slices,
                             .levels = cut->levels};
    return set(cut, b);
}

bool tess_batch_next(const tess_cut *cut, int64_t strip, tess_window_batch *b)
{
    b->first += b->n;
    if (b->first == b->cols.tiles) {
        b->first = 0;
        if (strip != TESS_ALL_STRIPS)
            return false;
        if (++b->strip == cut->axis[TESS_HEIGHT].tiles) {
            b->strip = 0;
            if (++b->slab == cut->axis[TESS_DEPTH].tiles)
                return false;
        }
    }
    return set(cut, b);
}

static int64_t length(const tess_span *span)
{
    return span->window_to - span->window_from;
}

/* The number of different pairs (length of a window, number of such windows in a batch). */
static int64_t axis_shapes(const tess_axis *axis, int64_t batch)
{
    enum { MOST = 64 };
    int64_t known[MOST][2], count = 0;
    for (int64_t i = 0, n; i < axis->tiles && count < MOST; i += n) {
        const tess_span span = tess_axis_span(axis, i);
        n = tess_axis_run(axis, i, batch);
        int64_t k = 0;
        while (k < count && (known[k][0] != length(&span) || known[k][1] != n))
            k++;
        if (k == count) {
            known[count][0] = length(&span);
            known[count++][1] = n;
        }
    }
    return count;
}

int64_t tess_cut_shapes(const tess_cut *cut)
{
    return axis_shapes(&cut->axis[TESS_DEPTH], 1) * axis_shapes(&cut->axis[TESS_HEIGHT], 1) *
           axis_shapes(&cut->axis[TESS_WIDTH], cut->batch);
}

tess_span tess_batch_cols(const tess_window_batch *batch, int64_t item)
{
    return tess_axis_span(&batch->cols, batch->first + item);
}

tess_plan_shape tess_batch_shape(const tess_window_batch *batch)
{
    const tess_span cols = tess_batch_cols(batch, 0);
    return (tess_plan_shape){.n = batch->n,
                             .d = length(&batch->depth),
                             .h = length(&batch->rows),
                             .w = length(&cols),
                             .above = batch->above,
                             .below = batch->below,
                             .left = batch->left,
                             .right = batch->right,
                             .slices = batch->slices,
                             .levels = batch->levels};
}

/* The part of [from, to) that lies inside the image. */
static int64_t inside(int64_t from, int64_t to, int64_t size)
{
    return tess_max_i64(tess_min_i64(to, size) - from, 0);
}

int64_t tess_batch_pixels(const tess_window_batch *batch, const int64_t size[TESS_SPATIAL])
{
    const tess_span first = tess_batch_cols(batch, 0), last = tess_batch_cols(batch, batch->n - 1);
    return inside(batch->depth.from, batch->depth.to, size[TESS_DEPTH]) *
           inside(batch->rows.from, batch->rows.to, size[TESS_HEIGHT]) *
           inside(first.from, last.to, size[TESS_WIDTH]);
}
