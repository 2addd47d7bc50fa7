/* local_ring.cuh: a CTA's part in LOCAL_RX: the sums of the ring around a pixel, and the pixel's distance from them. */
#ifndef TESS_CUDA_LOCAL_RING_CUH
#define TESS_CUDA_LOCAL_RING_CUH

#include <cuda/std/limits>

#include "cuda/statistics/moments.cuh"
#include "cuda/statistics/triangle.cuh"

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32, DEEP = 4 };

struct local_plan {
    int channels, side, tiles; /* of the matrix, with the constant */
    int stride, group;         /* doubles between pixels in shared memory; pixels there at a time */
    int64_t lines, parts;
    unsigned ctas;
    bool shared; /* the matrix is in shared memory */
    size_t bytes;
};

struct local_job {
    local_plan plan;
    tess_tensor in, out;
    bool flat, flat_out;
    int outer, inner; /* half of the windows, rounded down */
    double epsilon;
    const float *from;
    const uint8_t *counts;
    double2 *sums;  /* plan.tiles * 32 of each CTA */
    double *matrix; /* plan.tiles * TESS_TILE of each CTA, unless in shared memory */
    void *to;
};

/* What a CTA has in shared memory. */
struct ring {
    double *shift, *mean;  /* side * 8 each */
    double *pixels, *sign; /* group * stride; group */
    double *matrix;
    uint16_t *table;
    double2 *sums;
    int64_t image; /* the first pixel of the image */
};

struct change {
    int64_t y, x;
    double sign;
};

__device__ __forceinline__ int changes(const local_job &job, bool first)
{
    const int outer = 2 * job.outer + 1, inner = 2 * job.inner + 1;
    return first ? outer * outer + inner * inner : 2 * (outer + inner);
}

/* Pixel q of those that enter and leave the ring: of a whole ring, or between the rings around x - 1 and x. */
__device__ __forceinline__ change change_of(const local_job &job, int64_t y, int64_t x, bool first, int q)
{
    const int outer = 2 * job.outer + 1, inner = 2 * job.inner + 1;
    if (first) {
        if (q < outer * outer)
            return {y - job.outer + q / outer, x - job.outer + q % outer, 1};
        q -= outer * outer;
        return {y - job.inner + q / inner, x - job.inner + q % inner, -1};
    }
    if (q < outer)
        return {y - job.outer + q, x + job.outer, 1};
    if (q < 2 * outer)
        return {y - job.outer + q - outer, x - 1 - job.outer, -1};
    q -= 2 * outer;
    if (q < inner)
        return {y - job.inner + q, x - 1 - job.inner, 1};
    return {y - job.inner + q - inner, x + job.inner, -1};
}

/* Pixels q to q + depth, relative to the shift, to shared memory; zeros for those that do not count. A warp takes DEEP pixels
 * at once, so that their loads do not wait for each other. */
__device__ __forceinline__ void collect(const local_job &job, const ring &r, int64_t y, int64_t x, bool first,
                                        int q, int depth)
{
    const int lane = (int)threadIdx.x % 32, all = changes(job, first), c = job.plan.channels;
    for (int s = (int)threadIdx.x / 32 * DEEP; s < depth; s += WARPS * DEEP) {
        const float *from[DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const change one = change_of(job, y, x, first, q + s + k);
            const bool inside =
                q + s + k < all && one.y >= 0 && one.y < job.in.h && one.x >= 0 && one.x < job.in.w;
            const int64_t pixel = r.image + one.y * job.in.w + one.x;
            from[k] =
                inside && job.counts[pixel] ? job.from + tess_moments_place(job.in, job.flat, pixel) : NULL;
            if (lane == 0)
                r.sign[s + k] = one.sign;
        }
        for (int i = lane; i < job.plan.side * TESS_TILE_SIDE; i += 32) {
            float value[DEEP];
#pragma unroll
            for (int k = 0; k < DEEP; k++)
                value[k] = from[k] && i < c ? __ldg(from[k] + i) : 0;
#pragma unroll
            for (int k = 0; k < DEEP; k++)
                r.pixels[(s + k) * job.plan.stride + i] = !from[k] ? 0
                                                          : i < c  ? (double)value[k] - r.shift[i]
                                                                   : i == c;
        }
    }
}

/* Adds the products of `depth` pixels; a warp two tiles at a time. */
__device__ __forceinline__ void add_products(const local_job &job, const ring &r, int depth, bool fresh)
{
    const int lane = (int)threadIdx.x % 32, tiles = job.plan.tiles, stride = job.plan.stride;
    for (int t = (int)threadIdx.x / 32; t < tiles; t += 2 * WARPS) {
        const int other = t + WARPS < tiles ? t + WARPS : t;
        const int row[2] = {r.table[t] >> 8, r.table[other] >> 8},
                  column[2] = {r.table[t] & 255, r.table[other] & 255};
        double2 sum[2] = {{0, 0}, {0, 0}};
        if (!fresh) {
            sum[0] = r.sums[t * 32 + lane];
            sum[1] = r.sums[other * 32 + lane];
        }
        const double *at = r.pixels + lane % 4 * stride + lane / 4, *sign = r.sign + lane % 4;
#pragma unroll 2
        for (int k = 0; k < depth; k += 4, at += 4 * stride, sign += 4)
#pragma unroll
            for (int i = 0; i < 2; i++)
                tess_tile_multiply(sum[i], *sign * at[row[i] * TESS_TILE_SIDE],
                                   at[column[i] * TESS_TILE_SIDE]);
        __syncwarp(); /* both are read */
        r.sums[t * 32 + lane] = sum[0];
        if (other != t)
            r.sums[other * 32 + lane] = sum[1];
    }
}

/* The sum of products of channel i and the constant, or the count. */
__device__ __forceinline__ double channel_sum(const local_job &job, const ring &r, int i)
{
    const int last = job.plan.channels % TESS_TILE_SIDE,
              tile = tess_tile_number(job.plan.side - 1, i / TESS_TILE_SIDE);
    const double2 both = r.sums[tile * 32 + last * 4 + i % TESS_TILE_SIDE / 2];
    return i % 2 ? both.y : both.x;
}

/* The sums around the mean, plus (n - 1) epsilon on the diagonal, with x - m as the row of the constant. */
__device__ __forceinline__ double entry(const local_job &job, const ring &r, const float *pixel, double count,
                                        int row, int column, double sum)
{
    const int c = job.plan.channels;
    if (row < c && column < c)
        return sum - count * r.mean[row] * r.mean[column] + (row == column ? (count - 1) * job.epsilon : 0);
    return row == c && column < c ? (double)pixel[column] - r.shift[column] - r.mean[column] : 0;
}

__device__ __forceinline__ void fill_matrix(const local_job &job, const ring &r, const float *pixel,
                                            double count)
{
    const int lane = (int)threadIdx.x % 32;
    for (int t = (int)threadIdx.x / 32; t < job.plan.tiles; t += WARPS) {
        const int row = (r.table[t] >> 8) * TESS_TILE_SIDE + lane / 4,
                  column = (r.table[t] & 255) * TESS_TILE_SIDE + 2 * (lane % 4);
        double2 value = r.sums[t * 32 + lane];
        value.x = entry(job, r, pixel, count, row, column, value.x);
        value.y = entry(job, r, pixel, count, row, column + 1, value.y);
        *(double2 *)(r.matrix + t * TESS_TILE + tess_tile_place(lane / 4, 2 * (lane % 4))) = value;
    }
}

/* All threads of the CTA; they have met since the sums were added, and the result is the first thread's. */
__device__ __forceinline__ double score_of(const local_job &job, const ring &r, const float *pixel)
{
    __shared__ double inverse[TESS_TILE_SIDE];
    __shared__ int failed;
    const int c = job.plan.channels, last = c % TESS_TILE_SIDE;
    const double none = cuda::std::numeric_limits<double>::quiet_NaN(), count = channel_sum(job, r, c);
    for (int i = (int)threadIdx.x; i < c; i += THREADS)
        r.mean[i] = channel_sum(job, r, i) / count;
    __syncthreads();
    if (count < 2)
        return none;
    fill_matrix(job, r, pixel, count);
    __syncthreads();
    if (!tess_tile_eliminate(r.matrix, r.table, job.plan.side, c, inverse, &failed))
        return none;
    const double corner = r.matrix[tess_tile_number(job.plan.side - 1, job.plan.side - 1) * TESS_TILE +
                                   tess_tile_place(last, last)];
    const double score = -(count - 1) * corner;
    return isfinite(score) ? score : none;
}

__device__ __forceinline__ ring ring_of(const local_job &job, double *shared, bool in_shared)
{
    const int values = job.plan.side * TESS_TILE_SIDE;
    ring r;
    r.shift = shared;
    r.mean = r.shift + values;
    r.pixels = r.mean + values;
    r.sign = r.pixels + job.plan.group * job.plan.stride;
    r.matrix = in_shared ? r.pixels : job.matrix + (int64_t)blockIdx.x * job.plan.tiles * TESS_TILE;
    r.table = (uint16_t *)((char *)shared + job.plan.bytes) - (job.plan.tiles + 7) / 8 * 8;
    r.sums = job.sums + (int64_t)blockIdx.x * job.plan.tiles * 32;
    return r;
}

/* Columns first to end of a line. */
__device__ __forceinline__ void part_of_line(const local_job &job, ring &r, int64_t line, int64_t first,
                                             int64_t end)
{
    const int64_t y = line % job.in.h;
    r.image = (line - y) * job.in.w;
    const float *start = job.from + tess_moments_place(job.in, job.flat, line * job.in.w + first);
    __syncthreads(); /* the shift of the part before is used up */
    for (int i = (int)threadIdx.x; i < job.plan.channels; i += THREADS)
        r.shift[i] = isfinite(start[i]) ? (double)start[i] : 0;
    for (int64_t x = first; x < end; x++) {
        const int all = changes(job, x == first);
        for (int q = 0; q < all; q += job.plan.group) {
            const int left = (all - q + DEEP - 1) / DEEP * DEEP,
                      depth = left < job.plan.group ? left : job.plan.group;
            __syncthreads(); /* pixels and matrix before are used up */
            collect(job, r, y, x, x == first, q, depth);
            __syncthreads();
            add_products(job, r, depth, x == first && q == 0);
        }
        __syncthreads();
        const int64_t pixel = line * job.in.w + x, at = tess_moments_place(job.out, job.flat_out, pixel);
        const double score = score_of(job, r, job.from + tess_moments_place(job.in, job.flat, pixel));
        if (threadIdx.x > 0)
            continue;
        if (job.out.dtype == TESS_F64)
            ((double *)job.to)[at] = score;
        else
            ((float *)job.to)[at] = (float)score;
    }
}

} // namespace

#endif
