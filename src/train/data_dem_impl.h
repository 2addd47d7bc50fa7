/* data_dem_impl.h: the struct of the source of elevation maps, for data_dem.c and data_dem_draw.c. */
#ifndef TESS_TRAIN_DATA_DEM_IMPL_H
#define TESS_TRAIN_DATA_DEM_IMPL_H

#include "train/data_dem.h"

typedef struct tess_dem {
    tess_source source; /* first */
    tess_dem_settings settings;
    int64_t factor[TESS_DEM_SCALES], most_factor; /* of usable scales */
    tess_images *maps;
    int workers;
    tess_block scratch; /* of each worker */
} tess_dem;

/* A worker's memory. */
typedef struct tess_dem_room {
    void *images;         /* scratch of the files */
    float *square;        /* the conditions of the crop, or the crop reduced */
    float *crop, *guess;  /* crop^2 */
    float *smooth;        /* crop^2 */
    uint8_t *own, *flags; /* crop^2: without a value in the map; these and the void */
    void *scratch;        /* of the conditions, or of the void */
} tess_dem_room;

/* Bytes of the room, and, with a base, its places. */
size_t tess_dem_room_at(const tess_dem *dem, char *base, tess_dem_room *room);

static inline bool tess_dem_usable(const tess_dem *dem, const tess_images_file *map, int scale)
{
    const int64_t side = dem->settings.crop * dem->factor[scale];
    return dem->settings.share[scale] > 0 && map->height >= side && map->width >= side;
}

#endif
