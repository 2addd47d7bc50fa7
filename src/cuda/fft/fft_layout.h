/* fft_layout.h: describes the tensors of an FFT to cuFFT, which knows lines with a stride, rows with a pitch
 * and one batch with a distance. The layout depends only on shape and strides, so that query and run agree.
 *
 * Over height and width, the channels of an image are the batch and the images are a loop. Over rows alone,
 * the rows are the batch, the channels are a loop, and adjacent images are transformed several at a time.
 *
 * cuFFT requires real values to be aligned like complex ones. Where they could start at an odd position
 * (images with an odd number of values in a stack; single channels), an image is copied to separate planes in
 * the workspace, one per channel: `staged`. */
#ifndef TESS_CUDA_FFT_LAYOUT_H
#define TESS_CUDA_FFT_LAYOUT_H

#include <string.h>

#include "base/checked.h"
#include "cuda/core/cuda.h"

typedef struct tess_fft_side {
    int64_t pitch, stride, distance; /* pitch in units of stride */
} tess_fft_side;

/* Equal layouts have equal plans. Compared as bytes, so it has no padding. */
typedef struct tess_fft_layout {
    int64_t inverse, rank, staged;
    int64_t h, w, batch;
    tess_fft_side real, spectrum; /* spectrum: in complex values */
    int64_t groups, images;       /* `groups` calls for `images` images each; 1 unless rows are merged */
    int64_t passes;               /* channels that are transformed one after another */
} tess_fft_layout;

static inline const tess_tensor *tess_fft_real(const tess_op *op)
{
    return op->fft.inverse ? &op->out[0] : &op->in[0];
}

static inline const tess_tensor *tess_fft_spectrum(const tess_op *op)
{
    return op->fft.inverse ? &op->in[0] : &op->out[0];
}

/* Floats from one row of a staged plane to the next: even, so that every row is aligned. */
static inline int64_t tess_fft_staged_pitch(const tess_tensor *real)
{
    return (real->w + 1) / 2 * 2;
}

static inline int64_t tess_fft_staged_plane(const tess_tensor *real)
{
    return real->h * tess_fft_staged_pitch(real);
}

/* The offset of image i of a tensor. */
static inline int64_t tess_fft_image_at(const tess_tensor *t, int64_t i)
{
    return i / t->d * t->stride_n + i % t->d * t->stride_d;
}

/* NULL, or the reason why cuFFT cannot describe it. */
const char *tess_fft_layout_of(const tess_op *op, tess_fft_layout *layout);
/* Bytes of the staged planes. */
size_t tess_fft_staged_bytes(const tess_op *op, const tess_fft_layout *layout);

#endif
