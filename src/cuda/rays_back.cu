/* The transpose of rays.cu, by gathering (device/gather3.h): one thread a voxel looks for its rays, view by view, in an
 * order that nothing changes: not the run, not the slab. Views are prepared in shared memory, VIEWS at a time.
 *
 * Cost: an update, one view on one voxel, takes about 30 instructions in fp64 and 60 in fp32, and 30 for each of the 4
 * to 9 rays in reach. 512^3, 50 views: 6.7e9 updates, 6e10 to 8e10 warp instructions: 65 to 90 ms at the H200's 528 a
 * clock and 1.75 GHz, so 75 to 100 GUPS; the views, 52 MB, are read through L1 and L2, the volume is written once. */
#include "cuda/rays.h"
#include "device/gather3.h"

namespace
{

enum { WIDE = 32, HIGH = 4, DEEP = 2, VIEWS = 16, THREADS = WIDE * HIGH * DEEP };

struct back_job {
    tess_scan3 scan;
    const double *table;
    const float *views;
    float *volume; /* the slab */
    int64_t step_x, step_y, step_z;
    int64_t view_d, view_h, view_w;
    bool accumulate;
};

/* A block is WIDE x HIGH x DEEP voxels; rays of neighbours are neighbours. */
__global__ void __launch_bounds__(THREADS) back_kernel(back_job job)
{
    __shared__ tess_gather3 prepared[VIEWS];
    const int x = (int)blockIdx.x * WIDE + threadIdx.x, y = (int)blockIdx.y * HIGH + threadIdx.y;
    const int thread = (int)((threadIdx.z * HIGH + threadIdx.y) * WIDE + threadIdx.x);
    const int slices = (int)(job.scan.end - job.scan.first);
    for (int front = (int)blockIdx.z * DEEP; front < slices; front += (int)gridDim.z * DEEP) {
        const int z = front + (int)threadIdx.z, voxel[3] = {x, y, z + (int)job.scan.first};
        const bool there = x < job.scan.size[0] && y < job.scan.size[1] && z < slices;
        float sum = 0;
        for (int64_t first = 0; first < job.scan.views; first += VIEWS) {
            const int count = (int)min((int64_t)VIEWS, job.scan.views - first);
            if (thread < count)
                prepared[thread] =
                    tess_gather3_of(&job.scan, job.table + (first + thread) * TESS_VIEW3_NUMBERS);
            __syncthreads();
            for (int k = 0; k < count && there; k++)
                sum += tess_gather3_voxel(&job.scan, &prepared[k], voxel,
                                          job.views + (first + k) * job.view_d, job.view_h, job.view_w);
            __syncthreads();
        }
        float *out = job.volume + z * job.step_z + y * job.step_y + x * job.step_x;
        if (there)
            *out = (job.accumulate ? *out : 0) + sum;
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_rays_back(const tess_op *op, const tess_op_buffers *buffers,
                                           cudaStream_t stream)
{
    const tess_tensor *volume = &op->out, *views = &op->in;
    back_job job = {};
    job.scan = tess_scan3_of(&op->rays, volume, views);
    job.table = (const double *)buffers->weights;
    job.views = (const float *)buffers->in;
    job.volume = (float *)buffers->out;
    job.step_x = volume->stride_w;
    job.step_y = volume->stride_h;
    job.step_z = volume->stride_d;
    job.view_d = views->stride_d;
    job.view_h = views->stride_h;
    job.view_w = views->stride_w;
    job.accumulate = op->rays.accumulate;
    const int64_t deep = (volume->d + DEEP - 1) / DEEP;
    const dim3 blocks((unsigned)((volume->w + WIDE - 1) / WIDE), (unsigned)((volume->h + HIGH - 1) / HIGH),
                      (unsigned)(deep < 65535 ? deep : 65535)),
        threads(WIDE, HIGH, DEEP);
    back_kernel<<<blocks, threads, 0, stream>>>(job);
    return cudaGetLastError();
}
