/* by_views.h: an operator whose measurements are divided among ranks, while each also has a strip of the image. To project, the
 * ranks gather the image, and each projects it onto its own views. Backprojections of all ranks are added up strip by strip, in an
 * order that is fixed by their number. The gathered image is scratch; nothing else is as large. */
#ifndef TESS_PHYSICS_BY_VIEWS_H
#define TESS_PHYSICS_BY_VIEWS_H

#include "physics/operator.h"

/* `inner` takes the whole image and this rank's views; the operator owns it, also if this fails. */
tess_status tess_by_views_create(tess_operator *inner, tess_share *share, tess_operator **out,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
