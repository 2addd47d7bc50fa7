/* LOCAL_RX: the distance of each pixel from the ring of pixels around it, (x - m)' inv(S + epsilon I) (x - m), in fp64.
 *
 * As on the CPU (cpu/statistics/local_rx.c): the sums of products of a ring move along a part of a row, what enters is added and
 * what leaves is subtracted, relative to the first pixel of the part; one more channel, the constant 1, holds the
 * sums and the count. Then this channel's row becomes x - m, and eliminating all others leaves -(x - m)' inv(S) (x - m)
 * at its place.
 *
 * A CTA takes a part of a row at a time. Its sums stay in device memory (the L2 cache holds those of all CTAs), as the matrix
 * instruction leaves them: double2 [tile][lane]. The matrix to eliminate is in shared memory if it fits, in the same place
 * as the pixels that enter and leave, which are used up by then. The order of all sums depends on sizes alone. */
#include "cuda/statistics/local_ring.cuh"

namespace
{

enum { PART = 32, CARD = 132, RESIDENT = 3 };
enum { POOL = 32 << 10, STATIC = 1 << 10, MOST_CHANNELS = 1024, MOST_WINDOW = 4095 };

template <bool SHARED>
__global__ void __launch_bounds__(THREADS, RESIDENT) local_kernel(const __grid_constant__ local_job job)
{
    extern __shared__ __align__(16) double shared[];
    ring r = ring_of(job, shared, SHARED);
    tess_tile_table(r.table, job.plan.side);
    for (int64_t item = blockIdx.x; item < job.plan.lines * job.plan.parts; item += gridDim.x) {
        const int64_t first = item % job.plan.parts * PART, end = first + PART;
        part_of_line(job, r, item / job.plan.parts, first, end < job.in.w ? end : job.in.w);
    }
}

int most_shared(void)
{
    int device = 0, bytes = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
                   cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) ==
                       cudaSuccess
               ? bytes
               : 48 << 10;
}

/* The matrix is in shared memory if that holds it; the pixels share its place. A group has all pixels of one move, if
 * they fit. */
local_plan plan_of(const tess_op *op)
{
    const tess_tensor *in = &op->in[0];
    local_plan p = {};
    p.channels = (int)in->c;
    p.side = (p.channels + TESS_TILE_SIDE) / TESS_TILE_SIDE;
    p.tiles = tess_tile_number(p.side, 0);
    p.stride = (p.side * TESS_TILE_SIDE + 15) / 16 * 16 + 4;
    const int moved = (2 * (op->kernel[TESS_WIDTH] + op->local_rx.inner) + DEEP - 1) / DEEP * DEEP;
    const size_t most = (size_t)most_shared() - STATIC, pixel = (size_t)(p.stride + 1) * sizeof(double),
                 matrix = (size_t)p.tiles * TESS_TILE * sizeof(double),
                 fixed =
                     (size_t)p.side * TESS_TILE_SIDE * 2 * sizeof(double) + (size_t)(p.tiles + 7) / 8 * 16;
    p.shared = matrix + fixed <= most;
    size_t pool = p.shared && matrix > POOL ? matrix : (size_t)POOL;
    pool = pool > DEEP * pixel ? pool : DEEP * pixel;
    p.group = moved < (int)(pool / pixel) ? moved : (int)(pool / pixel) / DEEP * DEEP;
    pool = (size_t)p.group * pixel;
    p.bytes = fixed + (p.shared && matrix > pool ? matrix : (pool + 15) / 16 * 16);
    p.lines = in->n * in->d * in->h;
    p.parts = (in->w + PART - 1) / PART;
    const int64_t fits = (int64_t)((most + 2 * STATIC) / (p.bytes + 2 * STATIC)),
                  at_once = CARD * (fits < 1          ? 1
                                    : fits < RESIDENT ? fits
                                                      : (int64_t)RESIDENT);
    p.ctas = (unsigned)(p.lines * p.parts < at_once ? p.lines * p.parts : at_once);
    return p;
}

/* Sums, matrices, counts, in this order. */
size_t workspace(const tess_op *op)
{
    const local_plan p = plan_of(op);
    return 16 + (size_t)p.ctas * (size_t)p.tiles * TESS_TILE * sizeof(double) * (p.shared ? 1 : 2) +
           (size_t)(op->in[0].n * tess_pixels(&op->in[0]));
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *in = &op->in[0], *mask = &op->in[1], *out = &op->out[0];
    const int32_t *k = op->kernel, inner = op->local_rx.inner;
    if (in->dtype != TESS_F32 || (out->dtype != TESS_F32 && out->dtype != TESS_F64))
        return "local scores take pixels of fp32 values, and are fp32 or fp64";
    if (in->c < 1 || in->c > MOST_CHANNELS || in->n * tess_pixels(in) < 1)
        return "local scores take pixels of 1 to 1024 channels";
    tess_tensor one = *in;
    one.c = 1;
    if (op->inputs > 1 &&
        ((mask->dtype != TESS_U8 && mask->dtype != TESS_F32) || !tess_same_sizes(mask, &one)))
        return "a mask has one channel of uint8 or fp32 and the size of the image";
    if (k[TESS_DEPTH] > 1 || k[TESS_HEIGHT] != k[TESS_WIDTH] || k[TESS_WIDTH] % 2 != 1 || inner < 1 ||
        inner % 2 != 1 || inner >= k[TESS_WIDTH] || k[TESS_WIDTH] > MOST_WINDOW)
        return "local scores need two odd windows of at most 4095, the inner one smaller than the outer one";
    return op->local_rx.epsilon >= 0 && isfinite(op->local_rx.epsilon)
               ? NULL
               : "epsilon of local scores must be 0 or more";
}

template <bool SHARED> cudaError_t launch(const local_job &job, cudaStream_t stream)
{
    const cudaError_t result = cudaFuncSetAttribute(
        local_kernel<SHARED>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)job.plan.bytes);
    if (result != cudaSuccess)
        return result;
    local_kernel<SHARED><<<job.plan.ctas, THREADS, job.plan.bytes, stream>>>(job);
    return cudaGetLastError();
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    local_job job = {};
    job.plan = plan_of(op);
    job.in = op->in[0];
    job.out = op->out[0];
    job.flat = tess_moments_even(&job.in);
    job.flat_out = tess_moments_even(&job.out);
    job.outer = op->kernel[TESS_WIDTH] / 2;
    job.inner = op->local_rx.inner / 2;
    job.epsilon = op->local_rx.epsilon;
    job.from = (const float *)b->in[0];
    job.to = b->out[0];
    job.sums = (double2 *)(((uintptr_t)b->workspace + 15) / 16 * 16);
    job.matrix = (double *)(job.sums + (int64_t)job.plan.ctas * job.plan.tiles * 32);
    uint8_t *counts =
        (uint8_t *)(job.matrix + (job.plan.shared ? 0 : (int64_t)job.plan.ctas * job.plan.tiles * TESS_TILE));
    job.counts = counts;
    const cudaError_t result = tess_moments_counts(op, b, counts, stream);
    if (result != cudaSuccess)
        return result;
    return job.plan.shared ? launch<true>(job, stream) : launch<false>(job, stream);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_local_rx = {refuses, run, NULL, workspace};
