/* noise.c: computes patches and their energies from rows. noise_fit.c estimates the noise from them. */
#include "tensor/noise.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { SIDE = TESS_NOISE_SIDE, SAMPLES = SIDE * SIDE, FIRST = 3 };

/* Rows 3 .. 7 of the 8-point DCT-II: only these contribute to coefficients (i, j) with i + j >= 10. */
static const float dct[SIDE - FIRST][SIDE] = {
    {0.41573481f, -0.09754516f, -0.49039264f, -0.27778512f, 0.27778512f, 0.49039264f, 0.09754516f,
     -0.41573481f},
    {0.35355339f, -0.35355339f, -0.35355339f, 0.35355339f, 0.35355339f, -0.35355339f, -0.35355339f,
     0.35355339f},
    {0.27778512f, -0.49039264f, 0.09754516f, 0.41573481f, -0.41573481f, -0.09754516f, 0.49039264f,
     -0.27778512f},
    {0.19134172f, -0.46193977f, 0.46193977f, -0.19134172f, -0.19134172f, 0.46193977f, -0.46193977f,
     0.19134172f},
    {0.09754516f, -0.27778512f, 0.41573481f, -0.49039264f, 0.49039264f, -0.41573481f, 0.27778512f,
     -0.09754516f},
};

/* Finds the smallest step between patches that takes at most TESS_NOISE_PATCHES of them from an image. Every
 * step-th row of patches is used. */
static int64_t find_step(const tess_noise_shape *shape, int64_t *most)
{
    const int64_t across = shape->width - SIDE + 1, down = shape->height - SIDE + 1;
    *most = 0;
    if (across <= 0 || down <= 0 || shape->channels < 1 || shape->channels > TESS_NOISE_CHANNELS)
        return 1;
    for (int64_t step = 1;; step += tess_max_i64(step / 8, 1)) {
        int64_t total;
        if (tess_mul_i64(tess_ceil_div(down, step), tess_ceil_div(across, step), &total) &&
            total <= TESS_NOISE_PATCHES) {
            *most = total;
            return step;
        }
    }
}

static size_t lines_bytes(const tess_noise_shape *shape)
{
    return tess_align_size((size_t)shape->width * (size_t)shape->channels * SIDE * sizeof(float), 16);
}

static size_t above_bytes(const tess_noise_shape *shape)
{
    return tess_align_size((size_t)tess_noise_weave_blocks(shape) * sizeof(float), 16);
}

static size_t patch_bytes(const tess_noise_shape *shape, int64_t most)
{
    return tess_align_size((size_t)most * (size_t)shape->channels * sizeof(tess_noise_patch), 16);
}

/* Places of noise_shared.c: every second one across and down. */
static int64_t most_triples(const tess_noise_shape *shape, int64_t step)
{
    const int64_t across = shape->width - SIDE + 1, down = shape->height - SIDE + 1;
    return shape->channels == 3 ? tess_ceil_div(down, 2 * step) * tess_ceil_div(across, 2 * step) : 0;
}

static size_t triple_bytes(const tess_noise_shape *shape, int64_t step)
{
    return tess_align_size((size_t)most_triples(shape, step) * sizeof(tess_noise_triple), 16);
}

static size_t place_bytes(const tess_noise_shape *shape, int64_t most)
{
    return tess_align_size((size_t)most * (size_t)shape->channels, 16);
}

static size_t single_bytes(const tess_noise_shape *shape, int64_t most)
{
    return tess_align_size((size_t)tess_noise_singles(most) * (size_t)shape->channels * sizeof(float), 16);
}

size_t tess_noise_bytes(const tess_noise_shape *shape)
{
    int64_t most;
    size_t slices;
    const int64_t step = find_step(shape, &most);
    if (most == 0 || !tess_noise_slices_bytes(shape, &slices))
        return 0;
    return lines_bytes(shape) + above_bytes(shape) + 2 * patch_bytes(shape, most) +
           2 * (size_t)most * sizeof(uint64_t) + triple_bytes(shape, step) + 2 * place_bytes(shape, most) +
           single_bytes(shape, most) + slices;
}

static void begin_image(tess_noise *noise)
{
    noise->rows = noise->triple_count = 0;
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++) {
        noise->count[c] = noise->samples[c] = 0;
        noise->flat_in_part[c] = false;
        noise->finest[c] = INFINITY;
        noise->weave[c] = (tess_noise_weave){0};
        noise->least[c] = (tess_noise_limit){.value = INFINITY};
        noise->largest[c] = (tess_noise_limit){.value = -INFINITY};
    }
}

void tess_noise_begin(tess_noise *noise, const tess_noise_shape *shape, void *memory)
{
    *noise = (tess_noise){.shape = *shape};
    noise->step = find_step(shape, &noise->most);
    begin_image(noise);
    if (noise->most == 0)
        return;
    char *at = memory;
    noise->lines = (float *)at;
    noise->above = (float *)(at += lines_bytes(shape));
    noise->patches = (tess_noise_patch *)(at += above_bytes(shape));
    noise->plain = (tess_noise_patch *)(at += patch_bytes(shape, noise->most));
    noise->order = (uint64_t *)(at += patch_bytes(shape, noise->most));
    noise->triples = (tess_noise_triple *)(at += 2 * (size_t)noise->most * sizeof(uint64_t));
    noise->places = (unsigned char *)(at += triple_bytes(shape, noise->step));
    noise->equal = (unsigned char *)(at += place_bytes(shape, noise->most));
    noise->singles = (float *)(at += place_bytes(shape, noise->most));
    noise->triple_most = most_triples(shape, noise->step);
    if (shape->depth > 1)
        tess_noise_place_slices(noise, at + single_bytes(shape, noise->most));
}

/* The same rows of the DCT of +1, -1, +1, ...: a checker of single samples has coefficients in proportion to the
 * products. */
static const float alternating[SIDE - FIRST] = {0.60134489f, 0, 0.89997622f, 0, 2.56291545f};

/* The energies of the coefficients with i + j in {10, 11} and with i + j above 11. */
typedef struct bands {
    float middle, high;
} bands;

/* The energies that are left of `coefficients` without that part of each band that has the direction of a checker. */
static bands without_checker(float coefficients[SIDE][SIDE])
{
    float along[2] = {0}, length[2] = {0}, left[2] = {0};
    for (int i = FIRST; i < SIDE; i += 2)
        for (int j = FIRST; j < SIDE; j += 2) {
            const float part = alternating[i - FIRST] * alternating[j - FIRST];
            along[i + j > 11] += i + j < 10 ? 0 : part * coefficients[i][j];
            length[i + j > 11] += i + j < 10 ? 0 : part * part;
        }
    for (int i = FIRST; i < SIDE; i++)
        for (int j = 10 - i; j < SIDE; j++) {
            const int band = i + j > 11;
            const float part = alternating[i - FIRST] * alternating[j - FIRST],
                        rest = coefficients[i][j] - along[band] / length[band] * part;
            left[band] += rest * rest;
        }
    return (bands){left[0], left[1]};
}

/* `x` is the patch minus its mean. *plain: the same without a checker. */
static bands high_bands(float x[SIDE][SIDE], bands *plain)
{
    float coefficients[SIDE][SIDE];
    bands all = {0};
    float down[SIDE - FIRST][SIDE];
    for (int i = 0; i < SIDE - FIRST; i++)
        for (int k = 0; k < SIDE; k++) {
            float sum = 0;
            for (int y = 0; y < SIDE; y++)
                sum += dct[i][y] * x[y][k];
            down[i][k] = sum;
        }
    for (int i = FIRST; i < SIDE; i++)
        for (int j = 10 - i; j < SIDE; j++) {
            float sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += dct[j - FIRST][k] * down[i - FIRST][k];
            *(i + j < 12 ? &all.middle : &all.high) += sum * sum;
            coefficients[i][j] = sum;
        }
    *plain = without_checker(coefficients);
    return all;
}

/* The energy of the patch without a pattern of 2 x 2 samples that repeats. */
static float without_pattern(float x[SIDE][SIDE])
{
    float mean[2][2] = {{0}}, square = 0;
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++)
            mean[y % 2][k % 2] += x[y][k] * (4.0f / SAMPLES);
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++)
            square += (x[y][k] - mean[y % 2][k % 2]) * (x[y][k] - mean[y % 2][k % 2]);
    return square;
}

/* Returns a power of two that divides the largest sample to about 1, so that squares neither underflow nor overflow. Its
 * inverse is a normal float, too, so that products replace calls of ldexpf. */
static float scale_of(float x[SIDE][SIDE])
{
    float largest = 0;
    int exponent;
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++)
            largest = fmaxf(largest, fabsf(x[y][k]));
    frexpf(largest, &exponent);
    return ldexpf(1, exponent < -126 ? -126 : exponent > 126 ? 126 : exponent);
}

/* *plain: the same without a pattern of 2 x 2 samples, so that each high band has one degree of freedom less, and the
 * low one too. Returns false when a sample is a hole. */
static bool measure(float x[SIDE][SIDE], tess_noise_patch *patch, tess_noise_patch *plain)
{
    const float first = x[0][0]; /* subtracted first, so that a constant patch has exactly zero energy */
    float sum = 0, square = 0;
    bands left;
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++) {
            x[y][k] -= first;
            sum += x[y][k];
        }
    if (!isfinite(sum))
        return false;
    const float scale = scale_of(x), inverse = 1 / scale, mean = inverse * (sum / SAMPLES);
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++) {
            x[y][k] = inverse * x[y][k] - mean;
            square += x[y][k] * x[y][k];
        }
    const bands all = high_bands(x, &left);
    const float rest = without_pattern(x) - left.middle - left.high;
    patch->mean = plain->mean = first + scale * mean;
    patch->low = scale * sqrtf(fmaxf(square - all.middle - all.high, 0) / 48);
    patch->middle = scale * sqrtf(all.middle / 9);
    patch->high = scale * sqrtf(all.high / 6);
    plain->low = scale * sqrtf(fmaxf(rest, 0) / 47);
    plain->middle = scale * sqrtf(left.middle / 8);
    plain->high = scale * sqrtf(left.high / 5);
    return true;
}

/* Takes the patches of a channel that end with the newest row. Each row of patches starts at another column, so
 * that the patches cover all phases of a JPEG file's blocks. */
static void take_patches(tess_noise *noise, int channel, int64_t patch_row)
{
    const int64_t width = noise->shape.width, step = noise->step;
    const float *line[SIDE];
    for (int y = 0; y < SIDE; y++) {
        int64_t slot = (noise->rows + 1 + y) % SIDE; /* oldest first */
        line[y] = noise->lines + (slot * noise->shape.channels + channel) * width;
    }
    tess_noise_patch *patches = noise->patches + channel * noise->most,
                     *plain = noise->plain + channel * noise->most;
    unsigned char *places = noise->places + channel * noise->most;
    const int64_t down = (noise->rows - SIDE + 1) * TESS_NOISE_GRID / (noise->shape.height - SIDE + 1);
    for (int64_t at = patch_row % 7 * 3 % step; at + SIDE <= width; at += step) {
        float x[SIDE][SIDE];
        for (int y = 0; y < SIDE; y++)
            memcpy(x[y], line[y] + at, sizeof x[y]);
        const int64_t count = noise->count[channel];
        const unsigned char equal = tess_noise_count_equal(x);
        const float single = x[SIDE / 2][SIDE / 2];
        if (count == noise->most || !measure(x, &patches[count], &plain[count]))
            continue;
        places[count] = (unsigned char)(down * TESS_NOISE_GRID + at * TESS_NOISE_GRID / (width - SIDE + 1));
        noise->equal[channel * noise->most + count] = equal;
        if (count % TESS_NOISE_SPARSE == 0)
            noise->singles[channel * tess_noise_singles(noise->most) + count / TESS_NOISE_SPARSE] = single;
        noise->count[channel]++;
    }
}

static void count_limit(tess_noise_limit *limit, float value, bool beyond)
{
    if (beyond)
        *limit = (tess_noise_limit){value, 0};
    limit->count += value == limit->value;
}

/* Stores a row of one channel. Holes become NaN, so that every patch with a hole has NaN as its mean. */
static void keep_line(tess_noise *noise, int channel, const float *values, const unsigned char *valid)
{
    const int64_t width = noise->shape.width;
    const int channels = noise->shape.channels;
    tess_noise_limit least = noise->least[channel], largest = noise->largest[channel];
    float *line = noise->lines + (noise->rows % SIDE * channels + channel) * width;
    int64_t samples = 0;
    for (int64_t i = 0; i < width; i++) {
        const float value = values[i * channels + channel];
        const bool hole = (valid && !valid[i * channels + channel]) || !isfinite(value);
        line[i] = hole ? NAN : value;
        if (hole)
            continue;
        samples++;
        count_limit(&least, value, value < least.value);
        count_limit(&largest, value, value > largest.value);
    }
    tess_noise_find_step(noise, channel, line);
    noise->samples[channel] += samples;
    noise->least[channel] = least, noise->largest[channel] = largest;
}

void tess_noise_row(tess_noise *noise, const float *values, const unsigned char *valid)
{
    if (noise->most == 0)
        return;
    const int64_t patch_row = noise->rows - (SIDE - 1);
    for (int c = 0; c < noise->shape.channels; c++) {
        keep_line(noise, c, values, valid);
        if (patch_row >= 0 && patch_row % noise->step == 0)
            take_patches(noise, c, patch_row / noise->step);
        if (noise->rows % SIDE == SIDE - 1)
            tess_noise_weave_rows(noise, c);
    }
    if (noise->triple_most && patch_row >= 0 && patch_row % (2 * noise->step) == 0)
        tess_noise_take_triples(noise, patch_row / noise->step);
    if (++noise->rows < noise->shape.height)
        return;
    tess_noise_find_flat(noise);
    if (noise->slices) {
        tess_noise_end_slice(noise);
        begin_image(noise);
    }
}
