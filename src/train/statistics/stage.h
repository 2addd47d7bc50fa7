/* stage.h: a block of pixels and what is computed of it: moments, and scores.
 *
 * Threads read the next blocks meanwhile (blocks.h). The samples of the file go to the device as they are, on a stream of
 * their own beside the computation, and become fp32 there, if they are not. Only what needs nodes that are not affine
 * is computed on the host. Sizes are computed before anything is allocated, by the same function. */
#ifndef TESS_TRAIN_STATISTICS_STAGE_H
#define TESS_TRAIN_STATISTICS_STAGE_H

#include "base/pool.h"
#include "base/stop.h"
#include "device/device.h"
#include "dist/dist.h"
#include "model/spectral/path.h"
#include "train/statistics/blocks.h"
#include "train/statistics/stage_network.h"

enum { TESS_PIXEL_OPS = 24, TESS_PIXEL_UPLOADS = 2 };

typedef struct tess_pixel_stage_settings {
    tess_device *device;
    tess_memory *memory; /* of the host blocks */
    tess_pool *pool;     /* for paths; NULL: one thread */
    tess_stop *stop;     /* NULL: none */
    int64_t block_rows;  /* 0: as many as have about 32 MiB of values */
    bool sums;           /* only moments are wanted: nothing that scores is made */
    tess_dist *dist;     /* the ranks that share the blocks (statistics.h); NULL: alone */
} tess_pixel_stage_settings;

/* Bytes by block; zero: not needed. */
typedef struct tess_pixel_stage_sizes {
    int64_t rows, halo; /* of a block of the widest image; rows that local RX reads above and below */
    int64_t pixels;     /* most pixels of a block, halo included */
    int widest;
    bool on_host;  /* fp32 values are needed on the host */
    bool in_place; /* the set's `at` is used; a block is then an image, or several that follow one another */
    int slots, uploads; /* blocks that are in memory at a time, on the host and on the device */
    size_t keep_at;     /* where a slot has its marks of pixels with a value, behind the samples */
    size_t samples, values, behind, trimmed, scores; /* host; samples: of a slot */
    size_t d_samples, d_values, d_behind, d_trimmed, d_scores, d_centre, d_factor, workspace; /* device */
    size_t n_weights, n_arena, n_workspace; /* of the network that scores; device */
} tess_pixel_stage_sizes;

typedef struct tess_pixel_op {
    tess_op op;
    tess_prepared *prepared;
    uint64_t used;
} tess_pixel_op;

typedef struct tess_pixel_stage {
    tess_pixel_stage_settings settings;
    const tess_spectral_plan *plan;
    tess_pixel_stage_sizes sizes;
    tess_pixel_blocks blocks;
    tess_block samples[TESS_PIXEL_SLOTS], values, behind, trimmed, scores;
    tess_block d_samples[TESS_PIXEL_UPLOADS], d_values, d_behind, d_trimmed, d_scores, d_centre, d_factor,
        workspace;
    tess_stream *upload;                    /* these three on a device with separate memory */
    tess_event *uploaded[TESS_PIXEL_SLOTS]; /* the copy of this slot is done */
    tess_event *used[TESS_PIXEL_UPLOADS];   /* what was computed of these samples is done */
    tess_pixel_network network;             /* without a `net`: scores by a factor */
    tess_pixel_op ops[TESS_PIXEL_OPS];
    uint64_t calls; /* of ops: the slot that was used longest ago is given away */
    /* the block that is loaded */
    const tess_pixel_set *set;
    tess_pixel_walk walk; /* these three of a set in place */
    tess_pixel_place place;
    tess_pixel_block block;
    int64_t loaded;  /* blocks of this walk, with this one */
    int upload_at;   /* its samples on the device */
    const float *at; /* its pixels on the device */
    const uint8_t *keep, *d_keep;
    int64_t width, loaded_rows, pixels;
    bool masked;
    int64_t bytes_read;
    /* Seconds of paths on the host, with the values of pixels in and out. */
    double path_seconds, path_values;
} tess_pixel_stage;

/* The sizes for the largest of the images. */
tess_status tess_pixel_stage_plan(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                  const tess_pixel_set *set, tess_pixel_stage_sizes *sizes,
                                  tess_error *error) TESS_MUST_CHECK;
/* Adds up what a stage holds. */
void tess_pixel_stage_bytes(const tess_pixel_stage_settings *settings, const tess_pixel_stage_sizes *sizes,
                            tess_mem_bytes *bytes);
tess_status tess_pixel_stage_create(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                    const tess_pixel_set *set, tess_pixel_stage *stage,
                                    tess_error *error) TESS_MUST_CHECK;
void tess_pixel_stage_destroy(tess_pixel_stage *stage); /* a stage of zeros is allowed */

/* Rows of a block of this image. */
int64_t tess_pixel_block_rows(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                              const tess_pixel_image *image);
int64_t tess_pixel_stage_rows(const tess_pixel_stage *stage, const tess_pixel_image *image);
/* Begins a walk over images; rows NULL: blocks of tess_pixel_stage_rows. */
tess_status tess_pixel_stage_begin(tess_pixel_stage *stage, const tess_pixel_walk *walk,
                                   tess_error *error) TESS_MUST_CHECK;
/* Loads the next block; NULL behind the last one. With sizes.on_host the values are also on the host as fp32, NaN where
 * there is none. */
tess_status tess_pixel_stage_next(tess_pixel_stage *stage, const tess_pixel_block **block,
                                  tess_error *error) TESS_MUST_CHECK;
/* The loaded pixels behind a path, in the device's memory. */
const float *tess_pixel_stage_behind(tess_pixel_stage *stage, const tess_path *path);
/* Merges the first `pixels` from `at` on into `moments`, which are in the device's memory. */
tess_status tess_pixel_stage_moments(tess_pixel_stage *stage, const float *at, int64_t first, int64_t pixels,
                                     int channels, bool covariance, double *moments,
                                     tess_error *error) TESS_MUST_CHECK;
/* The same, with covariance, for each image of a loaded block of images alike, in place, whose vectors follow one another. */
tess_status tess_pixel_stage_moments_each(tess_pixel_stage *stage, double *moments,
                                          tess_error *error) TESS_MUST_CHECK;
/* The same for all loaded pixels whose score, as of the last call of tess_pixel_stage_score for all of them, is at most `limit`. */
tess_status tess_pixel_stage_trimmed(tess_pixel_stage *stage, const float *at, int channels, double limit,
                                     double *moments, tess_error *error) TESS_MUST_CHECK;
/* Scores of pixels, NaN where there is none, on the host. tess_pixel_stage_factor, or tess_pixel_network_load, first. */
void tess_pixel_stage_factor(tess_pixel_stage *stage, const float *centre, const float *factor, int channels,
                             int rank);
tess_status tess_pixel_stage_score(tess_pixel_stage *stage, const float *at, int64_t first, int64_t pixels,
                                   int channels, int rank, float *scores, tess_error *error) TESS_MUST_CHECK;
/* RX of each pixel against the ring around it; rows of the whole loaded block. */
tess_status tess_pixel_stage_local(tess_pixel_stage *stage, const float *at, int channels, int inner,
                                   int outer, double eps, float *scores, tess_error *error) TESS_MUST_CHECK;

#endif
