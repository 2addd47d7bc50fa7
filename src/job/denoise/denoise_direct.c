/* The windows of a strip on a device that computes in the host's memory: values are gathered straight into the
 * network's input and scattered from its output. */
#include "base/checked.h"
#include "base/clock.h"
#include "job/denoise/denoise_image.h"

static tess_net_plan *plan_for(tess_image_job *job, tess_plan_shape shape)
{
    for (int i = 0; i < job->shape_count; i++)
        if (job->shapes[i].n == shape.n && job->shapes[i].h == shape.h && job->shapes[i].w == shape.w)
            return job->plans[i];
    return NULL;
}

static tess_plan_shape shape_of(int64_t batch, const tess_span *rows, const tess_span *cols)
{
    return (tess_plan_shape){batch, rows->window_to - rows->window_from, cols->window_to - cols->window_from,
                             TESS_INFER};
}

void tess_direct_drop(tess_image_job *job)
{
    for (int i = 0; i < job->shape_count; i++)
        tess_net_plan_destroy(job->plans[i]);
    job->shape_count = 0;
    job->strip_height = 0;
}

static tess_status add_shape(tess_image_job *job, tess_plan_shape shape, tess_error *error)
{
    tess_net_plan **plan = &job->plans[job->shape_count];
    TESS_TRY(tess_net_plan_create(job->file->model->bound, shape, plan, error));
    job->shapes[job->shape_count++] = shape;
    TESS_TRY(tess_net_plan_prepare(*plan, error));
    if (tess_net_plan_arena_bytes(*plan) > job->blocks->arena.bytes ||
        tess_net_plan_workspace_bytes(*plan) > job->blocks->workspace.bytes)
        return tess_fail(error, TESS_INTERNAL, "a window of %lld x %lld needs more than was planned",
                         (long long)shape.h, (long long)shape.w);
    return TESS_OK;
}

/* Every shape of a strip is planned before its first window runs. Most strips have the shapes of the one
 * before. */
static tess_status prepare_strip(tess_image_job *job, const tess_span *rows, tess_error *error)
{
    const tess_axis *axis = &job->file->choice.cols;
    if (job->strip_height == rows->window_to - rows->window_from)
        return TESS_OK;
    tess_direct_drop(job);
    for (int64_t c = 0, n; c < axis->tiles; c += n) {
        n = tess_axis_run(axis, c, job->file->choice.batch);
        tess_span cols = tess_axis_span(axis, c);
        tess_plan_shape shape = shape_of(n, rows, &cols);
        if (!plan_for(job, shape))
            TESS_TRY(add_shape(job, shape, error));
    }
    job->strip_height = rows->window_to - rows->window_from;
    return TESS_OK;
}

/* A batch of windows side by side: in, network, out. */
static tess_status run_batch(tess_image_job *job, const tess_strip *strip, int64_t first, int64_t n,
                             tess_error *error)
{
    const tess_cut_plan *choice = &job->file->choice;
    tess_device *device = job->engine->device;
    tess_span cols = tess_axis_span(&choice->cols, first);
    tess_net_plan *plan = plan_for(job, shape_of(n, &strip->span, &cols));
    size_t in_at, out_at;
    tess_tensor in = tess_net_plan_input(plan, &in_at), out = tess_net_plan_output(plan, &out_at);
    char *arena = job->blocks->arena.data;
    int64_t pixels = 0;
    for (int64_t i = 0; i < n; i++) {
        cols = tess_axis_span(&choice->cols, first + i);
        pixels += (tess_min_i64(cols.to, job->file->info.width) - cols.from) * strip->count;
    }
    for (int64_t plane = 0; plane < job->pixels.planes; plane++) {
        for (int64_t i = 0; i < n; i++) {
            cols = tess_axis_span(&choice->cols, first + i);
            tess_pixels_gather(&job->pixels, strip, &cols, plane, &in, i, arena + in_at);
        }
        const int64_t planes = job->pixels.planes;
        tess_net_plan_run_counted(plan, arena, job->blocks->workspace.data, job->file->model->weights.data,
                                  NULL, pixels * (plane + 1) / planes - pixels * plane / planes);
        TESS_TRY(device->sync(device, NULL, error));
        for (int64_t i = 0; i < n; i++) {
            cols = tess_axis_span(&choice->cols, first + i);
            tess_pixels_scatter(&job->pixels, strip, &cols, plane, &out, i, arena + out_at);
        }
    }
    return TESS_OK;
}

tess_status tess_direct_strip(void *user, const tess_strip *strip, tess_error *error)
{
    tess_image_job *job = user;
    const tess_cut_plan *choice = &job->file->choice;
    double start = tess_clock();
    TESS_TRY(prepare_strip(job, &strip->span, error));
    for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
        n = tess_axis_run(&choice->cols, c, choice->batch);
        TESS_TRY(run_batch(job, strip, c, n, error));
    }
    job->file->seconds += tess_clock() - start;
    return TESS_OK;
}
