/* A filter of any size: cuFFT's transform into the workspace, the product there, cuFFT's inverse. */
#include <string.h>

#include "base/checked.h"
#include "cuda/fft/filter.h"

enum { ALIGN = 256 };

typedef struct whole_handle {
    tess_op to, back;
    void *to_fft, *back_fft;
} whole_handle;

static tess_op part_of(const tess_op *op, bool inverse)
{
    const tess_tensor spectrum =
        tess_tensor_3d(TESS_F32, op->in[0].n, op->in[0].d, op->in[0].h, op->in[0].w / 2 + 1, 2 * op->in[0].c);
    tess_op fft;
    memset(&fft, 0, sizeof fft);
    fft.kind = TESS_OP_FFT;
    fft.inputs = fft.outputs = 1;
    fft.in[0] = inverse ? spectrum : op->in[0];
    fft.out[0] = inverse ? op->out[0] : spectrum;
    fft.fft.inverse = inverse;
    return fft;
}

static const char *whole_refuses(const tess_op *op, int capability)
{
    if (op->kind != TESS_OP_FILTER)
        return "only filters";
    if (op->filter.product_only)
        return "a card filters whole images";
    const tess_tensor *a = &op->in[0], *b = &op->out[0], *power = &op->in[1], *data = &op->in[2];
    const tess_op to = part_of(op, false), back = part_of(op, true);
    if (a->n != b->n || a->d != b->d || a->h != b->h || a->w != b->w || a->c != b->c)
        return "a filter takes and makes images of one size";
    if (tess_op_residuals(op) < 1 || power->dtype != TESS_F32 || power->n != 1 || power->d != 1 ||
        power->h != a->h || power->w != a->w / 2 + 1 || power->c != 1)
        return "the filter does not fit the image";
    if (tess_op_residuals(op) > 1 &&
        (data->dtype != TESS_F32 || data->n != a->n || data->d != a->d || data->h != a->h ||
         data->w != a->w / 2 + 1 || data->c != 2 * a->c || data->stride_h % 2 || data->stride_w % 2 ||
         data->stride_d % 2 || data->stride_n % 2))
        return "what a filter adds must be a spectrum of its image, with pixels at even places";
    const char *why = tess_cuda_fft.refuses(&to, capability);
    return why ? why : tess_cuda_fft.refuses(&back, capability);
}

static size_t waves_bytes(const tess_op *op)
{
    size_t bytes = 0;
    const tess_op to = part_of(op, false);
    return tess_tensor_bytes(&to.out[0], &bytes) ? tess_align_size(bytes, ALIGN) : SIZE_MAX;
}

static size_t whole_workspace(const tess_op *op)
{
    const tess_op to = part_of(op, false), back = part_of(op, true);
    const size_t first = tess_cuda_fft.workspace(&to), last = tess_cuda_fft.workspace(&back),
                 waves = waves_bytes(op);
    if (first == SIZE_MAX || last == SIZE_MAX || waves == SIZE_MAX)
        return SIZE_MAX;
    return ALIGN + waves + (first > last ? first : last);
}

static void whole_release(void *handle)
{
    whole_handle *w = handle;
    if (w->to_fft)
        tess_cuda_fft.release(w->to_fft);
    if (w->back_fft)
        tess_cuda_fft.release(w->back_fft);
    tess_small_free(w);
}

static tess_status whole_prepare(const tess_op *op, void **handle, tess_error *error)
{
    *handle = NULL;
    whole_handle *w = tess_small_alloc(1, sizeof *w);
    if (!w)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare a filter");
    w->to = part_of(op, false);
    w->back = part_of(op, true);
    tess_status status = tess_cuda_fft.prepare(&w->to, &w->to_fft, error);
    if (status == TESS_OK)
        status = tess_cuda_fft.prepare(&w->back, &w->back_fft, error);
    if (status == TESS_OK)
        *handle = w;
    else
        whole_release(w);
    return status;
}

static tess_status whole_run(void *handle, const tess_op *op, const tess_op_buffers *buffers,
                             cudaStream_t stream, tess_error *error)
{
    const whole_handle *w = handle;
    const tess_tensor *s = &w->to.out[0];
    char *aligned = (char *)(((uintptr_t)buffers->workspace + ALIGN - 1) / ALIGN * ALIGN),
         *workspace = aligned + waves_bytes(op);
    const tess_filter_run first = tess_filter_run_of(op, buffers);
    tess_op_buffers part = {.in = {buffers->in[0]}, .out = {aligned}, .workspace = workspace};
    TESS_TRY(tess_cuda_fft.run_prepared(w->to_fft, &w->to, &part, stream, error));
    for (int64_t i = 0; i < op->in[0].n * op->in[0].d; i++) {
        tess_filter_run run = first;
        run.spectrum = *s;
        run.waves = (float *)aligned + i * s->stride_d;
        run.data = first.data ? first.data + i / op->in[0].d * run.less.stride_n +
                                    i % op->in[0].d * run.less.stride_d
                              : NULL;
        TESS_TRY(
            tess_cuda_check(tess_filter_product(&run, (int)op->in[0].h, (int)s->w, (int)op->in[0].c, stream),
                            "filter", error));
    }
    part = (tess_op_buffers){.in = {aligned}, .out = {buffers->out[0]}, .workspace = workspace};
    return tess_cuda_fft.run_prepared(w->back_fft, &w->back, &part, stream, error);
}

const tess_cuda_launch tess_cuda_filter_whole = {.refuses = whole_refuses,
                                                 .workspace = whole_workspace,
                                                 .prepare = whole_prepare,
                                                 .release = whole_release,
                                                 .run_prepared = whole_run};
