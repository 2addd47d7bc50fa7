/* A filter: an FFT into the workspace, the product there, and the inverse FFT. The arithmetic is that of three
 * separate ops, so any number of threads gives the same bits. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"

enum { ALIGN = 64 };

typedef struct filter_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    tess_tensor spectrum;
    float *waves;
} filter_job;

static tess_tensor spectrum_of(const tess_op *op)
{
    if (op->filter.product_only)
        return op->in[0];
    return tess_tensor_3d(TESS_F32, op->in[0].n, op->in[0].d, op->in[0].h, op->in[0].w / 2 + 1,
                          2 * op->in[0].c);
}

static tess_op transform_of(const tess_op *op, bool inverse)
{
    tess_op fft;
    memset(&fft, 0, sizeof fft);
    fft.kind = TESS_OP_FFT;
    fft.inputs = fft.outputs = 1;
    fft.in[0] = inverse ? spectrum_of(op) : op->in[0];
    fft.out[0] = inverse ? op->out[0] : spectrum_of(op);
    fft.fft.inverse = inverse;
    return fft;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    if (op->kind != TESS_OP_FILTER)
        return tess_kernel_refuse(error, NULL);
    const tess_tensor s = spectrum_of(op), *power = &op->in[1], *data = &op->in[2];
    const tess_op to = transform_of(op, false), back = transform_of(op, true);
    if (op->filter.product_only && (s.dtype != TESS_F32 || !tess_tensor_same(&op->in[0], &op->out[0])))
        return tess_fail(error, TESS_UNSUPPORTED, "a product of spectra is made in place");
    if (!op->filter.product_only) {
        TESS_TRY(tess_cpu_fft_refuses(device, &to, error));
        TESS_TRY(tess_cpu_fft_refuses(device, &back, error));
    }
    if (tess_op_residuals(op) < 1 || power->dtype != TESS_F32 || power->n != 1 || power->d != 1 ||
        power->h != s.h || power->w != s.w || power->c != 1)
        return tess_fail(error, TESS_UNSUPPORTED, "a filter of %lldx%lld values does not fit its image",
                         (long long)power->h, (long long)power->w);
    if (tess_op_residuals(op) > 1 && (data->dtype != TESS_F32 || data->n != s.n || data->d != s.d ||
                                      data->h != s.h || data->w != s.w || data->c != s.c))
        return tess_fail(error, TESS_UNSUPPORTED, "what a filter adds must be a spectrum of its image");
    return TESS_OK;
}

static size_t waves_bytes(const tess_op *op)
{
    const tess_tensor s = spectrum_of(op);
    return tess_align_size((size_t)(s.n * s.stride_n) * sizeof(float), ALIGN);
}

static void filter_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_op to = transform_of(op, false), back = transform_of(op, true);
    tess_op_needs other;
    *needs = (tess_op_needs){.block = 1};
    if (op->filter.product_only)
        return;
    tess_cpu_fft_needs(device, &to, needs);
    tess_cpu_fft_needs(device, &back, &other);
    if (other.workspace > needs->workspace)
        needs->workspace = other.workspace;
    needs->held += other.held;
    needs->workspace += ALIGN + waves_bytes(op);
}

/* An item is one row of one image, all channels. */
static void product_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const filter_job *job = arg;
    const tess_op *op = job->op;
    const tess_tensor *s = &job->spectrum, *p = &op->in[1], *t = &op->in[2];
    const double *f = job->buffers->factors;
    const int64_t y = item % s->h, image = item / s->h;
    const float *power = (const float *)job->buffers->in[1] + y * p->stride_h;
    const float *data = tess_op_residuals(op) > 1 && f[2] != 0
                            ? (const float *)job->buffers->in[2] + image / s->d * t->stride_n +
                                  image % s->d * t->stride_d + y * t->stride_h
                            : NULL;
    float *waves = job->waves + image / s->d * s->stride_n + image % s->d * s->stride_d + y * s->stride_h;
    const float a = (float)f[0], b = (float)f[1], c = (float)f[2], d = (float)f[3], e = (float)f[4];
    for (int64_t x = 0; x < s->w; x++, waves += s->stride_w) {
        const float value = power[x * p->stride_w], share = 1 / (d + e * value),
                    gain = (a + b * value) * share, more = c * share;
        for (int64_t i = 0; i < s->c; i++)
            waves[i] = gain * waves[i] + (data ? more * data[x * t->stride_w + i] : 0);
    }
}

/* The plans of the two transforms. */
typedef struct filter_plans {
    void *to, *back;
} filter_plans;

static void filter_release(tess_device *device, void *state)
{
    filter_plans *plans = state;
    if (!plans)
        return;
    tess_cpu_fft_release(device, plans->to);
    tess_cpu_fft_release(device, plans->back);
    tess_small_free(plans);
}

static tess_status filter_prepare(tess_device *device, const tess_op *op, void **state, tess_error *error)
{
    filter_plans *plans = *state = tess_small_alloc(1, sizeof *plans);
    if (!plans)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare a filter");
    const tess_op to = transform_of(op, false), back = transform_of(op, true);
    if (op->filter.product_only)
        return TESS_OK;
    tess_status status = tess_cpu_fft_prepare(device, &to, &plans->to, error);
    if (status == TESS_OK)
        status = tess_cpu_fft_prepare(device, &back, &plans->back, error);
    if (status != TESS_OK) {
        filter_release(device, plans);
        *state = NULL;
    }
    return status;
}

static void filter_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                       tess_stream *stream)
{
    const filter_plans *plans = state;
    const tess_op forward = transform_of(op, false), inverse = transform_of(op, true);
    if (op->filter.product_only) {
        filter_job product = {op, buffers, op->in[0], buffers->out[0]};
        tess_pool_run(tess_cpu_of(device)->pool, op->in[0].n * op->in[0].d * op->in[0].h, product_item,
                      &product);
        return;
    }
    char *aligned = (char *)(((uintptr_t)buffers->workspace + ALIGN - 1) / ALIGN * ALIGN);
    char *workspace = aligned + waves_bytes(op);
    filter_job job = {op, buffers, spectrum_of(op), (float *)aligned};
    const tess_op_buffers there = {.in = {buffers->in[0]}, .out = {job.waves}, .workspace = workspace},
                          again = {.in = {job.waves}, .out = {buffers->out[0]}, .workspace = workspace};
    tess_cpu_fft_run(device, &forward, plans->to, &there, stream);
    tess_pool_run(tess_cpu_of(device)->pool, job.spectrum.n * job.spectrum.d * job.spectrum.h, product_item,
                  &job);
    tess_cpu_fft_run(device, &inverse, plans->back, &again, stream);
}

const tess_kernel tess_cpu_filter = {.name = "filter",
                                     .refuses = refuses,
                                     .needs = filter_needs,
                                     .prepare = filter_prepare,
                                     .run = filter_run,
                                     .release = filter_release};
