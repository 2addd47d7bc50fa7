/* CONV_GRAD in fp32. A block of 128 threads computes 64 x 128 sums; thread (tx, ty) of 16 x 8 holds 8 x 8 of them: rows
 * 4 ty.. and 32 + 4 ty.., columns 4 tx.. and 64 + 4 tx... */
#include "cuda/convgrad/grad_load.cuh"

namespace
{

typedef grad_step<float> step;

__device__ __forceinline__ void multiply(const float (*rows)[step::row_pitch],
                                         const float (*columns)[step::column_pitch], int tx, int ty,
                                         float (&sums)[8][8])
{
#pragma unroll
    for (int k = 0; k < step::pixels; k++) {
        float a[8], b[8];
        tess_load<4>(&rows[k][4 * ty], a);
        tess_load<4>(&rows[k][32 + 4 * ty], a + 4);
        tess_load<4>(&columns[k][4 * tx], b);
        tess_load<4>(&columns[k][64 + 4 * tx], b + 4);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

template <bool WIDE>
__global__ void __launch_bounds__(GRAD_THREADS) float_kernel(const __grid_constant__ tess_grad_job job)
{
    __shared__ __align__(16) float rows[2][step::pixels][step::row_pitch];
    __shared__ __align__(16) float columns[2][step::pixels][step::column_pitch];
    __shared__ grad_pixels<step::pixels> at;
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const int first_row = blockIdx.y * GRAD_ROWS, first_column = blockIdx.x * GRAD_COLUMNS;
    const int row_piece = thread % step::row_pieces * step::piece,
              column_piece = thread % step::column_pieces * step::piece;
    const int row_pixel = thread / step::row_pieces, column_pixel = thread / step::column_pieces;
    const int64_t first = blockIdx.z * job.per_part,
                  end = first + job.per_part < job.pixels ? first + job.per_part : job.pixels;
    const int steps = (int)((end - first + step::pixels - 1) / step::pixels);
    const grad_columns<float, float, WIDE> own(job, first_column + column_piece);
    grad_piece<float> rows_next[step::row_loads], columns_next[step::column_loads];
    float sums[8][8] = {};
    auto fetch = [&](int side) {
#pragma unroll
        for (int i = 0; i < step::row_loads; i++)
            grad_fetch_row<float, float>(job, at, side, row_pixel + i * (GRAD_THREADS / step::row_pieces),
                                         first_row + row_piece, rows_next[i]);
#pragma unroll
        for (int i = 0; i < step::column_loads; i++)
            own.fetch(job, at, side, column_pixel + i * (GRAD_THREADS / step::column_pieces),
                      columns_next[i]);
    };
    auto put = [&](int side) {
        typedef tess_vector<float, step::piece> vector;
#pragma unroll
        for (int i = 0; i < step::row_loads; i++)
            *reinterpret_cast<vector *>(
                &rows[side][row_pixel + i * (GRAD_THREADS / step::row_pieces)][row_piece]) =
                rows_next[i].high;
#pragma unroll
        for (int i = 0; i < step::column_loads; i++)
            *reinterpret_cast<vector *>(
                &columns[side][column_pixel + i * (GRAD_THREADS / step::column_pieces)][column_piece]) =
                columns_next[i].high;
    };
    grad_locate(job, first, end, 0, at);
    __syncthreads();
    fetch(0);
    put(0);
    grad_locate(job, first + step::pixels, end, 1, at);
    __syncthreads();
    for (int i = 0; i < steps; i++) {
        const int side = i & 1;
        if (i + 1 < steps)
            fetch(side ^ 1);
        multiply(rows[side], columns[side], tx, ty, sums);
        if (i + 1 < steps)
            put(side ^ 1);
        grad_locate(job, first + (i + 2) * (int64_t)step::pixels, end, side,
                    at); /* its pixels were fetched */
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
            grad_store(job, first_row + i / 4 * 32 + 4 * ty + i % 4,
                       first_column + j / 4 * 64 + 4 * tx + j % 4, sums[i][j]);
}

} // namespace

extern "C" cudaError_t tess_cuda_grad_float(const tess_grad_job *job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job->columns + GRAD_COLUMNS - 1) / GRAD_COLUMNS),
                      (unsigned)((job->cout + GRAD_ROWS - 1) / GRAD_ROWS), (unsigned)job->parts);
    if (job->wide_in)
        float_kernel<true><<<blocks, GRAD_THREADS, 0, stream>>>(*job);
    else
        float_kernel<false><<<blocks, GRAD_THREADS, 0, stream>>>(*job);
    return cudaGetLastError();
}
