/* levels.h: the levels of a network, each with half the rows of the one before, for strips of an image whose rows begin elsewhere at
 * each level.
 *
 * Kernels compute blocks of rows, so a strip begins at a multiple of these at every level. If it began at the same place of the image
 * everywhere, the deepest level would decide for all, and strips could only be longer or shorter by many rows. With borders of their
 * own, levels are divided as finely as their own kernels allow. A layer between two levels then reads some rows of the neighbour, or
 * leaves out some of the strip's own. */
#ifndef TESS_NET_LEVELS_H
#define TESS_NET_LEVELS_H

#include "net/bound.h"

typedef struct tess_levels {
    int count;                  /* 0: strips begin at the same place of the image at all levels */
    int64_t step[TESS_LEVELS];  /* rows of a level, at multiples of which strips may begin */
    int64_t least[TESS_LEVELS]; /* rows of a strip that its neighbours may need */
    double share[TESS_LEVELS];  /* of the operations */
    int64_t grid;               /* rows of the image are padded to multiples of it */
} tess_levels;

/* No levels where it gains nothing, because the network's grid allows no finer division, or is not possible: on a device with separate
 * memory, in other precisions than fp32, for volumes, and for networks with layers between levels that are not 2 x 2. */
tess_levels tess_levels_of(const tess_bound *bound);

#endif
