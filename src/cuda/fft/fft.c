/* FFTs by cuFFT. A prepared op owns its plan. The work area is the op's workspace, set at every run, so that
 * cuFFT allocates nothing then. The size of the work area is known only after a plan is made: the first query
 * of a layout makes one, and the answer is cached.
 *
 * cuFFT does not divide its inverse by the number of pixels. A COMBINE does it in place, or the one that
 * copies a staged image (see fft_layout.h) to the output. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "cuda/fft/cufft_api.h"
#include "cuda/fft/fft_layout.h"

enum { ALIGN = 256, SIZES = 64 };

typedef struct fft_handle {
    tess_fft_layout layout;
    tess_cufft_plan plan;
    pthread_mutex_t lock; /* a plan has one stream and one work area at a time */
} fft_handle;

/* Cache of work area sizes; a new entry replaces the oldest. */
static pthread_mutex_t sizes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    tess_fft_layout layout;
    int card;
    size_t bytes;
} sizes[SIZES];
static int sizes_count, sizes_next;

static const char *fft_refuses(const tess_op *op, int capability)
{
    (void)capability;
    if (op->kind != TESS_OP_FFT)
        return "only transforms";
    tess_fft_layout layout;
    const char *why = tess_fft_layout_of(op, &layout);
    if (!why && !tess_cufft())
        why = "cuFFT (libcufft.so.12 or .11) is not installed; install it, or use `device` cpu";
    return why;
}

static tess_status make_plan(const tess_fft_layout *l, tess_cufft_plan *plan, size_t *bytes,
                             tess_error *error)
{
    const tess_cufft_api *api = tess_cufft();
    if (!api)
        return tess_fail(error, TESS_UNSUPPORTED, "cuFFT is not installed");
    const tess_fft_side *in = l->inverse ? &l->spectrum : &l->real,
                        *out = l->inverse ? &l->real : &l->spectrum;
    /* A transform of rows has no height: only the last entries are passed. */
    long long size[2] = {l->h, l->w}, in_size[2] = {l->h, in->pitch}, out_size[2] = {l->h, out->pitch};
    const int skip = l->rank == 1 ? 1 : 0;
    TESS_TRY(tess_cufft_check(api->cufftCreate(plan), "opening", error));
    int result = api->cufftSetAutoAllocation(*plan, 0);
    if (!result)
        result = api->cufftMakePlanMany64(*plan, (int)l->rank, size + skip, in_size + skip, in->stride,
                                          in->distance, out_size + skip, out->stride, out->distance,
                                          l->inverse ? TESS_CUFFT_C2R : TESS_CUFFT_R2C, l->batch, bytes);
    if (!result)
        result = api->cufftGetSize(*plan, bytes);
    tess_status status = tess_cufft_check(result, "planning a transform", error);
    if (status != TESS_OK)
        (void)api->cufftDestroy(*plan);
    return status;
}

/* SIZE_MAX: a plan cannot be made. */
static size_t work_bytes(const tess_fft_layout *layout)
{
    int card = 0;
    size_t bytes = SIZE_MAX;
    (void)cudaGetDevice(&card);
    pthread_mutex_lock(&sizes_lock);
    for (int i = 0; i < sizes_count && bytes == SIZE_MAX; i++)
        if (sizes[i].card == card && memcmp(&sizes[i].layout, layout, sizeof *layout) == 0)
            bytes = sizes[i].bytes;
    if (bytes == SIZE_MAX) {
        tess_cufft_plan plan = 0;
        if (make_plan(layout, &plan, &bytes, NULL) == TESS_OK) {
            (void)tess_cufft()->cufftDestroy(plan);
            sizes[sizes_next].layout = *layout;
            sizes[sizes_next].card = card;
            sizes[sizes_next].bytes = bytes;
            sizes_next = (sizes_next + 1) % SIZES;
            sizes_count += sizes_count < SIZES;
        } else {
            bytes = SIZE_MAX;
        }
    }
    pthread_mutex_unlock(&sizes_lock);
    return bytes;
}

/* The staged planes, then cuFFT's work area, from the first aligned address on. */
static size_t fft_workspace(const tess_op *op)
{
    tess_fft_layout layout;
    if (tess_fft_layout_of(op, &layout))
        return SIZE_MAX;
    const size_t work = work_bytes(&layout);
    return work == SIZE_MAX ? work
                            : ALIGN + tess_align_size(tess_fft_staged_bytes(op, &layout), ALIGN) + work;
}

static void fft_release(void *handle)
{
    fft_handle *fft = handle;
    (void)tess_cufft()->cufftDestroy(fft->plan);
    pthread_mutex_destroy(&fft->lock);
    tess_small_free(fft);
}

static tess_status fft_prepare(const tess_op *op, void **handle, tess_error *error)
{
    *handle = NULL;
    tess_fft_layout layout;
    const char *why = tess_fft_layout_of(op, &layout);
    if (why)
        return tess_fail(error, TESS_UNSUPPORTED, "the NVIDIA device cannot do this FFT: %s", why);
    fft_handle *fft = tess_small_alloc(1, sizeof *fft);
    if (!fft)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare an FFT");
    size_t bytes = 0;
    tess_status status = make_plan(&layout, &fft->plan, &bytes, error);
    if (status != TESS_OK) {
        tess_small_free(fft);
        return status;
    }
    fft->layout = layout;
    pthread_mutex_init(&fft->lock, NULL);
    *handle = fft;
    return TESS_OK;
}

/* to = factor * from, for tensors of one shape. */
static tess_status scaled_copy(const tess_tensor *from, const float *in, const tess_tensor *to, float *out,
                               double factor, cudaStream_t stream, tess_error *error)
{
    const tess_op op = {.kind = TESS_OP_COMBINE,
                        .inputs = 1,
                        .outputs = 1,
                        .in = {*from},
                        .out = {*to},
                        .combine = {factor, 0, 0, -INFINITY, INFINITY}};
    const tess_op_buffers buffers = {.in = {in}, .out = {out}};
    return tess_cuda_check(tess_cuda_vector.run(&op, &buffers, stream), "FFT", error);
}

/* Copies one image to the planes of its channels, or back. */
static tess_status stage(const tess_tensor *real, float *image, float *planes, bool back, double factor,
                         cudaStream_t stream, tess_error *error)
{
    tess_tensor channel = *real, plane = tess_tensor_2d(TESS_F32, 1, real->h, real->w, 1);
    channel.n = channel.d = channel.c = 1;
    plane.stride_h = tess_fft_staged_pitch(real);
    for (int64_t c = 0; c < real->c; c++, image++, planes += tess_fft_staged_plane(real))
        TESS_TRY(back ? scaled_copy(&plane, planes, &channel, image, factor, stream, error)
                      : scaled_copy(&channel, image, &plane, planes, factor, stream, error));
    return TESS_OK;
}

static tess_status transform(const fft_handle *fft, const tess_op *op, float *real, float *spectrum,
                             float *planes, cudaStream_t stream, tess_error *error)
{
    const tess_cufft_api *api = tess_cufft();
    const tess_fft_layout *l = &fft->layout;
    const tess_tensor *r = tess_fft_real(op), *s = tess_fft_spectrum(op);
    const double pixels = (double)r->w * (op->fft.rows_only ? 1.0 : (double)r->h);
    for (int64_t g = 0; g < l->groups; g++) {
        float *image = real + tess_fft_image_at(r, g * l->images);
        float *waves = spectrum + tess_fft_image_at(s, g * l->images);
        if (l->staged && !l->inverse)
            TESS_TRY(stage(r, image, planes, false, 1, stream, error));
        for (int64_t pass = 0; pass < l->passes; pass++) {
            float *values = l->staged ? planes + pass * tess_fft_staged_plane(r) : image;
            tess_cufft_complex *complex_values = (tess_cufft_complex *)(waves + 2 * pass);
            const int result = l->inverse ? api->cufftExecC2R(fft->plan, complex_values, values)
                                          : api->cufftExecR2C(fft->plan, values, complex_values);
            TESS_TRY(tess_cufft_check(result, "a transform", error));
        }
        if (l->staged && l->inverse)
            TESS_TRY(stage(r, image, planes, true, 1 / pixels, stream, error));
    }
    return l->inverse && !l->staged ? scaled_copy(r, real, r, real, 1 / pixels, stream, error) : TESS_OK;
}

static tess_status fft_run(void *handle, const tess_op *op, const tess_op_buffers *buffers,
                           cudaStream_t stream, tess_error *error)
{
    fft_handle *fft = handle;
    const tess_cufft_api *api = tess_cufft();
    /* cuFFT does not write its input, except for an inverse, which may overwrite it. */
    float *in = (float *)buffers->in[0], *out = buffers->out[0];
    float *real = op->fft.inverse ? out : in, *spectrum = op->fft.inverse ? in : out;
    const size_t complex_size = sizeof(tess_cufft_complex);
    if ((uintptr_t)spectrum % complex_size || (!fft->layout.staged && (uintptr_t)real % complex_size))
        return tess_fail(error, TESS_UNSUPPORTED, "cuFFT takes images that begin at a multiple of 8 bytes");
    char *planes = (char *)(((uintptr_t)buffers->workspace + ALIGN - 1) / ALIGN * ALIGN);
    char *work = planes + tess_align_size(tess_fft_staged_bytes(op, &fft->layout), ALIGN);
    pthread_mutex_lock(&fft->lock);
    tess_status status = tess_cufft_check(api->cufftSetStream(fft->plan, stream), "its stream", error);
    if (status == TESS_OK)
        status = tess_cufft_check(api->cufftSetWorkArea(fft->plan, work), "its work area", error);
    if (status == TESS_OK)
        status = transform(fft, op, real, spectrum, (float *)planes, stream, error);
    pthread_mutex_unlock(&fft->lock);
    return status;
}

const tess_cuda_launch tess_cuda_fft = {.refuses = fft_refuses,
                                        .workspace = fft_workspace,
                                        .prepare = fft_prepare,
                                        .release = fft_release,
                                        .run_prepared = fft_run};
