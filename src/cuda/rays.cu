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
#include <limits.h>
#include <stdlib.h>

#include "cuda/rays_job.h"
#include "device/tile3.h"

namespace
{

enum { ALONG = 8, TILE_WIDTH = 32, TILE_HEIGHT = 8, THREADS = TILE_WIDTH * TILE_HEIGHT };

/* The volume as a ray's axes see it: slices, b, c. */
struct frame {
    int low[3], high[3];
    int64_t slice, b, c;
};

/* Slices of a ray: those where it is beside the volume or inside, and those of them where all four voxels are there. */
struct span {
    int from, inner, outer, to;
};

__device__ frame frame_of(const tess_rays_job &job, int axis)
{
    const int width = (int)job.scan.size[0], height = (int)job.scan.size[1], first = (int)job.scan.first,
              end = (int)job.scan.end;
    const int64_t x = job.volume.stride_w, y = job.volume.stride_h, z = job.volume.stride_d;
    if (axis == 0)
        return {{0, 0, first}, {width, height, end}, x, y, z};
    if (axis == 1)
        return {{0, 0, first}, {height, width, end}, y, x, z};
    return {{first, 0, 0}, {end, width, height}, z, x, y};
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
__device__ float sum_together(const float *volume, const frame &f, const tess_ray3 &mine, const span &my_span)
{
    enum { AT_ONCE = 32 / ALONG };
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
        float sum = sum_span(volume, ray, f, s, lane % ALONG, ALONG);
        for (int away = 1; away < ALONG; away *= 2)
            sum += __shfl_xor_sync(~0u, sum, away);
        const float handed = __shfl_sync(~0u, sum, (lane - base) * ALONG & 31);
        if (lane >= base && lane < base + AT_ONCE)
            result = handed;
    }
    return result;
}

/* A block is TILE_WIDTH x TILE_HEIGHT pixels of a view; a warp ACROSS x 32 / ACROSS of them. */
template <int ACROSS> __global__ void __launch_bounds__(THREADS) project_kernel(tess_rays_job job)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int beside = TILE_WIDTH / ACROSS, below = 32 / ACROSS;
    const int column = (int)blockIdx.x * TILE_WIDTH + warp % beside * ACROSS + lane % ACROSS,
              row = (int)blockIdx.y * TILE_HEIGHT + warp / beside * below + lane / ACROSS;
    const bool there = column < job.scan.columns && row < job.scan.rows;
    /* Where slice 0 of the whole volume would be; only the slab is there. */
    const float *volume = job.from - job.scan.first * job.volume.stride_d;
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
            sum = sum_together(volume, frame_of(job, 0), ray, s);
        else
            sum = sum_span(volume, ray, f, s, 0, 1);
        float *out =
            job.to + at * job.views.stride_d + row * job.views.stride_h + column * job.views.stride_w;
        if (there)
            *out = (job.accumulate ? *out : 0) + sum * ray.length;
    }
}

__device__ __forceinline__ bool within(int at, int low, int high)
{
    return at >= low && at < high;
}

/* Stages the voxels of a box, zeros outside the volume; all of it is INSIDE, or each voxel is asked. Rays along x: 8
 * lanes take the 8 slices, which lie side by side, and a warp takes rows in turn. Else a warp takes a slice. */
template <bool INSIDE>
__device__ __forceinline__ void stage_x(const float *volume, const frame &f, const tess_tile3 &tile,
                                        float *staged)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = lane % 8, left = lane / 8;
    const float *start = volume + (tile.slice + k) * f.slice + tile.c * f.c + (tile.b + left) * f.b;
    float *row = staged + k * tile.step + left;
    const int64_t four = 4 * f.b;
    for (int c = warp; c < tile.high; c += 8) {
        const bool there = INSIDE || (within(tile.slice + k, f.low[0], f.high[0]) &&
                                      within(tile.c + c, f.low[2], f.high[2]));
        const float *from = start + c * f.c;
        float *to = row + c * tile.wide;
#pragma unroll 4
        for (int b = left; b < tile.wide; b += 4, from += four, to += 4)
            *to = INSIDE || (there && within(tile.b + b, f.low[1], f.high[1])) ? __ldg(from) : 0;
    }
}

template <bool INSIDE>
__device__ __forceinline__ void stage_slices(const float *volume, const frame &f, const tess_tile3 &tile,
                                             float *staged)
{
    const int lane = threadIdx.x % 32, k = threadIdx.x / 32;
    const bool in_slice = INSIDE || within(tile.slice + k, f.low[0], f.high[0]);
    const bool near = INSIDE || (in_slice && within(tile.b + lane, f.low[1], f.high[1])),
               far = INSIDE || (in_slice && within(tile.b + lane + 32, f.low[1], f.high[1]));
    const bool first = lane < tile.wide, second = lane + 32 < tile.wide;
    const float *from = volume + (tile.slice + k) * f.slice + tile.c * f.c + (tile.b + lane) * f.b;
    const int64_t beyond = 32 * f.b;
    float *to = staged + k * tile.step + lane;
#pragma unroll 4
    for (int c = 0; c < tile.high; c++, from += f.c, to += tile.wide) {
        const bool there = INSIDE || within(tile.c + c, f.low[2], f.high[2]);
        if (first)
            to[0] = near && there ? __ldg(from) : 0;
        if (second)
            to[32] = far && there ? __ldg(from + beyond) : 0;
    }
}

__device__ __forceinline__ void stage(const float *volume, const frame &f, const tess_tile3 &tile,
                                      bool along_x, float *staged)
{
    const bool inside = tile.slice + TESS_TILE3_SLICES <= f.high[0] && tile.b >= f.low[1] &&
                        tile.b + tile.wide <= f.high[1] && tile.c >= f.low[2] &&
                        tile.c + tile.high <= f.high[2];
    if (along_x && inside)
        stage_x<true>(volume, f, tile, staged);
    else if (along_x)
        stage_x<false>(volume, f, tile, staged);
    else if (inside)
        stage_slices<true>(volume, f, tile, staged);
    else
        stage_slices<false>(volume, f, tile, staged);
}

/* tess_tile3_of by the lanes of a warp: each has a corner's ray at one end, along b or c. */
__device__ __forceinline__ tess_tile3 tile_of(const tess_ray3 &corner, int which, int end, int slice)
{
    const int low = tess_tile3_before(&corner, which, slice + end),
              high = tess_tile3_after(&corner, which, slice + end);
    const int before[2] = {__reduce_min_sync(~0u, which ? INT_MAX : low),
                           __reduce_min_sync(~0u, which ? low : INT_MAX)},
              after[2] = {__reduce_max_sync(~0u, which ? INT_MIN : high),
                          __reduce_max_sync(~0u, which ? high : INT_MIN)};
    return tess_tile3_between(slice, before, after);
}

__device__ __noinline__ float follow_alone(const tess_rays_job &job, const float *volume,
                                           const tess_ray3 &ray)
{
    const frame f = frame_of(job, ray.axis);
    const span s = span_of(ray, f);
    return __all_sync(~0u, ray.axis == 0) ? sum_together(volume, f, ray, s)
                                          : sum_span(volume, ray, f, s, 0, 1);
}

__device__ bool meets(const tess_tile3 &tile, const frame &f)
{
    return tile.b < f.high[1] && tile.b + tile.wide > f.low[1] && tile.c < f.high[2] &&
           tile.c + tile.high > f.low[2];
}

/* A block is 32 x 8 DEEP pixels of a view; a thread DEEP of them, 8 rows apart. */
template <int DEEP, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) staged_kernel(const __grid_constant__ tess_rays_job job)
{
    __shared__ float staged[TESS_TILE3_ROOM];
    __shared__ tess_ray3 corners[4];
    __shared__ bool sees;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t left = (int64_t)blockIdx.x * 32, top = (int64_t)blockIdx.y * 8 * DEEP;
    const int64_t columns[2] = {left, min(left + 31, job.scan.columns - 1)},
                  rows[2] = {top, min(top + 8 * DEEP - 1, job.scan.rows - 1)};
    const int64_t column = min(left + lane, columns[1]);
    const float *volume = job.from - job.scan.first * job.volume.stride_d;
    for (int64_t at = blockIdx.z; at < job.scan.views; at += gridDim.z) {
        tess_ray3 rays[DEEP];
        {
            const tess_view3 view = tess_view3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS);
#pragma unroll
            for (int r = 0; r < DEEP; r++)
                rays[r] = tess_view3_ray(&view, min(top + warp + 8 * r, rows[1]), column);
            if (threadIdx.x < 4)
                corners[threadIdx.x] =
                    tess_view3_ray(&view, rows[threadIdx.x >> 1], columns[threadIdx.x & 1]);
            if (threadIdx.x == 0)
                sees = tess_tile3_sees(&view, rays[0].axis, rows, columns);
        }
        __syncthreads();
        const int axis = corners[0].axis;
        const frame f = frame_of(job, axis);
        bool together = sees;
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            together = together && rays[r].axis == axis;
        const tess_ray3 corner = corners[lane >> 2 & 3];
        const int which = lane & 1, end = (lane >> 1 & 1) * (TESS_TILE3_SLICES - 1);
        const int last = f.low[0] + (f.high[0] - f.low[0] - 1) / TESS_TILE3_SLICES * TESS_TILE3_SLICES;
        const tess_tile3 ends[2] = {tile_of(corner, which, end, f.low[0]), tile_of(corner, which, end, last)};
        together = __syncthreads_and(together && tess_tile3_fits(&ends[0]) && tess_tile3_fits(&ends[1]));
        float sums[DEEP];
        if (together) {
#pragma unroll
            for (int r = 0; r < DEEP; r++)
                sums[r] = 0;
            for (int slice = f.low[0]; slice < f.high[0]; slice += TESS_TILE3_SLICES) {
                const tess_tile3 tile = tile_of(corner, which, end, slice);
                if (!meets(tile, f))
                    continue;
                stage(volume, f, tile, axis == 0, staged);
                __syncthreads();
#pragma unroll
                for (int r = 0; r < DEEP; r++) {
                    const tess_local3 local = tess_tile3_local(&tile, &rays[r]);
#pragma unroll
                    for (int k = 0; k < TESS_TILE3_SLICES; k++)
                        sums[r] += tess_tile3_sample(&tile, &local, k, staged);
                }
                __syncthreads();
            }
        } else {
#pragma unroll
            for (int r = 0; r < DEEP; r++)
                sums[r] = follow_alone(job, volume, rays[r]);
        }
#pragma unroll
        for (int r = 0; r < DEEP; r++) {
            const int64_t row = top + warp + 8 * r;
            float *out =
                job.to + at * job.views.stride_d + row * job.views.stride_h + column * job.views.stride_w;
            if (left + lane <= columns[1] && row <= rows[1])
                *out = (job.accumulate ? *out : 0) + sums[r] * rays[r].length;
        }
        __syncthreads();
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_rays_project(const tess_op *op, const tess_op_buffers *buffers,
                                              cudaStream_t stream)
{
    const tess_rays_job job = tess_rays_job_of(op, buffers);
    const dim3 blocks(tess_rays_pieces(job.views.w, TILE_WIDTH), tess_rays_pieces(job.views.h, TILE_HEIGHT),
                      tess_rays_turns(job.views.d, 1));
    const char *across = getenv("TESSERA_RAYS_ACROSS");
    const dim3 tiles1(blocks.x, tess_rays_pieces(job.views.h, 8), blocks.z),
        tiles2(blocks.x, tess_rays_pieces(job.views.h, 16), blocks.z);
    switch (across ? atoi(across) : 2) {
    case 1:
        staged_kernel<1, 5><<<tiles1, THREADS, 0, stream>>>(job);
        break;
    case 3:
        staged_kernel<1, 4><<<tiles1, THREADS, 0, stream>>>(job);
        break;
    case 4:
        staged_kernel<2, 3><<<tiles2, THREADS, 0, stream>>>(job);
        break;
    case 2:
        staged_kernel<2, 4><<<tiles2, THREADS, 0, stream>>>(job);
        break;
    case 8:
        project_kernel<8><<<blocks, THREADS, 0, stream>>>(job);
        break;
    case 16:
        project_kernel<16><<<blocks, THREADS, 0, stream>>>(job);
        break;
    default:
        project_kernel<32><<<blocks, THREADS, 0, stream>>>(job);
    }
    return cudaGetLastError();
}
