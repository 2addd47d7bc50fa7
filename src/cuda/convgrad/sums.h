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
} tess_partials;

/* sum_parts.cu: out, [out_rows][out_columns][taps] as in a weight file, = the sums; added with `accumulate`. */
cudaError_t tess_cuda_sum_parts(const tess_partials *partials, float *out, bool accumulate,
                                cudaStream_t stream);

/* channel_sum.cu: out[c] = the sum of a tensor over all but its channels. */
size_t tess_cuda_channel_sum_bytes(const tess_tensor *t);
cudaError_t tess_cuda_channel_sum_run(const tess_tensor *t, const void *data, void *workspace, float *out,
                                      bool accumulate, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
