/* denoise_part.h: a rank's strip of an image in progress, for denoise_part.c and denoise_collect.c. */
#ifndef TESS_JOB_DENOISE_PART_H
#define TESS_JOB_DENOISE_PART_H

#include "job/denoise/denoise_image.h"
#include "net/neighbours.h"

enum { TESS_PART_PIECES = 2 }; /* of rows that are under way to rank 0 */

typedef struct tess_denoise_part {
    tess_denoise_job *job;
    tess_dist *dist;
    int64_t first, count; /* rows of each slice; count 0: there is no strip for this rank */
    tess_image_job image;
    tess_denoise_blocks blocks;
    tess_ring_settings ring;
    tess_strip strip;
    tess_neighbours neighbours;
    tess_dist_exchange *collects[TESS_PART_PIECES];
} tess_denoise_part;

/* Writes finished rows of this rank's strip through its own sink. */
tess_status tess_part_write(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
/* Collective. Rank 0 writes its rows, and then those of the other ranks in the order of rows, which come in pieces. The
 * status is this rank's own. */
tess_status tess_part_collect(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;

#endif
