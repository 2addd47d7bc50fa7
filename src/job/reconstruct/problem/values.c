#include "job/reconstruct/problem/values.h"

#include <math.h>

#include "io/pages.h"
#include "tensor/samples.h"

static const double MOST_LOST = 0.01; /* of the span of the values */
static const double CONSTANT = 1e-12; /* a span, relative to the largest value, that is only rounding */
static const double SMALLEST = 1e-30; /* of the largest value: the solver takes less for zero */

tess_status tess_kept_check(const tess_kept *k, const char *path, tess_error *error)
{
    const double largest = fmax(fabs(k->low), fabs(k->high)), span = k->high - k->low;
    const bool constant = !(span > CONSTANT * largest);
    if (!k->any || largest == 0)
        return TESS_OK;
    if (largest >= SMALLEST && k->lost <= MOST_LOST * (constant ? largest : span))
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: its values, from %.9g to %.9g, are too %s for 32-bit floats; %s first", path,
                     k->low, k->high, largest < SMALLEST ? "near 0" : "close to each other",
                     largest < SMALLEST ? "multiply them" : "subtract what they have in common");
}

tess_status tess_values_open(tess_memory *memory, const char *path, tess_axes axes, uint64_t page,
                             tess_values *v, tess_error *error)
{
    *v = (tess_values){.memory = memory, .path = path};
    TESS_TRY(tess_image_load_library(path, error));
    TESS_TRY(page ? tess_reader_open_page(memory, path, page, &v->reader, error)
                  : tess_reader_open_doubles(memory, path, axes, &v->reader, error));
    v->info = *tess_reader_info(v->reader);
    v->dtype = v->info.dtype;
    v->info.dtype = v->dtype == TESS_F64 ? TESS_F32 : v->dtype;
    return TESS_OK;
}

/* Of a sample and its mark. */
static size_t sample_bytes(const tess_values *v)
{
    return tess_dtype_size(v->dtype) + v->info.masked;
}

static size_t samples_of(const tess_values *v)
{
    return (size_t)v->info.width * (size_t)v->info.channels;
}

size_t tess_values_held(const tess_values *v, bool lent)
{
    const bool own = !lent || sample_bytes(v) > sizeof(float);
    return v->info.held_bytes + (own ? tess_block_granted(samples_of(v) * sample_bytes(v)) : 0);
}

void tess_values_lend(tess_values *v, float *row)
{
    if (sample_bytes(v) <= sizeof *row)
        v->row = row;
}

static unsigned char *valid_of(const tess_values *v)
{
    return v->info.masked ? (unsigned char *)v->row + samples_of(v) * tess_dtype_size(v->dtype) : NULL;
}

tess_status tess_values_next(tess_values *v, tess_error *error)
{
    TESS_TRY(tess_stop_check(v->stop, error));
    if (!v->row) {
        TESS_TRY(tess_block_alloc(v->memory, &v->own, TESS_MEM_HOST, samples_of(v) * sample_bytes(v), error));
        v->row = v->own.data;
    }
    TESS_TRY(tess_reader_rows(v->reader, 1, v->row, error));
    return v->info.masked ? tess_reader_valid(v->reader, 1, valid_of(v), error) : TESS_OK;
}

static void keep(tess_kept *k, double value, double lost)
{
    k->low = k->any ? fmin(k->low, value) : value;
    k->high = k->any ? fmax(k->high, value) : value;
    k->lost = fmax(k->lost, lost);
    k->any = true;
}

/* The sample as a double, for types of which floats lose something; otherwise its float. */
static double exact(const tess_values *v, double full_scale, int64_t at, float value)
{
    switch (v->dtype) {
    case TESS_F64:
        return ((const double *)v->row)[at];
    case TESS_I32:
        return ((const int32_t *)v->row)[at] / full_scale;
    case TESS_U32:
        return ((const uint32_t *)v->row)[at] / full_scale;
    case TESS_F32:
    case TESS_F16:
    case TESS_BF16:
    case TESS_U8:
    case TESS_I8:
    case TESS_U16:
    case TESS_I16:
    case TESS_I64:
    case TESS_BOOL:
        break;
    }
    return (double)value;
}

static bool is_mark(const tess_values *v, float value)
{
    for (int i = 0; i < v->mark_count; i++)
        if (value == v->marks[i])
            return true;
    return false;
}

tess_status tess_values_take(const tess_values *v, double full_scale, int64_t first, int64_t count, float *to,
                             tess_kept *kept, tess_error *error)
{
    const unsigned char *valid = valid_of(v);
    if (v->dtype != TESS_F64)
        tess_samples_to_float(v->dtype, full_scale,
                              (const char *)v->row + (size_t)first * tess_dtype_size(v->dtype), count, to);
    for (int64_t i = 0; i < count; i++) {
        if (valid && !valid[first + i]) {
            to[i] = NAN;
            continue;
        }
        const double value = exact(v, full_scale, first + i, v->dtype == TESS_F64 ? 0 : to[i]);
        if (v->dtype == TESS_F64)
            to[i] = (float)value;
        if (is_mark(v, to[i])) {
            to[i] = NAN;
            continue;
        }
        if (isfinite(value) && !isfinite(to[i]))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: holds values beyond 3.4e38, the range of float32; scale it first", v->path);
        if (isfinite(value))
            keep(kept, value, fabs(value - (double)to[i]));
    }
    return TESS_OK;
}

void tess_values_close(tess_values *v)
{
    tess_reader_close(v->reader);
    tess_block_free(&v->own);
    *v = (tess_values){0};
}
