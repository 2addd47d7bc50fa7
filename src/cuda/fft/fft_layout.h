/* fft_layout.h: how the tensors of an FFT are told to cuFFT, which knows lines with a stride, rows with a pitch and
 * one batch with a distance. Decided by shape and strides alone, so that query and run agree.
 *
 * Over height and width, the channels of an image are the batch and the images a loop. Over rows alone, the rows are
 * the batch, the channels a loop, and images that follow one another are taken several at a time.
 *
 * cuFFT wants real values aligned as if they were complex. Where they could begin at odd places (images of an odd number
 * of values, of which a stack has many; single channels) an image goes through planes of its own in the workspace,
 * one for each channel: `staged`. */
#ifndef TESS_CUDA_FFT_LAYOUT_H
#define TESS_CUDA_FFT_LAYOUT_H

#include <string.h>

#include "base/checked.h"
#include "cuda/core/cuda.h"

typedef struct tess_fft_side {
    int64_t pitch, stride, distance; /* pitch in units of stride */
} tess_fft_side;

/* Equal layouts have equal plans: compared as bytes, so it has no gaps. */
typedef struct tess_fft_layout {
    int64_t inverse, rank, staged;
    int64_t h, w, batch;
    tess_fft_side real, spectrum; /* of complex values */
    int64_t groups, images;       /* `groups` calls, each for `images` images; 1 unless rows are merged */
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

/* Floats from row to row of a staged plane: even, so that every row is aligned. */
static inline int64_t tess_fft_staged_pitch(const tess_tensor *real)
{
    return (real->w + 1) / 2 * 2;
}

static inline int64_t tess_fft_staged_plane(const tess_tensor *real)
{
    return real->h * tess_fft_staged_pitch(real);
}

/* Where image i of a tensor begins. */
static inline int64_t tess_fft_image_at(const tess_tensor *t, int64_t i)
{
    return i / t->d * t->stride_n + i % t->d * t->stride_d;
}

/* NULL, or why it cannot be told. */
const char *tess_fft_layout_of(const tess_op *op, tess_fft_layout *layout);
/* Bytes of the staged planes. */
size_t tess_fft_staged_bytes(const tess_op *op, const tess_fft_layout *layout);

#endif
