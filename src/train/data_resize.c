#include "train/data_resize.h"

#include <math.h>

#include "base/checked.h"
#include "tensor/samples.h"

/* Inputs [from, to) of one output. */
typedef struct inputs {
    int64_t from, to;
    double centre;
} inputs;

static double ratio_of(int64_t in, int64_t out)
{
    return (double)in / (double)out;
}

static double widening(double ratio)
{
    return ratio > 1 ? ratio : 1;
}

static inputs inputs_of(int64_t in, double ratio, int64_t output)
{
    const double support = 2 * widening(ratio), centre = ratio * ((double)output + 0.5);
    return (inputs){tess_max_i64((int64_t)floor(centre - support + 0.5), 0),
                    tess_min_i64((int64_t)floor(centre + support + 0.5), in), centre};
}

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

int64_t tess_resize_taps(int64_t in, int64_t out)
{
    return (int64_t)ceil(4 * widening(ratio_of(in, out))) + 1;
}

int64_t tess_resize_reach(int64_t in, int64_t out, int64_t count)
{
    const int64_t most =
        (int64_t)ceil(ratio_of(in, out) * (double)(count - 1)) + tess_resize_taps(in, out) + 1;
    return tess_min_i64(most, in);
}

static inputs whole_inputs(const tess_resize_axis *axis)
{
    const double ratio = ratio_of(axis->in, axis->out);
    inputs all = inputs_of(axis->in, ratio, axis->first);
    all.to = inputs_of(axis->in, ratio, axis->first + axis->count - 1).to;
    return all;
}

tess_rect tess_resize_rect(const tess_resize *resize)
{
    const inputs rows = whole_inputs(&resize->rows), cols = whole_inputs(&resize->cols);
    return (tess_rect){rows.from, cols.from, rows.to - rows.from, cols.to - cols.from};
}

/* Weights of an axis's outputs have the sum 1 each. They are at most `reach` in number, since no output depends on
 * more inputs than all outputs together. */
int64_t tess_resize_scratch(int64_t count, int64_t reach, int channels)
{
    return reach * reach * channels + reach * channels + count * reach + reach;
}

/* Returns the number of weights. */
static int64_t weigh(const tess_resize_axis *axis, int64_t output, float *weights, int64_t *from)
{
    const double ratio = ratio_of(axis->in, axis->out), wide = widening(ratio);
    const inputs of = inputs_of(axis->in, ratio, output);
    double sum = 0;
    for (int64_t i = of.from; i < of.to; i++)
        sum += cubic(((double)i - of.centre + 0.5) / wide);
    for (int64_t i = of.from; i < of.to; i++)
        weights[i - of.from] = (float)(cubic(((double)i - of.centre + 0.5) / wide) / sum);
    *from = of.from;
    return of.to - of.from;
}

static float clamp(float value)
{
    return value > 1 ? 1 : value > 0 ? value : 0;
}

/* One output row from the line that the vertical pass made; `weights` of column i begin at i * room. */
static void run_line(const tess_resize *resize, int64_t left, const float *line, const float *weights,
                     int64_t room, float *out)
{
    const int channels = resize->channels;
    const double ratio = ratio_of(resize->cols.in, resize->cols.out);
    for (int64_t x = 0; x < resize->cols.count; x++) {
        const inputs of = inputs_of(resize->cols.in, ratio, resize->cols.first + x);
        const float *pixel = line + (of.from - left) * channels, *w = weights + x * room;
        const int64_t taps = of.to - of.from;
        for (int c = 0; c < channels; c++) {
            float sum = 0;
            for (int64_t k = 0; k < taps; k++)
                sum += w[k] * pixel[k * channels + c];
            out[x * channels + c] = clamp(sum);
        }
    }
}

void tess_resize_run(const tess_resize *resize, const tess_view *view, float *scratch, float *out)
{
    const tess_rect rect = tess_resize_rect(resize);
    const int64_t width = rect.width * resize->channels, room = rect.width;
    float *values = scratch, *line = values + rect.height * width, *across = line + width,
          *down = across + resize->cols.count * room;
    const double full = tess_samples_full_scale(view->dtype);
    int64_t from = 0;
    for (int64_t y = 0; y < rect.height; y++)
        tess_samples_to_float(view->dtype, full,
                              (const char *)view->data +
                                  (size_t)(y * view->stride) * tess_dtype_size(view->dtype),
                              width, values + y * width);
    for (int64_t x = 0; x < resize->cols.count; x++)
        weigh(&resize->cols, resize->cols.first + x, across + x * room, &from);
    for (int64_t y = 0; y < resize->rows.count; y++) {
        const int64_t taps = weigh(&resize->rows, resize->rows.first + y, down, &from);
        const float *first = values + (from - rect.y) * width;
        for (int64_t i = 0; i < width; i++)
            line[i] = down[0] * first[i];
        for (int64_t k = 1; k < taps; k++)
            for (int64_t i = 0; i < width; i++)
                line[i] += down[k] * first[k * width + i];
        run_line(resize, rect.x, line, across, room, out + y * resize->cols.count * resize->channels);
    }
}
