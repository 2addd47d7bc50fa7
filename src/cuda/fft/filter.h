/* filter.h: transforms of images without cuFFT; filter.c prepares them and filter.cu runs them. */
#ifndef TESS_CUDA_FILTER_H
#define TESS_CUDA_FILTER_H

#include "cuda/core/cuda.h"

enum { TESS_FILTER_LEAST = 512, TESS_FILTER_MOST = 8192 }; /* lengths of transformed lines */

/* Lines of `n` complex values, transformed as `line` values. Tables are in the card's memory, as pairs of
 * floats. */
typedef struct tess_filter_lines {
    int n, line;
    const float *roots, *chirp, *chirp_spectrum;
} tess_filter_lines;

/* An even width is transformed as half as many complex values, each made of two neighbours of a row; an odd
 * width as complex values made of two rows. */
typedef struct tess_filter_plan {
    int height, width, channels;
    tess_filter_lines rows, columns;
    const float *row_roots; /* exp(-2 pi i k / width), for even widths */
} tess_filter_plan;

typedef enum tess_filter_mode { TESS_FILTER_FORWARD, TESS_FILTER_INVERSE, TESS_FILTER_BOTH } tess_filter_mode;

/* Images are (1, 1, h, w, c). */
typedef struct tess_filter_run {
    tess_filter_mode mode;
    tess_tensor real_in, real_out, spectrum, less; /* those that the mode uses */
    const float *in;
    float *out, *waves; /* an inverse only reads `waves` */
    const float *power; /* BOTH: S, and B or NULL */
    const float *data;
    int64_t power_row, power_column;
    double factor[5];
    void *work; /* tess_filter_work bytes, aligned to 256 */
} tess_filter_run;

#ifdef __cplusplus
extern "C" {
#endif
size_t tess_filter_work(const tess_filter_plan *plan);
cudaError_t tess_filter_launch(const tess_filter_plan *plan, const tess_filter_run *run, cudaStream_t stream);
cudaError_t tess_filter_load(int capability);
/* The filter on a spectrum in memory, not tuned: out = waves. */
cudaError_t tess_filter_product(const tess_filter_run *run, int height, int bins, int channels,
                                cudaStream_t stream);
/* Fills a run from an op and its buffers; the caller sets `work`. */
tess_filter_run tess_filter_run_of(const tess_op *op, const tess_op_buffers *buffers);
#ifdef __cplusplus
}
#endif
#endif
