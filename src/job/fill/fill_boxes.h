/* fill_boxes.h: rectangles around voids that fit into a tile. Such a void is filled as a whole by one tile, so that no tile ends
 * inside it: by a tile of the grid, or by one that is placed around it and others near it. */
#ifndef TESS_JOB_FILL_BOXES_H
#define TESS_JOB_FILL_BOXES_H

#include "job/fill/fill_map.h"

/* Around one or more voids; it contains no pixel to fill of any other void. */
typedef struct tess_fill_box {
    int64_t top, left, bottom, right; /* the last two are one past the end */
    int64_t pixels;                   /* to fill */
    int64_t place;                    /* of the tile that fills it (fill_list.h), or TESS_FILL_NOWHERE */
    bool alone; /* while boxes are found: `pixels` are all that there are to fill in it */
} tess_fill_box;
enum { TESS_FILL_NOWHERE = -1 };

typedef struct tess_fill_boxes {
    tess_fill_box *list;  /* by their first rows */
    tess_fill_box *tiles; /* of each tile that is placed: the rectangle around its boxes */
    int64_t count, tile_count;
    int64_t most; /* rows and columns of a box at most, and of all boxes of a tile together */
    tess_block block;
} tess_fill_boxes;

/* Finds the boxes of a level, which are nowhere yet. A level of very many voids has none. Close also after a failure. */
tess_status tess_fill_boxes_open(tess_fill_boxes *boxes, const tess_fill_level *level, int64_t most,
                                 tess_memory *memory, tess_error *error) TESS_MUST_CHECK;
void tess_fill_boxes_close(tess_fill_boxes *boxes);
/* Places tiles around the boxes that are nowhere; their places are `first` and up. */
void tess_fill_boxes_place(tess_fill_boxes *boxes, int64_t first);
/* The boxes [first, end) that may reach into these rows. */
void tess_fill_boxes_near(const tess_fill_boxes *boxes, int64_t top, int64_t bottom, int64_t *first,
                          int64_t *end);

#endif
