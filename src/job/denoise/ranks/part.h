/* part.h: a rank's part of an image in progress. part.c runs it, collect.c and spool.c bring finished
 * rows to rank 0, if that writes them all; block.c reads and writes the columns of a block; card.c runs it on a device with separate
 * memory. */
#ifndef TESS_JOB_DENOISE_RANKS_PART_H
#define TESS_JOB_DENOISE_RANKS_PART_H

#include "base/temp.h"
#include "job/denoise/ranks/strips.h"
#include "job/denoise/run/image.h"
#include "net/neighbours.h"

enum { TESS_PART_PIECES = 2 }; /* of rows that are under way to rank 0 */

typedef struct tess_denoise_part {
    tess_denoise_job *job;
    tess_dist *dist;
    bool idle;            /* there is no part for this rank */
    int64_t first, count; /* rows of each slice that it computes */
    tess_image_job image;
    tess_denoise_blocks blocks;
    tess_ring_settings ring;
    void *buffer; /* of the ring */
    /* strips and blocks: */
    tess_strip strip;
    tess_neighbours neighbours;
    tess_dist_exchange *collects[TESS_PART_PIECES];
    /* blocks: */
    int64_t first_column;
    char *rows;                    /* whole rows of the image, a piece at a time */
    tess_dist_transfer *transfers; /* owned; one for each block beside this one */
    /* rows of tiles: */
    uint32_t counter; /* drained by a rank that fails */
    bool drained;
    tess_temp *spool; /* if rank 0 writes all rows: rank 0's */
    int spool_file;   /* -1: none */
} tess_denoise_part;

/* Writes finished rows through this rank's own sink. */
tess_status tess_part_sink(tess_denoise_part *part, int64_t first, int64_t count, const char *rows,
                           tess_error *error) TESS_MUST_CHECK;
/* The same for its whole strip. */
tess_status tess_part_write(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
/* Collective. Rank 0 writes its strip, and then those of the other ranks in the order of rows, which come in pieces. The
 * status is this rank's own. */
tess_status tess_part_collect(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;

/* Opens the queue to the device, and what neighbours exchange through; the weights are loaded. */
tess_status tess_card_open(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
/* Runs a strip or block, and returns when its results are in host memory. */
tess_status tess_card_run(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
/* Waits for the device, stores what was measured, and closes the queue. Accepts a part without one. */
void tess_card_close(tess_denoise_part *part);

/* Places the whole rows of the image. */
tess_status tess_block_open(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
/* Reads the rows of the block in pieces, and keeps its columns. */
tess_status tess_block_read(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
/* Collective. The ranks that write get the columns of other blocks, put rows together and write them. The status is this rank's
 * own. */
tess_status tess_block_collect(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;

/* A file beside the output that takes finished rows in any order: ranks that compute tiles have rows long before rank 0
 * can write them. Rank 0 creates it and tells the others its name. */
tess_status tess_spool_create(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;
tess_status tess_spool_open(tess_denoise_part *part, const char *name, tess_error *error) TESS_MUST_CHECK;
void tess_spool_close(tess_denoise_part *part);
/* The ring's sink: rows of the slice that the image is at. */
tess_status tess_spool_sink(void *part, int64_t first, int64_t count, const void *rows,
                            tess_error *error) TESS_MUST_CHECK;
/* Reads rows again, into the ring's buffer, and writes them through the sink. */
tess_status tess_spool_write(tess_denoise_part *part, tess_error *error) TESS_MUST_CHECK;

#endif
