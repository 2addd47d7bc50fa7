/* pnp.h: plug-and-play reconstruction. Each iteration: z = x - step A^T (A x - y); d = denoise(z, sigma); x = d, or with
 * a relaxation lambda x = (1 - a) z + a d, a = step lambda / (1 + step lambda); then x is clamped.
 *
 * With `inner` the gradient step is replaced by the minimum of 1/2 |A z - y|^2 + weight / (2 sigma^2) |z - x|^2, which
 * half-quadratic splitting asks for (Zhang et al., TPAMI 2021, eq. 6): few iterations do what gradients, held back by the
 * largest eigenvalue, need hundreds for. Operators that absorbed the measurement jump there; others take so many steps
 * of conjugate gradients towards it.
 *
 * A step is too long when it makes the data term grow: f(x - s g) > f(x) exactly when s |A g|^2 > 2 |g|^2. With |A|^2
 * known one comparison decides; otherwise it is looked at in the first iteration and whenever |g| grew. A step that is
 * too long is halved until it is not. */
#ifndef TESS_SOLVE_PNP_H
#define TESS_SOLVE_PNP_H

#include "solve/data_term.h"

/* The image `in` without its noise of level sigma into `out`: both dense fp32 in the device's memory. */
typedef tess_status (*tess_denoise_fn)(void *user, const void *in, void *out, double sigma,
                                       tess_error *error);

/* One iteration, as the monitor sees it. */
typedef struct tess_pnp_facts {
    int64_t iteration; /* from 0 */
    const void *x;
    double step, sigma, change; /* change: |x - x before| / |x|; NaN where nobody asked for it */
    double gradient_seconds, denoise_seconds;
    uint64_t gradient_peak_bytes, denoise_peak_bytes;
} tess_pnp_facts;

/* Anything but TESS_OK ends the loop and is what tess_pnp returns. */
typedef tess_status (*tess_monitor_fn)(void *user, const tess_pnp_facts *facts, tess_error *error);

typedef struct tess_pnp_settings {
    int64_t iterations;
    double max_seconds; /* 0: no limit */
    double tolerance;   /* on the change; 0: not asked */
    double step, norm_squared /* 0: unknown */;
    double sigma, last_sigma; /* in equal ratios from one to the other over the iterations */
    double relax;             /* lambda; 0: none */
    int64_t inner;
    double weight;
    double low, high;
    tess_mem_scope scope; /* of the peaks */
    tess_denoise_fn denoise;
    void *denoise_user;
    tess_monitor_fn monitor; /* may be NULL */
    void *monitor_user;
} tess_pnp_settings;

/* Why there were no more iterations. */
typedef enum tess_pnp_end { TESS_PNP_ITERATIONS, TESS_PNP_TOLERANCE, TESS_PNP_SECONDS } tess_pnp_end;

typedef struct tess_pnp_result {
    int64_t iterations, halvings;
    tess_pnp_end end;
    double step; /* where it ended */
    double seconds;
    tess_mem_usage peak; /* of the whole loop: the counter was reset for every part */
} tess_pnp_result;

enum { TESS_PNP_MOST_VECTORS = 5 };

/* Images that tess_pnp works on. */
int tess_pnp_vectors(const tess_operator *op, int64_t inner, double tolerance);
/* vectors[0] holds the start and, at the end, the result; the others are written over. */
tess_status tess_pnp(const tess_data_term *term, const tess_pnp_settings *settings, void *const *vectors,
                     tess_pnp_result *result, tess_error *error) TESS_MUST_CHECK;

#endif
