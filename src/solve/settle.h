/* settle.h: a last step of plug-and-play towards the data. The result of the loop is what the network made of it, and has the
 * network's own error also where the data have almost no noise. If x has a white error of variance e^2 that is
 * independent of the noise n of the data, the best estimate is the minimum of 1/2 |A z - y|^2 + n^2 / (2 e^2) |z - x|^2.
 *
 * With N = A^T A, the gradient N err - A^T noise at x has the mean square e^2 tr N^2 + n^2 tr N. Both traces are found
 * with one random image (Hutchinson, 1990). Where noise explains the gradient, nothing is to be changed; as the noise
 * vanishes, the result fits the data. */
#ifndef TESS_SOLVE_SETTLE_H
#define TESS_SOLVE_SETTLE_H

#include "solve/data_term.h"

typedef struct tess_settle_facts {
    double square;         /* of the gradient at x */
    double trace, squared; /* of N and of its square */
} tess_settle_facts;

/* vectors[0] is x, and vectors[1] becomes the gradient at x; others that tess_pnp needs are overwritten. */
tess_status tess_settle_look(const tess_data_term *term, void *const *vectors, tess_settle_facts *facts,
                             tess_error *error) TESS_MUST_CHECK;
/* x becomes the minimum for this weight, n^2 / e^2, clamped; `inner`: steps of conjugate gradients, if the term is not
 * exact. */
typedef struct tess_settle_settings {
    double weight, low, high;
    int64_t inner;
} tess_settle_settings;
tess_status tess_settle(const tess_data_term *term, const tess_settle_settings *settings,
                        void *const *vectors, tess_error *error) TESS_MUST_CHECK;

#endif
