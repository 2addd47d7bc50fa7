/* sums.h: sums in two passes, for gradients of parameters. The first pass, of any kernel, writes partial sums; their
 * number follows from the sizes alone. The second adds them in order. */
#ifndef TESS_CUDA_CONVGRAD_SUMS_H
#define TESS_CUDA_CONVGRAD_SUMS_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Partial sums [part][rows][taps][columns], dense, aligned to 16 bytes. If a row (column) was computed from values that
 * were split into two numbers, the second is `row_low` rows (`column_low` columns) further; else 0. */
typedef struct tess_partials {
    const void *values;
    tess_dtype dtype;
    int parts;
    int64_t rows, taps, columns;
    int64_t row_low, column_low;
    int64_t out_rows, out_columns;
    float *out; /* [out_rows][out_columns][taps], as in a weight file */
} tess_partials;

/* Adds up the partial sums of one or two parameters (`count`) of one type, in one launch. */
typedef struct tess_sums {
    tess_partials of[2];
    int count;
    bool accumulate; /* adds to what is in `out` */
    /* The kernel that wrote the partial sums lets the next one start before it ends; on Hopper only. */
    bool early;
} tess_sums;

cudaError_t tess_cuda_sum_parts(const tess_sums *sums, cudaStream_t stream); /* sum_parts.cu */

/* channel_sum.cu: out[c] = the sum of a tensor over all but its channels. */
size_t tess_cuda_channel_sum_bytes(const tess_tensor *t);
cudaError_t tess_cuda_channel_sum_run(const tess_tensor *t, const void *data, void *workspace, float *out,
                                      bool accumulate, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
