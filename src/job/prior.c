#include "job/prior.h"

#include <string.h>

#include "base/checked.h"

static int64_t planes_of(const tess_tensor *image, const tess_model *model)
{
    return model->channels == 1 ? image->c : 1; /* a gray network takes colours one by one */
}

tess_denoise_wish tess_prior_wish(const tess_tensor *image, const tess_model *model, uint64_t limit)
{
    return (tess_denoise_wish){.height = image->h,
                               .width = image->w,
                               .planes = planes_of(image, model),
                               .halo = TESS_HALO_AUTO,
                               .limit = limit};
}

static tess_plan_shape shape_of(int64_t batch, const tess_span *rows, const tess_span *cols)
{
    return (tess_plan_shape){.n = batch,
                             .h = rows->window_to - rows->window_from,
                             .w = cols->window_to - cols->window_from,
                             .mode = TESS_INFER};
}

static tess_net_plan *plan_for(const tess_prior *p, tess_plan_shape shape)
{
    for (int i = 0; i < p->shape_count; i++)
        if (p->shapes[i].n == shape.n && p->shapes[i].h == shape.h && p->shapes[i].w == shape.w)
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
        return tess_fail(error, TESS_INTERNAL, "a window of %lld x %lld needs more than was planned",
                         (long long)shape.h, (long long)shape.w);
    return TESS_OK;
}

tess_status tess_prior_open(tess_prior *p, tess_error *error)
{
    tess_device *device = p->engine->device;
    const tess_denoise_choice *choice = &p->choice;
    TESS_TRY(device->alloc(device, &p->arena, TESS_MEM_ACTIVATIONS, choice->arena_bytes, error));
    TESS_TRY(device->alloc(device, &p->workspace, TESS_MEM_WORKSPACE, choice->workspace_bytes, error));
    for (int64_t r = 0; r < choice->rows.tiles; r++) {
        const tess_span rows = tess_axis_span(&choice->rows, r);
        for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
            n = tess_axis_run(&choice->cols, c, choice->batch);
            const tess_span cols = tess_axis_span(&choice->cols, c);
            if (!plan_for(p, shape_of(n, &rows, &cols)))
                TESS_TRY(add_shape(p, shape_of(n, &rows, &cols), error));
        }
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

/* The part of the image that [top, bottom) x [left, right) covers. */
static tess_tensor view(const tess_tensor *image, int64_t top, int64_t bottom, int64_t left, int64_t right,
                        int64_t *offset)
{
    tess_tensor part = *image;
    part.d = 1;
    part.h = tess_min_i64(bottom, image->h) - top;
    part.w = tess_min_i64(right, image->w) - left;
    *offset = top * image->stride_h + left * image->stride_w;
    return part;
}

static tess_status run_op(const tess_prior *p, const tess_op *op, const void *in, void *out,
                          tess_error *error)
{
    tess_device *device = p->engine->device;
    tess_prepared *prepared = NULL;
    TESS_TRY(device->prepare(device, op, &prepared, error));
    const tess_op_buffers buffers = {.in = in, .out = out};
    device->run(device, prepared, &buffers, NULL);
    device->release(device, prepared);
    return TESS_OK;
}

/* A batch of windows side by side, for one plane of colours. */
typedef struct batch {
    tess_span rows;
    int64_t first, n, plane;
    float sigma;
    const float *in;
    float *out;
} batch;

static tess_status fill_input(const tess_prior *p, const batch *b, const tess_tensor *input, char *data,
                              tess_error *error)
{
    for (int64_t i = 0; i < b->n; i++) {
        const tess_span cols = tess_axis_span(&p->choice.cols, b->first + i);
        int64_t offset;
        tess_op op;
        memset(&op, 0, sizeof op);
        op.kind = TESS_OP_IMPORT;
        op.in = view(&p->image, b->rows.window_from, b->rows.window_to, cols.window_from, cols.window_to,
                     &offset);
        op.out = *input;
        op.out.n = 1;
        op.samples = (tess_op_samples){1, (int32_t)b->plane, p->model->model.noise_map, b->sigma};
        TESS_TRY(run_op(p, &op, b->in + offset, (float *)data + i * input->stride_n, error));
    }
    return TESS_OK;
}

static tess_status take_output(const tess_prior *p, const batch *b, const tess_tensor *output,
                               const char *data, tess_error *error)
{
    for (int64_t i = 0; i < b->n; i++) {
        const tess_span cols = tess_axis_span(&p->choice.cols, b->first + i);
        int64_t offset;
        tess_op op;
        memset(&op, 0, sizeof op);
        op.kind = TESS_OP_EXPORT;
        op.in = *output;
        op.in.n = 1;
        op.out = view(&p->image, b->rows.from, b->rows.to, cols.from, cols.to, &offset);
        op.pad_before[TESS_HEIGHT] = (int32_t)(b->rows.from - b->rows.window_from);
        op.pad_before[TESS_WIDTH] = (int32_t)(cols.from - cols.window_from);
        op.samples = (tess_op_samples){1, (int32_t)b->plane, false, 0};
        TESS_TRY(run_op(p, &op, (const float *)data + i * output->stride_n, b->out + offset, error));
    }
    return TESS_OK;
}

static tess_status run_batch(const tess_prior *p, batch *b, tess_error *error)
{
    const tess_span cols = tess_axis_span(&p->choice.cols, b->first);
    const tess_net_plan *plan = plan_for(p, shape_of(b->n, &b->rows, &cols));
    size_t in_at, out_at;
    const tess_tensor input = tess_net_plan_input(plan, &in_at), output = tess_net_plan_output(plan, &out_at);
    char *arena = p->arena.data;
    for (b->plane = 0; b->plane < planes_of(&p->image, &p->model->model); b->plane++) {
        TESS_TRY(fill_input(p, b, &input, arena + in_at, error));
        tess_net_plan_run(plan, arena, p->workspace.data, p->model->weights.data, NULL);
        TESS_TRY(take_output(p, b, &output, arena + out_at, error));
    }
    return TESS_OK;
}

tess_status tess_prior_denoise(void *user, const void *in, void *out, double sigma, tess_error *error)
{
    const tess_prior *p = user;
    const tess_denoise_choice *choice = &p->choice;
    const int64_t slice = p->image.h * p->image.w * p->image.c;
    for (int64_t s = 0; s < p->image.d; s++)
        for (int64_t r = 0; r < choice->rows.tiles; r++)
            for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
                n = tess_axis_run(&choice->cols, c, choice->batch);
                batch b = {
                    tess_axis_span(&choice->rows, r), c, n, 0, (float)sigma, (const float *)in + s * slice,
                    (float *)out + s * slice};
                TESS_TRY(run_batch(p, &b, error));
            }
    return p->engine->device->sync(p->engine->device, NULL, error);
}
