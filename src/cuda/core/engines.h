/* engines.h: which engine does an op. The choice belongs to the op's class and the order of its size: measured
 * once by `tune` and kept in the cache, else the first engine that does not refuse. No timing and no search
 * when a new size comes. */
#ifndef TESS_CUDA_ENGINES_H
#define TESS_CUDA_ENGINES_H

#include "cuda/core/cuda.h"

typedef struct tess_cuda_engines tess_cuda_engines; /* owned by the device */
typedef struct tess_cuda_plan tess_cuda_plan;       /* a cuDNN plan, shared by the ops of one shape */

/* How one op will be done. */
typedef struct tess_cuda_choice {
    const tess_cuda_engine *engine; /* NULL: cuDNN, by `plan` */
    tess_cuda_plan *plan;
    void *handle; /* of an engine that prepares */
} tess_cuda_choice;

/* `card` names the card and its driver: what was measured holds for them. */
tess_status tess_cuda_engines_create(const char *card, int capability, tess_cuda_engines **out,
                                     tess_error *error) TESS_MUST_CHECK;
void tess_cuda_engines_destroy(tess_cuda_engines *engines);

/* TESS_UNSUPPORTED with the reason when no engine does the op. */
tess_status tess_cuda_engines_workspace(tess_cuda_engines *engines, const tess_op *op, size_t *bytes,
                                        tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuda_engines_choose(tess_cuda_engines *engines, const tess_op *op, tess_cuda_choice *choice,
                                     tess_error *error) TESS_MUST_CHECK;
void tess_cuda_engines_let_go(tess_cuda_engines *engines, tess_cuda_choice *choice);
tess_status tess_cuda_engines_run(tess_cuda_engines *engines, const tess_cuda_choice *choice,
                                  const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream,
                                  tess_error *error) TESS_MUST_CHECK;
/* Measures every engine on the op in `scratch`, keeps the fastest and writes the cache. */
tess_status tess_cuda_engines_tune(tess_cuda_engines *engines, const tess_op *op, void *scratch, size_t bytes,
                                   cudaStream_t stream, tess_error *error) TESS_MUST_CHECK;
void tess_cuda_choice_describe(const tess_cuda_choice *choice, char *text, size_t size);

#endif
