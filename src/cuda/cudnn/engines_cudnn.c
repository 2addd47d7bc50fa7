/* cuDNN as an engine: opened when first wanted, and its plans kept by shape, since layers of one shape are many
 * and a plan takes a while to make. */
#include <stdio.h>
#include <string.h>

#include "cuda/core/engines_impl.h"

tess_cudnn *tess_cuda_cudnn(tess_cuda_engines *engines, const tess_op *op)
{
    if (tess_cudnn_refuses(op))
        return NULL;
    if (!engines->cudnn_tried) {
        engines->cudnn_tried = true;
        if (tess_cudnn_open(&engines->cudnn, NULL) != TESS_OK)
            engines->cudnn = NULL;
        const char *version = engines->cudnn ? tess_cudnn_version(engines->cudnn) : "";
        if (engines->measured_with[0] && strcmp(version, engines->measured_with) != 0)
            engines->count = 0;
        snprintf(engines->measured_with, sizeof engines->measured_with, "%s", version);
    }
    return engines->cudnn;
}

static void drop(tess_cuda_engines *engines, int at)
{
    tess_cudnn_plan_destroy(engines->plans[at]->plan);
    tess_small_free(engines->plans[at]);
    engines->plans[at] = engines->plans[--engines->plan_count];
}

/* A place for one more, made by dropping a plan that nobody uses; they are kept otherwise. */
static bool make_room(tess_cuda_engines *engines)
{
    for (int i = 0; engines->plan_count == TESS_CUDA_PLANS && i < engines->plan_count; i++)
        if (engines->plans[i]->users == 0)
            drop(engines, i);
    return engines->plan_count < TESS_CUDA_PLANS;
}

tess_status tess_cuda_plan_take(tess_cuda_engines *engines, const tess_op *op, int64_t setting, size_t limit,
                                tess_cuda_plan **out, tess_error *error)
{
    *out = NULL;
    for (int i = 0; i < engines->plan_count; i++) {
        tess_cuda_plan *plan = engines->plans[i];
        if (plan->setting == setting && tess_op_same(&plan->op, op) &&
            tess_cudnn_plan_workspace(plan->plan) <= limit) {
            plan->users++;
            *out = plan;
            return TESS_OK;
        }
    }
    if (!make_room(engines))
        return tess_fail(error, TESS_UNSUPPORTED, "more than %d shapes of layers at once", TESS_CUDA_PLANS);
    tess_cuda_plan *plan = tess_small_alloc(1, sizeof *plan);
    if (!plan)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare a layer");
    tess_status status = tess_cudnn_plan_create(engines->cudnn, op, setting, limit, &plan->plan, error);
    if (status != TESS_OK) {
        tess_small_free(plan);
        return status;
    }
    plan->op = *op;
    plan->setting = setting;
    plan->users = 1;
    engines->plans[engines->plan_count++] = plan;
    *out = plan;
    return TESS_OK;
}

void tess_cuda_plans_clear(tess_cuda_engines *engines)
{
    while (engines->plan_count > 0)
        drop(engines, engines->plan_count - 1);
}

void tess_cuda_engines_let_go(tess_cuda_engines *engines, tess_cuda_choice *choice)
{
    if (choice->handle)
        choice->engine->release(choice->handle);
    choice->handle = NULL;
    if (!choice->plan)
        return;
    pthread_mutex_lock(&engines->lock);
    choice->plan->users--;
    pthread_mutex_unlock(&engines->lock);
    *choice = (tess_cuda_choice){NULL, NULL, NULL};
}

tess_status tess_cuda_engines_run(tess_cuda_engines *engines, const tess_cuda_choice *choice,
                                  const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream,
                                  tess_error *error)
{
    if (choice->handle)
        return choice->engine->run_prepared(choice->handle, op, buffers, stream, error);
    if (choice->engine == &tess_cuda_volume)
        return tess_cuda_volume_run(engines, op, buffers, stream, error);
    if (choice->engine)
        return tess_cuda_check(choice->engine->run(op, buffers, stream), choice->engine->name, error);
    pthread_mutex_lock(&engines->lock);
    tess_status status = tess_cudnn_plan_run(choice->plan->plan, buffers, stream, error);
    pthread_mutex_unlock(&engines->lock);
    return status;
}
