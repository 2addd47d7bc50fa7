#include "cuda/generic.h"
extern "C" bool tess_cuda_head_fits(const tess_op *){return false;}
extern "C" cudaError_t tess_cuda_head(const tess_op *, const tess_op_buffers *, cudaStream_t){return cudaErrorNotSupported;}
