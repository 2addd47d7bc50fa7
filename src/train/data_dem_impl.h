/* data_dem_impl.h: the struct of the source of elevation maps, for data_dem*.c. */
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
    float *crop, *guess;  /* crop^2; crop: first heights, then what is to be found */
    float *smooth;        /* crop^2 */
    uint8_t *own, *flags; /* crop^2: without a value in the map; these and the void */
    void *scratch;        /* of the conditions, or of the void */
} tess_dem_room;

/* Bytes of the room, and, with a base, its places. */
size_t tess_dem_room_at(const tess_dem *dem, char *base, tess_dem_room *room);

/* data_dem_crop.c: a crop in the map's position, with a void cut into it, in the room's `crop`, `own`, `flags` and `guess`. */
typedef struct tess_dem_crop {
    int turn; /* the position of its samples; bits: 1 mirrors rows, 2 columns, 4 before that exchanges rows and columns */
    bool guided;    /* there is a guess */
    int64_t pixels; /* void ones with a value */
} tess_dem_crop;
/* Draws until a crop and its void are of use. */
tess_status tess_dem_draw_crop(tess_dem *dem, const tess_sample *sample, const tess_dem_fixed *fixed,
                               tess_dem_room *room, tess_dem_crop *out, tess_error *error) TESS_MUST_CHECK;

static inline bool tess_dem_usable(const tess_dem *dem, const tess_images_file *map, int scale)
{
    const int64_t side = dem->settings.crop * dem->factor[scale];
    return dem->settings.share[scale] > 0 && map->height >= side && map->width >= side;
}

#endif
