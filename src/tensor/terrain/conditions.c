#include "tensor/terrain/conditions.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/terrain/roughness.h"
#include "tensor/terrain/smooth.h"

enum { ALIGNMENT = 64, TAPS = 49 };
static const double CLAMP = 2;

typedef struct places {
    size_t distance, unknown, rest, all;
} places;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static places place(int64_t h, int64_t w)
{
    const size_t pixels = (size_t)(h * w), floats = tess_align_size(pixels * sizeof(float), ALIGNMENT);
    places at = {.distance = 0, .unknown = floats};
    at.rest = at.unknown + tess_align_size(pixels, ALIGNMENT);
    const size_t blur = floats + (size_t)w * sizeof(float);
    at.all = at.rest + larger(blur, larger(tess_smooth_bytes(h, w), tess_relief_bytes(h, w)));
    return at;
}

size_t tess_conditions_bytes(int64_t h, int64_t w)
{
    return place(h, w).all;
}

static void nearer(float *to, float from, float step)
{
    if (from + step < *to)
        *to = from + step;
}

/* Distance of each void pixel to a valid one along rows, columns and diagonals: within 8 % of the exact one. */
static void find_distances(const uint8_t *flags, int64_t h, int64_t w, float *d)
{
    const float diagonal = 1.41421356f;
    for (int64_t i = 0; i < h * w; i++)
        d[i] = flags[i] ? INFINITY : 0;
    for (int turn = 0; turn < 2; turn++) {
        const int64_t sign = turn ? -1 : 1; /* from the first pixel to the last, then back */
        for (int64_t j = 0; j < h; j++)
            for (int64_t k = 0; k < w; k++) {
                const int64_t y = turn ? h - 1 - j : j, x = turn ? w - 1 - k : k;
                float *here = d + y * w + x, *before = here - sign * w;
                if (k > 0)
                    nearer(here, here[-sign], 1);
                if (j == 0)
                    continue;
                nearer(here, *before, 1);
                if (x > 0)
                    nearer(here, before[-1], diagonal);
                if (x + 1 < w)
                    nearer(here, before[1], diagonal);
            }
    }
}

/* Puts the guess where the smooth fill knows little, and marks in `unknown` the voids where it does not prevail. */
static void take_guess(const tess_conditions_window *window, const float *distance, float *smooth,
                       uint8_t *unknown)
{
    const float reach = (float)tess_min_i64(window->h, window->w) / 4;
    for (int64_t i = 0; i < window->h * window->w; i++) {
        if (!window->flags[i])
            continue;
        const float t = fminf(fmaxf((distance[i] - reach / 2) / reach, 0), 1), part = t * t * (3 - 2 * t);
        smooth[i] += part * (window->guess[i] - smooth[i]);
        unknown[i] = part < 0.5f;
    }
}

/* The scale of y, and the width of the widest void (or 0). Where only a guess is known, what it misses is about as much as its
 * second differences from pixel to pixel. */
static double find_scale(const tess_conditions_window *window, const float *smooth, const uint8_t *unknown,
                         void *scratch, double *width)
{
    const double least = window->least > 0 ? window->least : TESS_CONDITIONS_LEAST;
    const tess_relief_window about = {.values = smooth,
                                      .flags = unknown,
                                      .smooth = smooth,
                                      .h = window->h,
                                      .w = window->w,
                                      .least = least,
                                      .scratch = scratch};
    tess_relief relief;
    tess_relief_fit(&about, TESS_RELIEF_SMOOTH, &relief);
    *width = isfinite(relief.width) ? relief.width : 0;
    if (relief.width > 0 || !window->guess)
        return 2 * relief.scale;
    const tess_roughness_area area = {
        .values = smooth, .flags = unknown, .w = window->w, .bottom = window->h, .right = window->w};
    const double square = tess_roughness(&area, TESS_CONDITIONS_COARSE);
    return 2 * (square > 0 ? fmax(sqrt(square), least) : least);
}

static float clamped(double value)
{
    return (float)fmin(fmax(value, -CLAMP), CLAMP);
}

static int64_t inside(int64_t at, int64_t size)
{
    return tess_min_i64(tess_max_i64(at, 0), size - 1);
}

/* Channel 1. Pixels beyond the edge repeat those at it. */
static void make_texture(const float *smooth, int64_t h, int64_t w, double deviation, double scale,
                         float *rows, float *channels)
{
    float taps[TAPS], sum = 0, *mean = rows + h * w;
    const int64_t reach = tess_min_i64((int64_t)ceil(3 * deviation), TAPS - 1);
    for (int64_t k = 0; k <= reach; k++) {
        taps[k] = (float)exp(-0.5 * (double)(k * k) / (deviation * deviation));
        sum += k ? 2 * taps[k] : taps[k];
    }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const float *row = smooth + y * w;
            float all = taps[0] * row[x];
            for (int64_t k = 1; k <= reach; k++)
                all += taps[k] * (row[inside(x - k, w)] + row[inside(x + k, w)]);
            rows[y * w + x] = all / sum;
        }
    for (int64_t y = 0; y < h; y++) {
        for (int64_t x = 0; x < w; x++)
            mean[x] = taps[0] * rows[y * w + x];
        for (int64_t k = 1; k <= reach; k++) {
            const float *above = rows + inside(y - k, h) * w, *below = rows + inside(y + k, h) * w;
            for (int64_t x = 0; x < w; x++)
                mean[x] += taps[k] * (above[x] + below[x]);
        }
        for (int64_t x = 0; x < w; x++)
            channels[(y * w + x) * TESS_CONDITIONS + 1] =
                clamped(((double)smooth[y * w + x] - (double)(mean[x] / sum)) / scale);
    }
}

/* Channels 0 and 2. */
static void make_others(const tess_conditions_window *window, const float *smooth, const float *distance,
                        const uint8_t *unknown, double width, float *channels)
{
    const int64_t pixels = window->h * window->w;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < pixels; i++)
        if (!unknown[i]) {
            low = fmin(low, (double)smooth[i]);
            high = fmax(high, (double)smooth[i]);
        }
    for (int64_t i = 0; i < pixels; i++) {
        float *to = channels + i * TESS_CONDITIONS;
        to[0] = high > low ? clamped(2 * ((double)smooth[i] - low) / (high - low) - 1) : 0;
        to[2] = !window->flags[i] ? -1 : width > 0 ? (float)fmin((double)distance[i] / (width / 2), 1) : 1;
    }
}

tess_status tess_conditions_make(const tess_conditions_window *window, tess_conditions *out,
                                 tess_error *error)
{
    const int64_t h = window->h, w = window->w, pixels = h * w;
    const places at = place(h, w);
    char *scratch = window->scratch;
    float *distance = (float *)(void *)(scratch + at.distance), *smooth = out->smooth;
    uint8_t *unknown = (uint8_t *)scratch + at.unknown;
    void *rest = scratch + at.rest;
    int64_t valid = 0;
    for (int64_t i = 0; i < pixels; i++) {
        smooth[i] = window->flags[i] ? 0 : window->values[i];
        unknown[i] = window->flags[i] != 0;
        valid += !window->flags[i];
    }
    find_distances(window->flags, h, w, distance);
    const tess_smooth_window voids = {
        .values = smooth, .flags = window->flags, .h = h, .w = w, .scratch = rest};
    if (valid > 0)
        TESS_TRY(tess_smooth_fill(&voids, TESS_SMOOTH_BLEND, error));
    if (window->guess)
        take_guess(window, distance, smooth, unknown);
    double width = 0;
    out->scale = find_scale(window, smooth, unknown, rest, &width);
    const double deviation = fmin(fmax(width / 8, 2), 16);
    make_texture(smooth, h, w, deviation, out->scale / 2, rest, out->channels);
    make_others(window, smooth, distance, unknown, width, out->channels);
    return TESS_OK;
}
