/* moments.cuh: what the files of statistics share: the plan of tiles, ranges and workspace, and where a sum lies.
 *
 * The channels and one more, the constant 1, whose products are the sums and the count, are divided into blocks of 8, and
 * these into `tiles` tiles of `blocks` blocks. The pixels are divided into ranges, each image that has moments of its own into as
 * many; all others together count as one image. For each range, the sums of products
 * of blocks i <= j, 8 x 8 values, channels of i by rows, follow one another: all j of the first i, then of the next. */
#ifndef TESS_CUDA_MOMENTS_CUH
#define TESS_CUDA_MOMENTS_CUH

#include "cuda/core/tensors.cuh"

enum { TESS_BLOCK = 8, TESS_BLOCK_VALUES = 64, TESS_BLOCKS = 16 }; /* TESS_BLOCKS: most of a tile */
enum { TESS_STEP = 16 };                                           /* ranges begin at multiples */
enum {
    TESS_READERS = 2,
    TESS_EXTREMES = 4
}; /* warps that read a stage's pixels; those of a range, at most */

struct tess_moments_plan {
    int channels;
    int tiles, blocks;            /* blocks: of a tile; even if there are several tiles */
    int64_t pixels, each;         /* of all images, and of one */
    unsigned images, per, ranges; /* per: ranges of an image; ranges: of all */
    int64_t values;               /* sums of one range */
};

struct tess_moments_job {
    tess_moments_plan plan;
    tess_tensor in, mask;
    bool flat, flat_mask, covariance;
    const float *from;
    const void *mask_from; /* NULL: none */
    const uint8_t *counts; /* for each pixel: it counts; NULL: all that are finite do */
    const float *shift;    /* a value near the mean, for each image and channel */
    double *partial;       /* the sums of each range */
    double *sums;          /* of all ranges of an image */
    float *extremes;       /* least and largest: TESS_EXTREMES for each range and tile */
    double *out;
    int64_t out_values; /* from one image to the next */
};

/* The shifts of the image to which a range belongs. */
static __device__ __forceinline__ const float *tess_moments_shift(const tess_moments_job &job,
                                                                  unsigned number)
{
    return job.shift + (int64_t)(number / job.plan.per) * job.plan.channels;
}

/* The offset of a pixel, counted over all images. */
static __device__ __forceinline__ int64_t tess_moments_place(const tess_tensor &t, bool flat, int64_t pixel)
{
    if (flat)
        return pixel * t.stride_w;
    const int64_t all = t.d * t.h * t.w, n = pixel / all;
    return tess_place(t, false, n, pixel - n * all);
}

/* The number of the pair of blocks i <= j of `blocks` among those pairs; of the pair (blocks, blocks): how many there are. */
static __host__ __device__ __forceinline__ int64_t tess_moments_pair(int64_t blocks, int64_t i, int64_t j)
{
    return i * (2 * blocks - i + 1) / 2 + j - i;
}

/* The product sum of channels i <= j; channel `channels` is the constant. */
static __device__ __forceinline__ double tess_moments_sum(const tess_moments_plan &p, const double *sums,
                                                          int i, int j)
{
    return sums[tess_moments_pair(p.tiles * p.blocks, i / TESS_BLOCK, j / TESS_BLOCK) * TESS_BLOCK_VALUES +
                i % TESS_BLOCK * TESS_BLOCK + j % TESS_BLOCK];
}

/* The least and the largest of a warp, in lane 0. */
static __device__ __forceinline__ void tess_moments_widen(float &least, float &largest)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        least = fminf(least, __shfl_xor_sync(0xffffffffu, least, lanes));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    }
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
/* hopper/hopper_moments.cu: the same for dense pixels of one tile; to ask first: whether it can. */
bool tess_moments_takes_dense(const tess_moments_job &job);
cudaError_t tess_moments_dense(const tess_moments_job &job, cudaStream_t stream);
/* Ranges that an H200 works on at a time if there is one tile of so many blocks. */
unsigned tess_moments_resident(int blocks);

#endif
