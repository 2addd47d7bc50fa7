#include "job/common/prior.h"

#include <string.h>

#include "base/checked.h"

/* The spans of one window. */
typedef struct window {
    tess_span slices, rows, cols;
} window;

static window window_at(const tess_prior *p, int64_t d, int64_t r, int64_t c)
{
    return (window){tess_axis_span(&p->choice.depth, d), tess_axis_span(&p->choice.rows, r),
                    tess_axis_span(&p->choice.cols, c)};
}

static int64_t length(const tess_span *span)
{
    return span->window_to - span->window_from;
}

static tess_plan_shape shape_of(int64_t batch, const window *w)
{
    return (tess_plan_shape){.n = batch,
                             .d = length(&w->slices),
                             .h = length(&w->rows),
                             .w = length(&w->cols),
                             .mode = TESS_INFER};
}

static tess_net_plan *plan_for(const tess_prior *p, tess_plan_shape shape)
{
    for (int i = 0; i < p->shape_count; i++)
        if (p->shapes[i].n == shape.n && p->shapes[i].d == shape.d && p->shapes[i].h == shape.h &&
            p->shapes[i].w == shape.w)
            return p->plans[i];
    return NULL;
}

static tess_status add_shape(tess_prior *p, tess_plan_shape shape, tess_error *error)
{
    const size_t count = (size_t)p->shape_count + 1;
    tess_net_plan **plans = tess_small_realloc(p->plans, count, sizeof *plans);
    p->plans = plans ? plans : p->plans;
    tess_plan_shape *shapes = tess_small_realloc(p->shapes, count, sizeof *shapes);
    p->shapes = shapes ? shapes : p->shapes;
    if (!plans || !shapes)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the plans of %zu windows", count);
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(p->model->bound, shape, &plan, error));
    p->plans[p->shape_count] = plan;
    p->shapes[p->shape_count++] = shape;
    TESS_TRY(tess_net_plan_prepare(plan, error));
    if (tess_net_plan_arena_bytes(plan) > p->arena.bytes ||
        tess_net_plan_workspace_bytes(plan) > p->workspace.bytes)
        return tess_fail(error, TESS_INTERNAL, "a window of %lld x %lld x %lld needs more than was planned",
                         (long long)shape.d, (long long)shape.h, (long long)shape.w);
    return TESS_OK;
}

tess_status tess_prior_open(tess_prior *p, tess_error *error)
{
    tess_device *device = p->engine->device;
    const tess_cut_plan *choice = &p->choice;
    TESS_TRY(device->alloc(device, &p->arena, TESS_MEM_ACTIVATIONS, choice->arena_bytes, error));
    TESS_TRY(device->alloc(device, &p->workspace, TESS_MEM_WORKSPACE, choice->workspace_bytes, error));
    for (int64_t d = 0; d < choice->depth.tiles; d++)
        for (int64_t r = 0; r < choice->rows.tiles; r++)
            for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
                n = tess_axis_run(&choice->cols, c, choice->batch);
                const window w = window_at(p, d, r, c);
                if (!plan_for(p, shape_of(n, &w)))
                    TESS_TRY(add_shape(p, shape_of(n, &w), error));
            }
    return TESS_OK;
}

void tess_prior_close(tess_prior *p)
{
    for (int i = 0; i < p->shape_count; i++)
        tess_net_plan_destroy(p->plans[i]);
    tess_small_free(p->plans);
    tess_small_free(p->shapes);
    p->plans = NULL;
    p->shapes = NULL;
    p->shape_count = 0;
    if (p->engine && p->engine->device) {
        p->engine->device->free(p->engine->device, &p->arena);
        p->engine->device->free(p->engine->device, &p->workspace);
    }
}

static tess_status run_op(const tess_prior *p, const tess_op *op, const void *in, void *out,
                          tess_error *error)
{
    tess_device *device = p->engine->device;
    tess_prepared *prepared = NULL;
    TESS_TRY(device->prepare(device, op, &prepared, error));
    const tess_op_buffers buffers = {.in = {in}, .out = {out}};
    device->run(device, prepared, &buffers, NULL);
    device->release(device, prepared);
    return TESS_OK;
}

/* A batch of windows side by side, for one plane of colours. */
typedef struct batch {
    int64_t d, r, first, n, plane;
    float sigma;
    const float *in;
    float *out;
} batch;

/* `count` slices of the image from `slice` on, as images, in the rows and columns given; and where they begin. */
static tess_tensor view(const tess_prior *p, int64_t slice, int64_t count, const int64_t rows[2],
                        const int64_t cols[2], int64_t *offset)
{
    const tess_tensor *image = &p->image;
    tess_tensor part = *image;
    part.n = count;
    part.stride_n = image->stride_d;
    part.d = 1;
    part.h = tess_min_i64(rows[1], image->h) - rows[0];
    part.w = tess_min_i64(cols[1], image->w) - cols[0];
    *offset = slice * image->stride_d + rows[0] * image->stride_h + cols[0] * image->stride_w;
    return part;
}

/* `count` slices of one window of the network's input or output, as images. */
static tess_tensor slices_of(const tess_tensor *end, int64_t count)
{
    tess_tensor slices = *end;
    slices.n = count;
    slices.stride_n = end->stride_d;
    slices.d = 1;
    return slices;
}

/* Slices [slice, slice + count) of the image into a window's input, which begins at `data`. */
static tess_status import(const tess_prior *p, const batch *b, const window *w, int64_t slice, int64_t count,
                          const tess_tensor *input, float *data, tess_error *error)
{
    int64_t offset;
    tess_op op;
    memset(&op, 0, sizeof op);
    op.kind = TESS_OP_IMPORT;
    op.inputs = op.outputs = 1;
    op.in[0] = view(p, slice, count, (const int64_t[]){w->rows.window_from, w->rows.window_to},
                    (const int64_t[]){w->cols.window_from, w->cols.window_to}, &offset);
    op.out[0] = slices_of(input, count);
    op.samples = (tess_op_samples){1, (int32_t)b->plane, p->model->model.noise_map, b->sigma, 0};
    return run_op(p, &op, b->in + offset, data, error);
}

/* Behind the last slice it is repeated, as rows and columns are. */
static tess_status fill_input(const tess_prior *p, const batch *b, const tess_tensor *input, float *data,
                              tess_error *error)
{
    for (int64_t i = 0; i < b->n; i++, data += input->stride_n) {
        const window w = window_at(p, b->d, b->r, b->first + i);
        const int64_t from = w.slices.window_from,
                      inside = tess_min_i64(w.slices.window_to, p->image.d) - from;
        TESS_TRY(import(p, b, &w, from, inside, input, data, error));
        for (int64_t z = inside; z < input->d; z++)
            TESS_TRY(import(p, b, &w, p->image.d - 1, 1, input, data + z * input->stride_d, error));
    }
    return TESS_OK;
}

static tess_status take_output(const tess_prior *p, const batch *b, const tess_tensor *output,
                               const float *data, tess_error *error)
{
    for (int64_t i = 0; i < b->n; i++, data += output->stride_n) {
        const window w = window_at(p, b->d, b->r, b->first + i);
        const int64_t from = w.slices.from, count = tess_min_i64(w.slices.to, p->image.d) - from;
        int64_t offset;
        tess_op op;
        memset(&op, 0, sizeof op);
        op.kind = TESS_OP_EXPORT;
        op.inputs = op.outputs = 1;
        op.in[0] = slices_of(output, count);
        op.out[0] = view(p, from, count, (const int64_t[]){w.rows.from, w.rows.to},
                         (const int64_t[]){w.cols.from, w.cols.to}, &offset);
        op.pad_before[TESS_HEIGHT] = (int32_t)(w.rows.from - w.rows.window_from);
        op.pad_before[TESS_WIDTH] = (int32_t)(w.cols.from - w.cols.window_from);
        op.samples = (tess_op_samples){1, (int32_t)b->plane, false, 0, 0};
        TESS_TRY(
            run_op(p, &op, data + (from - w.slices.window_from) * output->stride_d, b->out + offset, error));
    }
    return TESS_OK;
}

/* Of the image's pixels, those that one plane of the batch is worth. */
static int64_t units_of(const tess_prior *p, const batch *b, const window *first)
{
    const tess_span last = tess_axis_span(&p->choice.cols, b->first + b->n - 1);
    return (tess_min_i64(first->slices.to, p->image.d) - first->slices.from) *
           (tess_min_i64(first->rows.to, p->image.h) - first->rows.from) *
           (tess_min_i64(last.to, p->image.w) - first->cols.from) / tess_prior_planes(p);
}

static tess_status run_batch(const tess_prior *p, batch *b, tess_error *error)
{
    const window first = window_at(p, b->d, b->r, b->first);
    const tess_net_plan *plan = plan_for(p, shape_of(b->n, &first));
    size_t in_at, out_at;
    const tess_tensor input = tess_net_plan_input(plan, &in_at), output = tess_net_plan_output(plan, &out_at);
    char *arena = p->arena.data;
    for (b->plane = 0; b->plane < tess_prior_planes(p); b->plane++) {
        TESS_TRY(fill_input(p, b, &input, (float *)(arena + in_at), error));
        tess_net_plan_run_counted(plan, arena, p->workspace.data, p->model->weights.data, NULL,
                                  units_of(p, b, &first));
        TESS_TRY(take_output(p, b, &output, (const float *)(arena + out_at), error));
    }
    return TESS_OK;
}

tess_status tess_prior_denoise(void *user, const void *in, void *out, double sigma, tess_error *error)
{
    const tess_prior *p = user;
    const tess_cut_plan *choice = &p->choice;
    for (int64_t d = 0; d < choice->depth.tiles; d++)
        for (int64_t r = 0; r < choice->rows.tiles; r++)
            for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
                n = tess_axis_run(&choice->cols, c, choice->batch);
                TESS_TRY(tess_stop_check(&p->engine->stop, error));
                batch b = {.d = d, .r = r, .first = c, .n = n, .sigma = (float)sigma, .in = in, .out = out};
                TESS_TRY(run_batch(p, &b, error));
            }
    return p->engine->device->sync(p->engine->device, NULL, error);
}
