/* sampled_kernel.h: the values of one blur's kernel, whether it was measured or is a Gaussian. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_SAMPLED_KERNEL_H
#define TESS_JOB_RECONSTRUCT_LOOK_SAMPLED_KERNEL_H

#include "job/reconstruct/problem/problem.h"

typedef struct tess_sampled_kernel {
    int64_t rows, columns; /* reach */
    double *values;        /* (2 rows + 1) x (2 columns + 1); their sum is 1; owned */
} tess_sampled_kernel;

/* The kernel of blur `i`. Release `values` with tess_small_free, also if this fails. */
tess_status tess_sample_kernel(const tess_problem *problem, int64_t i, tess_sampled_kernel *out,
                               tess_error *error) TESS_MUST_CHECK;
/* Of all kernels. */
typedef struct tess_kernel_facts {
    double peak; /* the largest value: what is left of a point of light in the blur that shows it best */
    double
        squares; /* the mean over the blurs of the sum of squares: 1 for a single pixel, less the more a blur hides */
} tess_kernel_facts;
tess_status tess_kernels_look(const tess_problem *problem, tess_kernel_facts *out,
                              tess_error *error) TESS_MUST_CHECK;

#endif
