#include "job/library/strided.h"

#include <string.h>

#include "base/checked.h"

enum { CHUNK = 512 }; /* samples converted at a time, on the stack: nothing is allocated */

bool tess_element_dtype(tess_element element, tess_dtype *dtype)
{
    static const struct {
        tess_element element;
        tess_dtype dtype;
    } known[] = {{TESS_ELEMENT_U8, TESS_U8},
                 {TESS_ELEMENT_U16, TESS_U16},
                 {TESS_ELEMENT_F16, TESS_F16},
                 {TESS_ELEMENT_F32, TESS_F32},
                 {TESS_ELEMENT_F64, TESS_F64}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].element == element) {
            *dtype = known[i].dtype;
            return true;
        }
    return false;
}

tess_strided tess_strided_of(const tess_image *image, tess_sample_type type)
{
    const int64_t size = (int64_t)tess_dtype_size(type.dtype);
    return (tess_strided){.type = type,
                          .data = image->data,
                          .depth = image->depth,
                          .height = image->height,
                          .width = image->width,
                          .channels = image->channels,
                          .step_depth = image->stride_depth * size,
                          .step_height = image->stride_height * size,
                          .step_width = image->stride_width * size,
                          .step_channel = image->stride_channel * size};
}

static char *pixel_at(const tess_strided *s, const tess_run_of_pixels *run)
{
    return s->data + run->z * s->step_depth + run->y * s->step_height + run->x * s->step_width +
           run->first * s->step_channel;
}

/* Whether the samples of the run are contiguous. */
static bool dense(const tess_strided *s, const tess_run_of_pixels *run)
{
    const int64_t size = (int64_t)tess_dtype_size(s->type.dtype);
    return (run->channels == 1 || s->step_channel == size) &&
           (run->count == 1 || s->step_width == run->channels * size);
}

/* Copies between the image and a dense row, with one loop for each sample size. */
#define MOVE(size, to, from)                                                                                 \
    for (int64_t x = 0; x < run->count; x++, at += s->step_width)                                            \
        for (int64_t c = 0; c < run->channels; c++) {                                                        \
            char *mine = at + c * s->step_channel;                                                           \
            __typeof__(row) theirs = row + (x * run->channels + c) * (size);                                 \
            memcpy(to, from, size);                                                                          \
        }                                                                                                    \
    break

void tess_strided_copy_out(const tess_strided *s, const tess_run_of_pixels *run, void *samples)
{
    char *row = samples, *at = pixel_at(s, run);
    const size_t size = tess_dtype_size(s->type.dtype);
    if (dense(s, run)) {
        memcpy(row, at, (size_t)(run->count * run->channels) * size);
        return;
    }
    switch (size) {
    case 1:
        MOVE(1, theirs, mine);
    case 2:
        MOVE(2, theirs, mine);
    case 4:
        MOVE(4, theirs, mine);
    default:
        MOVE(8, theirs, mine);
    }
}

void tess_strided_copy_in(const tess_strided *s, const tess_run_of_pixels *run, const void *samples)
{
    const char *row = samples;
    char *at = pixel_at(s, run);
    const size_t size = tess_dtype_size(s->type.dtype);
    if (dense(s, run)) {
        memcpy(at, row, (size_t)(run->count * run->channels) * size);
        return;
    }
    switch (size) {
    case 1:
        MOVE(1, mine, theirs);
    case 2:
        MOVE(2, mine, theirs);
    case 4:
        MOVE(4, mine, theirs);
    default:
        MOVE(8, mine, theirs);
    }
}

static void to_values(const tess_sample_type *type, const void *samples, int64_t count, float *values)
{
    if (type->plain)
        tess_samples_to_float(type->dtype, type->scale.high, samples, count, values);
    else
        tess_samples_to_values(type->dtype, type->scale, samples, count, values);
}

static void from_values(const tess_sample_type *type, const float *values, int64_t count, void *samples)
{
    if (type->plain)
        tess_samples_from_float(type->dtype, type->scale.high, values, count, samples);
    else
        tess_samples_from_values(type->dtype, type->scale, values, count, samples);
}

/* Returns the next part of a run that fits the stack; channels are split only if one pixel does not fit. */
static tess_run_of_pixels part_of(const tess_run_of_pixels *run, int64_t pixel, int64_t channel)
{
    tess_run_of_pixels part = *run;
    part.x += pixel;
    part.first += channel;
    part.channels = tess_min_i64(run->channels - channel, CHUNK);
    part.count = part.channels < run->channels ? 1 : tess_min_i64(run->count - pixel, CHUNK / part.channels);
    return part;
}

/* Calls `fn` for every part; `values` moves with it. */
typedef void (*part_fn)(const tess_strided *s, const tess_run_of_pixels *part, float *values, int64_t step);

static void for_parts(const tess_strided *s, const tess_run_of_pixels *run, float *values, int64_t step,
                      part_fn fn)
{
    for (int64_t x = 0; x < run->count;) {
        tess_run_of_pixels part = {0};
        for (int64_t c = 0; c < run->channels; c += part.channels) {
            part = part_of(run, x, c);
            fn(s, &part, values + x * step + c, step);
        }
        x += part.count;
    }
}

static void read_part(const tess_strided *s, const tess_run_of_pixels *part, float *values, int64_t step)
{
    _Alignas(8) char samples[CHUNK * 8];
    float row[CHUNK];
    const int64_t count = part->count * part->channels;
    tess_strided_copy_out(s, part, samples);
    to_values(&s->type, samples, count, row);
    for (int64_t x = 0; x < part->count; x++)
        for (int64_t c = 0; c < part->channels; c++)
            values[x * step + c] = row[x * part->channels + c];
}

static void write_part(const tess_strided *s, const tess_run_of_pixels *part, float *values, int64_t step)
{
    _Alignas(8) char samples[CHUNK * 8];
    float row[CHUNK];
    for (int64_t x = 0; x < part->count; x++)
        for (int64_t c = 0; c < part->channels; c++)
            row[x * part->channels + c] = values[x * step + c];
    from_values(&s->type, row, part->count * part->channels, samples);
    tess_strided_copy_in(s, part, samples);
}

void tess_strided_read(const tess_strided *s, const tess_run_of_pixels *run, float *values, int64_t step)
{
    for_parts(s, run, values, step, read_part);
}

void tess_strided_write(const tess_strided *s, const tess_run_of_pixels *run, const float *values,
                        int64_t step)
{
    for_parts(s, run, (float *)values, step, write_part); /* write_part only reads them */
}
