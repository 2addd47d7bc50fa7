/* Computes the memory that a cut needs, by the functions that the run allocates with. */
#include "base/checked.h"
#include "plan/cut_impl.h"

/* On the host: code pages, stacks and tables, which the system counts too. The driver of a GPU allocates what
 * is requested, rounded as `granted` says, and little more. */
uint64_t tess_cut_reserve(bool separate_memory)
{
    return (uint64_t)(separate_memory ? 1 : 4) << 20;
}

uint64_t tess_cut_total(const tess_cut_request *r, const tess_cut_plan *plan)
{
    return tess_mem_total(&plan->bytes) + r->others + r->other_weights + tess_cut_reserve(r->separate_memory);
}

bool tess_cut_host_fits(const tess_cut_request *r, const tess_cut_plan *plan)
{
    return !r->separate_memory || plan->io_block + r->held_bytes <= r->host_limit;
}

bool tess_cut_fits(const tess_cut_request *r, const tess_cut_plan *plan)
{
    return tess_cut_total(r, plan) <= r->limit && tess_cut_host_fits(r, plan);
}

double tess_cut_pixels(const tess_cut_plan *plan, int64_t (*of)(const tess_axis *))
{
    double product = 1;
    for (int i = 0; i < TESS_SPATIAL; i++)
        product *= (double)of(&plan->axis[i]);
    return product;
}

static size_t io_block_bytes(const tess_cut_request *r, const tess_cut_plan *plan, size_t *ring)
{
    *ring = tess_align_size(
        tess_ring_bytes(&plan->rows, r->size[TESS_HEIGHT], r->in_row_bytes, r->out_row_bytes), 64);
    return *ring + r->row_scratch_bytes * (size_t)tess_axis_largest_window(&plan->cols) + r->fixed_io_bytes;
}

static size_t granted(const tess_cutter *c, size_t bytes)
{
    tess_device *device = tess_rates_device(c->rates);
    return device->memory->granted(device, bytes);
}

/* Bytes for the samples of a batch of windows, and of the tiles in them. Rows beyond the image are not
 * uploaded. */
static void set_stages(const tess_cut_request *r, tess_cut_plan *plan)
{
    const tess_axis *rows = &plan->rows, *cols = &plan->cols;
    const int64_t in = tess_min_i64(tess_axis_largest_window(rows), r->size[TESS_HEIGHT]) *
                       tess_axis_largest_window(cols),
                  out = tess_min_i64(tess_axis_largest_tile(rows), r->size[TESS_HEIGHT]) *
                        tess_min_i64(tess_axis_largest_tile(cols), r->size[TESS_WIDTH]);
    plan->in_stage = (size_t)(plan->batch * in) * r->in_pixel_bytes;
    plan->out_stage = (size_t)(plan->batch * out) * r->out_pixel_bytes;
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

/* Halves the shape approximately; false when the network accepts no smaller one. */
static bool halve(const tess_cutter *c, tess_plan_shape *s)
{
    const int64_t *grid = c->grid;
    if (s->n > 1)
        s->n = tess_ceil_div(s->n, 2);
    else if (s->d > grid[TESS_DEPTH])
        s->d = tess_round_up(s->d / 2, grid[TESS_DEPTH]);
    else if (s->h >= s->w && s->h > grid[TESS_HEIGHT])
        s->h = tess_round_up(s->h / 2, grid[TESS_HEIGHT]);
    else if (s->w > grid[TESS_WIDTH])
        s->w = tess_round_up(s->w / 2, grid[TESS_WIDTH]);
    else
        return false;
    return true;
}

/* A device that chooses engines by the power of two of the pixels may need more workspace at a smaller size. So
 * one shape of each such class is queried, from the largest window down to the smallest. */
static tess_status widen_workspace(const tess_cutter *c, tess_plan_shape shape, tess_cut_plan *plan,
                                   tess_error *error)
{
    const double least = tess_cut_pixels(plan, smallest_window);
    while ((double)(shape.n * shape.d * shape.h * shape.w) > least && halve(c, &shape)) {
        size_t bytes;
        TESS_TRY(tess_bound_workspace(c->bound, shape, &bytes, error));
        if (bytes > plan->workspace_bytes)
            plan->workspace_bytes = bytes;
    }
    return TESS_OK;
}

/* How the largest window compares with the line through the planner's two sizes. Kernels that compute several columns
 * at a time and ops whose work grows faster than the pixels leave that line. */
static double beside_line(const tess_cutter *c, const tess_cut_plan *plan, const tess_net_plan *largest)
{
    bool measured = true;
    const double pixels = tess_cut_pixels(plan, tess_axis_largest_window) * (double)plan->batch;
    const double by_line = c->seconds_per_run + pixels * c->seconds_per_pixel;
    const double by_ops = c->beyond_ops.overhead + pixels * c->beyond_ops.per_pixel +
                          tess_rates_plan_seconds(c->rates, largest, &measured);
    return by_line > 0 ? by_ops / by_line : 1;
}

/* A 2-D network does the same work for each plane and each slice. */
static double seconds_of(const tess_cutter *c, const tess_cut_plan *plan, const tess_net_plan *largest)
{
    const double slices = plan->volume ? 1 : (double)plan->depth.tiles;
    const double runs = (double)plan->depth.tiles / slices * (double)plan->rows.tiles *
                        (double)tess_ceil_div(plan->cols.tiles, plan->batch);
    const double pixels = tess_cut_pixels(plan, tess_axis_total_window) / slices;
    return (runs * c->seconds_per_run + pixels * c->seconds_per_pixel) * (double)c->request->planes * slices *
           beside_line(c, plan, largest);
}

/* Arena and, on the host, workspace grow with the window, so the largest window is planned. */
tess_status tess_cut_measure(const tess_cutter *c, tess_cut_plan *plan, tess_error *error)
{
    const tess_cut_request *r = c->request;
    const tess_plan_shape shape = {.n = plan->batch,
                                   .d = tess_axis_largest_window(&plan->depth),
                                   .h = tess_axis_largest_window(&plan->rows),
                                   .w = tess_axis_largest_window(&plan->cols),
                                   .above = plan->above,
                                   .below = plan->below,
                                   .left = plan->left,
                                   .right = plan->right,
                                   .slices = plan->slices,
                                   .levels = plan->levels};
    tess_net_plan *net_plan = NULL;
    TESS_TRY(tess_net_plan_create(c->bound, shape, &net_plan, error));
    plan->arena_bytes = tess_net_plan_arena_bytes(net_plan);
    plan->workspace_bytes = tess_net_plan_workspace_bytes(net_plan);
    plan->exchange_bytes = r->separate_memory ? tess_net_plan_exchange_bytes(net_plan) : 0;
    plan->seconds = seconds_of(c, plan, net_plan);
    tess_net_plan_destroy(net_plan);
    if (r->separate_memory)
        TESS_TRY(widen_workspace(c, shape, plan, error));
    plan->calibrated = c->calibrated;
    plan->io_block = io_block_bytes(r, plan, &plan->ring_bytes);
    plan->bytes.by[TESS_MEM_WEIGHTS] = granted(c, tess_bound_weight_bytes(c->bound));
    plan->bytes.by[TESS_MEM_ACTIVATIONS] = granted(c, plan->arena_bytes);
    plan->bytes.by[TESS_MEM_WORKSPACE] = granted(c, plan->workspace_bytes);
    if (r->separate_memory) {
        set_stages(r, plan);
        plan->bytes.by[TESS_MEM_IO] = granted(c, plan->in_stage) + granted(c, plan->out_stage);
    } else {
        plan->bytes.by[TESS_MEM_IO] = tess_block_granted(plan->io_block) + r->held_bytes;
    }
    return TESS_OK;
}
