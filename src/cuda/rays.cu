/* Line integrals through a volume by Joseph's weights (device/ray3.h). One thread sets up one ray; a warp has 8 x 4
 * pixels of the detector, so that its rays run side by side.
 *
 * Rays that follow y or z most: each thread follows its own, slice by slice; neighbours read neighbours in x. Rays that
 * follow x most would read 32 distant rows at a time, for one value of each; there ALONG lanes take as many
 * slices of one ray, which lie side by side in memory, and the warp's rays take turns.
 *
 * Cost: views rows columns slices samples of 4 loads and about 35 instructions. 512^3, 50 views of 512^2: 6.7e9
 * samples, 7.3e9 warp instructions: 8 ms at the H200's 528 a clock and 1.75 GHz; a view reads the volume once, 27 GB:
 * 5.6 ms at 4.8 TB/s; loads of 4 to 9 lines each, 8.4e8 of them, 15 to 30 ms: so 220 to 450 GUPS are to be expected. */
#include "cuda/rays.h"
#include "device/ray3.h"

namespace
{

enum { ALONG = 8, TILE_WIDTH = 32, TILE_HEIGHT = 8, THREADS = TILE_WIDTH * TILE_HEIGHT };

struct rays_job {
    tess_scan3 scan;
    const double *table;
    const float *volume; /* where slice 0 of the whole volume would be; only the slab is there */
    float *views;
    int64_t step_x, step_y, step_z;
    int64_t view_d, view_h, view_w;
    bool accumulate;
};

/* The volume as a ray's axes see it: slices, b, c. */
struct frame {
    int low[3], high[3];
    int64_t slice, b, c;
};

/* Slices of a ray: those where it is beside the volume or inside, and those of them where all four voxels are there. */
struct span {
    int from, inner, outer, to;
};

__device__ frame frame_of(const rays_job &job, int axis)
{
    const int width = (int)job.scan.size[0], height = (int)job.scan.size[1], first = (int)job.scan.first,
              end = (int)job.scan.end;
    if (axis == 0)
        return {{0, 0, first}, {width, height, end}, job.step_x, job.step_y, job.step_z};
    if (axis == 1)
        return {{0, 0, first}, {height, width, end}, job.step_y, job.step_x, job.step_z};
    return {{first, 0, 0}, {end, width, height}, job.step_z, job.step_x, job.step_y};
}

/* Narrows [from, to) to the slices where low <= position < high, in voxels. A division finds the ends up to rounding;
 * the position itself decides. */
__device__ void clip(int64_t at, int64_t slope, int low, int high, int &from, int &to)
{
    const int64_t voxel = (int64_t)1 << 32, least = low * voxel, most = high * voxel;
    if (slope != 0) {
        const double inverse = 1 / (double)slope;
        const double first = (double)((slope > 0 ? least : most) - at) * inverse,
                     last = (double)((slope > 0 ? most : least) - at) * inverse;
        from = first <= from ? from : first >= to ? to : (int)first;
        to = last >= to - 2 ? to : last <= from ? from : (int)last + 2;
    }
    while (from < to && (at + from * slope < least || at + from * slope >= most))
        from++;
    while (from < to && (at + (to - 1) * slope < least || at + (to - 1) * slope >= most))
        to--;
}

__device__ span span_of(const tess_ray3 &ray, const frame &f)
{
    int from = f.low[0], to = f.high[0];
    clip(ray.at[0], ray.slope[0], f.low[1] - 1, f.high[1], from, to);
    clip(ray.at[1], ray.slope[1], f.low[2] - 1, f.high[2], from, to);
    int inner = from, outer = to;
    clip(ray.at[0], ray.slope[0], f.low[1], f.high[1] - 1, inner, outer);
    clip(ray.at[1], ray.slope[1], f.low[2], f.high[2] - 1, inner, outer);
    if (inner >= outer)
        inner = outer = to;
    return {from, inner, outer, to};
}

/* Slices from, from + step, ... below `to`, voxel by voxel. */
__device__ float sum_edge(const float *volume, const tess_ray3 &ray, const frame &f, int from, int to,
                          int step)
{
    float sum = 0;
    for (int k = from; k < to; k += step) {
        const tess_cell3 cell = tess_ray3_cell(&ray, k);
#pragma unroll
        for (int corner = 0; corner < 4; corner++) {
            const int b = cell.b + (corner & 1), c = cell.c + (corner >> 1);
            if (b >= f.low[1] && b < f.high[1] && c >= f.low[2] && c < f.high[2])
                sum += cell.weight[corner] * __ldg(volume + k * f.slice + b * f.b + c * f.c);
        }
    }
    return sum;
}

/* The same where all four voxels are there. */
__device__ __forceinline__ float sum_inside(const float *volume, const tess_ray3 &ray, const frame &f,
                                            int from, int to, int step)
{
    float sum = 0;
#pragma unroll 4
    for (int k = from; k < to; k += step) {
        const tess_cell3 cell = tess_ray3_cell(&ray, k);
        const float *at = volume + k * f.slice + cell.b * f.b + cell.c * f.c;
        sum += (cell.weight[0] * __ldg(at) + cell.weight[1] * __ldg(at + f.b)) +
               (cell.weight[2] * __ldg(at + f.c) + cell.weight[3] * __ldg(at + f.b + f.c));
    }
    return sum;
}

__device__ __forceinline__ float sum_span(const float *volume, const tess_ray3 &ray, const frame &f,
                                          const span &s, int phase, int step)
{
    return sum_edge(volume, ray, f, s.from + phase, s.inner, step) +
           sum_inside(volume, ray, f, s.inner + phase, s.outer, step) +
           sum_edge(volume, ray, f, s.outer + phase, s.to, step);
}

__device__ __forceinline__ int64_t from_lane(int64_t value, int lane)
{
    return (int64_t)__shfl_sync(~0u, (long long)value, lane);
}

/* The warp's rays, all along x, 32 / ALONG at a time by ALONG lanes each; each lane's sum for its own ray comes back. */
__device__ float sum_together(const rays_job &job, const tess_ray3 &mine, const span &my_span)
{
    enum { AT_ONCE = 32 / ALONG };
    const frame f = frame_of(job, 0);
    const int lane = threadIdx.x % 32;
    float result = 0;
    for (int base = 0; base < 32; base += AT_ONCE) {
        const int owner = base + lane / ALONG;
        tess_ray3 ray;
        ray.axis = 0;
        for (int i = 0; i < 2; i++) {
            ray.at[i] = from_lane(mine.at[i], owner);
            ray.slope[i] = from_lane(mine.slope[i], owner);
        }
        const span s = {__shfl_sync(~0u, my_span.from, owner), __shfl_sync(~0u, my_span.inner, owner),
                        __shfl_sync(~0u, my_span.outer, owner), __shfl_sync(~0u, my_span.to, owner)};
        float sum = sum_span(job.volume, ray, f, s, lane % ALONG, ALONG);
        for (int away = 1; away < ALONG; away *= 2)
            sum += __shfl_xor_sync(~0u, sum, away);
        const float handed = __shfl_sync(~0u, sum, (lane - base) * ALONG & 31);
        if (lane >= base && lane < base + AT_ONCE)
            result = handed;
    }
    return result;
}

/* A block is TILE_WIDTH x TILE_HEIGHT pixels of a view; a warp 8 x 4 of them. */
__global__ void __launch_bounds__(THREADS) project_kernel(rays_job job)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int column = (int)blockIdx.x * TILE_WIDTH + warp % 4 * 8 + lane % 8,
              row = (int)blockIdx.y * TILE_HEIGHT + warp / 4 * 4 + lane / 8;
    const bool there = column < job.scan.columns && row < job.scan.rows;
    for (int64_t at = blockIdx.z; at < job.scan.views; at += gridDim.z) {
        const tess_view3 view = tess_view3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS);
        /* Pixels beyond the detector have rays too, of which nothing is followed. */
        const tess_ray3 ray = tess_view3_ray(&view, row, column);
        const frame f = frame_of(job, ray.axis);
        span s = {0, 0, 0, 0};
        if (there)
            s = span_of(ray, f);
        float sum;
        if (__all_sync(~0u, !there || ray.axis == 0))
            sum = sum_together(job, ray, s);
        else
            sum = sum_span(job.volume, ray, f, s, 0, 1);
        float *out = job.views + at * job.view_d + row * job.view_h + column * job.view_w;
        if (there)
            *out = (job.accumulate ? *out : 0) + sum * ray.length;
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_rays_project(const tess_op *op, const tess_op_buffers *buffers,
                                              cudaStream_t stream)
{
    const tess_tensor *volume = &op->in, *views = &op->out;
    rays_job job = {};
    job.scan = tess_scan3_of(&op->rays, volume, views);
    job.table = (const double *)buffers->weights;
    job.volume = (const float *)buffers->in - job.scan.first * volume->stride_d;
    job.views = (float *)buffers->out;
    job.step_x = volume->stride_w;
    job.step_y = volume->stride_h;
    job.step_z = volume->stride_d;
    job.view_d = views->stride_d;
    job.view_h = views->stride_h;
    job.view_w = views->stride_w;
    job.accumulate = op->rays.accumulate;
    const dim3 blocks((unsigned)((views->w + TILE_WIDTH - 1) / TILE_WIDTH),
                      (unsigned)((views->h + TILE_HEIGHT - 1) / TILE_HEIGHT),
                      (unsigned)(views->d < 65535 ? views->d : 65535));
    project_kernel<<<blocks, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}
