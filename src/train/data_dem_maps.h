/* data_dem_maps.h: the elevation maps of a data set: rasters that GDAL reads, found in folders, checked by their headers,
 * read when they are first used. Heights are kept as floats, as many maps as a budget allows; windows of the others are read
 * each time. */
#ifndef TESS_TRAIN_DATA_DEM_MAPS_H
#define TESS_TRAIN_DATA_DEM_MAPS_H

#include "train/data_images.h"

typedef struct tess_dem_map {
    char *path;
    int64_t height, width;
    size_t held; /* by its reader */
    bool kept, loaded;
    size_t at; /* in the memory for kept maps */
} tess_dem_map;

typedef struct tess_dem_maps tess_dem_maps; /* owned by the caller: tess_dem_maps_close */

/* Of the settings, `channels` is not used. Refuses by name what is no raster of one band. */
tess_status tess_dem_maps_open(const tess_images_settings *settings, tess_dem_maps **out,
                               tess_error *error) TESS_MUST_CHECK;
void tess_dem_maps_close(tess_dem_maps *maps);
int64_t tess_dem_maps_count(const tess_dem_maps *maps);
const tess_dem_map *tess_dem_maps_at(const tess_dem_maps *maps, int64_t index);

/* Host memory that `begin` allocates and that reading holds. */
size_t tess_dem_maps_bytes(const tess_dem_maps *maps);
/* A second call does nothing. */
tess_status tess_dem_maps_begin(tess_dem_maps *maps, tess_error *error) TESS_MUST_CHECK;
/* Any thread: the heights of a rectangle; NaN where there is none. */
tess_status tess_dem_maps_read(tess_dem_maps *maps, int64_t index, tess_rect rect, float *to,
                               tess_error *error) TESS_MUST_CHECK;

#endif
