/* Group norm in one launch that reads every value once and writes it once: the blocks of a cluster hold a slice of an
 * image in shared memory (norm/norm_split.h says how it is shared out), exchange their sums, and normalise what they
 * hold.
 *
 * A thread copies, sums and writes the same pieces of 16 bytes, so no barrier is needed between the copies and the sums,
 * which begin when a quarter of the copies has arrived. Its sums are relative to its first pixel, so that a large mean
 * costs no precision; they become a mean and a sum of squared differences (fp32 pairs), which are merged in fp64 in an
 * order that the split fixes: threads of a warp, partial sums of a block, blocks of the cluster. Every block sends its
 * pair of each group to all others, so that one barrier of the cluster is enough, and it may end before the others.
 *
 * Grid: x is a cluster, y over slices, z over images. Blocks start before the grid before them has ended, and wait before
 * they read (as the Hopper convolutions, hopper/hopper_launch.cuh). */
#include "cuda/core/load.h"
#include "cuda/norm/group_norm.h"
#include "cuda/norm/norm_cluster.cuh"

namespace
{

enum { THREADS = TESS_NORM_THREADS, QUARTERS = 4, MOST_IMAGES = 65535, LEAST_BLOCKS = 3 };

struct cluster_job {
    tess_norm_split s;
    tess_tensor in, out;
    bool flat_in, flat_out; /* pixels are stride_w apart throughout an image */
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
    int rank, pixel, count, block_pixels, piece, channel;
};

__device__ __forceinline__ share share_of(const cluster_job &job)
{
    const tess_norm_split &s = job.s;
    const int t = (int)threadIdx.x, lane = t / s.pieces;
    share h;
    h.image = job.first_image + blockIdx.z;
    h.rank = (int)blockIdx.x;
    const int first = tess_norm_first(s.pixels, s.shift, h.rank);
    h.block_pixels = tess_norm_first(s.pixels, s.shift, h.rank + 1) - first;
    h.pixel = first + lane;
    h.count = lane < s.lanes && lane < h.block_pixels ? (h.block_pixels - lane + s.lanes - 1) / s.lanes : 0;
    h.piece = t - lane * s.pieces;
    h.channel = (int)blockIdx.y * s.channels;
    return h;
}

template <typename T> __device__ __forceinline__ void copy_pixels(const cluster_job &job, const share &h)
{
    extern __shared__ __align__(16) char shared[];
    const T *from = (const T *)job.from + h.channel + h.piece * (16 / (int)sizeof(T));
    const uint32_t to = shared_address(shared) + threadIdx.x * TESS_NORM_PIECE;
    int i = 0;
#pragma unroll
    for (int quarter = 1; quarter <= QUARTERS; quarter++) {
        for (; i < (h.count * quarter + QUARTERS - 1) / QUARTERS; i++)
            copy_piece(to + i * THREADS * TESS_NORM_PIECE,
                       from + tess_place(job.in, job.flat_in, h.image, h.pixel + i * job.s.lanes));
        commit_copies();
    }
}

/* Parameters, scales and shifts of the slice, without the statistics. */
__device__ __forceinline__ void begin_table(const cluster_job &job, const share &h, float *table)
{
    const int channels = job.s.channels;
    const int64_t all = job.in.c;
    for (int c = (int)threadIdx.x; c < channels; c += THREADS) {
        double factor = job.weights[h.channel + c], offset = job.weights[all + h.channel + c];
        if (job.modulation) {
            const int64_t at = h.image * job.more_stride + h.channel + c;
            const double scale = 1 + (double)tess_value_at(job.more, job.modulation, at);
            factor *= scale;
            offset = offset * scale + (double)tess_value_at(job.more, job.modulation, at + all);
        }
        table[c] = (float)factor;
        table[channels + c] = (float)offset;
    }
}

/* Mean and sum of squared differences of `n` values, for each segment of a thread's piece. */
template <int K> struct moments {
    int n;
    float mean[K], square[K];
    __device__ __forceinline__ void fold(int lane_mask)
    {
        const int other = __shfl_xor_sync(~0u, n, lane_mask), all = n + other;
        const float part = all ? (float)other / (float)all : 0, cross = (float)n * part;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const float d = __shfl_xor_sync(~0u, mean[k], lane_mask) - mean[k];
            square[k] += __shfl_xor_sync(~0u, square[k], lane_mask) + d * d * cross;
            mean[k] += d * part;
        }
        n = all;
    }
};

template <typename T, int SEGMENT> struct adder {
    static constexpr int N = 16 / (int)sizeof(T), K = N / SEGMENT;
    float first[K], sum[K], square[K];

    __device__ __forceinline__ void add(const uint4 *pieces, int from, int end)
    {
#pragma unroll 2
        for (int i = from; i < end; i++) {
            float values[N];
            unpack(pieces[i * THREADS], values, T());
            if (i == 0)
#pragma unroll
                for (int k = 0; k < K; k++)
                    first[k] = values[k * SEGMENT];
#pragma unroll
            for (int c = 0; c < N; c++) {
                const float d = values[c] - first[c / SEGMENT];
                sum[c / SEGMENT] += d;
                square[c / SEGMENT] += d * d;
            }
        }
    }

    template <int QUARTER> __device__ __forceinline__ void add_quarter(const uint4 *pieces, int count)
    {
        wait_copies<QUARTERS - 1 - QUARTER>();
        add(pieces, (count * QUARTER + QUARTERS - 1) / QUARTERS,
            (count * (QUARTER + 1) + QUARTERS - 1) / QUARTERS);
    }

    __device__ __forceinline__ moments<K> add_all(const uint4 *pieces, int count)
    {
#pragma unroll
        for (int k = 0; k < K; k++)
            first[k] = sum[k] = square[k] = 0;
        add_quarter<0>(pieces, count);
        add_quarter<1>(pieces, count);
        add_quarter<2>(pieces, count);
        add_quarter<3>(pieces, count);
        moments<K> m;
        m.n = count * SEGMENT;
        const float one = count ? 1.0f / (float)m.n : 0;
#pragma unroll
        for (int k = 0; k < K; k++) {
            m.mean[k] = first[k] + sum[k] * one;
            m.square[k] = fmaxf(square[k] - sum[k] * sum[k] * one, 0);
        }
        return m;
    }
};

/* Sum and sum of squares of parts, from their means and squared differences. */
struct sums {
    double value, square;
    __device__ __forceinline__ void add(double n, float2 part)
    {
        const double mean = part.x, all = n * mean;
        value += all;
        square += (double)part.y + all * mean;
    }
};

/* Sums the block's partial sums of each group and sends them to all blocks of the cluster. */
template <int K>
__device__ __forceinline__ void send_groups(const cluster_job &job, const share &h, const float2 *partial,
                                            const int *counts, const float2 *blocks)
{
    const tess_norm_split &s = job.s;
    const int segment = s.segment, parts = s.width / segment, each = s.partials / s.pieces;
    const int r = (int)threadIdx.x & (s.reducers - 1), at_once = THREADS / s.reducers;
    const double n = (double)h.block_pixels * s.width, one = n > 0 ? 1 / n : 0;
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
        const double mean = all.value * one, square = all.square - all.value * mean;
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
    T *to = (T *)job.to + h.channel + at;
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
        *reinterpret_cast<uint4 *>(
            to + tess_place(job.out, job.flat_out, h.image, h.pixel + i * job.s.lanes)) = pack(values, T());
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
    cluster_arrive(); /* no block writes to another before that has started */
    const share h = share_of(job);
    let_next_grid_start();
    wait_for_grid_before();
    copy_pixels<T>(job, h);
    begin_table(job, h, table);
    adder<T, SEGMENT> add;
    moments<K> m = add.add_all(pieces, h.count);
    for (int fold = 0; fold < s.folds; fold++)
        m.fold(16 >> fold);
    const int kept = 32 >> s.folds, lane = (int)threadIdx.x % 32;
    if (lane < kept) {
        const int at = (int)threadIdx.x / 32 * kept + lane;
        counts[at] = m.n;
#pragma unroll
        for (int k = 0; k < K; k++)
            partial[k * (s.partials + 1) + at] = make_float2(m.mean[k], m.square[k]);
    }
    __syncthreads();
    cluster_wait();
    send_groups<K>(job, h, partial, counts, blocks);
    cluster_arrive();
    cluster_wait();
    end_table(job, blocks, table);
    __syncthreads();
    write_pixels<T, SEGMENT>(job, h, pieces, table);
}

typedef void (*cluster_function)(cluster_job);

template <typename T> cluster_function kernel_of_type(int segment)
{
    switch (segment) {
    case 1:
        return cluster_kernel<T, 1>;
    case 2:
        return cluster_kernel<T, 2>;
    case 4:
        return cluster_kernel<T, 4>;
    default:
        return cluster_kernel<T, 16 / (int)sizeof(T)>;
    }
}

cluster_function kernel_of(tess_dtype dtype, int segment)
{
    return dtype == TESS_F16    ? kernel_of_type<__half>(segment)
           : dtype == TESS_BF16 ? kernel_of_type<__nv_bfloat16>(segment)
                                : kernel_of_type<float>(segment);
}

bool split_of(const tess_op *op, tess_norm_split *s)
{
    const tess_tensor *in = &op->in[0];
    return tess_norm_split_of(tess_pixels(in), in->c, op->group_norm.groups, (int)tess_dtype_size(in->dtype),
                              s);
}

/* A launch of so many images: its grid, and the cluster and the early start as attributes. */
struct cluster_launch {
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config;
    cluster_launch(const tess_norm_split &s, int64_t images, cudaStream_t stream) : attributes(), config()
    {
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim.x = (unsigned)s.blocks;
        attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
        attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[1].val.programmaticStreamSerializationAllowed = 1;
        config.gridDim = dim3((unsigned)s.blocks, (unsigned)s.slices, (unsigned)images);
        config.blockDim = dim3(THREADS);
        config.dynamicSmemBytes = (size_t)s.shared;
        config.stream = stream;
        config.attrs = attributes;
        config.numAttrs = 2;
    }
};

bool whole(const tess_op *op, const void *from, const void *to)
{
    const int piece = TESS_NORM_PIECE / (int)tess_dtype_size(op->in[0].dtype);
    return tess_whole(&op->in[0], from, piece) && tess_whole(&op->out[0], to, piece);
}

} // namespace

extern "C" const char *tess_cuda_norm_cluster_refuses(const tess_op *op, int capability)
{
    tess_norm_split s;
    if (capability < 90)
        return "made for compute capability 9.0 and newer";
    if (op->in[0].dtype != op->out[0].dtype)
        return "takes one type at both ends";
    if (!whole(op, NULL, NULL))
        return "takes strides of 16 bytes";
    return split_of(op, &s) ? NULL : "takes images that fit the shared memory of a cluster";
}

extern "C" cudaError_t tess_cuda_norm_cluster_load(const tess_op *op, bool *fits)
{
    tess_norm_split s;
    *fits = false;
    if (!split_of(op, &s))
        return cudaSuccess;
    const void *kernel = (const void *)kernel_of(op->in[0].dtype, s.segment);
    int clusters = 0;
    cluster_launch launch(s, 1, NULL);
    cudaError_t result =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TESS_NORM_SHARED);
    if (result == cudaSuccess)
        result = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (result == cudaSuccess)
        result = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxShared);
    launch.config.numAttrs = 1; /* the early start does not matter here */
    if (result == cudaSuccess)
        result = cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config);
    *fits = result == cudaSuccess && clusters > 0;
    if (!*fits) {
        (void)cudaGetLastError(); /* a card with less shared memory or smaller clusters: not a failure */
        return cudaSuccess;
    }
    return tess_cuda_load(kernel, TESS_NORM_SHARED);
}

extern "C" cudaError_t tess_cuda_norm_cluster_run(const tess_op *op, const tess_op_buffers *b,
                                                  cudaStream_t stream)
{
    cluster_job job = {};
    if (!whole(op, b->in[0], b->out[0])) /* a slice of channels that does not start at 16 bytes */
        return tess_cuda_group_norm_run(op, b, stream);
    if (!split_of(op, &job.s))
        return cudaErrorInvalidValue;
    job.in = op->in[0];
    job.out = op->out[0];
    job.flat_in = tess_flat(&op->in[0]);
    job.flat_out = tess_flat(&op->out[0]);
    job.activation = op->activation;
    job.epsilon = op->group_norm.epsilon;
    job.one = 1 / ((double)job.s.pixels * job.s.width);
    job.from = b->in[0];
    job.to = b->out[0];
    job.weights = (const float *)b->weights;
    job.modulation = op->inputs > 1 ? b->in[1] : NULL;
    job.more = op->in[1].dtype;
    job.more_stride = op->in[1].n == 1 ? 0 : op->in[1].stride_n;
    const cluster_function kernel = kernel_of(op->in[0].dtype, job.s.segment);
    cudaError_t result = cudaSuccess;
    for (; job.first_image < op->in[0].n && result == cudaSuccess; job.first_image += MOST_IMAGES) {
        const int64_t left = op->in[0].n - job.first_image;
        cluster_launch launch(job.s, left < MOST_IMAGES ? left : (int64_t)MOST_IMAGES, stream);
        result = cudaLaunchKernelEx(&launch.config, kernel, job);
    }
    return result;
}
