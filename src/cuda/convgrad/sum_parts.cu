/* Adds partial sums in order and brings them from [row][tap][column] to the order of a weight file, [row][column][tap].
 * A block does 32 columns of one row with all taps. If there are many parts, its threads form slices: slice s adds
 * parts s, s + slices, ..., and the slices are added at the end. */
#include "cuda/convgrad/sums.h"
#include "cuda/core/early.cuh"
#include "cuda/core/values.cuh"

namespace
{

/* PITCH: between the taps of a block's sums in shared memory, so that four columns of eight taps are in different banks. */
enum { CHUNK = 32, PITCH = CHUNK + 4, MOST_THREADS = 512, LEAST_THREADS = 128 };

struct sum_job {
    int64_t part, row_low, column_low, out_columns; /* part: values of one */
    int64_t columns;
    int parts, taps, chunks, items, slices, lows;
    const void *values;
    float *out;
};

/* The blocks of the second job follow those of the first. */
struct sum_jobs {
    sum_job of[2];
    unsigned blocks[2];
    bool accumulate;
};

/* N neighbouring columns at a time. */
template <typename T, int N>
__global__ void __launch_bounds__(MOST_THREADS) sum_kernel(const __grid_constant__ sum_jobs jobs)
{
    extern __shared__ __align__(16) float sums[];
    let_next_grid_start();
    wait_for_grid_before();
    const bool second = blockIdx.x >= jobs.blocks[0];
    const sum_job &job = jobs.of[second];
    const unsigned block = blockIdx.x - (second ? jobs.blocks[0] : 0);
    const int64_t row = block / job.chunks, first = (int64_t)(block % job.chunks) * CHUNK;
    for (int at = threadIdx.x; at < job.items * job.slices; at += blockDim.x) {
        const int item = at % job.items, slice = at / job.items, tap = item / (CHUNK / N);
        const int64_t column = first + item % (CHUNK / N) * N;
        float sum[N] = {};
        for (int low = 0; low < job.lows && column < job.out_columns; low++) {
            const T *from = (const T *)job.values +
                            ((row + low * job.row_low) * job.taps + tap) * job.columns + column +
                            low * job.column_low;
#pragma unroll 8
            for (int part = slice; part < job.parts; part += job.slices) {
                float more[N];
                tess_load<N>(from + part * job.part, more);
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[i] += more[i];
            }
        }
        float *place = sums + (slice * job.taps + tap) * PITCH + item % (CHUNK / N) * N;
        if (N == 4)
            *(float4 *)place = make_float4(sum[0], sum[1 % N], sum[2 % N], sum[3 % N]);
        else
            *place = sum[0];
    }
    __syncthreads();
    const int64_t left = job.out_columns - first;
    const int count = (int)(left < CHUNK ? left : CHUNK) * job.taps;
    float *to = job.out + (row * job.out_columns + first) * job.taps;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const int column = i / job.taps, tap = i - column * job.taps;
        float sum = 0;
        for (int slice = 0; slice < job.slices; slice++)
            sum += sums[(slice * job.taps + tap) * PITCH + column];
        to[i] = jobs.accumulate ? to[i] + sum : sum;
    }
}

/* What a job needs of a launch. */
struct sum_size {
    int64_t blocks;
    int threads;
    size_t shared;
};

template <int N> sum_size divide(sum_job *job, int64_t rows)
{
    job->items = job->taps * (CHUNK / N);
    job->slices = MOST_THREADS / job->items;
    job->slices = job->slices > job->parts ? job->parts : job->slices < 1 ? 1 : job->slices;
    const int threads = (job->items * job->slices + 31) / 32 * 32;
    sum_size size;
    size.blocks = rows * job->chunks;
    size.threads = threads > MOST_THREADS ? MOST_THREADS : threads < LEAST_THREADS ? LEAST_THREADS : threads;
    size.shared = (size_t)(job->slices * job->taps * PITCH) * sizeof(float);
    return size;
}

template <typename T, int N> cudaError_t launch(const tess_sums *s, sum_jobs jobs, cudaStream_t stream)
{
    sum_size all = {0, 0, 0};
    for (int i = 0; i < s->count; i++) {
        const sum_size one = divide<N>(&jobs.of[i], s->of[i].out_rows);
        all.blocks += one.blocks;
        all.threads = one.threads > all.threads ? one.threads : all.threads;
        all.shared = one.shared > all.shared ? one.shared : all.shared;
        if (all.blocks > INT32_MAX || all.shared > 48 << 10)
            return cudaErrorInvalidValue;
        jobs.blocks[i] = (unsigned)one.blocks;
    }
    cudaLaunchAttribute early[1];
    early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)all.blocks);
    config.blockDim = dim3((unsigned)all.threads);
    config.dynamicSmemBytes = all.shared;
    config.stream = stream;
    config.attrs = early;
    config.numAttrs = s->early ? 1 : 0;
    return cudaLaunchKernelEx(&config, sum_kernel<T, N>, jobs);
}

template <typename T> cudaError_t launch_type(const tess_sums *s, const sum_jobs &jobs, cudaStream_t stream)
{
    bool fours = true;
    for (int i = 0; i < s->count; i++)
        fours = fours && s->of[i].columns % 4 == 0 && s->of[i].column_low % 4 == 0;
    return fours ? launch<T, 4>(s, jobs, stream) : launch<T, 1>(s, jobs, stream);
}

sum_job job_of(const tess_partials *p)
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
    job.values = p->values;
    job.out = p->out;
    return job;
}

} // namespace

extern "C" cudaError_t tess_cuda_sum_parts(const tess_sums *sums, cudaStream_t stream)
{
    sum_jobs jobs = {};
    jobs.accumulate = sums->accumulate;
    for (int i = 0; i < sums->count; i++)
        jobs.of[i] = job_of(&sums->of[i]);
    switch (sums->of[0].dtype) {
    case TESS_F16:
        return launch_type<__half>(sums, jobs, stream);
    case TESS_BF16:
        return launch_type<__nv_bfloat16>(sums, jobs, stream);
    default:
        return launch_type<float>(sums, jobs, stream);
    }
}
