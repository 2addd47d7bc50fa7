/* moments.cuh: what the files of statistics share: the plan of tiles, ranges and workspace, and where a sum lies.
 *
 * The channels and one more, the constant 1, whose products are the sums and the count, are divided into `tiles` tiles of
 * `strips` strips of 16, or `blocks` blocks of 8; the last strip of the only tile may have but one. Pairs of equal tiles come first, then pairs of different ones. The pixels are divided into
 * ranges. For each range and pair, sums of products are kept as the matrix instruction leaves them: pieces of 16 x 8,
 * 4 values in each of 32 lanes. Of a pair of equal tiles there are only the pieces on and above the diagonal. */
#ifndef TESS_CUDA_MOMENTS_CUH
#define TESS_CUDA_MOMENTS_CUH

#include "cuda/core/tensors.cuh"

enum { TESS_STRIP = 16, TESS_PIECE = 8, TESS_PIECE_VALUES = 128, TESS_STRIPS = 8 };

struct tess_moments_plan {
    int channels;
    int tiles, strips, blocks;
    int64_t pixels;
    unsigned ranges;
    int64_t values; /* sums of one range */
};

struct tess_moments_job {
    tess_moments_plan plan;
    tess_tensor in, mask;
    bool flat, flat_mask, covariance;
    const float *from;
    const void *mask_from; /* NULL: none */
    const uint8_t *counts; /* for each pixel: it counts; NULL: all that are finite do */
    const float *shift;    /* a value near the mean, for each channel */
    double *partial;       /* the sums of each range */
    double *sums;          /* of all ranges */
    float *extremes;       /* least and largest, for each range and tile */
    double *out;
};

/* The offset of a pixel, counted over all images. */
static __device__ __forceinline__ int64_t tess_moments_place(const tess_tensor &t, bool flat, int64_t pixel)
{
    if (flat)
        return pixel * t.stride_w;
    const int64_t all = t.d * t.h * t.w, n = pixel / all;
    return tess_place(t, false, n, pixel - n * all);
}

/* The first piece of a strip in a pair of equal tiles, and all of them; of a pair of different tiles. */
static __host__ __device__ __forceinline__ constexpr int tess_moments_first(int blocks, int strip)
{
    return strip * (blocks - strip + 1);
}

static __host__ __device__ __forceinline__ constexpr int tess_moments_half(int blocks)
{
    return tess_moments_first(blocks, (blocks + 1) / 2);
}

static __host__ __device__ __forceinline__ constexpr int tess_moments_whole(int strips)
{
    return 2 * strips * strips;
}

/* The number of the pair (i, j) of different tiles, i < j, among those pairs. */
static __host__ __device__ __forceinline__ int tess_moments_pair(int tiles, int i, int j)
{
    return i * (2 * tiles - i - 1) / 2 + j - i - 1;
}

/* The product sum of channels i <= j; channel `channels` is the constant. */
static __device__ __forceinline__ double tess_moments_sum(const tess_moments_plan &p, const double *sums,
                                                          int i, int j)
{
    const int size = p.strips * TESS_STRIP, ti = i / size, tj = j / size, row = i - ti * size,
              column = j - tj * size, strip = row / TESS_STRIP, piece = column / TESS_PIECE;
    const int at =
        ti == tj ? ti * tess_moments_half(p.blocks) + tess_moments_first(p.blocks, strip) + piece - 2 * strip
                 : p.tiles * tess_moments_half(p.blocks) +
                       tess_moments_pair(p.tiles, ti, tj) * tess_moments_whole(p.strips) +
                       strip * 2 * p.strips + piece;
    const int lane = row % 8 * 4 + column % TESS_PIECE / 2, value = row % TESS_STRIP / 8 * 2 + column % 2;
    return sums[((int64_t)at * 32 + lane) * 4 + value];
}

/* True if pixels are stride_w apart throughout all images. */
static inline bool tess_moments_even(const tess_tensor *t)
{
    return tess_flat(t) && (t->n == 1 || t->stride_n == tess_pixels(t) * t->stride_w);
}

/* moments.cu: for each pixel of an op, if it counts: all its values are finite, and its mask is not zero. */
cudaError_t tess_moments_counts(const tess_op *op, const tess_op_buffers *b, uint8_t *counts,
                                cudaStream_t stream);
/* moments_products.cu: the sums of all ranges, to `partial` and `extremes`. */
cudaError_t tess_moments_products(const tess_moments_job &job, cudaStream_t stream);
/* CTAs of the kernel for one tile of so many strips that an H200 holds at a time, for which ranges are made. */
unsigned tess_moments_resident(int strips);

#endif
