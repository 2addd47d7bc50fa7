/* blocks.h: how one image is divided among ranks: into strips of rows, or into a grid of blocks. Strips exchange with two neighbours,
 * rows that are contiguous in memory. Blocks exchange with up to eight, and pack what they send, but there are more of them in an image,
 * because strips may not be lower than what the deepest level of the network needs. Neither changes a result. */
#ifndef TESS_PLAN_BLOCKS_H
#define TESS_PLAN_BLOCKS_H

#include "plan/ranks/links.h"
#include "plan/ranks/strips.h"
#include "plan/rates.h"

/* A grid of blocks; strips are a grid of one column. Ranks are numbered row by row. */
typedef struct tess_blocks {
    tess_strips rows, columns;
} tess_blocks;

/* The image, and who computes it. */
typedef struct tess_blocks_image {
    const tess_bound *bound;
    int64_t grid[TESS_SPATIAL]; /* of the network */
    int64_t height, width;
    int64_t ranks;
} tess_blocks_image;

/* The part of one rank. */
typedef struct tess_blocks_part {
    int64_t row, rows, column, columns;
    bool above, below, left, right; /* there are neighbours */
    tess_level_rows levels;         /* of a strip: see tess_strips_level_rows */
} tess_blocks_part;

static inline int64_t tess_blocks_count(const tess_blocks *blocks)
{
    return blocks->rows.count * blocks->columns.count;
}
tess_blocks_part tess_blocks_part_of(const tess_blocks *blocks, int64_t rank);
/* The rows and columns of the largest part. */
int64_t tess_blocks_most_rows(const tess_blocks *blocks);
int64_t tess_blocks_most_columns(const tess_blocks *blocks);

/* A grid of so many blocks, or as many as fit. */
tess_blocks tess_blocks_of(const tess_blocks_image *image, int64_t down, int64_t across);
/* Seconds of the largest block, as planned: its ops, and its exchanges with these links, as if they did not overlap. */
tess_status tess_blocks_seconds(const tess_blocks_image *image, const tess_blocks *blocks,
                                const tess_rates *rates, const tess_links *links, double *seconds,
                                tess_error *error) TESS_MUST_CHECK;
/* The grid that takes the least time; strips, unless blocks are faster by more than the links are known. */
tess_status tess_blocks_choose(const tess_blocks_image *image, const tess_rates *rates,
                               const tess_links *links, tess_blocks *blocks,
                               tess_error *error) TESS_MUST_CHECK;
/* The grid that `text` asks for: rows x columns, as 2x3. Fails if the image has fewer blocks, or there are fewer ranks. */
tess_status tess_blocks_parse(const tess_blocks_image *image, const char *text, tess_blocks *blocks,
                              tess_error *error) TESS_MUST_CHECK;

#endif
