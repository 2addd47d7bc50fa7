/* test_noise_levels.c: noise that varies: growing with the brightness of a textured picture, with and without a black
 * level, and differing between the slices of a volume; and noise at any scale of values. */
#define _POSIX_C_SOURCE 200809L
#include "support.h"
#include "tensor/noise.h"

enum { SIDE = 240 };

/* The caller frees *memory; the result points into it. */
static tess_noise_result estimate_in(const tess_noise_shape *shape, const float *values, void **memory)
{
    *memory = room(tess_noise_bytes(shape));
    tess_noise noise;
    tess_noise_result result;
    tess_noise_begin(&noise, shape, *memory);
    for (int64_t y = 0; y < shape->height * tess_max_i64(shape->depth, 1); y++)
        tess_noise_row(&noise, values + y * shape->width, NULL);
    tess_noise_end(&noise, &result);
    return result;
}

static tess_noise_result estimate(const tess_noise_shape *shape, const float *values)
{
    void *memory;
    tess_noise_result result = estimate_in(shape, values, &memory);
    result.slices = NULL;
    free(memory);
    return result;
}

/* Bright and dark areas with a weak texture, as photographs have it; the darkest are the quietest. */
static void draw(float *values, double *mean)
{
    *mean = 0;
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        const double x = (double)(i % SIDE), y = (double)(i / SIDE);
        values[i] = (float)(0.05 + 0.85 * x / SIDE + 0.04 * sin(0.7 * x + 0.4 * y) * (0.2 + x / SIDE));
        *mean += (double)values[i] / (SIDE * SIDE);
    }
}

static void add_noise(float *values, int64_t count, double read, double gain, uint32_t item)
{
    float *normal = room((size_t)count * sizeof *normal);
    tess_rng_normal((tess_rng_key){11, item, 0}, 0, count, normal);
    for (int64_t i = 0; i < count; i++)
        values[i] += normal[i] * (float)sqrt(read * read + gain * fmax((double)values[i], 0));
    free(normal);
}

static void check_near(const char *what, double got, double truth, double margin)
{
    CHECK_MSG(fabs(got / truth - 1) <= margin, "%s: %g, should be %g", what, got, truth);
}

static void test_photons(double gain, float black)
{
    const tess_noise_shape shape = {.height = SIDE, .width = SIDE, .channels = 1};
    float *values = room(SIDE * SIDE * sizeof *values);
    double mean;
    draw(values, &mean);
    add_noise(values, SIDE * SIDE, 0, gain, 1);
    for (int64_t i = 0; i < SIDE * SIDE; i++)
        values[i] += black;
    const tess_noise_result result = estimate(&shape, values);
    const tess_noise_level *level = &result.channel[0];
    check_near("photon noise", level->sigma, sqrt(gain * mean), 0.1);
    check_near("gain", level->gain, gain, 0.25);
    check_near("in the dark", tess_noise_at(level, black + 0.2), sqrt(gain * 0.2), 0.2);
    check_near("in the light", tess_noise_at(level, black + 0.8), sqrt(gain * 0.8), 0.15);
    free(values);
}

/* The same picture with white noise has no gain. */
static void test_white(void)
{
    const tess_noise_shape shape = {.height = SIDE, .width = SIDE, .channels = 1};
    float *values = room(SIDE * SIDE * sizeof *values);
    double mean;
    draw(values, &mean);
    add_noise(values, SIDE * SIDE, 0.04, 0, 2);
    const tess_noise_result result = estimate(&shape, values);
    check_near("white noise", result.sigma, 0.04, 0.1);
    CHECK(result.channel[0].gain == 0 && !result.channel[0].encoded && result.confidence == TESS_NOISE_SURE);
    free(values);
}

/* A result in the units of the image, whatever they are. */
static void test_units(void)
{
    static const double units[] = {1e-36, 1e-24, 1, 1e24, 1e36};
    const tess_noise_shape shape = {.height = SIDE, .width = SIDE, .channels = 1};
    float *values = room(SIDE * SIDE * sizeof *values), *scaled = room(SIDE * SIDE * sizeof *values);
    double mean;
    draw(values, &mean);
    add_noise(values, SIDE * SIDE, 0.04, 0, 3);
    for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
        for (int64_t i = 0; i < SIDE * SIDE; i++)
            scaled[i] = (float)(units[k] * (double)values[i]);
        check_near("in other units", estimate(&shape, scaled).sigma / units[k], 0.04, 0.1);
    }
    free(values), free(scaled);
}

/* Counts of few photons, which many pixels have none of: not white noise clipped at 0. */
static void test_few_photons(int64_t side, double peak)
{
    const tess_noise_shape shape = {.height = side, .width = side, .channels = 1};
    float *picture = room(SIDE * SIDE * sizeof *picture);
    float *values = room((size_t)(side * side) * sizeof *values);
    float *normal = room((size_t)(side * side) * sizeof *normal);
    double mean = 0;
    draw(picture, &mean);
    mean = 0;
    tess_rng_normal((tess_rng_key){12, (uint32_t)peak, 0}, 0, side * side, normal);
    for (int64_t i = 0; i < side * side; i++) {
        const double rate = peak * (double)picture[i / side * SIDE + i % side * SIDE / side];
        values[i] = (float)(fmax(rint(rate + (double)normal[i] * sqrt(rate)), 0) / peak);
        mean += rate / peak / (double)(side * side);
    }
    const tess_noise_result result = estimate(&shape, values);
    CHECK_MSG(result.confidence == TESS_NOISE_SURE, "%g photons, %lld pixels: not sure", peak,
              (long long)side);
    check_near("few photons", result.sigma, sqrt(mean / peak), 0.1);
    check_near("gain of few photons", result.channel[0].gain, 1 / peak, 0.2);
    free(picture), free(values), free(normal);
}

/* A photograph that is mostly black, in 8 bits, with white noise: what clipping leaves of it falls to zero like photons' noise,
 * and fine texture that is a little brighter goes on with that, but the bright parts have no such noise. */
static void test_black(void)
{
    const tess_noise_shape shape = {.height = SIDE, .width = SIDE, .channels = 1, .quantum = 1.0 / 255};
    const double sigma = 2;
    float *values = room(SIDE * SIDE * sizeof *values), *normal = room(2 * SIDE * SIDE * sizeof *normal);
    tess_rng_normal((tess_rng_key){13, 1, 0}, 0, 2 * SIDE * SIDE, normal);
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        const double x = (double)(i % SIDE), y = (double)(i / SIDE), bright = x / SIDE - 0.68;
        const double truth = x < 0.6 * SIDE ? 2 * x / SIDE
                             : bright < 0   ? 24 + 6.5 * (double)normal[SIDE * SIDE + i]
                                            : 40 + 560 * bright + 25 * sin(0.5 * x + 0.3 * y) * sin(0.4 * y);
        values[i] = (float)(fmin(fmax(rint(truth + sigma * (double)normal[i]), 0), 255) / 255);
    }
    check_near("mostly black", 255 * estimate(&shape, values).sigma, sigma, 0.15);
    free(values), free(normal);
}

static double encode(double light)
{
    return light <= 0.0031308 ? 12.92 * fmax(light, 0) : 1.055 * pow(fmin(light, 1), 1 / 2.4) - 0.055;
}

/* Photons and read noise of a camera that writes 8 bits in sRGB: strongest in the dark. */
static void test_encoded(double photons, double read, uint32_t item)
{
    const tess_noise_shape shape = {.height = SIDE, .width = SIDE, .channels = 1};
    float *values = room(SIDE * SIDE * sizeof *values), *normal = room(SIDE * SIDE * sizeof *normal);
    double mean, square = 0, dark = 0, darkest = 0;
    draw(values, &mean);
    tess_rng_normal((tess_rng_key){13, item, 0}, 0, SIDE * SIDE, normal);
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        const double clean = (double)values[i],
                     light = clean < 0.04045 ? clean / 12.92 : pow((clean + 0.055) / 1.055, 2.4),
                     noise = (double)normal[i] * sqrt(light * photons + read * read) / photons;
        values[i] = (float)(rint(255 * encode(light + noise)) / 255);
        const double off = (double)values[i] - clean;
        square += off * off / (SIDE * SIDE);
        if (fabs(clean - 0.15) < 0.03)
            dark += off * off, darkest++;
    }
    const tess_noise_result result = estimate(&shape, values);
    const tess_noise_level *level = &result.channel[0];
    CHECK(level->encoded && result.confidence == TESS_NOISE_SURE);
    check_near("encoded noise", result.sigma, sqrt(square), 0.1);
    check_near("encoded noise in the dark", tess_noise_at(level, 0.15), sqrt(dark / darkest), 0.15);
    free(values), free(normal);
}

/* Each slice of a volume has the level that it has as an image, or about that if it is rough: small slices share their
 * levels. A slice without data has the mean of the others. */
static void check_slices(const char *what, const tess_noise_shape *shape, const float *values, int64_t empty)
{
    const tess_noise_shape one = {.height = shape->height, .width = shape->width, .channels = 1};
    void *memory;
    const tess_noise_result result = estimate_in(shape, values, &memory);
    double square = 0, known = 0;
    for (int64_t d = 0; d < shape->depth; d++) {
        const tess_noise_level alone = estimate(&one, values + d * one.height * one.width).channel[0],
                               *slice = &result.slices[d];
        if (d == empty) {
            CHECK_MSG(slice->sigma == result.channel[0].sigma, "%s: the empty slice has %g", what,
                      slice->sigma);
            continue;
        }
        if (alone.confidence == TESS_NOISE_ROUGH && alone.sigma > 0)
            check_near("a small slice", slice->sigma, alone.sigma, 0.3);
        else
            CHECK_MSG(slice->sigma == alone.sigma && slice->read == alone.read && slice->gain == alone.gain &&
                          slice->zero == alone.zero && slice->confidence == alone.confidence,
                      "%s: slice %lld has %g, alone %g", what, (long long)d, slice->sigma, alone.sigma);
        CHECK(result.confidence <= slice->confidence || slice->sigma == 0);
        if (slice->sigma > 0)
            square += slice->sigma * slice->sigma, known++;
    }
    check_near(what, result.sigma, sqrt(square / known), 1e-6);
    free(memory);
}

/* A volume of noise, whose slice d has the level levels(d, depth); 0: constant; negative: without data. */
static void test_slices(int64_t size, int64_t depth, double (*levels)(int64_t, int64_t))
{
    const tess_noise_shape shape = {.height = size, .width = size, .depth = depth, .channels = 1};
    float *values = room((size_t)(depth * size * size) * sizeof *values);
    int64_t empty = -1;
    const bool alike = levels(0, depth) == levels(depth - 1, depth) && levels(0, depth) == levels(1, depth);
    for (int64_t d = 0; d < depth; d++) {
        const double sigma = levels(d, depth);
        add_noise(values + d * size * size, size * size, fmax(sigma, 0), 0, (uint32_t)(d + 10));
        for (int64_t i = 0; i < size * size && sigma < 0; i++)
            values[d * size * size + i] = i > size * 10 ? NAN : 0.5f;
        empty = sigma < 0 ? d : empty;
    }
    check_slices("slices", &shape, values, empty);
    void *memory;
    const tess_noise_result result = estimate_in(&shape, values, &memory);
    for (int64_t d = 0; d < depth; d++) /* many slices of one level show it well */
        if (levels(d, depth) > 0)
            CHECK_MSG(fabs(result.slices[d].sigma / levels(d, depth) - 1) <
                          (alike && depth > 8 ? 0.04 : 0.25) + 0.002 / levels(d, depth),
                      "slice %lld of %lld: %g, should be %g", (long long)d, (long long)depth,
                      result.slices[d].sigma, levels(d, depth));
    free(values), free(memory);
}

/* Photon noise in slices that differ in brightness and exposure. */
static void test_photon_slices(int64_t depth, double darker, double exposure)
{
    const tess_noise_shape shape = {.height = SIDE, .width = SIDE, .depth = depth, .channels = 1};
    float *values = room((size_t)(depth * SIDE * SIDE) * sizeof *values);
    double mean;
    for (int64_t d = 0; d < depth; d++) {
        float *slice = values + d * SIDE * SIDE;
        draw(slice, &mean);
        for (int64_t i = 0; i < SIDE * SIDE; i++)
            slice[i] *= (float)(1 - darker * (double)d / (double)depth);
        add_noise(slice, SIDE * SIDE, 0, d == depth / 2 ? 0.005 / exposure : 0.005, (uint32_t)(d + 50));
    }
    check_slices("photon slices", &shape, values, -1);
    void *memory;
    const tess_noise_result result = estimate_in(&shape, values, &memory);
    for (int64_t d = 0; d < depth; d++)
        check_near("gain of a slice", result.slices[d].gain, d == depth / 2 ? 0.005 / exposure : 0.005, 0.25);
    free(values), free(memory);
}

static double rising(int64_t d, int64_t depth)
{
    return 0.005 + 0.095 * (double)d / (double)(depth - 1);
}

static double alternating(int64_t d, int64_t depth)
{
    (void)depth;
    return d % 2 ? 0.08 : 0.02;
}

static double moderate(int64_t d, int64_t depth)
{
    return 0.08 + 0.02 * (double)d / (double)(depth - 1);
}

static double one_bad(int64_t d, int64_t depth)
{
    return d == depth / 3 ? 0.1 : 0.02;
}

static double one_empty(int64_t d, int64_t depth)
{
    return d == depth / 2 ? -1 : alternating(d, depth);
}

static double padded(int64_t d, int64_t depth)
{
    return d < depth / 2 ? 0 : 0.05;
}

static double equal(int64_t d, int64_t depth)
{
    (void)d, (void)depth;
    return 0.05;
}

/* A crop of 64 x 64 is often wrong by more than 10 %, so it is not called sure. */
static void test_small(void)
{
    for (int64_t side = 64; side <= 160; side += 96) {
        const tess_noise_shape shape = {.height = side, .width = side, .channels = 1};
        float *values = room((size_t)(side * side) * sizeof *values);
        add_noise(values, side * side, 0.05, 0, 5);
        CHECK(estimate(&shape, values).confidence == (side < 128 ? TESS_NOISE_ROUGH : TESS_NOISE_SURE));
        free(values);
    }
}

int main(void)
{
    test_small();
    test_photons(0.005, 0);
    test_photons(0.02, 0);
    test_photons(0.005, 0.5f);
    for (int64_t side = 160; side <= 240; side += 80)
        for (double peak = 10; peak <= 40; peak *= 2)
            test_few_photons(side, peak);
    test_photon_slices(6, 0, 1);
    test_photon_slices(6, 0.5, 1);
    test_photon_slices(6, 0.5, 10);
    test_white();
    test_black();
    test_encoded(1000, 4, 1);
    test_encoded(150, 2, 2);
    test_units();
    test_slices(72, 6, rising);
    test_slices(72, 40, rising);
    test_slices(160, 8, moderate);
    test_slices(72, 18, alternating);
    test_slices(72, 32, alternating);
    test_slices(72, 20, one_bad);
    test_slices(72, 7, one_empty);
    test_slices(72, 33, one_empty);
    test_slices(72, 6, padded);
    test_slices(20, 6, alternating);
    test_slices(72, 2, equal);
    test_slices(72, 30, equal);
    return check_end();
}
