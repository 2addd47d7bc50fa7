/* CONV_GRAD in fp16 and bf16 on every card since Ampere. Both operands are in shared memory as they are in global
 * memory, channels of a pixel side by side, and ldmatrix transposes them. A block of 4 warps computes 64 x 128 sums, a
 * warp 32 x 64. An fp32 image at one end is split into a high and a low part, with a product for each. */
#include "cuda/conv/matrix.cuh"
#include "cuda/convgrad/grad_load.cuh"

namespace
{

template <typename T> struct matrix_tiles {
    typedef grad_step<T> step;
    T rows[step::pixels][step::row_pitch], columns[step::pixels][step::column_pitch];
};

__device__ __forceinline__ void load_transposed(const void *from, uint32_t (&m)[4])
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at)
                 : "memory");
}

/* Adds the product of one step: sums[m][n] are 16 rows x 8 columns. */
template <typename T>
__device__ __forceinline__ void multiply(const T (&rows)[grad_step<T>::pixels][grad_step<T>::row_pitch],
                                         const T (&columns)[grad_step<T>::pixels][grad_step<T>::column_pitch],
                                         float (&sums)[2][8][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32 + lane / 8 % 2 * 8, column = warp % 2 * 64 + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < grad_step<T>::pixels; k += 16) {
        uint32_t a[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++)
            load_transposed(&rows[k + lane / 16 * 8 + lane % 8][row + 16 * m], a[m]);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            uint32_t b[4];
            load_transposed(&columns[k + lane % 16][column + 16 * n], b);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
                tess_matrix_add<T>(sums[m][2 * n], a[m], left);
                tess_matrix_add<T>(sums[m][2 * n + 1], a[m], right);
            }
        }
    }
}

template <typename T, typename In, typename Dy, bool WIDE>
__global__ void __launch_bounds__(GRAD_THREADS) matrix_kernel(const __grid_constant__ tess_grad_job job)
{
    typedef grad_step<T> step;
    constexpr bool low_in = grad_split<T, In>::value, low_dy = grad_split<T, Dy>::value;
    __shared__ __align__(16) matrix_tiles<T> tiles[2];
    __shared__ __align__(16) T low_rows[low_dy ? 2 : 1][low_dy ? step::pixels : 1][step::row_pitch];
    __shared__ __align__(16) T low_columns[low_in ? 2 : 1][low_in ? step::pixels : 1][step::column_pitch];
    __shared__ grad_pixels<step::pixels> at;
    const int thread = threadIdx.x;
    const int first_row = blockIdx.y * GRAD_ROWS, first_column = blockIdx.x * GRAD_COLUMNS;
    const int row_piece = thread % step::row_pieces * step::piece,
              column_piece = thread % step::column_pieces * step::piece;
    const int row_pixel = thread / step::row_pieces, column_pixel = thread / step::column_pieces;
    const int64_t first = blockIdx.z * job.per_part,
                  end = first + job.per_part < job.pixels ? first + job.per_part : job.pixels;
    const int steps = (int)((end - first + step::pixels - 1) / step::pixels);
    const grad_columns<T, In, WIDE> columns(job, first_column + column_piece);
    grad_piece<T> rows_next[step::row_loads], columns_next[step::column_loads];
    float sums[2][8][4] = {};
    auto fetch = [&](int side) {
#pragma unroll
        for (int i = 0; i < step::row_loads; i++)
            grad_fetch_row<T, Dy>(job, at, side, row_pixel + i * (GRAD_THREADS / step::row_pieces),
                                  first_row + row_piece, rows_next[i]);
#pragma unroll
        for (int i = 0; i < step::column_loads; i++)
            columns.fetch(job, at, side, column_pixel + i * (GRAD_THREADS / step::column_pieces),
                          columns_next[i]);
    };
    auto put = [&](int side) {
        typedef tess_vector<T, step::piece> vector;
#pragma unroll
        for (int i = 0; i < step::row_loads; i++) {
            const int pixel = row_pixel + i * (GRAD_THREADS / step::row_pieces);
            *reinterpret_cast<vector *>(&tiles[side].rows[pixel][row_piece]) = rows_next[i].high;
            if (low_dy)
                *reinterpret_cast<vector *>(&low_rows[low_dy ? side : 0][low_dy ? pixel : 0][row_piece]) =
                    rows_next[i].low;
        }
#pragma unroll
        for (int i = 0; i < step::column_loads; i++) {
            const int pixel = column_pixel + i * (GRAD_THREADS / step::column_pieces);
            *reinterpret_cast<vector *>(&tiles[side].columns[pixel][column_piece]) = columns_next[i].high;
            if (low_in)
                *reinterpret_cast<vector *>(
                    &low_columns[low_in ? side : 0][low_in ? pixel : 0][column_piece]) = columns_next[i].low;
        }
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
        multiply<T>(tiles[side].rows, tiles[side].columns, sums);
        if constexpr (low_dy)
            multiply<T>(low_rows[side], tiles[side].columns, sums);
        if constexpr (low_in)
            multiply<T>(tiles[side].rows, low_columns[side], sums);
        if (i + 1 < steps)
            put(side ^ 1);
        grad_locate(job, first + (i + 2) * (int64_t)step::pixels, end, side,
                    at); /* its pixels were fetched */
        __syncthreads();
    }
    const int lane = thread % 32, warp = thread / 32;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                grad_store(job, first_row + warp / 2 * 32 + m * 16 + lane / 4 + i / 2 * 8,
                           first_column + warp % 2 * 64 + n * 8 + lane % 4 * 2 + i % 2, sums[m][n][i]);
}

template <typename T, typename In, typename Dy, bool WIDE>
void launch(const tess_grad_job *job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job->columns + GRAD_COLUMNS - 1) / GRAD_COLUMNS),
                      (unsigned)((job->cout + GRAD_ROWS - 1) / GRAD_ROWS), (unsigned)job->parts);
    matrix_kernel<T, In, Dy, WIDE><<<blocks, GRAD_THREADS, 0, stream>>>(*job);
}

template <typename T> void launch_ends(const tess_op *op, const tess_grad_job *job, cudaStream_t stream)
{
    if (op->in[0].dtype == TESS_F32)
        launch<T, float, T, false>(job, stream);
    else if (op->in[1].dtype == TESS_F32)
        job->wide_in ? launch<T, T, float, true>(job, stream) : launch<T, T, float, false>(job, stream);
    else
        job->wide_in ? launch<T, T, T, true>(job, stream) : launch<T, T, T, false>(job, stream);
}

} // namespace

extern "C" cudaError_t tess_cuda_grad_matrix(const tess_op *op, const tess_grad_job *job, cudaStream_t stream)
{
    if (tess_cuda_conv_grad_type(op) == TESS_F16)
        launch_ends<__half>(op, job, stream);
    else
        launch_ends<__nv_bfloat16>(op, job, stream);
    return cudaGetLastError();
}
