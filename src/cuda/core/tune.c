/* Measures the rows of a class. The data are small values of both signs, not zeros: on zeros the card draws
 * less power and so runs faster. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "cuda/core/device_impl.h"

enum { REPEATS = 5, CANDIDATES = 8, PLACE = 256 };
/* cuDNN must be faster by this factor, to pay for its loading (a tenth of a second, some MiB of the card) and
 * a plan for every shape. It is not measured where a Hopper kernel takes a layer: there it won a few percent of
 * an image's last layer, and its first plan was made during a job. Gradients are measured: a training is long. */
static const double CUDNN_HANDICAP = 1.1;

typedef struct tune_job {
    tess_device *device;
    tess_cuda_measured *measured;
    const tess_op *op;
    tess_op_buffers buffers;
    cudaStream_t stream;
    cudaEvent_t from, to;
    tess_cuda_known best;
    double score; /* seconds of the best, with the handicap */
} tune_job;

/* Places a tensor in the scratch behind those before; false if it does not fit. */
static bool place(char *scratch, size_t bytes, size_t *used, size_t wanted, void **out)
{
    size_t room = tess_align_size(wanted, PLACE);
    if (bytes < *used || bytes - *used < room)
        return false;
    *out = scratch + *used;
    *used += room;
    return true;
}

/* Places a tensor and fills it. */
static tess_status place_filled(tune_job *job, char *scratch, size_t bytes, size_t *used,
                                const tess_tensor *t, void **out, tess_error *error)
{
    size_t size = 0;
    if (!tess_tensor_bytes(t, &size) || !place(scratch, bytes, used, size, out))
        return tess_fail(error, TESS_OVER_LIMIT, "%zu bytes are too few to measure this layer", bytes);
    return tess_cuda_check(tess_cuda_fill(*out, size, t->dtype, job->stream), "fill", error);
}

static tess_status place_weights(tune_job *job, char *scratch, size_t bytes, size_t *used, tess_error *error)
{
    const tess_op *op = job->op;
    const size_t kernel = tess_cuda_bias_at(op), bias = (size_t)op->out[0].c * sizeof(float);
    void *at = NULL;
    if (!place(scratch, bytes, used, kernel + bias, &at))
        return tess_fail(error, TESS_OVER_LIMIT, "%zu bytes are too few to measure this layer", bytes);
    job->buffers.weights = at;
    TESS_TRY(tess_cuda_check(tess_cuda_fill(at, kernel, tess_op_precision(op), job->stream), "fill", error));
    return tess_cuda_check(tess_cuda_fill((char *)at + kernel, bias, TESS_F32, job->stream), "fill", error);
}

static const char *const own_rows[] = {"hopper", "generic"};

/* The most that any row needs. */
static size_t workspace_of(tune_job *job)
{
    size_t most = TESS_CUDA_WORKSPACE;
    for (int i = 0; i < 2; i++) {
        const tess_kernel *row = tess_kernel_named(job->device, job->op, own_rows[i]);
        tess_op_needs needs = {0};
        if (row)
            row->needs(job->device, job->op, &needs);
        if (needs.workspace > most)
            most = needs.workspace;
    }
    return most;
}

static tess_status place_all(tune_job *job, char *scratch, size_t bytes, tess_error *error)
{
    const tess_op *op = job->op;
    size_t used = 0;
    for (int i = 0; i < op->inputs; i++) {
        void *at = NULL;
        TESS_TRY(place_filled(job, scratch, bytes, &used, &op->in[i], &at, error));
        job->buffers.in[i] = at;
    }
    for (int i = 0; i < op->outputs; i++)
        TESS_TRY(place_filled(job, scratch, bytes, &used, &op->out[i], &job->buffers.out[i], error));
    if (tess_cuda_weight_bytes(op))
        TESS_TRY(place_weights(job, scratch, bytes, &used, error));
    if (!place(scratch, bytes, &used, workspace_of(job), &job->buffers.workspace))
        return tess_fail(error, TESS_OVER_LIMIT, "%zu bytes are too few to measure this layer", bytes);
    return TESS_OK;
}

/* A row with its prepared state. */
typedef struct candidate {
    const tess_kernel *row;
    void *state;
    tess_cuda_plan *plan; /* the state of cuDNN's row; NULL for others */
} candidate;

static tess_status time_once(tune_job *job, const candidate *choice, double *seconds, tess_error *error)
{
    float milliseconds = 0;
    TESS_TRY(tess_cuda_check(cudaEventRecord(job->from, job->stream), "cudaEventRecord", error));
    choice->row->run(job->device, job->op, choice->state, &job->buffers, NULL);
    TESS_TRY(tess_cuda_check(cudaEventRecord(job->to, job->stream), "cudaEventRecord", error));
    TESS_TRY(tess_cuda_check(cudaEventSynchronize(job->to), "cudaEventSynchronize", error));
    TESS_TRY(tess_cuda_check(cudaEventElapsedTime(&milliseconds, job->from, job->to), "cudaEventElapsedTime",
                             error));
    *seconds = milliseconds * 1e-3;
    return TESS_OK;
}

/* The median time after one warm-up run; a candidate that is much slower is not repeated. */
static tess_status measure(tune_job *job, const candidate *choice, tess_error *error)
{
    double times[REPEATS], warm = 0;
    TESS_TRY(time_once(job, choice, &warm, error));
    TESS_TRY(time_once(job, choice, &warm, error));
    if (job->best.seconds >= 0 && warm > 3 * job->best.seconds)
        return TESS_OK;
    for (int i = 0; i < REPEATS; i++) {
        double seconds = 0;
        TESS_TRY(time_once(job, choice, &seconds, error));
        int at = i;
        for (; at > 0 && times[at - 1] > seconds; at--)
            times[at] = times[at - 1];
        times[at] = seconds;
    }
    const double median = times[REPEATS / 2], score = choice->plan ? median * CUDNN_HANDICAP : median;
    if (job->best.seconds >= 0 && score >= job->score)
        return TESS_OK;
    job->best.seconds = median;
    job->score = score;
    snprintf(job->best.kernel, sizeof job->best.kernel, "%s", choice->row->name);
    job->best.setting = choice->plan ? tess_cudnn_plan_engine(choice->plan->plan) : -1;
    job->best.workspace =
        choice->plan && tess_cudnn_plan_workspace(choice->plan->plan) ? TESS_CUDA_WORKSPACE : 0;
    return TESS_OK;
}

static tess_status measure_cudnn(tune_job *job, tess_error *error)
{
    int64_t settings[CANDIDATES];
    tess_cuda_measured *measured = job->measured;
    pthread_mutex_lock(&measured->lock);
    tess_cudnn *cudnn = tess_cuda_cudnn(measured, job->op);
    int count = cudnn ? tess_cudnn_candidates(cudnn, job->op, TESS_CUDA_WORKSPACE, settings, CANDIDATES) : 0;
    pthread_mutex_unlock(&measured->lock);
    for (int i = 0; i < count; i++) {
        candidate choice = {.row = &tess_cuda_cudnn_row};
        tess_error ignored;
        pthread_mutex_lock(&measured->lock);
        tess_status status =
            tess_cuda_plan_take(measured, job->op, settings[i], TESS_CUDA_WORKSPACE, &choice.plan, &ignored);
        pthread_mutex_unlock(&measured->lock);
        if (status == TESS_UNSUPPORTED)
            continue;
        choice.state = choice.plan;
        if (status == TESS_OK)
            status = measure(job, &choice, error);
        choice.row->release(job->device, choice.plan);
        if (status == TESS_DEVICE_LOST || status == TESS_NO_MEMORY)
            return status;
    }
    return TESS_OK;
}

static tess_status measure_own(tune_job *job, const char *name, tess_error *error)
{
    candidate choice = {.row = tess_kernel_named(job->device, job->op, name)};
    if (!choice.row)
        return TESS_OK;
    tess_status status = choice.row->prepare(job->device, job->op, &choice.state, error);
    if (status == TESS_OK)
        status = measure(job, &choice, error);
    choice.row->release(job->device, choice.state);
    return status;
}

static tess_status measure_all(tune_job *job, tess_error *error)
{
    TESS_TRY(measure_own(job, own_rows[0], error));
    if (job->best.seconds < 0 || job->op->kind == TESS_OP_CONV_GRAD)
        TESS_TRY(measure_cudnn(job, error));
    return measure_own(job, own_rows[1], error);
}

tess_status tess_cuda_tune(tess_device *device, const tess_op *op, void *scratch, size_t bytes,
                           tess_error *error)
{
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    tune_job job = {.device = device,
                    .measured = measured,
                    .op = op,
                    .stream = tess_cuda_of(device)->stream,
                    .best = {.seconds = -1, .setting = -1}};
    tess_cuda_class(op, job.best.op_class);
    pthread_mutex_lock(&measured->lock);
    const tess_cuda_known *known = tess_cuda_find(measured, job.best.op_class);
    bool done = (known && known->seconds >= 0) || measured->forced[0];
    pthread_mutex_unlock(&measured->lock);
    if (done || !tess_cuda_has_choice(op))
        return TESS_OK;
    tess_status status = place_all(&job, scratch, bytes, error);
    if (status == TESS_OK)
        status = tess_cuda_check(cudaEventCreate(&job.from), "cudaEventCreate", error);
    if (status == TESS_OK)
        status = tess_cuda_check(cudaEventCreate(&job.to), "cudaEventCreate", error);
    if (status == TESS_OK)
        status = measure_all(&job, error);
    if (job.from)
        (void)cudaEventDestroy(job.from);
    if (job.to)
        (void)cudaEventDestroy(job.to);
    if (status != TESS_OK || job.best.seconds < 0)
        return status;
    pthread_mutex_lock(&measured->lock);
    if (tess_cuda_remember(measured, &job.best))
        tess_cuda_save(measured);
    pthread_mutex_unlock(&measured->lock);
    return TESS_OK;
}
