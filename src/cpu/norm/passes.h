/* passes.h: the passes over memory that group norms and batch norms share, forward and backward. The rows of an image
 * are divided into parts, whose number does not depend on the threads; a pass that sums leaves one sum for each part
 * and channel. Tables have three numbers a channel, for each image or shared by all. */
#ifndef TESS_CPU_NORM_PASSES_H
#define TESS_CPU_NORM_PASSES_H

#include "base/pool.h"
#include "cpu/conv/kernels.h"
#include "op/op.h"

enum { TESS_NORM_PARTS = 64 };

typedef struct tess_norm_passes {
    const tess_norm_kernels *kernels; /* forward */
    tess_activation activation;
    const tess_tensor *in, *out,
        *gradient; /* gradient: of the result, after its activation; backward alone */
    const void *in_data, *gradient_data;
    void *out_data;
    int64_t rows, parts; /* per image */
    double *sums;        /* [n][part][two sums][c] */
    float *table; /* [centre, factor, offset][c]: result = activation((in - centre) * factor + offset) */
    float *back;  /* [factor, offset, slope][c]: out = g * factor + offset + (in - centre) * slope */
    int64_t step; /* floats from image to image in both tables; 0: shared */
} tess_norm_passes;

/* Rows and parts of a tensor; `most`: parts per image. */
static inline void tess_norm_divide(tess_norm_passes *p, const tess_tensor *in, int64_t most)
{
    p->in = in;
    p->rows = in->d * in->h;
    p->parts = p->rows < most ? p->rows : most;
}

static inline int64_t tess_norm_row(const tess_tensor *t, int64_t n, int64_t row)
{
    return n * t->stride_n + row / t->h * t->stride_d + row % t->h * t->stride_h;
}

/* Sums of the values and of their squares. */
void tess_norm_sum(tess_pool *pool, const tess_norm_passes *p);
void tess_norm_apply(tess_pool *pool, const tess_norm_passes *p);
/* Sums of g and of g * (in - centre); g is the gradient before the activation. */
void tess_norm_sum_gradients(tess_pool *pool, const tess_norm_passes *p);
void tess_norm_apply_gradients(tess_pool *pool, const tess_norm_passes *p);

#endif
