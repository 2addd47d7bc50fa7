/* triangle.cuh: the lower triangle of a symmetric fp64 matrix as tiles of 8 x 8, and its elimination by one CTA.
 *
 * Tile (i, j), j <= i, is number i (i + 1) / 2 + j. Inside of a tile, column c of row r is at c / 4 * 32 + r * 4 + c % 4: a
 * warp's operand of mma (lane: row lane / 4, column lane % 4) is then 32 values in a row, without bank conflicts. The
 * result of mma has row lane / 4 and columns 2 (lane % 4) + 0..1 in a lane.
 *
 * The elimination is right-looking: the tile on the diagonal by one warp, a row in each of 8 lanes; then a row of the tiles
 * below in each thread; then the products of these tiles are subtracted from the tiles to their right, a tile a warp. */
#ifndef TESS_CUDA_TRIANGLE_CUH
#define TESS_CUDA_TRIANGLE_CUH

#include <stdint.h>

enum { TESS_TILE_SIDE = 8, TESS_TILE = 64 };

/* d += a b: 8 x 8 of 8 x 4 times 4 x 8. */
static __device__ __forceinline__ void tess_tile_multiply(double2 &d, double a, double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d.x), "+d"(d.y)
        : "d"(a), "d"(b));
}

static __host__ __device__ __forceinline__ constexpr int tess_tile_number(int i, int j)
{
    return i * (i + 1) / 2 + j;
}

static __device__ __forceinline__ int tess_tile_place(int row, int column)
{
    return column / 4 * 32 + row * 4 + column % 4;
}

/* Row and column of every tile, as row * 256 + column; all threads of the CTA, which must meet afterwards. */
static __device__ __forceinline__ void tess_tile_table(uint16_t *table, int side)
{
    for (int i = (int)threadIdx.x; i < side; i += (int)blockDim.x)
        for (int j = 0; j <= i; j++)
            table[tess_tile_number(i, j)] = (uint16_t)(i << 8 | j);
}

/* The first `pivots` columns of a tile on the diagonal; false if a pivot is not positive. One whole warp; lanes 8 and above
 * do the work of lanes 0 to 7 again. What is above the diagonal becomes garbage. */
static __device__ __forceinline__ bool tess_tile_factor(double *tile, int pivots, double *inverse)
{
    const int lane = (int)threadIdx.x % 32, row = lane % 8;
    double a[8];
    bool good = true;
#pragma unroll
    for (int c = 0; c < 8; c++)
        a[c] = tile[tess_tile_place(row, c)];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (j >= pivots)
            break;
        const double pivot = __shfl_sync(0xffffffffu, a[j], j), by = rsqrt(pivot);
        good = good && pivot > 0 && isfinite(pivot);
        a[j] *= by;
        if (lane == 0)
            inverse[j] = by;
#pragma unroll
        for (int c = j + 1; c < 8; c++)
            a[c] -= a[j] * __shfl_sync(0xffffffffu, a[j], c);
    }
    __syncwarp(); /* all lanes have read */
#pragma unroll
    for (int c = 0; c < 8; c++)
        if (lane < 8)
            tile[tess_tile_place(row, c)] = a[c];
    return good;
}

/* The rows below a factored tile: x L' = row. */
static __device__ __forceinline__ void tess_tile_solve(double *matrix, const double *factor,
                                                       const double *inverse, int side, int k)
{
    for (int at = (int)threadIdx.x; at < (side - 1 - k) * TESS_TILE_SIDE; at += (int)blockDim.x) {
        double *tile = matrix + tess_tile_number(k + 1 + at / 8, k) * TESS_TILE, x[8];
#pragma unroll
        for (int c = 0; c < 8; c++)
            x[c] = tile[tess_tile_place(at % 8, c)];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            x[j] *= inverse[j];
#pragma unroll
            for (int c = j + 1; c < 8; c++)
                x[c] -= x[j] * factor[tess_tile_place(c, j)];
        }
#pragma unroll
        for (int c = 0; c < 8; c++)
            tile[tess_tile_place(at % 8, c)] = x[c];
    }
}

/* tile(i, j) -= tile(i, k) tile(j, k)' for all k < j <= i. */
static __device__ __forceinline__ void tess_tile_update(double *matrix, const uint16_t *table, int side,
                                                        int k)
{
    const int lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32, rest = side - 1 - k;
#pragma unroll 2
    for (int t = (int)threadIdx.x / 32; t < rest * (rest + 1) / 2; t += warps) {
        const int i = k + 1 + (table[t] >> 8), j = k + 1 + (table[t] & 255);
        const double *left = matrix + tess_tile_number(i, k) * TESS_TILE + lane,
                     *right = matrix + tess_tile_number(j, k) * TESS_TILE + lane;
        double2 *to = (double2 *)(matrix + tess_tile_number(i, j) * TESS_TILE +
                                  tess_tile_place(lane / 4, 2 * (lane % 4)));
        double2 sum = *to;
        tess_tile_multiply(sum, -left[0], right[0]);
        tess_tile_multiply(sum, -left[32], right[32]);
        *to = sum;
    }
}

/* Eliminates the first `pivots` rows and columns of a matrix whose last tile they reach: what is left behind them is the
 * matrix minus what they explain. False, for all threads, if a pivot is not positive. All threads of the CTA; `inverse`: 8
 * values, `failed`: one, in shared memory. */
static __device__ __forceinline__ bool tess_tile_eliminate(double *matrix, const uint16_t *table, int side,
                                                           int pivots, double *inverse, int *failed)
{
    for (int k = 0; k < side; k++) {
        double *diagonal = matrix + tess_tile_number(k, k) * TESS_TILE;
        const int left = pivots - k * TESS_TILE_SIDE;
        if (threadIdx.x < 32) {
            const bool good = tess_tile_factor(diagonal, left < 8 ? left : 8, inverse);
            if (threadIdx.x == 0)
                *failed = !good;
        }
        __syncthreads();
        if (*failed)
            return false;
        tess_tile_solve(matrix, diagonal, inverse, side, k);
        __syncthreads();
        tess_tile_update(matrix, table, side, k);
        __syncthreads();
    }
    return true;
}

#endif
