/* together.h: whether a network for colours may take the channels of an image together. It was trained on photographs with noise that is
 * independent in the channels: of noise that they share it takes most for detail, and the structures of channels that are no colours it
 * prints into each other. */
#ifndef TESS_JOB_TOGETHER_H
#define TESS_JOB_TOGETHER_H

#include <stddef.h>

#include "tessera.h"

enum { TESS_TOGETHER_COLOURS = 3 };

/* What was seen of three channels. */
typedef struct tess_together {
    bool equal;         /* gray that is stored as colours */
    bool shared;        /* they share more of their noise than the network for colours bears */
    double correlation; /* of their noise */
    bool unlike;        /* their structures are not alike */
    double alike;       /* the correlation of these */
} tess_together;

/* Whether the first three samples of each pixel are equal. `step`: samples of a pixel, of `size` bytes; `valid`: a byte for each, 0 for
 * a hole, which is equal to holes only; NULL: there are none. */
bool tess_together_equal(const void *samples, size_t size, size_t step, int64_t pixels,
                         const unsigned char *valid);
/* Whether the bundled network for gray images must replace that for colours, and notes it. One that was `named` stays, with a
 * note. */
bool tess_together_replace(const tess_together *seen, const char *file, bool named,
                           const tess_common *common);

#endif
