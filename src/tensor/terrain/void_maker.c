#include "tensor/terrain/void_maker.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"

enum { TRIES = 16, MOST_BLOBS = 4, OCTAVES = 5, BINS = 4096, FIRST_NOISE = 1 << 16, LATTICE = 1 << 12 };

/* The draws of one sample, one after another. */
typedef struct draws {
    tess_rng_key key;
    int64_t next;
} draws;

static double uniform(draws *d)
{
    float value;
    tess_rng_uniform(d->key, d->next++, 1, &value);
    return (double)value;
}

static double between(draws *d, double low, double high)
{
    return low + (high - low) * uniform(d);
}

static double log_between(draws *d, double low, double high)
{
    return low * pow(high / low, uniform(d));
}

static double normal(draws *d)
{
    float value;
    tess_rng_normal((tess_rng_key){d->key.seed ^ 0x5bd1e995u, d->key.item, d->key.step}, d->next++, 1,
                    &value);
    return (double)value;
}

void tess_void_request_init(tess_void_request *request, int64_t h, int64_t w)
{
    const float side = (float)tess_min_i64(h, w);
    *request = (tess_void_request){.h = h,
                                   .w = w,
                                   .shares = {0.25f, 0.15f, 0.6f},
                                   .smallest = 3,
                                   .largest = 0.625f * side,
                                   .median = 0.2f * side,
                                   .spread = 1.6f,
                                   .at_edge = 0.25f,
                                   .most = 0.6f};
}

size_t tess_void_maker_bytes(int64_t h, int64_t w)
{
    return (size_t)(h * w) * sizeof(float) + BINS * sizeof(int32_t);
}

/* The middle of something `size` long on an axis of `length`: inside by a margin of 2, or anywhere. */
static double place(draws *d, double size, int64_t length, bool anywhere)
{
    const double margin = anywhere ? 0 : size / 2 + 2;
    const double at = uniform(d);
    return 2 * margin >= (double)length ? (double)length / 2 : margin + at * ((double)length - 2 * margin);
}

static void make_rectangle(const tess_void_request *r, draws *d, uint8_t *flags)
{
    const double height = log_between(d, r->smallest, r->largest),
                 width = log_between(d, r->smallest, r->largest);
    const bool anywhere = uniform(d) < r->at_edge;
    const int64_t top = llrint(place(d, height, r->h, anywhere) - height / 2);
    const int64_t left = llrint(place(d, width, r->w, anywhere) - width / 2);
    for (int64_t y = tess_max_i64(top, 0); y < tess_min_i64(top + llrint(height), r->h); y++)
        for (int64_t x = tess_max_i64(left, 0); x < tess_min_i64(left + llrint(width), r->w); x++)
            flags[y * r->w + x] = 1;
}

/* Parallel stripes: the window's pixels whose place across them, modulo stripe + gap, lies in the stripe. */
static void make_stripes(const tess_void_request *r, draws *d, uint8_t *flags)
{
    const double stripe = log_between(d, r->smallest, r->largest);
    const double gap = stripe * between(d, 1, 3) + 8;
    const double angle = between(d, 0, 3.14159265358979), from = between(d, 0, stripe + gap);
    const double across_x = cos(angle), across_y = sin(angle);
    for (int64_t y = 0; y < r->h; y++)
        for (int64_t x = 0; x < r->w; x++) {
            const double at = (double)x * across_x + (double)y * across_y + from;
            flags[y * r->w + x] = at - floor(at / (stripe + gap)) * (stripe + gap) < stripe;
        }
}

/* One octave of value noise: normal values on a lattice with `cell` pixels between its points, joined by the smooth step
 * 3 t^2 - 2 t^3. */
static void add_octave(const tess_void_request *r, draws *d, int octave, double cell, double weight,
                       float *field)
{
    float row[2][64]; /* two lines of the lattice */
    const int64_t first = FIRST_NOISE + (d->next * OCTAVES + octave) * LATTICE;
    const int64_t columns = tess_min_i64((int64_t)((double)r->w / cell) + 2, 64);
    int64_t have = -1;
    for (int64_t y = 0; y < r->h; y++) {
        const int64_t j = tess_min_i64((int64_t)((double)y / cell), 62);
        if (j != have) {
            for (int k = 0; k < 2; k++)
                tess_rng_normal(d->key, first + (j + k) * 64, columns, row[k]);
            have = j;
        }
        const double ty = fmin((double)y / cell - (double)j, 1), sy = ty * ty * (3 - 2 * ty);
        for (int64_t x = 0; x < r->w; x++) {
            const int64_t i = tess_min_i64((int64_t)((double)x / cell), columns - 2);
            const double tx = fmin((double)x / cell - (double)i, 1), sx = tx * tx * (3 - 2 * tx);
            const double top = (double)row[0][i] + sx * (double)(row[0][i + 1] - row[0][i]);
            const double bottom = (double)row[1][i] + sx * (double)(row[1][i + 1] - row[1][i]);
            field[y * r->w + x] += (float)(weight * (top + sy * (bottom - top)));
        }
    }
}

/* Flags the `area` pixels with the largest values, to the width of a bin of the histogram. */
static void flag_highest(const float *field, int64_t count, int64_t area, int32_t *bins, uint8_t *flags)
{
    float low = field[0], high = field[0];
    for (int64_t i = 0; i < count; i++)
        low = field[i] < low ? field[i] : low, high = field[i] > high ? field[i] : high;
    const float scale = high > low ? (float)(BINS - 1) / (high - low) : 0;
    memset(bins, 0, BINS * sizeof *bins);
    for (int64_t i = 0; i < count; i++)
        bins[(int)((field[i] - low) * scale)]++;
    int bin = BINS;
    for (int64_t sum = 0; bin > 0 && sum < area;)
        sum += bins[--bin];
    for (int64_t i = 0; i < count; i++)
        if ((int)((field[i] - low) * scale) >= bin)
            flags[i] = 1;
}

/* A hill with a fractal relief, of which the highest pixels are the blob. */
static void make_blob(const tess_void_request *r, draws *d, uint8_t *flags, float *field, int32_t *bins)
{
    double diameter = (double)r->median * exp(0.5 * (double)r->spread * normal(d));
    diameter = fmin(fmax(diameter, r->smallest), r->largest);
    const bool anywhere = uniform(d) < r->at_edge;
    const double cy = place(d, 1.3 * diameter, r->h, anywhere), cx = place(d, 1.3 * diameter, r->w, anywhere);
    const double long_axis = between(d, 1, 1.8), angle = between(d, 0, 3.14159265358979);
    const double c = cos(angle), s = sin(angle), radius = diameter / 2;
    for (int64_t y = 0; y < r->h; y++)
        for (int64_t x = 0; x < r->w; x++) {
            const double dy = ((double)y - cy) / radius, dx = ((double)x - cx) / radius;
            const double along = (c * dx + s * dy) / long_axis, across = (c * dy - s * dx) * long_axis;
            field[y * r->w + x] = (float)(-1.5 * sqrt(along * along + across * across));
        }
    const double rough = between(d, 0.3, 1.1);
    double cell = fmax(diameter * 0.6, fmax((double)r->h, (double)r->w) / 60), weight = rough;
    for (int octave = 0; octave < OCTAVES && (cell >= 1.5 || octave == 0); octave++, cell /= 2, weight *= 0.6)
        if (cell >= fmax((double)r->h, (double)r->w) / 60)
            add_octave(r, d, octave, cell, weight, field);
    const int64_t area = llrint(fmax(1, 3.14159265358979 / 4 * diameter * diameter));
    flag_highest(field, r->h * r->w, area, bins, flags);
}

static void make_shape(const tess_void_request *r, draws *d, uint8_t *flags, void *scratch)
{
    float *field = scratch;
    int32_t *bins = (int32_t *)(field + r->h * r->w);
    const double which = uniform(d);
    if (which < (double)r->shares[TESS_VOID_RECTANGLE]) {
        make_rectangle(r, d, flags);
    } else if (which < (double)r->shares[TESS_VOID_RECTANGLE] + (double)r->shares[TESS_VOID_STRIPES]) {
        make_stripes(r, d, flags);
    } else {
        const int blobs = 1 + (int)(uniform(d) * uniform(d) * MOST_BLOBS);
        for (int i = 0; i < blobs; i++)
            make_blob(r, d, flags, field, bins);
    }
}

void tess_void_make(const tess_void_request *request, uint8_t *flags, void *scratch)
{
    const int64_t count = request->h * request->w;
    draws d = {{request->seed, request->index, request->step}, 0};
    tess_void_request smaller = *request;
    for (int i = 0; i < TRIES; i++) {
        memset(flags, 0, (size_t)count);
        make_shape(&smaller, &d, flags, scratch);
        int64_t set = 0;
        for (int64_t k = 0; k < count; k++)
            set += flags[k];
        if (set > 0 && (double)set <= (double)request->most * (double)count)
            return;
        smaller.largest = fmaxf(smaller.smallest, 0.8f * smaller.largest);
    }
    memset(flags, 0, (size_t)count);
    flags[request->h / 2 * request->w + request->w / 2] = 1;
}
