/* Adds partial sums in order and brings them from [row][tap][column] to the order of a weight file, [row][column][tap].
 * A block does 32 columns of one row with all taps. If there are many parts, its threads form slices: slice s adds
 * parts s, s + slices, ..., and the slices are added at the end. */
#include "cuda/convgrad/sums.h"
#include "cuda/core/values.cuh"

namespace
{

enum { CHUNK = 32, MOST_THREADS = 512, LEAST_THREADS = 128 };

struct sum_job {
    int64_t part, row_low, column_low, out_columns; /* part: values of one */
    int64_t columns;
    int parts, taps, chunks, items, slices, lows;
    bool accumulate;
    const void *values;
    float *out;
};

/* N neighbouring columns at a time. */
template <typename T, int N>
__global__ void __launch_bounds__(MOST_THREADS) sum_kernel(const __grid_constant__ sum_job job)
{
    extern __shared__ float sums[];
    const int64_t row = blockIdx.x / job.chunks, first = (int64_t)(blockIdx.x % job.chunks) * CHUNK;
    for (int at = threadIdx.x; at < job.items * job.slices; at += blockDim.x) {
        const int item = at % job.items, slice = at / job.items, tap = item / (CHUNK / N);
        const int64_t column = first + item % (CHUNK / N) * N;
        float sum[N] = {};
        for (int low = 0; low < job.lows && column < job.out_columns; low++) {
            const T *from = (const T *)job.values +
                            ((row + low * job.row_low) * job.taps + tap) * job.columns + column +
                            low * job.column_low;
#pragma unroll 4
            for (int part = slice; part < job.parts; part += job.slices) {
                float more[N];
                tess_load<N>(from + part * job.part, more);
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[i] += more[i];
            }
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            sums[(slice * job.items + item) * N + i] = sum[i];
    }
    __syncthreads();
    const int64_t left = job.out_columns - first;
    const int count = (int)(left < CHUNK ? left : CHUNK) * job.taps;
    float *to = job.out + (row * job.out_columns + first) * job.taps;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const int column = i / job.taps, tap = i - column * job.taps;
        float sum = 0;
        for (int slice = 0; slice < job.slices; slice++)
            sum += sums[slice * job.items * N + tap * CHUNK + column];
        to[i] = job.accumulate ? to[i] + sum : sum;
    }
}

template <typename T, int N> cudaError_t launch(sum_job job, int64_t rows, cudaStream_t stream)
{
    job.items = job.taps * (CHUNK / N);
    job.slices = MOST_THREADS / job.items;
    job.slices = job.slices > job.parts ? job.parts : job.slices < 1 ? 1 : job.slices;
    int threads = (job.items * job.slices + 31) / 32 * 32;
    threads = threads > MOST_THREADS ? MOST_THREADS : threads < LEAST_THREADS ? LEAST_THREADS : threads;
    const size_t shared = (size_t)(job.items * job.slices * N) * sizeof(float);
    if (rows * job.chunks > INT32_MAX || shared > 48 << 10)
        return cudaErrorInvalidValue;
    sum_kernel<T, N><<<(unsigned)(rows * job.chunks), (unsigned)threads, shared, stream>>>(job);
    return cudaGetLastError();
}

template <typename T> cudaError_t launch_type(const tess_partials *p, const sum_job &job, cudaStream_t stream)
{
    return p->columns % 4 == 0 && p->column_low % 4 == 0 ? launch<T, 4>(job, p->out_rows, stream)
                                                         : launch<T, 1>(job, p->out_rows, stream);
}

} // namespace

extern "C" cudaError_t tess_cuda_sum_parts(const tess_partials *p, float *out, bool accumulate,
                                           cudaStream_t stream)
{
    sum_job job = {};
    job.part = p->rows * p->taps * p->columns;
    job.row_low = p->row_low;
    job.column_low = p->column_low;
    job.columns = p->columns;
    job.out_columns = p->out_columns;
    job.parts = p->parts;
    job.taps = (int)p->taps;
    job.chunks = (int)((p->out_columns + CHUNK - 1) / CHUNK);
    job.lows = p->row_low || p->column_low ? 2 : 1;
    job.accumulate = accumulate;
    job.values = p->values;
    job.out = out;
    switch (p->dtype) {
    case TESS_F16:
        return launch_type<__half>(p, job, stream);
    case TESS_BF16:
        return launch_type<__nv_bfloat16>(p, job, stream);
    default:
        return launch_type<float>(p, job, stream);
    }
}
