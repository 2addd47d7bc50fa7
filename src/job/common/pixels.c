#include "job/common/pixels.h"

#include <string.h>

#include "base/checked.h"
#include "tensor/samples.h"

/* One call of gather or scatter, for the loop over rows. */
typedef struct move {
    const tess_pixels *pixels;
    const tess_strip *strip;
    const tess_span *cols;
    int64_t plane;
    const tess_tensor *tensor;
    int64_t item;
    const void *from;
    void *to;
    int64_t scratch_floats;
} move;

float tess_pixels_sigma(const tess_pixels *pixels, int64_t plane)
{
    return pixels->all_sigma ? pixels->all_sigma[plane]
                             : pixels->sigma[tess_min_i64(plane, TESS_NOISE_CHANNELS - 1)];
}

size_t tess_pixels_scratch(const tess_pixels *pixels, int threads)
{
    return (size_t)threads * 2 * (size_t)pixels->image.channels * sizeof(float);
}

static int64_t window_width(const tess_span *cols)
{
    return cols->window_to - cols->window_from;
}

static void put(const tess_tensor *t, void *data, int64_t at, float value)
{
    if (t->dtype == TESS_BF16)
        ((uint16_t *)data)[at] = tess_float_to_bf16(value);
    else
        ((float *)data)[at] = value;
}

static float get(const tess_tensor *t, const void *data, int64_t at)
{
    return t->dtype == TESS_BF16 ? tess_bf16_to_float(((const uint16_t *)data)[at])
                                 : ((const float *)data)[at];
}

/* The noise of a pixel depends only on its position in the image, so every tile that contains the pixel adds the
 * same. */
static void add_noise(const tess_pixels *p, int64_t y, int64_t x, int64_t count, float *values, float *draws)
{
    const int64_t colours = p->colours, step = p->image.channels,
                  width = p->file_width ? p->file_width : p->image.width;
    tess_rng_normal(p->noise, ((p->first_row + y) * width + p->first_column + x) * colours, count * colours,
                    draws);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < colours; c++)
            values[i * step + c] += p->add_noise * draws[i * colours + c];
}

void tess_pixels_noisy_row(const tess_pixels *p, int64_t y, const void *samples, float *draws, float *values)
{
    tess_samples_to_float(p->image.dtype, p->image.full_scale, samples, p->image.width * p->image.channels,
                          values);
    add_noise(p, y, 0, p->image.width, values, draws);
}

static void gather_row(void *arg, int64_t row, int thread)
{
    const move *m = arg;
    const tess_pixels *p = m->pixels;
    const tess_tensor *t = m->tensor;
    const int64_t width = window_width(m->cols), step = p->image.channels, x0 = m->cols->window_from;
    const int64_t inside = tess_min_i64(width, p->image.width - x0); /* the rest is padding */
    float *values = p->scratch + 2 * thread * m->scratch_floats, *draws = values + m->scratch_floats;
    const int64_t y = tess_min_i64(m->strip->span.window_from + row, p->image.height - 1);
    const char *samples = tess_strip_row(m->strip, y) + (size_t)(x0 * step) * tess_dtype_size(p->image.dtype);
    tess_samples_to_float(p->image.dtype, p->image.full_scale, samples, inside * step, values);
    if (p->add_noise > 0)
        add_noise(p, y, x0, inside, values, draws);
    const int64_t first = p->planes > 1 ? m->plane : 0, count = p->planes > 1 ? 1 : p->colours;
    const float sigma = tess_pixels_sigma(p, first);
    int64_t at = m->item * t->stride_n + row * t->stride_h;
    for (int64_t x = 0; x < width; x++, at += t->stride_w) {
        const float *pixel = values + tess_min_i64(x, inside - 1) * step + first;
        for (int64_t c = 0; c < count; c++)
            put(t, m->to, at + c, pixel[c]);
        if (p->noise_map)
            put(t, m->to, at + count, p->sigma_channel ? pixel[p->colours - first] : sigma);
    }
}

void tess_pixels_gather(const tess_pixels *pixels, const tess_strip *strip, const tess_span *cols,
                        int64_t plane, const tess_tensor *tensor, int64_t item, void *data)
{
    move m = {
        pixels, strip, cols, plane, tensor, item, NULL, data, window_width(cols) * pixels->image.channels};
    tess_pool_run(pixels->pool, strip->span.window_to - strip->span.window_from, gather_row, &m);
}

/* Writes channels of the result to a row of the strip; if all colours come at once, alpha is copied from the input. */
static void scatter_row(void *arg, int64_t row, int thread)
{
    const move *m = arg;
    const tess_pixels *p = m->pixels;
    const tess_tensor *t = m->tensor;
    const int64_t step = p->image.channels, x0 = m->cols->from;
    const int64_t count = tess_min_i64(m->cols->to, p->image.width) - x0;
    const size_t size = p->float_out ? sizeof(float) : tess_dtype_size(p->image.dtype);
    float *values = p->scratch + 2 * thread * m->scratch_floats;
    char *to = m->strip->out + (size_t)row * m->strip->out_row_bytes + (size_t)(x0 * step) * size;
    const tess_dtype dtype = p->float_out ? TESS_F32 : p->image.dtype;
    const char *in = tess_strip_row(m->strip, m->strip->first + row) +
                     (size_t)(x0 * step) * tess_dtype_size(p->image.dtype);
    if (p->planes > 1 && m->plane > 0) /* the row already holds the earlier planes */
        tess_samples_to_float(dtype, p->image.full_scale, to, count * step, values);
    else
        tess_samples_to_float(p->image.dtype, p->image.full_scale, in, count * step, values);
    const int64_t first = p->planes > 1 ? m->plane : 0, channels = p->planes > 1 ? 1 : p->colours;
    int64_t at = m->item * t->stride_n + (m->strip->first + row - m->strip->span.window_from) * t->stride_h +
                 (x0 - m->cols->window_from) * t->stride_w;
    for (int64_t x = 0; x < count; x++, at += t->stride_w)
        for (int64_t c = 0; c < channels; c++)
            values[x * step + first + c] = get(t, m->from, at + c);
    tess_samples_from_float(dtype, p->image.full_scale, values, count * step, to);
}

void tess_pixels_scatter(const tess_pixels *pixels, const tess_strip *strip, const tess_span *cols,
                         int64_t plane, const tess_tensor *tensor, int64_t item, const void *data)
{
    move m = {
        pixels, strip, cols, plane, tensor, item, data, NULL, window_width(cols) * pixels->image.channels};
    tess_pool_run(pixels->pool, strip->count, scatter_row, &m);
}
