/* blurs.h: what a step of conjugate gradients costs where ranks share blurs with an unknown boundary, in both ways that
 * `reconstruct` has (physics/convolve.h). By the spectrum, images are transposed twice for each blur. By halos, neighbours exchange
 * as many rows as the kernels reach, once for the image and once for each blur, and transform these rows besides their own. The
 * preconditioner transposes an image twice in both ways. */
#ifndef TESS_PLAN_BLURS_H
#define TESS_PLAN_BLURS_H

#include "plan/ranks/links.h"
#include "plan/rates.h"

typedef struct tess_blurs {
    int64_t height, width, channels; /* of the image, margins included */
    int64_t count;
    int64_t reach; /* rows that the kernels reach up and down */
    int64_t rows;  /* of the largest strip */
} tess_blurs;

typedef enum tess_blurs_way { TESS_BLURS_SPECTRUM, TESS_BLURS_HALO, TESS_BLURS_WAYS } tess_blurs_way;

typedef struct tess_blurs_cost {
    double computing, communication; /* seconds of a step */
    double sent;                     /* bytes in a step, the most of a rank */
} tess_blurs_cost;

/* Rows that a rank transforms if it has the rows of its neighbours. */
int64_t tess_blurs_rows(const tess_blurs *blurs);
/* Costs of both ways; returns the faster one. Alone there is only the spectrum. */
tess_blurs_way tess_blurs_choose(const tess_blurs *blurs, const tess_links *links, const tess_rates *rates,
                                 int ranks, tess_blurs_cost costs[TESS_BLURS_WAYS]);
/* Links of a machine of which only the ranks of a node are known: assumed, and the same in every run, so that the choice is. */
tess_links tess_blurs_links(int per_node);

#endif
