/* data_resize.h: rectangles of an image at another size, without computing the rest of it.
 *
 * Bicubic (Keys, a = -0.5) with a kernel that is widened when the image becomes smaller, so that nothing aliases: as
 * Pillow's and PyTorch's antialiased filters. Weights depend on the place in the whole image, so any rectangle has
 * the values that the whole image would have there. */
#ifndef TESS_TRAIN_DATA_RESIZE_H
#define TESS_TRAIN_DATA_RESIZE_H

#include "train/data_images.h"

/* One axis: outputs [first, first + count) of `out`, computed from an axis of `in`. */
typedef struct tess_resize_axis {
    int64_t in, out, first, count;
} tess_resize_axis;

typedef struct tess_resize {
    tess_resize_axis rows, cols;
    int channels;
} tess_resize;

/* Most inputs that one output depends on. */
int64_t tess_resize_taps(int64_t in, int64_t out);
/* Most inputs that `count` neighbouring outputs depend on. */
int64_t tess_resize_reach(int64_t in, int64_t out, int64_t count);
/* The rectangle of the input that the outputs depend on. */
tess_rect tess_resize_rect(const tess_resize *resize);
/* Floats of scratch for `count` outputs each way with at most `reach` inputs. */
int64_t tess_resize_scratch(int64_t count, int64_t reach, int channels);
/* `view` is that rectangle. Writes rows.count x cols.count x channels values, in [0, 1]. */
void tess_resize_run(const tess_resize *resize, const tess_view *view, float *scratch, float *out);

#endif
