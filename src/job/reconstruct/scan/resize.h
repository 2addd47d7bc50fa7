#ifndef TESS_JOB_RECONSTRUCT_SCAN_RESIZE_H
#define TESS_JOB_RECONSTRUCT_SCAN_RESIZE_H

#include <stdint.h>

/* Rows [first, first + rows) of an image that is resized to height x width. */
typedef struct tess_bicubic {
    int64_t from_height, from_width, channels;
    int64_t height, width, first, rows;
} tess_bicubic;

/* The rows of the source that these depend on. */
void tess_bicubic_source(const tess_bicubic *resize, int64_t *first, int64_t *count);
/* torch's bicubic interpolation (a = -0.75, corners not aligned, no antialiasing), then clamped to [0,1]. `from` holds only
 * the rows of tess_bicubic_source. */
void tess_resize_bicubic(const tess_bicubic *resize, const float *from, float *to);

#endif
