/* group_norm_tables.cuh: the table of GROUP_NORM_GRAD, from the sums over parts of the images. A block has a group of an
 * image: its threads share parts and channels, and its sums have one order. */
#ifndef TESS_CUDA_GROUP_NORM_TABLES_CUH
#define TESS_CUDA_GROUP_NORM_TABLES_CUH

#include "cuda/norm/channels.cuh"

namespace
{

enum { MERGERS = 128, MOST_ACROSS = 32 };
/* The table: centre, 1 / deviation, a / deviation, offset of z, and the two means of a group, over its deviation. */
enum { CENTRE, INVERSE, FACTOR, OFFSET, PLAIN, TIMES, TABLE };

struct grad_job {
    tess_tensor in, gradient, out, more, more_gradient; /* more: scales and shifts */
    bool flat_in, flat_gradient, flat_out;
    bool scale_shift, accumulate;
    tess_activation activation;
    channel_grid grid;
    int groups;
    double epsilon;
    const void *from, *gradient_from, *modulation;
    void *to, *modulation_to;
    const float *weights;   /* c weights, then c biases */
    float *weight_gradient; /* the same */
    double *channel_sums;   /* [n][S, P][c] */
    float *table;           /* [n][TABLE][c] */
};

/* 1 + scale of a channel, or its shift. */
__device__ __forceinline__ double scale_of(const grad_job &job, int64_t n, int64_t c)
{
    return job.scale_shift
               ? 1 + (double)tess_value_at(job.more.dtype, job.modulation, n * job.more.stride_n + c)
               : 1;
}

__device__ __forceinline__ double shift_of(const grad_job &job, int64_t n, int64_t c)
{
    return job.scale_shift ? (double)tess_value_at(job.more.dtype, job.modulation,
                                                   n * job.more.stride_n + job.grid.channels + c)
                           : 0;
}

/* How a block of MERGERS threads shares the parts and the channels of a group: `across` channels side by side. */
struct merge_share {
    int across, lanes, lane, column;
    int64_t first, width; /* channels of the group */
};

__device__ __forceinline__ merge_share merge_share_of(const grad_job &job)
{
    merge_share s;
    s.width = job.grid.channels / job.groups;
    s.first = blockIdx.x * s.width;
    s.across = s.width < MOST_ACROSS ? (int)s.width : (int)MOST_ACROSS;
    s.lanes = MERGERS / s.across;
    s.lane = (int)threadIdx.x / s.across;
    s.column = (int)threadIdx.x % s.across;
    return s;
}

/* Sums the parts of channel `c`, if this thread has one (lane < lanes, c in the group); valid in lane 0. All threads of
 * the block call it. */
__device__ __forceinline__ void merge_parts(const grad_job &job, const merge_share &s, int64_t n, int64_t c,
                                            bool mine, double *first, double *second)
{
    __shared__ double shared[2][MERGERS];
    const int t = (int)threadIdx.x;
    const int64_t channels = job.grid.channels;
    double a = 0, b = 0;
    if (mine)
        for (unsigned part = (unsigned)s.lane; part < job.grid.parts; part += (unsigned)s.lanes) {
            const double *sums = job.grid.sums + (n * job.grid.parts + part) * 2 * channels + c;
            a += sums[0];
            b += sums[channels];
        }
    __syncthreads();
    shared[0][t] = a;
    shared[1][t] = b;
    __syncthreads();
    for (int step = 1; step < s.lanes; step *= 2) {
        if (mine && s.lane % (2 * step) == 0 && s.lane + step < s.lanes)
            for (int k = 0; k < 2; k++)
                shared[k][t] += shared[k][t + step * s.across];
        __syncthreads();
    }
    *first = shared[0][t];
    *second = shared[1][t];
}

/* The sum over the columns of lane 0, in the order of the columns, for all threads. */
__device__ __forceinline__ double sum_columns(const merge_share &s, double value)
{
    __shared__ double shared[MOST_ACROSS];
    __syncthreads();
    if (s.lane == 0)
        shared[s.column] = value;
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < s.across; i++)
        sum += shared[i];
    return sum;
}

/* Calls use(c, first, second) in one thread for each channel of the group, with its sums. */
template <class USE>
__device__ __forceinline__ void each_channel(const grad_job &job, const merge_share &s, int64_t n, USE use)
{
    for (int64_t at = 0; at < s.width; at += s.across) {
        const int64_t c = s.first + at + s.column;
        const bool mine = s.lane < s.lanes && at + s.column < s.width;
        double first, second;
        merge_parts(job, s, n, c, mine, &first, &second);
        if (mine && s.lane == 0)
            use(c, first, second);
    }
}

/* Mean, deviation and parameters of the forward pass. Grid of both tables: x over groups, z over images. */
__global__ void __launch_bounds__(MERGERS) forward_table_kernel(const __grid_constant__ grad_job job)
{
    const merge_share s = merge_share_of(job);
    const int64_t channels = job.grid.channels;
    for (int64_t n = blockIdx.z; n < job.grid.images; n += gridDim.z) {
        double value = 0, square = 0;
        each_channel(job, s, n, [&](int64_t, double first, double second) {
            value += first;
            square += second;
        });
        value = sum_columns(s, value);
        square = sum_columns(s, square);
        const double count = (double)job.grid.pixels * (double)s.width, mean = value / count,
                     variance = square / count - mean * mean,
                     inverse = 1 / sqrt((variance < 0 ? 0 : variance) + job.epsilon);
        float *table = job.table + n * TABLE * channels;
        for (int64_t c = s.first + threadIdx.x; c < s.first + s.width; c += MERGERS) {
            const double scale = scale_of(job, n, c), factor = job.weights[c] * scale * inverse,
                         offset = job.weights[channels + c] * scale + shift_of(job, n, c);
            table[CENTRE * channels + c] = (float)mean;
            table[INVERSE * channels + c] = (float)inverse;
            table[FACTOR * channels + c] = (float)factor;
            table[OFFSET * channels + c] = (float)(offset + ((double)(float)mean - mean) * factor);
        }
    }
}

/* The sums of a channel, the gradient of its scale and shift, and the means of its group. */
__global__ void __launch_bounds__(MERGERS) backward_table_kernel(const __grid_constant__ grad_job job)
{
    const merge_share s = merge_share_of(job);
    const int64_t channels = job.grid.channels;
    for (int64_t n = blockIdx.z; n < job.grid.images; n += gridDim.z) {
        double plain = 0, times = 0;
        each_channel(job, s, n, [&](int64_t c, double first, double second) {
            const double weight = job.weights[c], bias = job.weights[channels + c],
                         a = weight * scale_of(job, n, c);
            plain += a * first;
            times += a * second;
            job.channel_sums[(2 * n) * channels + c] = first;
            job.channel_sums[(2 * n + 1) * channels + c] = second;
            if (job.modulation_to) {
                const tess_tensor &t = job.more_gradient;
                const int64_t at = n * t.stride_n + c;
                tess_put_at(t.dtype, job.modulation_to, at, (float)(weight * second + bias * first));
                tess_put_at(t.dtype, job.modulation_to, at + channels, (float)first);
            }
        });
        plain = sum_columns(s, plain);
        times = sum_columns(s, times);
        const double count = (double)job.grid.pixels * (double)s.width;
        float *table = job.table + n * TABLE * channels;
        for (int64_t c = s.first + threadIdx.x; c < s.first + s.width; c += MERGERS) {
            const double inverse = table[INVERSE * channels + c];
            table[PLAIN * channels + c] = (float)(plain / count * inverse);
            table[TIMES * channels + c] = (float)(times / count * inverse * inverse);
        }
    }
}

} // namespace

#endif
