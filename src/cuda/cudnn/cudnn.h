/* cudnn.h: convolutions through NVIDIA's cuDNN, when the library is there: one fused graph an op, made for one
 * shape. No type of cuDNN is seen here.
 *
 * An engine id names one of cuDNN's engines with its settings. It holds for every size of the same class of op,
 * on the same card and version of the library: what was measured once is kept, and a new size costs no search.
 *
 * One thread at a time: handle and plans share cuDNN's state. */
#ifndef TESS_CUDA_CUDNN_H
#define TESS_CUDA_CUDNN_H

#include "cuda/core/cuda.h"

typedef struct tess_cudnn tess_cudnn;
typedef struct tess_cudnn_plan tess_cudnn_plan;

/* Opens the library at run time; TESS_UNSUPPORTED when it is not there. */
tess_status tess_cudnn_open(tess_cudnn **out, tess_error *error) TESS_MUST_CHECK;
void tess_cudnn_close(tess_cudnn *cudnn);
const char *tess_cudnn_version(const tess_cudnn *cudnn);

/* NULL when ops like this one can be asked for, else why not; needs no library. */
const char *tess_cudnn_refuses(const tess_op *op);

/* Ids for plan_create, the best guess first: cuDNN's ready kernels, then those that are compiled once a class and
 * process (30 to 600 ms, then 1 ms a size) and slower; returns how many were written. An id may still turn out not
 * to fit: plan_create says so. */
int tess_cudnn_candidates(tess_cudnn *cudnn, const tess_op *op, size_t workspace_limit, int64_t *engines,
                          int most);

/* `engine` -1: the first candidate that fits. TESS_UNSUPPORTED when it does not work for this op or needs more
 * workspace than the limit. The plan lives no longer than `cudnn`. */
tess_status tess_cudnn_plan_create(tess_cudnn *cudnn, const tess_op *op, int64_t engine,
                                   size_t workspace_limit, tess_cudnn_plan **out,
                                   tess_error *error) TESS_MUST_CHECK;
void tess_cudnn_plan_destroy(tess_cudnn_plan *plan);
size_t tess_cudnn_plan_workspace(const tess_cudnn_plan *plan);
int64_t tess_cudnn_plan_engine(const tess_cudnn_plan *plan);
void tess_cudnn_plan_describe(const tess_cudnn_plan *plan, char *text, size_t size);

/* Enqueues. All pointers are aligned to 16 bytes. With pointers of one of the last calls it
 * allocates nothing. */
tess_status tess_cudnn_plan_run(tess_cudnn_plan *plan, const tess_op_buffers *buffers, cudaStream_t stream,
                                tess_error *error) TESS_MUST_CHECK;

#endif
