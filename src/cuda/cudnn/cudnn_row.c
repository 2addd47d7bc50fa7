/* cuDNN as a row. It is opened on first use. Plans are kept by shape, because many layers share a shape and a
 * plan is slow to make. */
#include <stdio.h>
#include <string.h>

#include "cuda/core/device_impl.h"

tess_cudnn *tess_cuda_cudnn(tess_cuda_measured *measured, const tess_op *op)
{
    if (tess_cudnn_refuses(op))
        return NULL;
    if (!measured->cudnn_tried) {
        measured->cudnn_tried = true;
        if (tess_cudnn_open(&measured->cudnn, NULL) != TESS_OK)
            measured->cudnn = NULL;
        const char *version = measured->cudnn ? tess_cudnn_version(measured->cudnn) : "";
        if (measured->measured_with[0] && strcmp(version, measured->measured_with) != 0)
            measured->count = 0;
        snprintf(measured->measured_with, sizeof measured->measured_with, "%s", version);
    }
    return measured->cudnn;
}

static void drop(tess_cuda_measured *measured, int at)
{
    tess_cudnn_plan_destroy(measured->plans[at]->plan);
    tess_small_free(measured->plans[at]);
    measured->plans[at] = measured->plans[--measured->plan_count];
}

/* Makes room for one more plan. Drops a plan only if it is unused and the table is full. */
static bool make_room(tess_cuda_measured *measured)
{
    for (int i = 0; measured->plan_count == TESS_CUDA_PLANS && i < measured->plan_count; i++)
        if (measured->plans[i]->users == 0)
            drop(measured, i);
    return measured->plan_count < TESS_CUDA_PLANS;
}

tess_status tess_cuda_plan_take(tess_cuda_measured *measured, const tess_op *op, int64_t setting,
                                size_t limit, tess_cuda_plan **out, tess_error *error)
{
    *out = NULL;
    for (int i = 0; i < measured->plan_count; i++) {
        tess_cuda_plan *plan = measured->plans[i];
        if (plan->setting == setting && tess_op_same(&plan->op, op) &&
            tess_cudnn_plan_workspace(plan->plan) <= limit) {
            plan->users++;
            *out = plan;
            return TESS_OK;
        }
    }
    if (!make_room(measured))
        return tess_fail(error, TESS_UNSUPPORTED, "more than %d shapes of layers at once", TESS_CUDA_PLANS);
    tess_cuda_plan *plan = tess_small_alloc(1, sizeof *plan);
    if (!plan)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare a layer");
    tess_status status = tess_cudnn_plan_create(measured->cudnn, op, setting, limit, &plan->plan, error);
    if (status != TESS_OK) {
        tess_small_free(plan);
        return status;
    }
    plan->op = *op;
    plan->setting = setting;
    plan->users = 1;
    measured->plans[measured->plan_count++] = plan;
    *out = plan;
    return TESS_OK;
}

void tess_cuda_plans_clear(tess_cuda_measured *measured)
{
    while (measured->plan_count > 0)
        drop(measured, measured->plan_count - 1);
}

/* Does not load the library: the lookup of the class has already decided that cuDNN is used. */
static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (!tess_cuda_has_choice(op))
        return tess_kernel_refuse(why, NULL);
    const char *reason = tess_cudnn_refuses(op);
    return reason ? tess_kernel_refuse(why, reason) : TESS_OK;
}

/* cuDNN does not promise that a residual may be overwritten: an engine may write its sums before it adds. */
static void needs_of(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    needs->apart = tess_op_residuals(op) > 0;
    needs->workspace = tess_cuda_known_of(device, op).workspace;
    needs->weights = tess_cuda_weight_bytes(op);
}

/* If the stored engine does not support this shape, uses the first that does, within the promised workspace. */
static tess_status prepare(tess_device *device, const tess_op *op, void **state, tess_error *error)
{
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    const tess_cuda_known known = tess_cuda_known_of(device, op);
    tess_cuda_plan *plan = NULL;
    tess_cuda_enter(device);
    pthread_mutex_lock(&measured->lock);
    tess_status status = TESS_UNSUPPORTED;
    if (tess_cuda_cudnn(measured, op)) {
        status = tess_cuda_plan_take(measured, op, known.setting, known.workspace, &plan, error);
        if (status == TESS_UNSUPPORTED)
            status = tess_cuda_plan_take(measured, op, -1, known.workspace, &plan, error);
    } else {
        tess_fail(error, status, "cuDNN is not installed");
    }
    pthread_mutex_unlock(&measured->lock);
    *state = plan;
    return status;
}

static void run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                tess_stream *stream)
{
    (void)op;
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    tess_cuda_plan *plan = state;
    tess_error error;
    tess_cuda_enter(device);
    pthread_mutex_lock(&measured->lock);
    const tess_status status =
        tess_cudnn_plan_run(plan->plan, buffers, tess_cuda_stream_of(device, stream), &error);
    pthread_mutex_unlock(&measured->lock);
    if (status != TESS_OK)
        tess_cuda_keep_text(device, status, error.text);
}

static void release(tess_device *device, void *state)
{
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    tess_cuda_plan *plan = state;
    if (!plan)
        return;
    pthread_mutex_lock(&measured->lock);
    plan->users--;
    pthread_mutex_unlock(&measured->lock);
}

const tess_kernel tess_cuda_cudnn_row = {.name = "cudnn",
                                         .refuses = refuses,
                                         .needs = needs_of,
                                         .pack = tess_cuda_pack_op,
                                         .prepare = prepare,
                                         .run = run,
                                         .release = release};
