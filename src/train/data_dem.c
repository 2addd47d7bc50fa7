/* The source of elevation maps: settings, memory and the checks of sizes. */
#include <math.h>

#include "base/checked.h"
#include "tensor/terrain/conditions.h"
#include "tensor/terrain/void_maker.h"
#include "train/data_dem_impl.h"

enum { ALIGNMENT = 64 };

static char *take(char *base, size_t *at, size_t bytes)
{
    char *place = base ? base + *at : NULL;
    *at += tess_align_size(bytes, ALIGNMENT);
    return place;
}

size_t tess_dem_room_at(const tess_dem *dem, char *base, tess_dem_room *room)
{
    const int64_t crop = dem->settings.crop;
    const size_t pixels = (size_t)(crop * crop), f = sizeof(float),
                 making = tess_conditions_bytes(crop, crop), drawing = tess_void_maker_bytes(crop, crop);
    size_t at = 0;
    const int64_t side = dem->most_factor * crop;
    room->images = take(base, &at, tess_images_scratch_bytes(dem->maps, side, side));
    room->square = (float *)(void *)take(base, &at, pixels * f * TESS_CONDITIONS);
    room->crop = (float *)(void *)take(base, &at, pixels * f);
    room->guess = (float *)(void *)take(base, &at, pixels * f);
    room->smooth = (float *)(void *)take(base, &at, pixels * f);
    room->own = (uint8_t *)take(base, &at, pixels);
    room->flags = (uint8_t *)take(base, &at, pixels);
    room->scratch = take(base, &at, making > drawing ? making : drawing);
    return at;
}

static size_t dem_bytes(const tess_source *source, int workers)
{
    const tess_dem *dem = (const tess_dem *)source;
    tess_dem_room unused;
    return tess_images_kept_bytes(dem->maps, NULL) +
           tess_block_granted((size_t)workers * tess_dem_room_at(dem, NULL, &unused)) +
           (size_t)workers * tess_images_reader_bytes(dem->maps);
}

static tess_status dem_begin(tess_source *source, int workers, tess_error *error)
{
    tess_dem *dem = (tess_dem *)source;
    tess_dem_room unused;
    TESS_TRY(tess_images_begin(dem->maps, error));
    if (dem->workers == workers)
        return TESS_OK;
    tess_block_free(&dem->scratch);
    dem->workers = 0;
    TESS_TRY(tess_block_alloc(dem->settings.images.memory, &dem->scratch, TESS_MEM_HOST,
                              (size_t)workers * tess_dem_room_at(dem, NULL, &unused), error));
    dem->workers = workers;
    return TESS_OK;
}

static tess_status dem_draw(tess_source *source, const tess_sample *sample,
                            void *const arrays[TESS_DATA_ARRAYS], tess_error *error)
{
    return tess_dem_draw(source, sample, NULL, arrays, error);
}

static void dem_close(tess_source *source)
{
    tess_dem *dem = (tess_dem *)source;
    tess_images_close(dem->maps);
    tess_block_free(&dem->scratch);
    tess_small_free(dem);
}

static const tess_source_table dem_table = {
    .name = "dem", .bytes = dem_bytes, .begin = dem_begin, .draw = dem_draw, .close = dem_close};

static tess_status check_scales(tess_dem *dem, tess_error *error)
{
    const tess_dem_settings *s = &dem->settings;
    double shares = 0;
    for (int i = 0; i < s->scales; i++) {
        dem->factor[i] = llrint(1 / s->scale[i]);
        if (!(fabs(s->scale[i] * (double)dem->factor[i] - 1) < 1e-3))
            return tess_fail(error, TESS_BAD_OPTION,
                             "data.scales: %g: elevation maps are reduced by whole numbers; use 1, 0.5, "
                             "0.25 and so on",
                             s->scale[i]);
        shares += s->share[i];
    }
    return shares > 0 ? TESS_OK
                      : tess_fail(error, TESS_BAD_OPTION, "data.scales: the shares of all scales are 0");
}

/* Refuses maps that are too small, and finds the largest factor that is used. */
static tess_status check_sizes(tess_dem *dem, tess_error *error)
{
    for (int64_t i = 0; i < tess_images_count(dem->maps); i++) {
        const tess_images_file *map = tess_images_at(dem->maps, i);
        bool any = false;
        for (int k = 0; k < dem->settings.scales; k++)
            if (tess_dem_usable(dem, map, k)) {
                any = true;
                dem->most_factor = tess_max_i64(dem->most_factor, dem->factor[k]);
            }
        if (!any)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: has %lld x %lld pixels (width x height), but a crop has %lld x %lld; "
                             "exclude it or use smaller crops",
                             map->path, (long long)map->width, (long long)map->height,
                             (long long)dem->settings.crop, (long long)dem->settings.crop);
    }
    return TESS_OK;
}

tess_status tess_dem_open(const tess_dem_settings *s, tess_source **out, tess_error *error)
{
    *out = NULL;
    tess_dem *dem = tess_small_alloc(1, sizeof *dem);
    if (!dem)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a source of samples");
    dem->settings = *s;
    dem->settings.images.paths = dem->settings.images.exclude = NULL; /* the caller's */
    dem->most_factor = 1;
    dem->source.table = &dem_table;
    tess_images_settings files = s->images;
    files.heights = true;
    files.channels = 1;
    tess_status status = check_scales(dem, error);
    if (status == TESS_OK)
        status = tess_images_open(&files, &dem->maps, error);
    if (status == TESS_OK)
        status = check_sizes(dem, error);
    if (status != TESS_OK) {
        dem_close(&dem->source);
        return status;
    }
    tess_source *source = &dem->source;
    source->images = dem->maps;
    source->items = tess_images_count(dem->maps);
    source->group = s->repeats;
    source->arrays = 4;
    source->role[TESS_DEM_INPUT] = TESS_DATA_INPUT;
    source->role[TESS_DEM_LEVEL] = TESS_DATA_VECTOR;
    source->role[TESS_DEM_NOISE] = TESS_DATA_TARGET;
    source->role[TESS_DEM_WEIGHT] = TESS_DATA_MASK;
    source->array[TESS_DEM_INPUT] = tess_tensor_2d(TESS_F32, 1, s->crop, s->crop, TESS_CONDITIONS + 1);
    source->array[TESS_DEM_LEVEL] = tess_tensor_2d(TESS_F32, 1, 1, 1, s->levels);
    source->array[TESS_DEM_NOISE] = tess_tensor_2d(TESS_F32, 1, s->crop, s->crop, 1);
    source->array[TESS_DEM_WEIGHT] = tess_tensor_2d(TESS_F32, 1, s->crop, s->crop, 1);
    *out = source;
    return TESS_OK;
}
