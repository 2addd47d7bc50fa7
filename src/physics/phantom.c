/* A row of sub-samples meets an ellipsoid in one interval, whose ends are the roots of a quadratic. A row is
 * therefore drawn from the ends alone, as differences that are summed once, and 4^3 samples per voxel cost hardly
 * more than one. Values are summed as integers, so that what is added and subtracted again cancels exactly. */
#include "physics/phantom.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { SPAN = 512 }; /* columns drawn at a time, on the stack */
static const double units = 1e9;
static const double degree = 3.14159265358979323846 / 180;

const tess_ellipsoid tess_shepp_logan_2d[TESS_PHANTOM_PARTS] = {
    {1, {0.69, 0.92, 0}, {0, 0, 0}, 0},         {-0.8, {0.6624, 0.874, 0}, {0, 0.0184, 0}, 0},
    {-0.2, {0.11, 0.31, 0}, {0.22, 0, 0}, 18},  {-0.2, {0.16, 0.41, 0}, {-0.22, 0, 0}, -18},
    {0.1, {0.21, 0.25, 0}, {0, -0.35, 0}, 0},   {0.1, {0.046, 0.046, 0}, {0, -0.1, 0}, 0},
    {0.1, {0.046, 0.046, 0}, {0, 0.1, 0}, 0},   {0.1, {0.046, 0.023, 0}, {-0.08, 0.605, 0}, 0},
    {0.1, {0.023, 0.023, 0}, {0, 0.606, 0}, 0}, {0.1, {0.023, 0.046, 0}, {0.06, 0.605, 0}, 0},
};

const tess_ellipsoid tess_shepp_logan_3d[TESS_PHANTOM_PARTS] = {
    {1, {0.69, 0.92, 0.81}, {0, 0, 0}, 0},           {-0.8, {0.6624, 0.874, 0.78}, {0, 0.0184, 0}, 0},
    {-0.2, {0.11, 0.31, 0.22}, {0.22, 0, 0}, 18},    {-0.2, {0.16, 0.41, 0.28}, {-0.22, 0, 0}, -18},
    {0.1, {0.21, 0.25, 0.41}, {0, -0.35, -0.15}, 0}, {0.1, {0.046, 0.046, 0.05}, {0, -0.1, 0.25}, 0},
    {0.1, {0.046, 0.046, 0.05}, {0, 0.1, 0.25}, 0},  {0.1, {0.046, 0.023, 0.05}, {-0.08, 0.605, 0}, 0},
    {0.1, {0.023, 0.023, 0.02}, {0, 0.606, 0}, 0},   {0.1, {0.023, 0.046, 0.02}, {0.06, 0.605, 0}, 0},
};

/* The interval of x inside `part` at the given y, and z unless flat. */
static bool cut(const tess_ellipsoid *part, double y, double z, bool flat, double x[2])
{
    const double c = cos(part->angle * degree), s = sin(part->angle * degree);
    const double ia = 1 / (part->axis[0] * part->axis[0]), ib = 1 / (part->axis[1] * part->axis[1]);
    const double v = y - part->centre[1], w = flat ? 0 : (z - part->centre[2]) / part->axis[2];
    const double square = c * c * ia + s * s * ib, half = v * c * s * (ia - ib);
    const double rest = v * v * (s * s * ia + c * c * ib) + w * w - 1;
    const double inner = half * half - square * rest;
    if (inner <= 0)
        return false;
    x[0] = part->centre[0] + (-half - sqrt(inner)) / square;
    x[1] = part->centre[0] + (-half + sqrt(inner)) / square;
    return true;
}

/* Adds `value` to every sub-sample of the span from `at` on. */
static void rise(int64_t *line, int64_t at, int64_t span, int samples, int64_t value)
{
    at = tess_min_i64(tess_max_i64(at, 0), span * samples);
    line[at / samples] += value * (samples - at % samples);
    line[at / samples + 1] += value * (at % samples);
}

static double place(int64_t index, int64_t count)
{
    return (double)(2 * index + 1) / (double)count - 1;
}

typedef struct drawing {
    const tess_ellipsoid *parts;
    int count, samples;
    int64_t depth, height, width; /* depth 0: flat */
} drawing;

static void draw_span(const drawing *d, int64_t slice, int64_t row, int64_t first, int64_t span, float *out)
{
    int64_t line[SPAN + 2];
    memset(line, 0, sizeof line);
    const bool flat = d->depth == 0;
    const int samples = d->samples, layers = flat ? 1 : samples;
    for (int i = 0; i < layers * samples; i++) {
        const double y = place(row * samples + i % samples, d->height * samples);
        const double z = flat ? 0 : place(slice * samples + i / samples, d->depth * samples);
        for (int k = 0; k < d->count; k++) {
            double x[2];
            if (!cut(&d->parts[k], y, z, flat, x))
                continue;
            const double scale = 0.5 * (double)(d->width * samples);
            const int64_t from = (int64_t)ceil((x[0] + 1) * scale - 0.5) - first * samples;
            const int64_t to = (int64_t)floor((x[1] + 1) * scale - 0.5) + 1 - first * samples;
            const int64_t value = llrint(d->parts[k].value * units);
            rise(line, from, span, samples, value);
            rise(line, to, span, samples, -value);
        }
    }
    const double mean = 1 / (units * samples * samples * layers);
    int64_t sum = 0;
    for (int64_t x = 0; x < span; x++) {
        sum += line[x];
        out[x] = (float)((double)sum * mean);
    }
}

static void draw_rows(const drawing *d, int64_t first, int64_t rows, float *out)
{
    for (int64_t i = first; i < first + rows; i++)
        for (int64_t x = 0; x < d->width; x += SPAN)
            draw_span(d, i / d->height, i % d->height, x, tess_min_i64(SPAN, d->width - x),
                      out + (i - first) * d->width + x);
}

static void draw(const drawing *d, float *out)
{
    draw_rows(d, 0, d->height * tess_max_i64(d->depth, 1), out);
}

static void clip(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = fminf(fmaxf(values[i], 0), 1);
}

void tess_ellipses_draw(const tess_ellipsoid *parts, int count, int64_t height, int64_t width, int samples,
                        float *image)
{
    draw(&(drawing){parts, count, samples, 0, height, width}, image);
}

void tess_ellipsoids_draw(const tess_ellipsoid *parts, int count, int64_t depth, int64_t height,
                          int64_t width, int samples, float *volume)
{
    draw(&(drawing){parts, count, samples, depth, height, width}, volume);
}

void tess_phantom_2d(int64_t size, int samples, float *image)
{
    tess_phantom_2d_rows(size, samples, 0, size, image);
}

void tess_phantom_2d_rows(int64_t size, int samples, int64_t first, int64_t rows, float *image)
{
    draw_rows(&(drawing){tess_shepp_logan_2d, TESS_PHANTOM_PARTS, samples, 0, size, size}, first, rows,
              image);
    clip(image, rows * size);
}

void tess_phantom_3d(int64_t depth, int64_t height, int64_t width, int samples, float *volume)
{
    tess_phantom_3d_rows(depth, height, width, samples, 0, depth * height, volume);
}

void tess_phantom_3d_rows(int64_t depth, int64_t height, int64_t width, int samples, int64_t first,
                          int64_t rows, float *volume)
{
    draw_rows(&(drawing){tess_shepp_logan_3d, TESS_PHANTOM_PARTS, samples, depth, height, width}, first, rows,
              volume);
    clip(volume, rows * width);
}

void tess_phantom_colour(int64_t height, int64_t width, float *image)
{
    tess_phantom_colour_rows(height, width, 0, height, image);
}

void tess_phantom_colour_rows(int64_t height, int64_t width, int64_t first, int64_t rows, float *image)
{
    for (int64_t i = first; i < first + rows; i++)
        for (int64_t j = 0; j < width; j++, image += 3) {
            const double y = height > 1 ? 2 * (double)i / (double)(height - 1) - 1 : 0;
            const double x = width > 1 ? 2 * (double)j / (double)(width - 1) - 1 : 0;
            image[0] = (float)(0.8 * (hypot(x, y) < 0.5) + 0.3 * (x + 1) / 4);
            image[1] = (float)(0.7 * (hypot(x - 0.3, y - 0.3) < 0.3) + 0.4 * (y + 1) / 4);
            image[2] = (float)(0.3 * sin(10 * x) * sin(10 * y) + 0.5 + 0.2 * (x - y) / 4);
            clip(image, 3);
        }
}
