/* The steps of FDK (Feldkamp, Davis, Kress 1984) other than its filter, with the arithmetic of the CPU.
 * RAY_COSINE: one thread per pixel. RAY_SPREAD: one thread per voxel, which sums the views in order in a
 * register; VIEWS views at a time are prepared in shared memory.
 *
 * Cost: an update of RAY_SPREAD takes 9 instructions in fp64, about 50 in fp32 and 4 loads. 512^3, 50 views:
 * 6.7e9 updates, 1.5e10 warp instructions: 16 ms at the H200's 528 per clock and 1.75 GHz, so at most about
 * 400 GUPS. RAY_COSINE reads and writes its views once. */
#include "cuda/rays/rays_job.h"

namespace
{

enum { WIDE = 32, HIGH = 8, VIEWS = 32, THREADS = WIDE * HIGH };

/* A block is WIDE columns of HIGH rows of a view. */
__global__ void __launch_bounds__(THREADS) cosine_kernel(tess_rays_job job)
{
    const int64_t column = (int64_t)blockIdx.x * WIDE + threadIdx.x,
                  row = (int64_t)blockIdx.y * HIGH + threadIdx.y;
    if (column >= job.volume.w || row >= job.volume.h)
        return;
    for (int64_t at = blockIdx.z; at < job.views.d; at += gridDim.z) {
        float value = 0;
        if (column < job.views.w) {
            const tess_view3 view = tess_view3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS);
            value =
                job.from[at * job.views.stride_d + row * job.views.stride_h + column * job.views.stride_w] *
                (float)tess_view3_cosine(&view, row, column);
        }
        job.to[at * job.volume.stride_d + row * job.volume.stride_h + column * job.volume.stride_w] = value;
    }
}

/* A view's shadow, and its weight at the origin. */
struct spread_view {
    tess_shadow3 shadow;
    float weight;
};

__device__ spread_view spread_of(const tess_rays_job &job, int64_t at)
{
    const tess_view3 view = tess_view3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS);
    double centre[3], origin[3];
    for (int i = 0; i < 3; i++)
        centre[i] = 0.5 * (double)(job.scan.size[i] - 1);
    spread_view s;
    s.shadow = tess_view3_shadow(&view);
    tess_shadow3_at(&s.shadow, centre, origin);
    s.weight = (float)(job.scale * origin[2] * origin[2]);
    return s;
}

/* Bilinear, zero outside the detector. */
__device__ float sample(const tess_tensor &views, const float *view, float column, float row)
{
    if (!(column > -1 && row > -1 && column < (float)views.w && row < (float)views.h))
        return 0;
    const int c = (int)(column + 1) - 1, r = (int)(row + 1) - 1;
    const float right = column - (float)c, below = row - (float)r;
    float sum = 0;
#pragma unroll
    for (int corner = 0; corner < 4; corner++) {
        const int i = c + (corner & 1), j = r + (corner >> 1);
        if (i >= 0 && i < views.w && j >= 0 && j < views.h)
            sum += (corner & 1 ? right : 1 - right) * (corner >> 1 ? below : 1 - below) *
                   __ldg(view + j * views.stride_h + i * views.stride_w);
    }
    return sum;
}

__device__ float spread(const tess_rays_job &job, const spread_view &s, const float *view, int x, int y,
                        int64_t z)
{
    float seen[3];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double *of = s.shadow.of[k];
        seen[k] = (float)(of[1] * (double)y + of[2] * (double)z + of[3]) + (float)x * (float)of[0];
    }
    const float inverse = 1 / seen[2];
    return s.weight * inverse * inverse * sample(job.views, view, seen[0] * inverse, seen[1] * inverse);
}

/* A block is WIDE x HIGH voxels of a slice. */
__global__ void __launch_bounds__(THREADS) spread_kernel(tess_rays_job job)
{
    __shared__ spread_view prepared[VIEWS];
    const int x = (int)blockIdx.x * WIDE + threadIdx.x, y = (int)blockIdx.y * HIGH + threadIdx.y,
              thread = (int)(threadIdx.y * WIDE + threadIdx.x);
    const bool there = x < job.volume.w && y < job.volume.h;
    for (int64_t z = blockIdx.z; z < job.volume.d; z += gridDim.z) {
        float *out = job.to + z * job.volume.stride_d + y * job.volume.stride_h + x * job.volume.stride_w;
        float sum = there && job.accumulate ? *out : 0;
        for (int64_t first = 0; first < job.views.d; first += VIEWS) {
            const int count = (int)min((int64_t)VIEWS, job.views.d - first);
            if (thread < count)
                prepared[thread] = spread_of(job, first + thread);
            __syncthreads();
            for (int k = 0; k < count && there; k++)
                sum += spread(job, prepared[k], job.from + (first + k) * job.views.stride_d, x, y,
                              z + job.scan.first);
            __syncthreads();
        }
        if (there)
            *out = sum;
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_fdk(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const tess_rays_job job = tess_rays_job_of(op, buffers);
    const dim3 blocks(tess_rays_pieces(op->out[0].w, WIDE), tess_rays_pieces(op->out[0].h, HIGH),
                      tess_rays_turns(op->out[0].d, 1)),
        threads(WIDE, HIGH);
    if (op->kind == TESS_OP_RAY_COSINE)
        cosine_kernel<<<blocks, threads, 0, stream>>>(job);
    else
        spread_kernel<<<blocks, threads, 0, stream>>>(job);
    return cudaGetLastError();
}
