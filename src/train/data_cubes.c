#include "train/data_cubes.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/samples.h"

enum { ALIGNMENT = 64 };

typedef struct cubes_source {
    tess_source source; /* first */
    tess_cubes_settings settings;
    size_t row_bytes, mask_bytes; /* of a row of the widest image, and of its mask */
    size_t keep_bytes;            /* of the widest image that hides pixels; 0: there is none */
    size_t held;                  /* by an open cube and its mask */
    int workers;
    tess_block scratch;
} cubes_source;

/* A worker's memory. */
typedef struct room {
    char *samples;
    float *values; /* of a crop, all bands */
    uint8_t *marks;
    uint8_t *keep;  /* of whole rows: 0 for a pixel without a value */
    int32_t *order; /* of an epoch */
    int64_t *epoch; /* of `order`; -1: none yet */
} room;

static char *take(char *base, size_t *at, size_t bytes)
{
    char *place = base ? base + *at : NULL;
    *at += tess_align_size(bytes, ALIGNMENT);
    return place;
}

static size_t room_at(const cubes_source *c, char *base, room *r)
{
    const size_t crop = c->settings.condensed ? 0 : (size_t)c->settings.crop;
    size_t at = 0;
    r->samples = take(base, &at, crop * c->row_bytes);
    r->values =
        (float *)(void *)take(base, &at, crop * crop * (size_t)c->settings.cubes->set.bands * sizeof(float));
    r->marks = (uint8_t *)take(base, &at, c->settings.masks ? crop * c->mask_bytes : 0);
    r->keep = (uint8_t *)take(base, &at, crop * c->keep_bytes);
    r->order = (int32_t *)(void *)take(base, &at,
                                       c->settings.shuffle ? (size_t)c->source.items * sizeof(int32_t) : 0);
    r->epoch = (int64_t *)(void *)take(base, &at, sizeof(int64_t));
    return at;
}

static size_t cubes_bytes(const tess_source *source, int workers)
{
    const cubes_source *c = (const cubes_source *)source;
    room unused;
    return tess_block_granted((size_t)workers * room_at(c, NULL, &unused)) + (size_t)workers * c->held;
}

static tess_status cubes_begin(tess_source *source, int workers, tess_error *error)
{
    cubes_source *c = (cubes_source *)source;
    room r;
    const size_t bytes = room_at(c, NULL, &r);
    if (c->workers == workers)
        return TESS_OK;
    tess_block_free(&c->scratch);
    c->workers = 0;
    TESS_TRY(
        tess_block_alloc(c->settings.memory, &c->scratch, TESS_MEM_HOST, (size_t)workers * bytes, error));
    for (int i = 0; i < workers; i++) {
        room_at(c, (char *)c->scratch.data + (size_t)i * bytes, &r);
        *r.epoch = -1;
    }
    c->workers = workers;
    return TESS_OK;
}

static void draw_words(const tess_sample *sample, uint32_t item, uint32_t step, uint32_t words[4])
{
    const uint64_t seed = tess_data_seed(sample->seed, TESS_DATA_CHOICE);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, counter[4] = {0, 0, item, step};
    tess_philox(counter, key, words);
}

/* The order of an epoch: Fisher and Yates, with numbers by counter. */
static void make_order(const tess_sample *sample, int64_t epoch, int64_t items, room *r)
{
    uint32_t words[4];
    for (int64_t i = 0; i < items; i++)
        r->order[i] = (int32_t)i;
    for (int64_t i = items - 1; i > 0; i--) {
        draw_words(sample, UINT32_MAX - (uint32_t)epoch, (uint32_t)i, words);
        const int64_t k = (int64_t)((uint64_t)words[0] * (uint64_t)(i + 1) >> 32);
        const int32_t swap = r->order[i];
        r->order[i] = r->order[k];
        r->order[k] = swap;
    }
    *r->epoch = epoch;
}

static int64_t image_of(const cubes_source *c, const tess_sample *sample, room *r)
{
    const int64_t items = c->source.items, number = sample->step * c->settings.batch + sample->index;
    if (!c->settings.shuffle)
        return number % items;
    if (*r->epoch != number / items)
        make_order(sample, number / items, items, r);
    return r->order[number % items];
}

/* Copies the columns of the crop as fp32, NaN for a pixel without a value. `r->keep` is of whole rows. */
static void crop_values(const cubes_source *c, const tess_pixel_image *image, int64_t left, room *r)
{
    const int64_t crop = c->settings.crop;
    const int bands = c->settings.cubes->set.bands;
    const size_t pixel = (size_t)bands * tess_dtype_size(image->dtype);
    const float nodata = (float)image->nodata;
    for (int64_t y = 0; y < crop; y++) {
        float *to = r->values + y * crop * bands;
        tess_samples_to_float(image->dtype, 1, r->samples + (size_t)(y * image->width + left) * pixel,
                              crop * bands, to);
        for (int64_t i = 0; i < crop * bands && image->has_nodata; i++)
            if (to[i] == nodata)
                to[i] = NAN;
        for (int64_t x = 0; x < crop && image->masked; x++)
            if (!r->keep[y * image->width + left + x])
                to[x * bands] = NAN;
    }
}

/* False if no pixel has a value. */
static bool fill_gaps(int64_t pixels, int channels, float *values)
{
    int64_t last = -1, first = -1;
    for (int64_t p = 0; p < pixels; p++) {
        bool finite = true;
        for (int i = 0; i < channels && finite; i++)
            finite = isfinite(values[p * channels + i]) != 0;
        if (finite) {
            last = p;
            first = first < 0 ? p : first;
        } else if (last >= 0)
            memcpy(values + p * channels, values + last * channels, (size_t)channels * sizeof *values);
    }
    for (int64_t p = 0; p < first; p++)
        memcpy(values + p * channels, values + first * channels, (size_t)channels * sizeof *values);
    return first >= 0;
}

static tess_status read_mask(const cubes_source *c, const tess_cube_entry *entry, int64_t place, int64_t top,
                             int64_t left, room *r, float *to, tess_error *error)
{
    const int64_t crop = c->settings.crop;
    char *path = tess_cube_mask_beside(entry->path);
    tess_cube_mask *mask = NULL;
    tess_status status =
        path ? tess_cube_mask_open(path, &entry->info, &c->settings.cubes->settings, &mask, error)
             : tess_fail(error, TESS_BAD_INPUT, "%s: its mask is gone", entry->path);
    if (status == TESS_OK)
        status = tess_cube_mask_read(mask, place, top, crop, r->marks, error);
    for (int64_t i = 0; i < crop * crop && status == TESS_OK; i++)
        to[i] = r->marks[i / crop * entry->info.width + left + i % crop];
    tess_cube_mask_close(mask);
    tess_small_free(path);
    return status;
}

static void copy_condensed(const cubes_source *c, const tess_sample *sample, room *r, float *to)
{
    const size_t values = (size_t)tess_condensed_pixels(c->settings.channels) * (size_t)c->settings.channels;
    tess_sample one = *sample;
    for (; one.index <= sample->index + sample->more; one.index++, to += values)
        memcpy(to, (const float *)c->settings.condensed->data + (size_t)image_of(c, &one, r) * values,
               values * sizeof(float));
}

static tess_status cubes_draw(tess_source *source, const tess_sample *sample,
                              void *const arrays[TESS_DATA_ARRAYS], tess_error *error)
{
    cubes_source *c = (cubes_source *)source;
    const tess_pixel_cubes *cubes = c->settings.cubes;
    const int64_t crop = c->settings.crop;
    room r;
    uint32_t words[4];
    const size_t bytes = room_at(c, NULL, &r);
    room_at(c, (char *)c->scratch.data + (size_t)sample->worker * bytes, &r);
    if (c->settings.condensed) {
        copy_condensed(c, sample, &r, arrays[TESS_CUBES_PIXELS]);
        return TESS_OK;
    }
    const int64_t i = image_of(c, sample, &r);
    const tess_pixel_image *image = &cubes->image[i];
    const tess_cube_entry *entry = &cubes->list.entries[cubes->file[i]];
    draw_words(sample, (uint32_t)sample->index, (uint32_t)sample->step, words);
    const int64_t top = (int64_t)((uint64_t)words[0] * (uint64_t)(image->height - crop + 1) >> 32),
                  left = (int64_t)((uint64_t)words[1] * (uint64_t)(image->width - crop + 1) >> 32);
    tess_cube_settings files = cubes->settings;
    files.stop = sample->stop;
    tess_cube *cube = NULL;
    TESS_TRY(tess_cube_open(entry->path, &files, &cube, error));
    tess_status status = tess_cube_read(cube, cubes->place[i], top, crop, r.samples, error);
    if (status == TESS_OK && image->masked) {
        memset(r.keep, 1, (size_t)(crop * image->width));
        status = tess_cube_missing(cube, &entry->marks, top, crop, r.samples, r.keep, error);
    }
    tess_cube_close(cube);
    TESS_TRY(status);
    crop_values(c, image, left, &r);
    tess_path_run(c->settings.path, r.values, crop * crop, arrays[TESS_CUBES_PIXELS], NULL);
    if (!fill_gaps(crop * crop, c->settings.channels, arrays[TESS_CUBES_PIXELS]))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: a crop of %lld x %lld pixels from row %lld, column %lld on has no value",
                         entry->path, (long long)crop, (long long)crop, (long long)top, (long long)left);
    return c->settings.masks
               ? read_mask(c, entry, cubes->place[i], top, left, &r, arrays[TESS_CUBES_MASK], error)
               : TESS_OK;
}

static void cubes_close(tess_source *source)
{
    cubes_source *c = (cubes_source *)source;
    tess_block_free(&c->scratch);
    tess_small_free(c);
}

static const tess_source_table cubes_table = {
    .name = "cubes", .bytes = cubes_bytes, .begin = cubes_begin, .draw = cubes_draw, .close = cubes_close};

/* Sizes, masks, and what an open file holds. */
static tess_status check_file(cubes_source *c, const tess_cube_entry *entry, tess_error *error)
{
    const tess_cube_info *info = &entry->info;
    size_t held = info->held_bytes;
    if (info->height < c->settings.crop || info->width < c->settings.crop)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: has %lld x %lld pixels (width x height), but a crop has %lld x %lld; use smaller crops",
            entry->path, (long long)info->width, (long long)info->height, (long long)c->settings.crop,
            (long long)c->settings.crop);
    if (c->settings.masks) {
        char *path = tess_cube_mask_beside(entry->path);
        tess_cube_mask *mask = NULL;
        const tess_status status =
            path ? tess_cube_mask_open(path, info, &c->settings.cubes->settings, &mask, error)
                 : tess_fail(error, TESS_BAD_INPUT,
                             "%s: has no mask beside it (NAME_mask), which a loss of the pipeline needs",
                             entry->path);
        held = status == TESS_OK ? tess_max_i64((int64_t)held, (int64_t)tess_cube_mask_held_bytes(mask)) : 0;
        tess_cube_mask_close(mask);
        tess_small_free(path);
        TESS_TRY(status);
    }
    const size_t row = tess_cube_bytes(info, 1);
    c->row_bytes = row > c->row_bytes ? row : c->row_bytes;
    c->mask_bytes = (size_t)info->width > c->mask_bytes ? (size_t)info->width : c->mask_bytes;
    c->held = held > c->held && !c->settings.condensed ? held : c->held;
    return TESS_OK;
}

bool tess_cubes_are_whole(const tess_pixel_cubes *cubes, int64_t crop)
{
    bool whole = true;
    for (int64_t i = 0; i < cubes->set.images; i++)
        whole = whole && cubes->image[i].height == crop && cubes->image[i].width == crop;
    return whole;
}

tess_status tess_cubes_open(const tess_cubes_settings *settings, tess_source **out, tess_error *error)
{
    *out = NULL;
    cubes_source *c = tess_small_alloc(1, sizeof *c);
    if (!c)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a source of samples");
    c->settings = *settings;
    c->source = (tess_source){
        .table = &cubes_table,
        .arrays = settings->masks ? 2 : 1,
        .role = {TESS_DATA_INPUT, TESS_DATA_TARGET},
        .array = {tess_tensor_2d(TESS_F32, 1, settings->crop, settings->crop, settings->channels),
                  tess_tensor_2d(TESS_F32, 1, settings->crop, settings->crop, 1)},
        .items = settings->cubes->set.images,
        .copies = settings->condensed != NULL};
    if (settings->condensed)
        c->source.array[0] =
            tess_tensor_2d(TESS_F32, 1, 1, tess_condensed_pixels(settings->channels), settings->channels);
    for (int64_t f = 0; f < settings->cubes->list.count; f++) {
        const tess_status status = check_file(c, &settings->cubes->list.entries[f], error);
        if (status != TESS_OK) {
            cubes_close(&c->source);
            return status;
        }
    }
    for (int64_t i = 0; i < settings->cubes->set.images; i++) {
        const tess_pixel_image *image = &settings->cubes->image[i];
        if (image->masked && (size_t)image->width > c->keep_bytes)
            c->keep_bytes = (size_t)image->width;
    }
    *out = &c->source;
    return TESS_OK;
}
