/* One pass over an image before it is planned: the range of its samples, its holes, and the strength of its noise.
 * The scale for the network and the noise level are derived from these. Images whose type says everything (8 and 16
 * bits unsigned, noise level given) need no pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/denoise.h"
#include "job/denoise/look/alike.h"
#include "job/denoise/look/bands.h"
#include "job/denoise/look/below.h"
#include "job/denoise/look/defects.h"
#include "job/denoise/look/outliers.h"
#include "job/denoise/look/rounding.h"
#include "job/denoise/look/slices.h"

enum { ROWS = 16, TAIL_SAMPLES = 1 << 16 };

typedef struct looking {
    tess_reader *reader;
    const tess_image_info *info;
    int64_t colours;
    tess_scale unit; /* of the values: the samples themselves if no scale is known yet */
    char *samples;
    unsigned char *valid;  /* of the samples */
    float *values, *draws; /* of a row, without alpha */
    double add_noise;
    tess_rng_key key;
    int64_t row;
    tess_noise noise;
    void *noise_memory; /* NULL: the noise is not estimated */
    bool seek_defects;
    tess_defects defects;
    bool equal; /* so far */
    bool compares;
    tess_alike alike;
    bool integers;
    tess_rounding rounding;
    float *tail; /* every `stride`-th value, for the tails */
    int64_t tail_count, stride;
    tess_below below;
    double origin, squares; /* of the distances from the first value */
    double sum, low[TESS_NOISE_CHANNELS],
        high[TESS_NOISE_CHANNELS]; /* the last one also covers all further channels */
    tess_scale ends;               /* of the samples */
    float alpha;                   /* the largest */
    int64_t holes, found;
    int64_t counted;          /* rows */
    tess_denoise_span *spans; /* NULL: an image */
    tess_denoise_span *bands; /* NULL: few */
} looking;

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Finds the largest alpha, and hides transparent pixels, which are often constant, from the estimate of the noise. */
static void look_at_alpha(looking *l, int64_t y)
{
    const tess_image_info *info = l->info;
    const size_t size = tess_dtype_size(info->dtype);
    for (int64_t x = 0; x < info->width && info->alpha; x++) {
        float alpha;
        tess_samples_to_float(info->dtype, 1,
                              l->samples + (size_t)((y * info->width + x + 1) * info->channels - 1) * size, 1,
                              &alpha);
        if (isfinite(alpha) && alpha > l->alpha)
            l->alpha = alpha;
        for (int64_t c = 0; c < l->colours && alpha == 0; c++)
            l->values[x * l->colours + c] = NAN;
    }
}

static void count_value(looking *l, float v, int64_t channel, int64_t row)
{
    if (l->spans)
        tess_denoise_span_add(&l->spans[row / l->info->height], (double)v);
    if (l->bands)
        tess_denoise_span_add(&l->bands[channel], (double)v);
    const int64_t c = tess_min_i64(channel, TESS_NOISE_CHANNELS - 1);
    l->low[c] = v < l->low[c] ? v : l->low[c];
    l->high[c] = v > l->high[c] ? v : l->high[c];
    l->origin = l->found == 0 ? (double)v : l->origin;
    l->squares += ((double)v - l->origin) * ((double)v - l->origin);
    l->sum += v;
    l->found++;
}

/* A row of values; NaN and infinity are left out. */
static void count_values(looking *l, const float *values)
{
    const int64_t count = l->info->width * l->colours;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        if (((l->counted * count + i) % l->stride == 0 || l->tail_count == 0) && l->tail_count < TAIL_SAMPLES)
            l->tail[l->tail_count++] = values[i];
        count_value(l, values[i], i % l->colours, l->counted);
    }
    tess_below_row(&l->below, values);
    l->counted++;
    if (l->integers)
        tess_rounding_row(&l->rounding, values);
}

static void look_at_row(looking *l, int64_t y)
{
    const int64_t samples = y * l->info->width * l->info->channels, count = l->info->width * l->colours;
    tess_denoise_row_values(l->info, l->unit, l->samples + (size_t)samples * tess_dtype_size(l->info->dtype),
                            l->valid + samples, l->values);
    tess_denoise_find_ends(l->info, l->samples + (size_t)samples * tess_dtype_size(l->info->dtype),
                           l->valid + samples, &l->ends);
    l->equal = l->equal && tess_alike_is_gray(l->values, l->info->width);
    const bool early = l->add_noise > 0 || !l->seek_defects; /* without added noise, or without defects */
    if (l->compares && early)
        tess_alike_row(&l->alike, l->info->width, l->values);
    tess_denoise_add_noise(l->key, l->add_noise, l->row, count, l->draws, l->values);
    for (int64_t i = 0; i < count; i++)
        l->holes += !isfinite(l->values[i]);
    if (l->seek_defects)
        tess_defects_put(&l->defects, l->values);
    else
        count_values(l, l->values);
    /* Transparent pixels are hidden from the estimate as well, but only in the row that was just read. */
    const bool late = l->seek_defects && !l->info->alpha;
    for (const float *row; l->seek_defects && (row = tess_defects_next(&l->defects));) {
        count_values(l, row);
        if (l->compares && !early)
            tess_alike_row(&l->alike, l->info->width, row);
        if (l->noise_memory && late)
            tess_noise_row(&l->noise, row, NULL);
    }
    look_at_alpha(l, y);
    if (l->noise_memory && !late)
        tess_noise_row(&l->noise, l->values, NULL);
    l->row++;
}

static tess_status look_at_rows(looking *l, tess_stop *stop, tess_error *error)
{
    const int64_t rows = tess_denoise_rows(l->info);
    for (int64_t y = 0, count; y < rows; y += count) {
        count = tess_min_i64(ROWS, rows - y);
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(tess_denoise_read_rows(l->info, l->reader, count, l->samples, l->valid, error));
        for (int64_t i = 0; i < count; i++)
            look_at_row(l, i);
    }
    return TESS_OK;
}

/* Whether it is a defect of the file, or of its slice, whose exposure may be its own. A value that marks missing data is
 * none: it must be declared. */
static bool is_defect(const looking *l, const tess_denoise_look *look, double least, const tess_defect *one)
{
    const int64_t slice = one->index / (l->info->width * l->colours * l->info->height);
    const tess_denoise_span *span = l->spans ? &l->spans[slice] : NULL;
    if (tess_denoise_is_usual_fill(l->unit.low + (double)one->value * (l->unit.high - l->unit.low)))
        return false;
    return tess_defects_is_far(one, least, look->low_tail, look->high_tail) ||
           (span && span->found > 0 &&
            tess_defects_is_far(one, tess_defects_slice_least(&l->defects, slice), span->low, span->high));
}

/* Keeps the candidates that are defects, and then counts the others as usual samples. */
static tess_status keep_defects(looking *l, tess_denoise_look *look, tess_error *error)
{
    const tess_defects *d = &l->defects;
    const double least = tess_defects_least(&l->defects);
    int64_t far = 0;
    look->defects = d->count ? tess_small_alloc((size_t)d->count, sizeof *look->defects) : NULL;
    if (d->count && !look->defects)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of %lld samples", (long long)d->count);
    for (int64_t i = 0; i < d->count; i++)
        if (is_defect(l, look, least, &d->list[i]))
            look->defects[far++] = d->list[i].index;
    look->defect_count = d->many ? 0 : far;
    for (int64_t i = 0, next = 0; i < d->count; i++) {
        const tess_defect *one = &d->list[i];
        if (next < look->defect_count && look->defects[next] == one->index)
            next++;
        else
            count_value(l, one->value, one->index % l->colours, one->index / (l->info->width * l->colours));
    }
    look->many_defects = d->many && 2 * far > d->count;
    return TESS_OK;
}

/* The levels of slices are in the estimator's memory, which ends with the look: keeps a copy. */
static tess_status keep_levels(const looking *l, tess_denoise_look *look, tess_error *error)
{
    const tess_noise_level *slices = look->noise.slices;
    const size_t depth = (size_t)l->info->depth, count = depth * (size_t)l->colours;
    if (!slices)
        return TESS_OK;
    look->noise.slices = look->slices = tess_small_alloc(count, sizeof *look->slices);
    if (!look->slices)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the noise levels of %zu slices", depth);
    memcpy(look->slices, slices, count * sizeof *slices);
    return TESS_OK;
}

/* Noise is a part of what varies in an image. An estimate beyond that comes from a pattern with the frequencies that it is
 * made of, such as hatching. */
static void doubt_noise(const looking *l, tess_denoise_look *look)
{
    static const double MORE = 1.1; /* clipping hides some */
    const double mean = look->mean - l->origin, variance = l->squares / (double)l->found - mean * mean;
    look->pattern = look->noise.sigma > MORE * sqrt(fmax(variance, 0)) && variance > 0;
    for (int c = 0; c < TESS_NOISE_CHANNELS && look->pattern; c++)
        if (look->noise.channel[c].confidence == TESS_NOISE_SURE)
            look->noise.channel[c].confidence = TESS_NOISE_ROUGH;
    if (look->pattern && look->noise.confidence == TESS_NOISE_SURE)
        look->noise.confidence = TESS_NOISE_ROUGH;
}

static tess_status conclude(looking *l, tess_denoise_look *look, tess_error *error)
{
    qsort(l->tail, (size_t)l->tail_count, sizeof *l->tail, compare_floats);
    *look = (tess_denoise_look){.looked = true,
                                .unit = l->unit,
                                .ends = l->ends,
                                .alpha = (double)l->alpha,
                                .holes = l->holes,
                                .equal = l->equal,
                                .alike = l->compares ? tess_alike_end(&l->alike) : 1,
                                .hidden_alike = l->compares && tess_alike_is_hidden(&l->alike)};
    if (l->tail_count > 0) {
        look->low_tail = l->tail[l->tail_count / 100];
        look->high_tail = l->tail[l->tail_count - 1 - l->tail_count / 100];
    }
    if (l->seek_defects)
        TESS_TRY(keep_defects(l, look, error));
    look->low_mean = tess_below_end(&l->below);
    look->found = l->found;
    look->spans = l->spans, look->bands = l->bands;
    l->spans = l->bands = NULL;
    if (l->noise_memory) {
        tess_noise_end(&l->noise, &look->noise);
        TESS_TRY(keep_levels(l, look, error));
    }
    if (l->found == 0)
        return TESS_OK;
    look->low = INFINITY;
    look->high = -INFINITY;
    for (int64_t c = 0; c < tess_min_i64(l->colours, TESS_NOISE_CHANNELS); c++) {
        look->channel_low[c] = l->low[c];
        look->channel_high[c] = l->high[c];
        look->low = fmin(look->low, l->low[c]);
        look->high = fmax(look->high, l->high[c]);
    }
    look->mean = l->sum / (double)l->found;
    look->rounding = l->unit.low + look->low * (l->unit.high - l->unit.low) >= 0 ? l->rounding.most : 0;
    look->coarseness = l->rounding.coarsest;
    doubt_noise(l, look);
    tess_denoise_find_outliers(l->tail, l->tail_count, look);
    return TESS_OK;
}

static tess_status take_memory(looking *l, bool noise, tess_error *error)
{
    const tess_image_info *info = l->info;
    const bool whole = info->dtype != TESS_F32 && info->dtype != TESS_F64;
    const tess_noise_shape shape = {info->height, info->width, info->depth, (int)l->colours,
                                    whole ? 1 / (l->unit.high - l->unit.low) : 0};
    const size_t samples = (size_t)(info->width * info->channels),
                 noise_bytes = noise ? tess_noise_bytes(&shape) : 0;
    l->samples = tess_small_alloc(ROWS * samples, tess_dtype_size(info->dtype));
    l->valid = tess_small_alloc(ROWS * samples, 1);
    l->values = tess_small_alloc(samples, sizeof *l->values);
    l->draws = tess_small_alloc(samples, sizeof *l->draws);
    l->tail = tess_small_alloc(TAIL_SAMPLES, sizeof *l->tail);
    l->noise_memory = noise_bytes ? tess_small_alloc(noise_bytes, 1) : NULL;
    l->spans = info->depth ? tess_small_alloc((size_t)info->depth, sizeof *l->spans) : NULL;
    const bool many = l->colours > TESS_NOISE_CHANNELS;
    l->bands = many ? tess_small_alloc((size_t)l->colours, sizeof *l->bands) : NULL;
    if (!l->samples || !l->valid || !l->values || !l->draws || !l->tail ||
        (noise_bytes && !l->noise_memory) || (info->depth && !l->spans) || (many && !l->bands))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    if (l->noise_memory)
        tess_noise_begin(&l->noise, &shape, l->noise_memory);
    /* 8 bits have no room for a sample that is many noise levels away from an image that uses them. */
    l->seek_defects = info->dtype != TESS_U8;
    if (l->seek_defects)
        TESS_TRY(tess_defects_begin(&l->defects, info->width, l->colours, info->height,
                                    tess_denoise_rows(info), error));
    TESS_TRY(tess_below_begin(&l->below, tess_denoise_rows(info), info->width, l->colours, error));
    if (l->compares)
        TESS_TRY(tess_alike_begin(&l->alike, info->width, error));
    l->integers = info->dtype != TESS_F32 && info->dtype != TESS_F64;
    if (l->integers)
        TESS_TRY(tess_rounding_begin(&l->rounding, info->width, l->colours, info->height, l->unit, error));
    return TESS_OK;
}

static void release(looking *l)
{
    void *const parts[] = {l->samples, l->valid,        l->values, l->draws,
                           l->tail,    l->noise_memory, l->spans,  l->bands};
    tess_reader_close(l->reader);
    tess_defects_release(&l->defects);
    tess_alike_release(&l->alike);
    tess_below_release(&l->below);
    tess_rounding_release(&l->rounding);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        tess_small_free(parts[i]);
}

tess_status tess_denoise_look_at(tess_engine *engine, const tess_denoise_settings *settings,
                                 tess_denoise_file *file, tess_error *error)
{
    const tess_image_info *info = &file->info;
    looking l = {
        .info = info,
        .colours = tess_denoise_colours(info),
        .ends = {INFINITY, -INFINITY},
    };
    l.compares = l.colours == 3 && !info->rgb;
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++) {
        l.low[c] = INFINITY;
        l.high[c] = -INFINITY;
    }
    l.unit = !tess_denoise_scale_is_known(settings, info)
                 ? (file->exact.high > file->exact.low ? file->exact : (tess_scale){0, 1})
             : settings->range == TESS_RANGE_GIVEN ? (tess_scale){settings->range_low, settings->range_high}
                                                   : (tess_scale){0, info->full_scale};
    l.add_noise = file->sigma_estimated ? settings->add_noise : 0;
    l.equal = l.colours == 3 && settings->add_noise <= 0; /* what is added is independent */
    l.key = (tess_rng_key){settings->common.seed, file->item, 0};
    l.stride =
        tess_stride_across(tess_ceil_div(tess_denoise_rows(info) * info->width * l.colours, TAIL_SAMPLES),
                           info->width * l.colours);
    tess_status status = take_memory(&l, file->sigma_estimated, error);
    if (status == TESS_OK)
        status = tess_denoise_open(engine->memory, file->input, file->axes, info->dtype, &l.reader, error);
    if (status == TESS_OK)
        status = look_at_rows(&l, &engine->stop, error);
    if (status == TESS_OK)
        status = conclude(&l, &file->look, error);
    release(&l);
    if (status == TESS_OK && tess_denoise_has_many_bands(file))
        status = tess_denoise_look_at_bands(engine, settings, file, error);
    return status;
}
