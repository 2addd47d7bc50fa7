/* matters.h: which values of a network a training step needs. */
#ifndef TESS_NET_TRAINING_MATTERS_H
#define TESS_NET_TRAINING_MATTERS_H

#include "net/net.h"

typedef enum tess_matter {
    TESS_MATTERS_TO_GRADIENTS, /* a loss has a gradient by it */
    TESS_MATTERS_TO_STEP       /* also the targets of losses, and layers that change what they keep */
} tess_matter;

/* Sets the flags of values that matter; `matters` has one for each, all false before. */
void tess_values_matter(const tess_net *net, tess_matter matter, bool *matters);

#endif
