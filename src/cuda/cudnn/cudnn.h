/* cudnn.h: convolutions by NVIDIA's cuDNN, if the library is installed: one fused graph per op, made for one
 * shape. No cuDNN type appears here.
 *
 * An engine id names one of cuDNN's engines with its settings. It is valid for every size of the same class of
 * op, on the same card and library version: a measured choice is kept, and a new size needs no search.
 *
 * Use from one thread at a time: handle and plans share cuDNN's state. */
#ifndef TESS_CUDA_CUDNN_H
#define TESS_CUDA_CUDNN_H

#include "cuda/core/cuda.h"

typedef struct tess_cudnn tess_cudnn;
typedef struct tess_cudnn_plan tess_cudnn_plan;

/* Opens the library at run time; TESS_UNSUPPORTED if it is not installed. */
tess_status tess_cudnn_open(tess_cudnn **out, tess_error *error) TESS_MUST_CHECK;
void tess_cudnn_close(tess_cudnn *cudnn);
const char *tess_cudnn_version(const tess_cudnn *cudnn);

/* NULL if cuDNN can be tried for this op, else the reason; needs no library. Layers in fp32 without TF32 are refused: an
 * image must give the same bits in a batch of any size, but an engine may take another order of sums for another batch, not
 * fit the workspace of a larger one, or find no place among the plans. The generic kernels have one order for all sizes. */
const char *tess_cudnn_refuses(const tess_op *op);

/* Writes ids for plan_create, the best guess first: cuDNN's prebuilt kernels, then slower ones that are
 * compiled once per class and process (30 to 600 ms, then 1 ms per size). Returns their number. An id may
 * still not fit: plan_create reports it. */
int tess_cudnn_candidates(tess_cudnn *cudnn, const tess_op *op, size_t workspace_limit, int64_t *engines,
                          int most);

/* `engine` -1: the first candidate that works. TESS_UNSUPPORTED if the engine does not support this op or
 * needs more workspace than the limit. `cudnn` must outlive the plan. */
tess_status tess_cudnn_plan_create(tess_cudnn *cudnn, const tess_op *op, int64_t engine,
                                   size_t workspace_limit, tess_cudnn_plan **out,
                                   tess_error *error) TESS_MUST_CHECK;
void tess_cudnn_plan_destroy(tess_cudnn_plan *plan);
size_t tess_cudnn_plan_workspace(const tess_cudnn_plan *plan);
int64_t tess_cudnn_plan_engine(const tess_cudnn_plan *plan);
void tess_cudnn_plan_describe(const tess_cudnn_plan *plan, char *text, size_t size);

/* Enqueues the work. All pointers are aligned to 16 bytes. Allocates nothing if recent calls used the same
 * pointers. */
tess_status tess_cudnn_plan_run(tess_cudnn_plan *plan, const tess_op_buffers *buffers, cudaStream_t stream,
                                tess_error *error) TESS_MUST_CHECK;

#endif
