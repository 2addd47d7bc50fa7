/* fill_blend.h: puts the tiles of a level together: the mean of the tiles that contain a pixel, by their weights. */
#ifndef TESS_JOB_FILL_BLEND_H
#define TESS_JOB_FILL_BLEND_H

#include "job/fill/fill_journal.h"
#include "job/fill/fill_list.h"

typedef struct tess_fill_blend {
    tess_fill_map *map;
    const tess_fill_list *list;
    tess_fill_journal *journal;
    bool deviations; /* entries have deviations after their values */
    double factor;   /* of the deviations: their calibration */
    tess_stop *stop;
    tess_memory *memory;
} tess_fill_blend;

/* How much the slope changes from pixel to pixel where tiles begin or end, inside of filled voids, and elsewhere there: equal
 * if no line can be seen. */
typedef struct tess_fill_seams {
    double at, elsewhere;   /* mean change of the slope, in heights per pixel */
    int64_t pixels, others; /* how many */
} tess_fill_seams;

size_t tess_fill_blend_bytes(const tess_fill_map *map, int64_t tile);
/* Level 1 and up: into the level's values. */
tess_status tess_fill_blend_level(const tess_fill_blend *blend, int level, tess_error *error) TESS_MUST_CHECK;
/* Level 0: into the outputs. `deviation` may be NULL. `addend` (may be NULL) is added to the result: another elevation map on the
 * same grid, when the difference to it was filled. */
tess_status tess_fill_blend_write(const tess_fill_blend *blend, tess_raster_output *output,
                                  tess_raster_output *deviation, tess_raster *addend, tess_fill_seams *seams,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
