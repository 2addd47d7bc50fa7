/* What a cut of an image takes, by the functions that the run allocates with. */
#include "base/checked.h"
#include "plan/cut_impl.h"

static size_t io_block_bytes(const chooser *c, const tess_axis *rows, const tess_axis *cols, size_t *ring)
{
    const tess_cut_request *w = c->request;
    *ring =
        tess_align_size(tess_ring_bytes(rows, w->size[TESS_HEIGHT], w->in_row_bytes, w->out_row_bytes), 64);
    return *ring + w->row_scratch_bytes * (size_t)tess_axis_largest_window(cols) + w->fixed_io_bytes;
}

static size_t granted(const chooser *c, size_t bytes)
{
    tess_device *device = tess_rates_device(c->rates);
    return device->granted(device, bytes);
}

/* Samples of a batch of windows, and of the tiles in them. Rows beyond the image are not uploaded. */
static void set_stages(const chooser *c, tess_cut_plan *choice)
{
    const tess_cut_request *w = c->request;
    const tess_axis *rows = &choice->rows, *cols = &choice->cols;
    const int64_t in = tess_min_i64(tess_axis_largest_window(rows), w->size[TESS_HEIGHT]) *
                       tess_axis_largest_window(cols),
                  out = tess_min_i64(tess_axis_largest_tile(rows), w->size[TESS_HEIGHT]) *
                        tess_min_i64(tess_axis_largest_tile(cols), w->size[TESS_WIDTH]);
    choice->in_stage = (size_t)(choice->batch * in) * w->in_pixel_bytes;
    choice->out_stage = (size_t)(choice->batch * out) * w->out_pixel_bytes;
}

static int64_t smallest_window(const tess_axis *axis)
{
    int64_t least = axis->size;
    for (int64_t i = 0; i < axis->tiles; i++) {
        tess_span span = tess_axis_span(axis, i);
        least = tess_min_i64(least, span.window_to - span.window_from);
    }
    return least;
}

/* A device that chooses engines by the power of two of the pixels may ask for more workspace at a smaller size: one
 * shape of each such class is asked, from the largest window down to the smallest. */
static tess_status widen_workspace(const chooser *c, tess_plan_shape shape, tess_cut_plan *choice,
                                   tess_error *error)
{
    const int64_t least = smallest_window(&choice->rows) * smallest_window(&choice->cols);
    while (shape.n * shape.h * shape.w > least) {
        if (shape.n > 1)
            shape.n = tess_ceil_div(shape.n, 2);
        else if (shape.h >= shape.w && shape.h > c->grid)
            shape.h = tess_round_up(shape.h / 2, c->grid);
        else if (shape.w > c->grid)
            shape.w = tess_round_up(shape.w / 2, c->grid);
        else
            break;
        size_t bytes;
        TESS_TRY(tess_bound_workspace(c->bound, shape, &bytes, error));
        if (bytes > choice->workspace_bytes)
            choice->workspace_bytes = bytes;
    }
    return TESS_OK;
}

/* Arena and, on the host, workspace grow with the window, so the largest one is planned. */
tess_status tess_cut_measure(const chooser *c, tess_cut_plan *choice, tess_error *error)
{
    const tess_axis *rows = &choice->rows, *cols = &choice->cols;
    tess_net_plan *plan = NULL;
    tess_plan_shape shape = {choice->batch, tess_axis_largest_window(rows), tess_axis_largest_window(cols),
                             TESS_INFER};
    TESS_TRY(tess_net_plan_create(c->bound, shape, &plan, error));
    choice->arena_bytes = tess_net_plan_arena_bytes(plan);
    choice->workspace_bytes = tess_net_plan_workspace_bytes(plan);
    tess_net_plan_destroy(plan);
    if (c->request->separate_memory)
        TESS_TRY(widen_workspace(c, shape, choice, error));
    double runs = (double)rows->tiles * (double)tess_ceil_div(cols->tiles, choice->batch);
    double pixels = (double)tess_axis_total_window(rows) * (double)tess_axis_total_window(cols);
    choice->seconds =
        (runs * c->seconds_per_run + pixels * c->seconds_per_pixel) * (double)c->request->planes;
    choice->calibrated = c->calibrated;
    choice->io_block = io_block_bytes(c, rows, cols, &choice->ring_bytes);
    choice->bytes.by[TESS_MEM_WEIGHTS] = granted(c, tess_bound_weight_bytes(c->bound));
    choice->bytes.by[TESS_MEM_ACTIVATIONS] = granted(c, choice->arena_bytes);
    choice->bytes.by[TESS_MEM_WORKSPACE] = granted(c, choice->workspace_bytes);
    if (c->request->separate_memory) {
        set_stages(c, choice);
        choice->bytes.by[TESS_MEM_IO] = granted(c, choice->in_stage) + granted(c, choice->out_stage);
    } else {
        choice->bytes.by[TESS_MEM_IO] = tess_block_granted(choice->io_block) + c->request->held_bytes;
    }
    return TESS_OK;
}
