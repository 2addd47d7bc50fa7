/* statistics.h: the attributes of ops on pixels with many bands: statistics and anomaly scores. A pixel with a value that is
 * not finite in any band has no part in statistics, and its score is NaN.
 *
 * MOMENTS: in[0] fp32 pixels; in[1], optional, U8 or F32, one channel: 0 leaves a pixel out. out[0], read and written: an
 * F64 vector as of tensor/moments.h; the pixels are merged into what is there. Products and sums are fp64, around means, and
 * the sizes alone fix their order: blocks of any size agree to 1e-10 and better. `each`: every image of in[0] has a vector
 * of its own, one after another.
 *
 * SCORE: in[0] fp32 pixels, in[1] mu, c fp32 values; in[2] a factor F of k rows of c fp32 values. out, fp32, one channel:
 * the sum over k of (F (x - mu))_k^2, the Mahalanobis distance if F'F is the inverse of a covariance. Products and sums
 * are fp32.
 *
 * LOCAL_RX: in[0] fp32 pixels; in[1], optional, as of MOMENTS: pixels that are left out of all rings. out, F32 or F64, one
 * channel: (x - m)' inv(S + epsilon I) (x - m), with the mean m and the covariance S (divisor n - 1) of the n pixels in the
 * window of `kernel` around x that are not in the window of `inner` x `inner`, both odd, and not outside of the image. NaN
 * if there are fewer than two, or if S + epsilon I has no inverse. fp64 inside. Strides 1, padding kernel / 2. */
#ifndef TESS_OP_STATISTICS_H
#define TESS_OP_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tess_op_moments {
    bool covariance, each;
} tess_op_moments;

typedef struct tess_op_local_rx {
    int32_t inner; /* rows and columns of the inner window; below the kernel's */
    double epsilon;
} tess_op_local_rx;

#endif
