/* strips.h: which part of an image each rank has. */
#ifndef TESS_JOB_DENOISE_RANKS_STRIPS_H
#define TESS_JOB_DENOISE_RANKS_STRIPS_H

#include "job/denoise/denoise.h"

/* Whether the parts are blocks, of which several share each row. */
bool tess_denoise_in_blocks(const tess_denoise_job *job);
/* The rows and columns of a rank that has a part; of tiles, it computes all columns. */
tess_blocks_part tess_denoise_part_of(const tess_denoise_job *job, int64_t rank);
/* Whether this rank writes rows of the output: its own, with blocks those of all in its row, or all rows. */
bool tess_denoise_writes(const tess_denoise_job *job, int64_t rank);
/* The first row of strip `index`; that of strip `count` is the image's height. The first row of its tiles. Not for blocks. */
int64_t tess_denoise_strip_row(const tess_denoise_job *job, int64_t index);
int64_t tess_denoise_strip_tile(const tess_denoise_job *job, int64_t index);
/* card.c: sets the sizes of the queue of a rank with a strip or block, and its pinned bytes, from its plan. */
void tess_card_plan(tess_denoise_job *job);
/* block.c: bytes of the whole rows of the image that a rank with a block reads and writes, at the end of its io block. */
size_t tess_block_io_bytes(const tess_denoise_job *job, int64_t rank);

#endif
