/* identity.h: what the ranks tell each other before they work together. */
#ifndef TESS_DIST_IDENTITY_H
#define TESS_DIST_IDENTITY_H

#include "dist/dist.h"

/* Collective. Fills places and threads; fails, with the same message on all ranks, if a rank runs another program,
 * with other arguments, or in another folder. */
tess_status tess_identity_compare(tess_dist *dist, const tess_dist_settings *settings,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
