/* cufft_api.h: the cuFFT functions in use, as a table filled from the library at run time (private to fft*.c).
 * They are declared here, because they are the same in every version that can be opened, and the build then
 * does not need cuFFT's headers. */
#ifndef TESS_CUDA_CUFFT_API_H
#define TESS_CUDA_CUFFT_API_H

#include "cuda/core/cuda.h"

typedef int tess_cufft_plan;
typedef struct tess_cufft_complex {
    float re, im;
} tess_cufft_complex;

enum { TESS_CUFFT_R2C = 0x2a, TESS_CUFFT_C2R = 0x2c };

/* X(name, parameters); all return a cuFFT result, 0 for success. */
#define TESS_CUFFT_FUNCTIONS(X)                                                                              \
    X(cufftCreate, (tess_cufft_plan *))                                                                      \
    X(cufftSetAutoAllocation, (tess_cufft_plan, int))                                                        \
    X(cufftMakePlanMany64,                                                                                   \
      (tess_cufft_plan, int rank, long long *n, long long *inembed, long long istride, long long idist,      \
       long long *onembed, long long ostride, long long odist, int type, long long batch, size_t *work))     \
    X(cufftGetSize, (tess_cufft_plan, size_t *))                                                             \
    X(cufftSetWorkArea, (tess_cufft_plan, void *))                                                           \
    X(cufftSetStream, (tess_cufft_plan, cudaStream_t))                                                       \
    X(cufftExecR2C, (tess_cufft_plan, float *, tess_cufft_complex *))                                        \
    X(cufftExecC2R, (tess_cufft_plan, tess_cufft_complex *, float *))                                        \
    X(cufftDestroy, (tess_cufft_plan))

typedef struct tess_cufft_api {
#define X(name, parameters) int(*name) parameters;
    TESS_CUFFT_FUNCTIONS(X)
#undef X
} tess_cufft_api;

/* Opens the library at the first call; NULL if it is not installed. */
const tess_cufft_api *tess_cufft(void);
/* TESS_OK, or the matching status with "cuFFT: WHAT: REASON". */
tess_status tess_cufft_check(int result, const char *what, tess_error *error);

#endif
