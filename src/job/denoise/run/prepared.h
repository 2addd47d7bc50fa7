/* prepared.h: images whose rows are converted to fp32 values before the network and back to samples after it:
 * those with holes, with a special scale, with a map of noise levels, in slices, blended, or written in another type.
 * The ring and the network see a plain fp32 image. The sink reads the input a second time, so that holes, alpha and
 * the input of a blend need not be kept in memory. */
#ifndef TESS_JOB_DENOISE_RUN_PREPARED_H
#define TESS_JOB_DENOISE_RUN_PREPARED_H

#include "job/common/holes.h"
#include "job/common/local_mean.h"
#include "job/denoise/look/levels.h"

/* Rows for the source and the sink, which run on separate threads. */
typedef struct tess_prepared_rows {
    /* of the input, the map, the input read by the sink, the output */
    char *samples, *map_samples, *again, *out;
    unsigned char *valid, *valid_again, *map_valid;
    float *values, *draws, *map; /* source */
    float *blend, *draws_again;  /* sink */
    float *means;                /* source */
    void *holes, *local;
} tess_prepared_rows;

/* Places them at `at`; with NULL it only returns the bytes. */
size_t tess_prepared_carve(const tess_denoise_file *file, char *at, tess_prepared_rows *rows);
/* The image that the ring and the network see in place of the file. */
tess_image_info tess_prepared_info(const tess_denoise_file *file);
/* Bytes held by the additional readers. */
size_t tess_prepared_held(const tess_denoise_file *file);

typedef struct tess_prepared_image {
    const tess_denoise_settings *settings;
    const tess_denoise_file *file;
    tess_reader *reader, *map, *original;
    tess_prepared_rows rows;
    tess_holes holes;
    tess_local_mean local;
    tess_rng_key noise;
    tess_denoise_sigmas sigmas; /* of the slice, and the samples that mean 0 and 1 in it */
    tess_scale scale;
    int64_t slice, source_row;   /* row counts include earlier slices */
    int64_t read_row;            /* the next row of the file that the source reads */
    int64_t written, cut_off;    /* restored samples, and those that the output's type clamps */
    int64_t restored, held_back; /* all samples, and those that got less of the result: trust.c */
} tess_prepared_image;

/* Called before the first row of every slice. */
void tess_prepared_begin_slice(tess_prepared_image *image, int64_t slice);
/* Then, for a part of the slice: goes to its row `row` for the source, or for the sink. */
tess_status tess_prepared_source_at(tess_prepared_image *image, int64_t row,
                                    tess_error *error) TESS_MUST_CHECK;
tess_status tess_prepared_sink_at(tess_prepared_image *image, int64_t row, tess_error *error) TESS_MUST_CHECK;
/* Returns the next `count` rows as values. */
tess_status tess_prepared_source(tess_prepared_image *image, int64_t count, float *values,
                                 tess_error *error) TESS_MUST_CHECK;
/* Row y of the slice: blends `result` with the input in place. *samples then points to the row for the file, and
 * *valid to one byte per sample: 0 for a hole. */
tess_status tess_prepared_sink(tess_prepared_image *image, int64_t y, float *result, const char **samples,
                               const unsigned char **valid, tess_error *error) TESS_MUST_CHECK;

/* Puts the colours of a row of values in the order of the network, or back in that of the file. */
void tess_prepared_reorder(const tess_denoise_file *file, bool back, float *row);
/* The share of the network's result in a channel: the strength, or 0 if the channel has no noise. */
double tess_prepared_strength(const tess_prepared_image *image, int64_t channel);
/* Whether some channel of the slice has weak noise. */
bool tess_prepared_is_weak(const tess_prepared_image *image);
/* Where the channels with weak noise differ in a row from the input by more than that noise, blends the input in. `changes` has a place for
 * each pixel. */
void tess_prepared_hold_back(tess_prepared_image *image, const float *input, float *changes, float *result);
/* The output's samples that mean 0 and 1. */
tess_scale tess_prepared_out_scale(const tess_prepared_image *image);
/* Converts the values of row y to rows.out: rounded, dithered if requested, with the holes and alpha of the input. */
void tess_prepared_to_samples(tess_prepared_image *image, int64_t y, const float *result);

#endif
