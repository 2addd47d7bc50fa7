/* The transpose of rays.cu, by gathering (geometry/column3.h): a block is a box of voxels and a thread is a
 * column of them along z, which gathers from its rays view by view. The order of the sum is fixed: it depends
 * neither on the run nor on the slab. The patch of a view that the box can see is staged in shared memory for
 * one dominant axis, multiplied by the lengths of the rays; if the patch is too large, voxels read the view
 * directly (geometry/gather3.h).
 *
 * Measured on an H200, 512^3, 50 views of 512^2: 22.9 ms, 2.9e11 updates per second, an update being one view
 * on one voxel. Boxes of half the height take 23.9 ms, of half the depth too, 32.0; views that are not upright
 * take twice as long as upright ones; without patches it took 218 ms. */
#include "cuda/rays/rays_job.h"
#include "geometry/column3.h"

namespace
{

/* A block is WIDE x HIGH columns of DEEP voxels; BLOCKS blocks must fit on a multiprocessor. */
enum { WIDE = 32, HIGH = 16, DEEP = 16, BLOCKS = 2, VIEWS = 16 };

/* Not inlined, to save registers for the inner loops. */
__device__ __noinline__ void prepare(const tess_rays_job &job, int64_t at, const tess_box3 &box,
                                     tess_patch3 *patch)
{
    *patch = tess_patch3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS, &box);
}

__device__ __noinline__ bool follows(const tess_rays_job &job, int64_t at, const tess_patch3 *patch, int a,
                                     int i, int j)
{
    return tess_patch3_follows(patch, &job.scan, job.table + at * TESS_VIEW3_NUMBERS, a, i, j);
}

/* The contribution to a column of a view too near or too fine for a patch. */
__device__ __noinline__ void gather_alone(const tess_rays_job &job, int64_t at, const int first[3], int from,
                                          int to, float *sums)
{
    const tess_gather3 g = tess_gather3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS);
    for (int t = from; t < to; t++) {
        const int voxel[3] = {first[0], first[1], first[2] + t};
        sums[t] = tess_gather3_voxel(&job.scan, &g, voxel, job.from + at * job.views.stride_d,
                                     job.views.stride_h, job.views.stride_w);
    }
}

__global__ void __launch_bounds__(WIDE *HIGH, BLOCKS) back_kernel(const __grid_constant__ tess_rays_job job)
{
    __shared__ tess_patch3 patches[VIEWS];
    __shared__ float patch[TESS_PATCH3_TALL * TESS_PATCH3_PITCH];
    const int lx = threadIdx.x, ly = threadIdx.y, left = (int)blockIdx.x * WIDE, top = (int)blockIdx.y * HIGH;
    const int width = (int)job.scan.size[0], height = (int)job.scan.size[1];
    const bool there = left + lx < width && top + ly < height;
    /* Boxes have the same positions as in the whole volume, so that slabs give the same bits. */
    const int begin = (int)job.scan.first, end = (int)job.scan.end;
    for (int64_t turn = blockIdx.z; turn < (end - 1) / DEEP - begin / DEEP + 1; turn += gridDim.z) {
        const int front = (begin / DEEP + (int)turn) * DEEP;
        const tess_box3 box = {{left, top, front},
                               {min((int)WIDE, width - left), min((int)HIGH, height - top), DEEP}};
        float sums[DEEP];
#pragma unroll
        for (int t = 0; t < DEEP; t++)
            sums[t] = 0;
        for (int64_t first = 0; first < job.scan.views; first += VIEWS) {
            const int count = (int)min((int64_t)VIEWS, job.scan.views - first), thread = ly * WIDE + lx;
            if (thread < count)
                prepare(job, first + thread, box, &patches[thread]);
            __syncthreads();
            for (int k = 0; k < count; k++) {
                const tess_patch3 *p = &patches[k];
                const int64_t at = first + k;
                const float *view = job.from + at * job.views.stride_d;
                const bool mixed = tess_patch3_mixed(p);
                if (!p->fits) {
                    const int own[3] = {left + lx, top + ly, front};
                    float alone[DEEP] = {0};
                    if (there)
                        gather_alone(job, at, own, max(begin - front, 0), min(end - front, (int)DEEP), alone);
                    const float inverse = 1 / (float)job.scan.spacing;
#pragma unroll
                    for (int t = 0; t < DEEP; t++)
                        sums[t] += alone[t] * inverse;
                    continue;
                }
#pragma unroll 1
                for (int a = 0; a < 3; a++) {
                    if (!(p->axes >> a & 1))
                        continue;
                    for (int j = ly; j < p->high; j += HIGH)
                        for (int i = lx; i < p->wide; i += WIDE)
                            patch[j * TESS_PATCH3_PITCH + i] =
                                mixed && !follows(job, at, p, a, i, j)
                                    ? 0
                                    : tess_patch3_value(p, &job.scan, a, i, j, view, job.views.stride_h,
                                                        job.views.stride_w);
                    __syncthreads();
                    if (there)
                        tess_column3_gather(p, a, lx, ly, DEEP, patch, sums);
                    __syncthreads();
                }
            }
            __syncthreads();
        }
        float *out = job.to + (front - begin) * job.volume.stride_d + (top + ly) * job.volume.stride_h +
                     (left + lx) * job.volume.stride_w;
#pragma unroll
        for (int t = 0; t < DEEP; t++, out += job.volume.stride_d)
            if (there && front + t >= begin && front + t < end)
                *out = (job.accumulate ? *out : 0) + sums[t] * (float)job.scan.spacing;
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_rays_back(const tess_op *op, const tess_op_buffers *buffers,
                                           cudaStream_t stream)
{
    const tess_rays_job job = tess_rays_job_of(op, buffers);
    const dim3 blocks(tess_rays_pieces(job.volume.w, WIDE), tess_rays_pieces(job.volume.h, HIGH),
                      tess_rays_turns(job.volume.d + DEEP - 1, DEEP));
    back_kernel<<<blocks, dim3(WIDE, HIGH), 0, stream>>>(job);
    return cudaGetLastError();
}
