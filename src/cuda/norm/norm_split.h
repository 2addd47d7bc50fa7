/* norm_split.h: how the group norm in clusters (norm_cluster.cu) shares out an image, from the image's size alone, so
 * that the order of every sum, and so every bit of the result, is the same in a batch of any size.
 *
 * The channels are cut into slices of whole groups, whose clusters know nothing of each other; the pixels of a slice
 * are shared by the blocks of its cluster, which hold them in shared memory. Small blocks are better than few large
 * ones: more of them work on a single image, and some of a multiprocessor's blocks compute while others load. But a
 * slice of less than 64 bytes a pixel wastes parts of what the memory delivers, and a cluster has 16 blocks at most.
 * Blocks that cannot hold all their pixels fill their shared memory several times, once more for each when they write;
 * the second time most pixels come from the cache. Plain C, so that a test without a card can count. */
#ifndef TESS_CUDA_NORM_SPLIT_H
#define TESS_CUDA_NORM_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "geometry/both.h"

enum {
    TESS_NORM_THREADS = 256,
    TESS_NORM_PIECE = 16,         /* bytes that one instruction moves */
    TESS_NORM_MOST_BLOCKS = 16,   /* of a cluster; more than 8 must be allowed for a kernel */
    TESS_NORM_BLOCK = 32 << 10,   /* bytes of pixels that a block has if the cluster can have enough blocks */
    TESS_NORM_CROWDED = 64 << 10, /* above: narrower slices, so that a multiprocessor has several blocks */
    TESS_NORM_SHARED = 227 * 1024, /* shared memory of a block */
    TESS_NORM_MOST_FILLS = 16,     /* of TESS_NORM_CROWDED bytes; with more, single images need more blocks */
    TESS_NORM_MOST_PIXELS = 1 << 24 /* more never fit, and products with 16 blocks stay below 2^31 */
};

typedef struct tess_norm_split {
    int width;          /* channels of a group */
    int channels;       /* of a slice */
    int slices, groups; /* slices of the image; groups of a slice */
    int segment;        /* channels of a piece that are of one group, wherever the piece starts */
    int pieces;         /* pieces of a pixel of a slice */
    int lanes;          /* pixels side by side in a block: thread t has piece t % pieces, pixel t / pieces */
    int blocks, shift;  /* blocks of a cluster, a power of two, and its logarithm */
    int pixels, rounds; /* of an image; pixels of a thread, at most */
    int held, fills;    /* rounds that shared memory holds at once; how often it is filled */
    int folds;          /* halvings of a warp's partial sums by shuffles */
    int partials;       /* partial sums of a block, of each segment */
    int reducers;       /* threads that share the partial sums of a group: a power of two, of one warp */
    /* Offsets in shared memory: pixels [held][thread], mean and squares [segment of a piece][partial], those of all
     * blocks [block][group], values of a partial sum, and the factor, offset and centre of every channel. */
    int sums_at, blocks_at, counts_at, table_at, shared;
} tess_norm_split;

/* Pixels [first, end) of an image are those of block `rank`. */
TESS_BOTH int tess_norm_first(int pixels, int shift, int rank)
{
    return (rank * pixels) >> shift;
}

static inline int tess_norm_gcd(int a, int b)
{
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The narrowest slice of at least `least` channels; else all. */
static inline int tess_norm_slice(int channels, int unit, int least)
{
    for (int slice = unit; slice < channels; slice += unit)
        if (slice >= least && channels % slice == 0)
            return slice;
    return channels;
}

static inline int64_t tess_norm_block_pixels(const tess_norm_split *s)
{
    return ((int64_t)s->pixels + s->blocks - 1) >> s->shift;
}

static inline void tess_norm_place(tess_norm_split *s, int piece)
{
    const int segments = piece / s->segment;
    s->partials = TESS_NORM_THREADS >> s->folds;
    s->sums_at = s->held * TESS_NORM_THREADS * TESS_NORM_PIECE;
    /* One more in each row: then the reducers of neighbouring segments read different banks. */
    s->blocks_at = s->sums_at + segments * (s->partials + 1) * 8;
    s->counts_at = s->blocks_at + s->blocks * s->groups * 8;
    s->table_at = s->counts_at + s->partials * 4;
    s->shared = s->table_at + 3 * s->channels * 4;
}

/* The rounds that a block holds at once. False: too many. */
static inline bool tess_norm_hold(tess_norm_split *s, bool refill)
{
    static const int ROUND = TESS_NORM_THREADS * TESS_NORM_PIECE;
    const int64_t rounds = (tess_norm_block_pixels(s) + s->lanes - 1) / s->lanes;
    const int most = (refill ? TESS_NORM_CROWDED : TESS_NORM_SHARED) / ROUND;
    if (rounds > (int64_t)most * (refill ? TESS_NORM_MOST_FILLS : 1))
        return false;
    s->rounds = (int)rounds;
    s->held = s->rounds < most ? s->rounds : most;
    s->fills = (s->rounds + s->held - 1) / s->held;
    return true;
}

/* Fills in all that follows from the width of a slice; false: it does not fit. `piece`: values of 16 bytes. */
static inline bool tess_norm_share(tess_norm_split *s, int all, int channels, int piece, bool refill)
{
    s->channels = channels;
    s->slices = all / channels;
    s->groups = channels / s->width;
    s->pieces = channels / piece;
    if (s->pieces > TESS_NORM_THREADS)
        return false;
    s->lanes = TESS_NORM_THREADS / s->pieces;
    s->blocks = 1, s->shift = 0;
    while (s->blocks < TESS_NORM_MOST_BLOCKS &&
           tess_norm_block_pixels(s) * s->pieces * TESS_NORM_PIECE > TESS_NORM_BLOCK)
        s->blocks *= 2, s->shift++;
    if (!tess_norm_hold(s, refill))
        return false;
    s->folds = 8 % s->pieces == 0 ? 2 : s->pieces == 16 ? 1 : 0;
    s->reducers = 32;
    while (s->reducers > 1 && s->reducers * s->groups > TESS_NORM_THREADS)
        s->reducers /= 2;
    tess_norm_place(s, piece);
    return s->shared <= TESS_NORM_SHARED;
}

/* An image of so many pixels and channels, with values of `size` bytes. False: its slices do not fit a cluster. */
static inline bool tess_norm_split_of(int64_t pixels, int64_t channels, int groups, int size,
                                      tess_norm_split *s)
{
    const int piece = TESS_NORM_PIECE / size;
    if (pixels < 1 || pixels > TESS_NORM_MOST_PIXELS || channels > 1 << 20 || channels % piece != 0)
        return false;
    const int all = (int)channels, width = all / groups, common = tess_norm_gcd(width, piece),
              unit = width / common * piece;
    *s = (tess_norm_split){.width = width, .segment = common, .pixels = (int)pixels};
    if (tess_norm_share(s, all, tess_norm_slice(all, unit, 64 / size), piece, false) &&
        s->sums_at <= TESS_NORM_CROWDED)
        return true;
    const int narrow = tess_norm_slice(all, unit, 32 / size);
    return tess_norm_share(s, all, narrow, piece, false) || tess_norm_share(s, all, narrow, piece, true);
}

#endif
