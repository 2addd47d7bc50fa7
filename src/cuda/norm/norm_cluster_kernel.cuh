/* norm_cluster_kernel.cuh: group norm in one launch that reads every value once and writes it once: the blocks of a
 * cluster hold a slice of an image in shared memory (norm/norm_split.h says how it is shared out), exchange their sums,
 * and normalise what they hold.
 *
 * A thread copies, sums and writes the same pieces of 16 bytes, so no barrier is needed between the copies and the sums,
 * which begin when a quarter of the copies has arrived. Its sums are relative to its first pixel, so that a large mean
 * costs no precision; they become a mean and a sum of squared differences (fp32 pairs), which are merged in fp64 in an
 * order that the split fixes: threads of a warp, partial sums of a block, blocks of the cluster. Every block sends its
 * pair of each group to all others, so that one barrier of the cluster is enough, and it may end before the others.
 * Blocks with more pixels than shared memory holds read them twice, the last first.
 *
 * Grid: x is a cluster, y over slices, z over images. Blocks start before the grid before them has ended, and wait before
 * they read (as the Hopper convolutions, hopper/hopper_launch.cuh). */
#ifndef TESS_CUDA_NORM_CLUSTER_KERNEL_CUH
#define TESS_CUDA_NORM_CLUSTER_KERNEL_CUH

#include "cuda/norm/norm_cluster_sums.cuh"

namespace
{

enum { LEAST_BLOCKS = 4 }; /* of a multiprocessor: bounds the registers */

struct cluster_job {
    tess_norm_split s;
    tess_tensor in, out;
    bool flat_in, flat_out; /* pixels are stride_w apart throughout an image */
    bool leads;             /* the next grid reads `in` without waiting for this one */
    tess_activation activation;
    double epsilon, one; /* one: 1 / values of a group */
    int64_t first_image;
    const void *from;
    void *to;
    const float *weights;   /* c weights, then c biases */
    const void *modulation; /* c scales, then c shifts, of type `more`; NULL: none */
    tess_dtype more;
    int64_t more_stride; /* 0: one vector for all images */
};

/* What a thread has: `count` pixels from `pixel`, `lanes` apart, and the channels of one piece from `channel`. */
struct share {
    int64_t image;
    int rank, pixel, count, piece, channel;
    double one; /* 1 / values of a group in this block */
};

__device__ __forceinline__ share share_of(const cluster_job &job)
{
    const tess_norm_split &s = job.s;
    const int t = (int)threadIdx.x, lane = t / s.pieces;
    share h;
    h.image = job.first_image + blockIdx.z;
    h.rank = (int)blockIdx.x;
    const int first = tess_norm_first(s.pixels, s.shift, h.rank);
    const int pixels = tess_norm_first(s.pixels, s.shift, h.rank + 1) - first;
    h.pixel = first + lane;
    h.count = lane < s.lanes && lane < pixels ? (pixels - lane + s.lanes - 1) / s.lanes : 0;
    h.one = pixels > 0 ? 1 / ((double)pixels * s.width) : 0;
    h.piece = t - lane * s.pieces;
    h.channel = (int)blockIdx.y * s.channels;
    return h;
}

/* The offset of a pixel in its image. As tess_place, but in 32 bits: there are few pixels. */
__device__ __forceinline__ int64_t place(const tess_tensor &t, bool flat, int pixel)
{
    if (flat)
        return pixel * t.stride_w;
    const int w = (int)t.w, h = (int)t.h, row = pixel / w, plane = row / h;
    return plane * t.stride_d + (row - plane * h) * t.stride_h + (pixel - row * w) * t.stride_w;
}

/* What shared memory holds of a thread's pixels at its fill number `fill`. */
__device__ __forceinline__ share fill_of(const cluster_job &job, const share &all, int fill)
{
    share h = all;
    const int first = fill * job.s.held, left = all.count - first;
    h.pixel = all.pixel + first * job.s.lanes;
    h.count = left < 0 ? 0 : left < job.s.held ? left : job.s.held;
    return h;
}

template <typename T> __device__ __forceinline__ void copy_pixels(const cluster_job &job, const share &h)
{
    extern __shared__ __align__(16) char shared[];
    const T *from =
        (const T *)job.from + h.image * job.in.stride_n + h.channel + h.piece * (16 / (int)sizeof(T));
    const uint32_t to = shared_address(shared) + threadIdx.x * TESS_NORM_PIECE;
    int i = 0;
#pragma unroll 1
    for (int quarter = 1; quarter <= QUARTERS; quarter++) {
        for (; i < (h.count * quarter + QUARTERS - 1) / QUARTERS; i++)
            copy_piece(to + i * THREADS * TESS_NORM_PIECE,
                       from + place(job.in, job.flat_in, h.pixel + i * job.s.lanes));
        commit_copies();
    }
}

/* Weight and bias of the channels of the slice: no kernel writes them, so blocks need not wait before they read them. */
__device__ __forceinline__ void load_parameters(const cluster_job &job, const share &h, float *table)
{
    const int channels = job.s.channels;
    for (int c = (int)threadIdx.x; c < channels; c += THREADS) {
        table[c] = job.weights[h.channel + c];
        table[channels + c] = job.weights[job.in.c + h.channel + c];
    }
}

/* Applies scales and shifts; each thread to what it has loaded. */
__device__ __forceinline__ void modulate(const cluster_job &job, const share &h, float *table)
{
    const int channels = job.s.channels;
    const int64_t first = h.image * job.more_stride + h.channel;
    for (int c = (int)threadIdx.x; c < channels; c += THREADS) {
        const float scale = tess_value_at(job.more, job.modulation, first + c),
                    shift = tess_value_at(job.more, job.modulation, first + job.in.c + c);
        const double factor = 1 + (double)scale;
        table[c] = (float)((double)table[c] * factor);
        table[channels + c] = (float)((double)table[channels + c] * factor + (double)shift);
    }
}

/* Sums the block's partial sums of each group and sends them to all blocks of the cluster. */
template <int K>
__device__ __forceinline__ void send_groups(const cluster_job &job, const share &h, const float2 *partial,
                                            const int *counts, const float2 *blocks)
{
    const tess_norm_split &s = job.s;
    const int segment = s.segment, parts = s.width / segment, each = s.partials / s.pieces;
    const int r = (int)threadIdx.x & (s.reducers - 1), at_once = THREADS / s.reducers;
    for (int from = 0; from < s.groups; from += at_once) {
        const int g = from + (int)threadIdx.x / s.reducers;
        sums all = {0, 0};
        for (int m = g * parts; g < s.groups && m < (g + 1) * parts; m++) {
            const int piece = m / K;
            const float2 *row = partial + m % K * (s.partials + 1);
            for (int i = r; i < each; i += s.reducers)
                all.add(counts[i * s.pieces + piece], row[i * s.pieces + piece]);
        }
        for (int mask = s.reducers / 2; mask > 0; mask /= 2) {
            all.value += __shfl_xor_sync(~0u, all.value, mask);
            all.square += __shfl_xor_sync(~0u, all.square, mask);
        }
        const double mean = all.value * h.one, square = all.square - all.value * mean;
        const float2 pair = make_float2((float)mean, square > 0 ? (float)square : 0);
        for (int to = r; g < s.groups && to < s.blocks; to += s.reducers)
            store_in_block(shared_address(blocks + h.rank * s.groups + g), to, pair);
    }
}

/* Factor, offset and centre of every channel: out = (in - centre) * factor + offset. */
__device__ __forceinline__ void end_table(const cluster_job &job, const float2 *blocks, float *table)
{
    const tess_norm_split &s = job.s;
    for (int c = (int)threadIdx.x; c < s.channels; c += THREADS) {
        const int g = c / s.width;
        sums all = {0, 0};
#pragma unroll 4
        for (int b = 0; b < s.blocks; b++) {
            const int pixels =
                tess_norm_first(s.pixels, s.shift, b + 1) - tess_norm_first(s.pixels, s.shift, b);
            all.add((double)pixels * s.width, blocks[b * s.groups + g]);
        }
        const double mean = all.value * job.one, variance = all.square * job.one - mean * mean;
        const float inverse = __frsqrt_rn((float)((variance < 0 ? 0 : variance) + job.epsilon)),
                    centre = (float)mean, factor = table[c] * inverse;
        table[c] = factor;
        table[s.channels + c] += (float)((double)centre - mean) * factor;
        table[2 * s.channels + c] = centre;
    }
}

template <typename T, int SEGMENT>
__device__ __forceinline__ void write_pixels(const cluster_job &job, const share &h, const uint4 *pieces,
                                             const float *table)
{
    constexpr int N = 16 / (int)sizeof(T), K = N / SEGMENT;
    const int channels = job.s.channels, at = h.piece * N;
    T *to = (T *)job.to + h.image * job.out.stride_n + h.channel + at;
    float factor[N], offset[N], centre[K];
#pragma unroll
    for (int c = 0; c < N; c++) {
        factor[c] = table[at + c];
        offset[c] = table[channels + at + c];
    }
#pragma unroll
    for (int k = 0; k < K; k++)
        centre[k] = table[2 * channels + at + k * SEGMENT];
#pragma unroll 2
    for (int i = 0; i < h.count; i++) {
        float values[N];
        unpack(pieces[i * THREADS], values, T());
#pragma unroll
        for (int c = 0; c < N; c++)
            values[c] = (values[c] - centre[c / SEGMENT]) * factor[c] + offset[c];
        activate<N>(job.activation, values);
        *reinterpret_cast<uint4 *>(to + place(job.out, job.flat_out, h.pixel + i * job.s.lanes)) =
            pack(values, T());
    }
}

template <typename T, int SEGMENT>
__global__ void __launch_bounds__(THREADS, LEAST_BLOCKS)
    cluster_kernel(const __grid_constant__ cluster_job job)
{
    extern __shared__ __align__(16) char shared[];
    constexpr int K = adder<T, SEGMENT>::K;
    const tess_norm_split &s = job.s;
    const uint4 *pieces = reinterpret_cast<const uint4 *>(shared) + threadIdx.x;
    float2 *partial = reinterpret_cast<float2 *>(shared + s.sums_at),
           *blocks = reinterpret_cast<float2 *>(shared + s.blocks_at);
    int *counts = reinterpret_cast<int *>(shared + s.counts_at);
    float *table = reinterpret_cast<float *>(shared + s.table_at);
    const bool alone = s.blocks == 1;
    if (!alone)
        cluster_arrive_started(); /* no block writes to another before that has started */
    const share h = share_of(job);
    if (!job.leads)
        let_next_grid_start();
    load_parameters(job, h, table);
    wait_for_grid_before();
    if (job.leads)
        let_next_grid_start();
    moments<K> m;
    for (int fill = 0; fill < s.fills; fill++) {
        const share f = fill_of(job, h, fill);
        copy_pixels<T>(job, f);
        if (fill == 0 && job.modulation)
            modulate(job, h, table);
        adder<T, SEGMENT> add;
        const moments<K> part = add.add_all(pieces, f.count);
        if (fill == 0)
            m = part;
        else
            m.merge(part.n, [&](int k) { return make_float2(part.mean[k], part.square[k]); });
    }
    for (int fold = 0; fold < s.folds; fold++) {
        const int mask = 16 >> fold;
        const moments<K> own = m;
        m.merge(__shfl_xor_sync(~0u, own.n, mask), [&](int k) {
            return make_float2(__shfl_xor_sync(~0u, own.mean[k], mask),
                               __shfl_xor_sync(~0u, own.square[k], mask));
        });
    }
    const int kept = 32 >> s.folds, lane = (int)threadIdx.x % 32;
    if (lane < kept) {
        const int at = (int)threadIdx.x / 32 * kept + lane;
        counts[at] = m.n;
#pragma unroll
        for (int k = 0; k < K; k++)
            partial[k * (s.partials + 1) + at] = make_float2(m.mean[k], m.square[k]);
    }
    __syncthreads();
    if (!alone)
        cluster_wait();
    send_groups<K>(job, h, partial, counts, blocks);
    if (alone) {
        __syncthreads();
    } else {
        cluster_arrive();
        cluster_wait();
    }
    end_table(job, blocks, table);
    __syncthreads();
    for (int fill = s.fills - 1; fill >= 0; fill--) {
        const share f = fill_of(job, h, fill);
        if (fill < s.fills - 1) { /* the last is still there */
            copy_pixels<T>(job, f);
            wait_copies<0>();
        }
        write_pixels<T, SEGMENT>(job, f, pieces, table);
    }
}

} // namespace

#endif
