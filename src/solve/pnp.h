/* pnp.h: plug-and-play reconstruction. Each iteration: z = x - step A^T (A x - y); d = denoise(z, sigma); x = d, or
 * with a relaxation lambda x = (1 - a) z + a d, a = step lambda / (1 + step lambda); then x is clamped.
 *
 * With `inner` the gradient step is replaced by the minimum of 1/2 |A z - y|^2 + weight / (2 sigma^2) |z - x|^2, the
 * data step of half-quadratic splitting (Zhang et al., TPAMI 2021, eq. 6). It needs few iterations where gradient
 * steps, limited by the largest eigenvalue, need hundreds. Operators that absorbed the measurement compute it
 * directly; others take `inner` steps of conjugate gradients towards it.
 *
 * A step is too long if it increases the data term: f(x - s g) > f(x) exactly when s |A g|^2 > 2 |g|^2. If |A|^2 is
 * known, one comparison decides; otherwise this is checked in the first iteration and whenever |g| grew. A step that
 * is too long is halved until it is not. */
#ifndef TESS_SOLVE_PNP_H
#define TESS_SOLVE_PNP_H

#include "solve/data_term.h"

/* Removes noise of level sigma from the image `in` into `out`; both are dense fp32 in the device's memory. */
typedef tess_status (*tess_denoise_fn)(void *user, const void *in, void *out, double sigma,
                                       tess_error *error);

/* One iteration, for the monitor. */
typedef struct tess_pnp_facts {
    int64_t iteration; /* from 0 */
    const void *x;
    double step, sigma, change; /* change: |x - previous x| / |x|; NaN if it was not requested */
    double gradient_seconds, denoise_seconds;
    uint64_t gradient_peak_bytes, denoise_peak_bytes;
} tess_pnp_facts;

/* Any status but TESS_OK ends the loop and is returned by tess_pnp. */
typedef tess_status (*tess_monitor_fn)(void *user, const tess_pnp_facts *facts, tess_error *error);

typedef struct tess_pnp_settings {
    int64_t iterations;
    double max_seconds; /* 0: no limit */
    double tolerance;   /* on the change; 0: not checked */
    double step, norm_squared /* 0: unknown */;
    double sigma, last_sigma; /* from the first to the last iteration, in equal ratios */
    double relax;             /* lambda; 0: none */
    int64_t inner;
    double weight;
    double low, high;
    tess_mem_scope scope; /* of the peaks */
    tess_denoise_fn denoise;
    void *denoise_user;
    tess_monitor_fn monitor; /* may be NULL */
    void *monitor_user;
    const bool *enough; /* the monitor may set it to end the loop; NULL: none */
} tess_pnp_settings;

/* Why the loop ended. */
typedef enum tess_pnp_end {
    TESS_PNP_ITERATIONS,
    TESS_PNP_TOLERANCE,
    TESS_PNP_SECONDS,
    TESS_PNP_ENOUGH /* by the monitor */
} tess_pnp_end;

typedef struct tess_pnp_result {
    int64_t iterations, halvings;
    tess_pnp_end end;
    double step; /* at the end */
    double seconds;
    tess_mem_usage peak; /* of the whole loop, because the counter is reset for every part */
    uint64_t sent;       /* bytes that steps towards the data exchanged with other ranks */
} tess_pnp_result;

enum { TESS_PNP_MOST_VECTORS = 5 };

/* Number of images that tess_pnp needs. */
int tess_pnp_vectors(const tess_operator *op, int64_t inner, double tolerance);
/* vectors[0] holds the start and, at the end, the result; the others are overwritten. */
tess_status tess_pnp(const tess_data_term *term, const tess_pnp_settings *settings, void *const *vectors,
                     tess_pnp_result *result, tess_error *error) TESS_MUST_CHECK;

#endif
