/* assist.h: gives the ranks of a host what they need to help each other (base/help.h). */
#ifndef TESS_DIST_ASSIST_H
#define TESS_DIST_ASSIST_H

#include "dist/dist.h"

/* Collective. Leaves dist->help NULL, on all ranks, where a rank cannot share memory with the others of its host. */
tess_status tess_assist_open(tess_dist *dist, tess_error *error) TESS_MUST_CHECK;
void tess_assist_close(tess_dist *dist);
/* While this rank waits: computes a part for another. False: there is nothing to do. */
bool tess_assist_once(const tess_dist *dist);

#endif
