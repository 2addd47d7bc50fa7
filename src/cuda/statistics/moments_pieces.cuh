/* moments_pieces.cuh: which products of blocks a warp sums, and the matrix instructions that do.
 *
 * A matrix instruction multiplies two blocks of 8 channels, `top` and `bottom`, which need not be neighbours, by one,
 * `column`: a piece, that is two products with a block in common. Of two blocks i and j, one product is needed, (i, j) or
 * (j, i), so 13 blocks have 91 products.
 *
 * ROLES warps share them, so that all have as many pieces, within one, and each reads few blocks: the blocks are three groups
 * A, B and C. The first role has the products of A and B, the others those of A and C, of B and C, and within C. Products
 * within A and B go to roles that read these blocks anyway, as long as those have less than their share. So 13 blocks take
 * 46 pieces, with one product for nothing, and the roles read 8 + 9 + 9 + 9 = 35 blocks; roles of whole rows of the triangle
 * would read 43. */
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

/* The role of each product of blocks i <= j. */
struct owners {
    int of[TESS_BLOCKS][TESS_BLOCKS];
};

/* The pieces of all roles, one role after the other. */
struct shares {
    int first[ROLES + 1];
    piece list[TESS_BLOCKS * TESS_BLOCKS / 2];
};

/* Blocks in A and in B, for each number of blocks: of all divisions those whose fullest role has fewest pieces, then those
 * with fewest pieces, then with fewest blocks to read. */
struct division {
    int a, b;
};

constexpr division division_of(int blocks)
{
    const division all[TESS_BLOCKS + 1] = {{0, 0}, {0, 0}, {0, 2}, {1, 1}, {2, 0}, {1, 4},
                                           {1, 2}, {2, 2}, {2, 2}, {3, 4}, {3, 3}, {3, 4},
                                           {3, 5}, {4, 4}, {3, 4}, {4, 4}, {4, 8}};
    return all[blocks];
}

constexpr owners owners_of(int blocks)
{
    owners o = {};
    const int a = division_of(blocks).a, ab = a + division_of(blocks).b,
              pieces = (blocks * (blocks + 1) / 2 + 1) / 2;
    int room[ROLES] = {};
    for (int r = 0; r < ROLES; r++)
        room[r] = 2 * (pieces * (r + 1) / ROLES - pieces * r / ROLES);
    for (int i = 0; i < blocks; i++)
        for (int j = i; j < blocks; j++) {
            const int first = (i >= a) + (i >= ab), second = (j >= a) + (j >= ab);
            o.of[i][j] = first == 2 ? 3 : first < second ? first + second - 1 : -1;
            if (o.of[i][j] >= 0)
                room[o.of[i][j]]--;
        }
    const int wanted[2][ROLES + 2] = {{1, 0, 0, 1, 2, 3},
                                      {2, 3, 0, 1, 2, 3}}; /* of products within A, within B */
    for (int i = 0; i < ab; i++)
        for (int j = i; j < ab; j++)
            if (o.of[i][j] < 0) {
                int k = 0;
                while (k + 1 < ROLES + 2 && room[wanted[i >= a][k]] <= 0)
                    k++;
                o.of[i][j] = wanted[i >= a][k];
                room[o.of[i][j]]--;
            }
    return o;
}

/* Block by block, from the last, a role's products with that block are taken two at a time. If their number is odd, one
 * waits for its other block's turn, if that is still to come. */
constexpr shares shares_of(int blocks)
{
    shares s = {};
    owners o = owners_of(blocks);
    int count = 0;
    for (int r = 0; r < ROLES; r++) {
        s.first[r] = count;
        for (int column = blocks - 1; column >= 0; column--) {
            int with[TESS_BLOCKS + 1] = {}, n = 0, waits = -1;
            for (int k = 0; k < blocks; k++)
                if (o.of[k < column ? k : column][k < column ? column : k] == r) {
                    waits = k < column ? n : waits;
                    with[n++] = k;
                }
            if (n % 2 && waits >= 0) {
                n--;
                for (int k = waits; k < n; k++)
                    with[k] = with[k + 1];
            }
            for (int k = 0; k < n; k++)
                o.of[with[k] < column ? with[k] : column][with[k] < column ? column : with[k]] = -1;
            for (int k = 0; k < n; k += 2)
                s.list[count++] = {with[k], with[k + 1 < n ? k + 1 : k], column};
        }
    }
    s.first[ROLES] = count;
    return s;
}

/* True if every product is in one piece. */
constexpr bool complete(int blocks)
{
    const shares s = shares_of(blocks);
    int times[TESS_BLOCKS][TESS_BLOCKS] = {};
    for (int n = 0; n < s.first[ROLES]; n++)
        for (int half = 0; half < (s.list[n].bottom != s.list[n].top ? 2 : 1); half++) {
            const int row = half ? s.list[n].bottom : s.list[n].top, column = s.list[n].column;
            times[row < column ? row : column][row < column ? column : row]++;
        }
    bool once = true;
    for (int i = 0; i < blocks; i++)
        for (int j = i; j < blocks; j++)
            once = once && times[i][j] == 1;
    return once;
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

} // namespace

#endif
