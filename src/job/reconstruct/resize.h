#ifndef TESS_JOB_RESIZE_H
#define TESS_JOB_RESIZE_H

#include <stdint.h>

/* torch's bicubic interpolation (a = -0.75, corners not aligned, no
 * antialiasing), then clamped to [0,1]. */
void tess_resize_bicubic(const float *from, int64_t from_height, int64_t from_width, int64_t channels,
                         float *to, int64_t height, int64_t width);

#endif
