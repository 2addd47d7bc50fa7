/* pack.cuh: the kernel that packs weights. A launch takes a list of items in its arguments, so that training, where all
 * layers' weights change at every step, packs many layers at once: most are too small to fill a card, and a launch
 * costs more than packing one of them.
 *
 * An item is a piece of a parameter in the file's order, [row][other][tap] (rows are output channels, or input channels
 * of a transposed convolution), with a stride of the packed weights for each of the three. Items whose rows or others
 * are neighbours when packed pass through shared memory, so that reads and writes are runs. */
#ifndef TESS_CUDA_CONV_PACK_CUH
#define TESS_CUDA_CONV_PACK_CUH

#include "cuda/core/cuda.h"
#include "cuda/core/values.cuh"

namespace
{

enum {
    THREADS = 256,
    MOST_TAPS = 9, /* of an item that passes through shared memory */
    OTHERS = 256,  /* PACK_OTHERS: others of a block, of one row or more */
    TURN_ROWS = 64,
    TURN_OTHERS = 8,
    PITCH = TURN_OTHERS * MOST_TAPS + 1,
    TILE = TURN_ROWS * PITCH, /* values of shared memory */
    ITEMS = 48                /* of a launch: its arguments have at most 4 KiB */
};
static_assert(TILE >= OTHERS * MOST_TAPS, "both ways fit");

enum pack_way {
    PACK_OTHERS, /* others are neighbours when packed */
    PACK_ROWS,   /* rows are */
    PACK_VALUES, /* value by value, for all else */
    PACK_PHASES  /* the four phases of a convolution with fused upsampling */
};

struct pack_item {
    const float *values;
    void *packed;
    int64_t row_at, other_at,
        tap_at; /* strides of the packed values; PACK_PHASES: tap_at is that of a phase */
    int64_t rows, others;
    int taps, step; /* step: from one of the others to the next in the file: taps of all depths */
    unsigned first; /* block */
    unsigned char way, dtype;
    bool reversed; /* taps are packed from the last to the first */
    bool vectors;  /* four values of the file can be read at once */
    bool pairs;    /* two packed values can be written at once */
};

struct pack_list {
    pack_item items[ITEMS];
    int count;
};
static_assert(sizeof(pack_list) <= 4096, "arguments of a kernel");

/* Copies pieces of four values to shared memory, all reads of a thread before its writes. MOST: pieces of a thread. */
template <int MOST, typename FROM, typename TO>
__device__ __forceinline__ void copy_fours(int pieces, FROM from, TO to)
{
    float4 four[MOST];
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = threadIdx.x + k * THREADS;
        if (i < pieces)
            four[k] = *(const float4 *)from(i);
    }
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = threadIdx.x + k * THREADS;
        if (i >= pieces)
            continue;
        float *at = to(i);
        at[0] = four[k].x;
        at[1] = four[k].y;
        at[2] = four[k].z;
        at[3] = four[k].w;
    }
}

template <typename T>
__device__ __forceinline__ void store_two(T *to, float first, float second, bool pairs, bool both)
{
    const float two[2] = {first, second};
    if (pairs && both) {
        tess_store<2>(to, two);
        return;
    }
    to[0] = tess_rounded<T>(first);
    if (both)
        to[1] = tess_rounded<T>(second);
}

/* A block packs OTHERS others, counted through all rows: they follow each other in the file. Each thread has one pair of
 * others, so that it divides only once. */
template <typename T>
__device__ __forceinline__ void pack_others(const pack_item &p, int taps, unsigned block, float *tile)
{
    enum { FOURS = (OTHERS * MOST_TAPS / 4 + THREADS - 1) / THREADS, PAIRS = OTHERS / 2 };
    const int64_t first = (int64_t)block * OTHERS, left = p.rows * p.others - first,
                  first_row = first / p.others;
    const int count = (int)(left < OTHERS ? left : OTHERS);
    const float *from = p.values + first * p.step;
    if (p.vectors && count * taps % 4 == 0)
        copy_fours<FOURS>(
            count * taps / 4, [=](int i) { return from + 4 * i; }, [=](int i) { return tile + 4 * i; });
    else
        for (int i = threadIdx.x; i < count * taps; i += THREADS)
            tile[i] = from[(int64_t)(i / taps) * p.step + i % taps];
    __syncthreads();
    const unsigned others = (unsigned)p.others, start = (unsigned)(first - first_row * p.others);
    const int at = threadIdx.x % PAIRS * 2;
    if (at >= count)
        return;
    const unsigned rows = (start + at) / others, other = start + at - rows * others;
    const bool both = at + 1 < count, same_row = other + 1 < others;
    T *row = (T *)p.packed + (first_row + rows) * p.row_at;
    for (int tap = threadIdx.x / PAIRS; tap < taps; tap += THREADS / PAIRS) {
        T *to = row + tap * p.tap_at;
        const float one = tile[at * taps + tap], next = both ? tile[(at + 1) * taps + tap] : 0;
        store_two(to + other, one, next, p.pairs, both && same_row);
        if (both && !same_row)
            to[p.row_at] = tess_rounded<T>(next);
    }
}

/* Copies `high` rows of `run` values, in fours, to the tile. A constant `run` makes the divisions cheap. */
__device__ __forceinline__ void copy_rows(const float *from, int64_t row_step, int high, int run, float *tile)
{
    enum { FOURS = (TURN_ROWS * TURN_OTHERS * MOST_TAPS / 4 + THREADS - 1) / THREADS };
    copy_fours<FOURS>(
        high * (run / 4), [=](int i) { return from + i / (run / 4) * row_step + i % (run / 4) * 4; },
        [=](int i) { return tile + i / (run / 4) * PITCH + i % (run / 4) * 4; });
}

/* A block turns TURN_ROWS rows of TURN_OTHERS others. Each thread has one pair of rows. */
template <typename T>
__device__ __forceinline__ void pack_rows(const pack_item &p, int taps, unsigned block, float *tile)
{
    enum { PAIRS = TURN_ROWS / 2 };
    const unsigned across = (unsigned)((p.others + TURN_OTHERS - 1) / TURN_OTHERS);
    const int64_t row = (int64_t)(block / across) * TURN_ROWS,
                  other = (int64_t)(block % across) * TURN_OTHERS, row_step = p.others * p.step;
    const int high = (int)(p.rows - row < TURN_ROWS ? p.rows - row : TURN_ROWS),
              run = (int)(p.others - other < TURN_OTHERS ? p.others - other : TURN_OTHERS) * taps;
    const float *from = p.values + row * row_step + other * p.step;
    if (p.vectors && run == TURN_OTHERS * taps && taps == MOST_TAPS)
        copy_rows(from, row_step, high, TURN_OTHERS * MOST_TAPS, tile);
    else if (p.vectors && run % 4 == 0)
        copy_rows(from, row_step, high, run, tile);
    else
        for (int i = threadIdx.x; i < high * run; i += THREADS) {
            const int r = i / run, k = i % run;
            tile[r * PITCH + k] = from[r * row_step + (int64_t)(k / taps) * p.step + k % taps];
        }
    __syncthreads();
    const int r = threadIdx.x % PAIRS * 2;
    if (r >= high)
        return;
    T *start = (T *)p.packed + other * p.other_at + row + r;
    for (int k = threadIdx.x / PAIRS; k < run; k += THREADS / PAIRS) {
        const int tap = k % taps;
        T *to = start + k / taps * p.other_at + (p.reversed ? taps - 1 - tap : tap) * p.tap_at;
        store_two(to, tile[r * PITCH + k], r + 1 < high ? tile[(r + 1) * PITCH + k] : 0, p.pairs,
                  r + 1 < high);
    }
}

template <typename T> __device__ __forceinline__ void pack_values(const pack_item &p, unsigned block)
{
    const int64_t i = (int64_t)block * THREADS + threadIdx.x;
    if (i >= p.rows * p.others * p.taps)
        return;
    const int64_t tap = i % p.taps, pair = i / p.taps, row = pair / p.others, other = pair - row * p.others;
    ((T *)p.packed)[row * p.row_at + other * p.other_at + (p.reversed ? p.taps - 1 - tap : tap) * p.tap_at] =
        tess_rounded<T>(p.values[pair * p.step + tap]);
}

/* True if tap `i` of phase `phase` includes this one of the 3 taps: after upsampling, two neighbouring taps
 * can read the same input pixel. */
__device__ __forceinline__ bool tap_in(int phase, int i, int tap)
{
    return phase == 0 ? (i == 0 ? tap == 0 : tap > 0) : (i == 0 ? tap < 2 : tap == 2);
}

/* One thread per packed value. Each of the four phases of the upsampled image reads a 2x2 neighbourhood; taps
 * that read the same input pixel are summed in fp32 and rounded once. */
template <typename T> __device__ __forceinline__ void pack_phases(const pack_item &p, unsigned block)
{
    const int64_t i = (int64_t)block * THREADS + threadIdx.x;
    if (i >= p.rows * p.others * 16)
        return;
    const int64_t other = i % p.others, at = i / p.others, row = at / 16;
    const int phase = (int)(at / 4 % 4), tap = (int)(at % 4);
    float sum = 0;
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++)
            if (tap_in(phase / 2, tap / 2, y) && tap_in(phase % 2, tap % 2, x))
                sum += p.values[(row * p.others + other) * 9 + 3 * y + x];
    ((T *)p.packed)[phase * p.tap_at + row * p.row_at + tap * p.others + other] = tess_rounded<T>(sum);
}

template <typename T>
__device__ __forceinline__ void pack_block(const pack_item &p, unsigned block, float *tile)
{
    switch (p.way) {
    case PACK_OTHERS:
        if (p.taps == MOST_TAPS) /* a constant number of taps needs no divisions */
            pack_others<T>(p, MOST_TAPS, block, tile);
        else
            pack_others<T>(p, p.taps, block, tile);
        break;
    case PACK_ROWS:
        if (p.taps == MOST_TAPS)
            pack_rows<T>(p, MOST_TAPS, block, tile);
        else
            pack_rows<T>(p, p.taps, block, tile);
        break;
    case PACK_PHASES:
        pack_phases<T>(p, block);
        break;
    default:
        pack_values<T>(p, block);
    }
}

/* Grid: x over the blocks of all items, one item after the other. */
__global__ void __launch_bounds__(THREADS, 6) pack_kernel(const __grid_constant__ pack_list list)
{
    __shared__ float tile[TILE];
    int low = 0, high = list.count - 1; /* the last item that starts at this block or before */
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (list.items[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const pack_item &p = list.items[low];
    const unsigned block = blockIdx.x - p.first;
    if (p.dtype == TESS_F16)
        pack_block<__half>(p, block, tile);
    else if (p.dtype == TESS_BF16)
        pack_block<__nv_bfloat16>(p, block, tile);
    else
        pack_block<float>(p, block, tile);
    /* Makes the writes visible to later kernels even if they start early (programmatic launch): the Hopper
     * convolutions read their weights before they wait for the kernel before them. */
    __threadfence();
}

} // namespace

#endif
