/* denoise_prepared.h: images whose rows become fp32 values before the network and samples again behind it: those with
 * holes, with a scale of their own, with a map of noise levels, in slices, blended, or written in another type. The ring
 * and the network see a plain fp32 image. The sink reads the input a second time, so that holes, alpha and what is
 * blended need not be held. */
#ifndef TESS_JOB_DENOISE_PREPARED_H
#define TESS_JOB_DENOISE_PREPARED_H

#include "job/common/holes.h"
#include "job/common/local_mean.h"
#include "job/denoise/denoise.h"

/* Rows that the source and the sink work in, each on a thread of its own. */
typedef struct tess_prepared_rows {
    char *samples, *map_samples, *again, *out; /* of the input, the map, the input once more, the output */
    unsigned char *valid, *valid_again;
    float *values, *draws, *map; /* source */
    float *blend, *draws_again;  /* sink */
    float *means;                /* source */
    void *holes, *local;
} tess_prepared_rows;

/* Carves them from `at`, or with NULL only counts: the bytes that they take. */
size_t tess_prepared_carve(const tess_denoise_file *file, char *at, tess_prepared_rows *rows);
/* What the ring and the network are given in place of the file. */
tess_image_info tess_prepared_info(const tess_denoise_file *file);
/* Bytes that the extra readers hold. */
size_t tess_prepared_held(const tess_denoise_file *file);

typedef struct tess_prepared_image {
    const tess_denoise_settings *settings;
    const tess_denoise_file *file;
    tess_reader *reader, *map, *original;
    tess_prepared_rows rows;
    tess_holes holes;
    tess_local_mean local;
    tess_rng_key noise;
    int64_t slice, source_row; /* rows of earlier slices are counted too */
} tess_prepared_image;

/* Before the first row of every slice. */
void tess_prepared_begin_slice(tess_prepared_image *image, int64_t slice);
/* The next `count` rows as values. */
tess_status tess_prepared_source(tess_prepared_image *image, int64_t count, float *values,
                                 tess_error *error) TESS_MUST_CHECK;
/* Row y of the slice: blends `result` with the input in place. *samples then points to the row for the file, and
 * *valid to one byte a sample: 0 for a hole. */
tess_status tess_prepared_sink(tess_prepared_image *image, int64_t y, float *result, const char **samples,
                               const unsigned char **valid, tess_error *error) TESS_MUST_CHECK;

/* The samples of 0 and 1 in the output. */
tess_scale tess_denoise_out_scale(const tess_denoise_file *file);
/* Values of row y to rows.out: rounded, dithered where asked, holes and alpha as the input has them. */
void tess_prepared_to_samples(tess_prepared_image *image, int64_t y, const float *result);

#endif
