/* moments_pieces.cuh: which products of blocks a warp sums.
 *
 * A matrix instruction multiplies two blocks of 8 channels, `top` and `bottom`, which need not be neighbours, by one,
 * `column`: a piece. Of two blocks i and j, one product is needed, (i, j) or (j, i). Strips are pairs of blocks (a, b); by
 * itself, a strip has the pieces (a, b) x c for all c >= a, and a b is computed twice. Two strips s < t together need one
 * piece less: (a_s, a_t) x a_s and (a_t, b_s) x a_t replace (a_s, b_s) x a_s, (a_t, b_t) x a_t and (a_s, b_s) x a_t. So 13
 * blocks, 91 products, take 46 pieces, with one product for nothing. Strips are paired first with last, so that
 * pieces that follow one another share blocks; each of ROLES warps takes as many, within one. */
#ifndef TESS_CUDA_MOMENTS_PIECES_CUH
#define TESS_CUDA_MOMENTS_PIECES_CUH

#include <cuda/std/utility>

#include "cuda/statistics/moments.cuh"

namespace
{

enum { ROLES = 4 };

struct piece {
    int top, bottom, column; /* bottom = top: it is not needed */
};

/* Calls `take` with every piece, in their order, until it returns false. */
template <class Take> constexpr void each_piece(int blocks, Take &&take)
{
    const int strips = (blocks + 1) / 2;
    for (int s = 0; s < (strips + 1) / 2; s++) {
        const int a = 2 * s, b = a + 1, t = strips - 1 - s, x = 2 * t, y = x + 1;
        const bool pair = s < t;
        take(piece{a, pair ? x : a, a});
        if (pair)
            take(piece{x, b, x});
        if (b < blocks)
            take(piece{a, b, b});
        if (pair && y < blocks)
            take(piece{x, y, y});
        for (int c = a + 2; c < blocks; c++)
            if (!pair || c != x)
                take(piece{a, b, c});
        for (int c = x + 2; pair && c < blocks; c++)
            take(piece{x, y, c});
    }
}

constexpr int pieces_of(int blocks)
{
    int n = 0;
    each_piece(blocks, [&](piece) { n++; });
    return n;
}

constexpr piece piece_of(int blocks, int number)
{
    int n = 0;
    piece found = {0, 0, 0};
    each_piece(blocks, [&](piece p) {
        if (n++ == number)
            found = p;
    });
    return found;
}

/* d += (top, bottom) x column, over 4 DEPTH pixels, DEPTH 1 or 2. */
template <int DEPTH>
__device__ __forceinline__ void multiply(double (&d)[4], const double (&top)[DEPTH],
                                         const double (&bottom)[DEPTH], const double (&column)[DEPTH])
{
#if __CUDA_ARCH__ >= 900
    if constexpr (DEPTH == 1)
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(top[0]), "d"(bottom[0]), "d"(column[0]));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(top[0]), "d"(bottom[0]), "d"(top[1]), "d"(bottom[1]), "d"(column[0]), "d"(column[1]));
#else
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(d[0]), "+d"(d[1])
            : "d"(top[k]), "d"(column[k]));
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(d[2]), "+d"(d[3])
            : "d"(bottom[k]), "d"(column[k]));
    }
#endif
}

/* The lane's values of a block, of 4 DEPTH pixels: at once those of a left and of a right operand, which both have the
 * channel in lane / 4 and the pixel in lane % 4. */
template <int DEPTH, int STRIDE>
__device__ __forceinline__ void load_block(double (&to)[DEPTH], const double *stage, int block)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
        to[k] = stage[(lane % 4 + 4 * k) * STRIDE + lane / 4 + block * TESS_BLOCK];
}

/* Half of a piece, block i by block j: row lane / 4, columns 2 (lane % 4) + 0..1. */
__device__ __forceinline__ void store_block(double *to, int blocks, int i, int j, double left, double right)
{
    const int lane = (int)threadIdx.x % 32, row = lane / 4, column = 2 * (lane % 4);
    if (i <= j) {
        to += tess_moments_pair(blocks, i, j) * TESS_BLOCK_VALUES + row * TESS_BLOCK + column;
        to[0] = left;
        to[1] = right;
    } else {
        to += tess_moments_pair(blocks, j, i) * TESS_BLOCK_VALUES + column * TESS_BLOCK + row;
        to[0] = left;
        to[TESS_BLOCK] = right;
    }
}

/* The pieces of one warp of a tile's triangle; their numbers are constants: the sums stay in registers. */
template <int BLOCKS, int DEPTH, int ROLE> struct role {
    static constexpr int ALL = pieces_of(BLOCKS), FIRST = ALL * ROLE / ROLES,
                         COUNT = ALL * (ROLE + 1) / ROLES - FIRST;
    using numbers = cuda::std::make_integer_sequence<int, COUNT>;

    double sums[COUNT ? COUNT : 1][4] = {};

    static constexpr bool uses(int block)
    {
        bool used = false;
        int n = 0;
        each_piece(BLOCKS, [&](piece p) {
            if (n >= FIRST && n < FIRST + COUNT)
                used = used || p.top == block || p.bottom == block || p.column == block;
            n++;
        });
        return used;
    }

    template <int STRIDE, int... BLOCK>
    __device__ __forceinline__ void load(double (&to)[BLOCKS][DEPTH], const double *stage,
                                         cuda::std::integer_sequence<int, BLOCK...>)
    {
        (
            [&] {
                if constexpr (uses(BLOCK))
                    load_block<DEPTH, STRIDE>(to[BLOCK], stage, BLOCK);
            }(),
            ...);
    }

    template <int... N>
    __device__ __forceinline__ void multiply_all(const double (&x)[BLOCKS][DEPTH],
                                                 cuda::std::integer_sequence<int, N...>)
    {
        (
            [&] {
                constexpr piece p = piece_of(BLOCKS, FIRST + N);
                multiply<DEPTH>(sums[N], x[p.top], x[p.bottom], x[p.column]);
            }(),
            ...);
    }

    template <int STRIDE, int PIXELS> __device__ __forceinline__ void add(const double *stage)
    {
#pragma unroll 2
        for (int k = 0; k < PIXELS; k += 4 * DEPTH) {
            double x[BLOCKS][DEPTH];
            load<STRIDE>(x, stage + k * STRIDE, cuda::std::make_integer_sequence<int, BLOCKS>());
            multiply_all(x, numbers());
        }
    }

    /* `first` of `all` blocks: where the tile begins. */
    template <int... N>
    __device__ __forceinline__ void store(double *to, int all, int first,
                                          cuda::std::integer_sequence<int, N...>)
    {
        (
            [&] {
                constexpr piece p = piece_of(BLOCKS, FIRST + N);
                store_block(to, all, first + p.top, first + p.column, sums[N][0], sums[N][1]);
                if constexpr (p.bottom != p.top)
                    store_block(to, all, first + p.bottom, first + p.column, sums[N][2], sums[N][3]);
            }(),
            ...);
    }
};

} // namespace

#endif
