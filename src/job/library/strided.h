/* strided.h: converts samples of a caller's image in host memory, of any type and strides, to values on the [0,1]
 * scale and back. It uses the functions that read and write files, so that both give the same bits. */
#ifndef TESS_JOB_STRIDED_H
#define TESS_JOB_STRIDED_H

#include "tensor/samples.h"
#include "tessera.h"

typedef struct tess_sample_type {
    tess_dtype dtype;
    tess_scale scale;
    bool plain; /* integers are divided by their type's maximum, floats are unchanged */
} tess_sample_type;

typedef struct tess_strided {
    tess_sample_type type;
    char *data;
    int64_t depth, height, width, channels;
    int64_t step_depth, step_height, step_width, step_channel; /* bytes */
} tess_strided;

/* Returns false if `element` is not a TESS_ELEMENT_*. */
bool tess_element_dtype(tess_element element, tess_dtype *dtype);
tess_strided tess_strided_of(const tess_image *image, tess_sample_type type);

/* Some pixels of a row, channels [first, first + channels) of each. */
typedef struct tess_run_of_pixels {
    int64_t z, y, x, count, first, channels;
} tess_run_of_pixels;

/* `step`: floats from one pixel to the next. */
void tess_strided_read(const tess_strided *image, const tess_run_of_pixels *run, float *values, int64_t step);
void tess_strided_write(const tess_strided *image, const tess_run_of_pixels *run, const float *values,
                        int64_t step);
/* Copies the samples themselves to a dense row. */
void tess_strided_copy_out(const tess_strided *image, const tess_run_of_pixels *run, void *samples);
void tess_strided_copy_in(const tess_strided *image, const tess_run_of_pixels *run, const void *samples);

#endif
