/* noise_shared.c: how much of their noise three channels share.
 *
 * The noise of a gray picture stored as colours, of film grain, and of a JPEG file whose colours have half the resolution is the
 * same in all channels; a network that was trained on independent noise takes it for detail. In the patches with the least
 * energy, the high frequencies (second differences along both axes) of two channels are compared. Texture is common to the
 * channels of a photograph as well, and can only raise their correlation. So what they do not share is also compared with
 * the level of the noise: independent noise leaves all of its variance in the differences, whatever the texture. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { SIDE = TESS_NOISE_SIDE, INNER = SIDE - 2, FEWEST = 40, CHANNELS = 3 };
static const double quietest = 0.01; /* share of the patches that are compared */
static const double gain = 6;        /* of a second difference along both axes, for white noise */
static const int pairs[CHANNELS][2] = {{0, 1}, {0, 2}, {1, 2}};

/* Scales the patch to about 1, so that squares neither underflow nor overflow. Returns the exponent of that power of two;
 * false in *usable: the patch has a hole, or is constant. */
static int scale(float x[SIDE][SIDE], bool *usable)
{
    const float first = x[0][0];
    float largest = 0;
    int exponent = 0;
    *usable = true;
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++) {
            x[y][k] -= first;
            *usable = *usable && isfinite(x[y][k]);
            largest = fmaxf(largest, fabsf(x[y][k]));
        }
    *usable = *usable && largest > 0;
    if (!*usable)
        return 0;
    frexpf(largest, &exponent);
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++)
            x[y][k] = ldexpf(x[y][k], -exponent);
    return exponent;
}

static float deviation(float x[SIDE][SIDE])
{
    float sum = 0, square = 0;
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++)
            sum += x[y][k], square += x[y][k] * x[y][k];
    return sqrtf(fmaxf(square / (SIDE * SIDE) - sum * sum / (SIDE * SIDE * SIDE * SIDE), 0));
}

static void differences(float x[SIDE][SIDE], float high[INNER * INNER])
{
    float across[SIDE][INNER];
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < INNER; k++)
            across[y][k] = x[y][k] - 2 * x[y][k + 1] + x[y][k + 2];
    for (int y = 0; y < INNER; y++)
        for (int k = 0; k < INNER; k++)
            high[y * INNER + k] = across[y][k] - 2 * across[y + 1][k] + across[y + 2][k];
}

static float product(const float *a, const float *b)
{
    float sum = 0;
    for (int i = 0; i < INNER * INNER; i++)
        sum += a[i] * b[i];
    return sum;
}

static bool measure(float x[CHANNELS][SIDE][SIDE], tess_noise_triple *triple)
{
    float high[CHANNELS][INNER * INNER], length[CHANNELS], energy = 0;
    for (int c = 0; c < CHANNELS; c++) {
        bool usable;
        const int exponent = scale(x[c], &usable);
        if (!usable)
            return false;
        differences(x[c], high[c]);
        length[c] = sqrtf(product(high[c], high[c]));
        if (!(length[c] > 0))
            return false;
        triple->high[c] = ldexpf(length[c] / (INNER * (float)gain), exponent);
        energy = hypotf(energy, ldexpf(deviation(x[c]), exponent));
    }
    triple->energy = energy;
    for (int p = 0; p < CHANNELS; p++) {
        const int a = pairs[p][0], b = pairs[p][1];
        triple->cosine[p] = product(high[a], high[b]) / (length[a] * length[b]);
    }
    return true;
}

void tess_noise_take_triples(tess_noise *noise, int64_t patch_row)
{
    const int64_t width = noise->shape.width, step = noise->step;
    for (int64_t at = patch_row % 7 * 3 % step; at + SIDE <= width; at += 2 * step) {
        float x[CHANNELS][SIDE][SIDE];
        for (int c = 0; c < CHANNELS; c++)
            for (int y = 0; y < SIDE; y++) {
                const int64_t slot = (noise->rows + 1 + y) % SIDE; /* oldest first; the newest row is kept */
                memcpy(x[c][y], noise->lines + (slot * CHANNELS + c) * width + at, sizeof x[c][y]);
            }
        if (noise->triple_count < noise->triple_most && measure(x, &noise->triples[noise->triple_count]))
            noise->triple_count++;
    }
}

double tess_noise_find_shared(const tess_noise *noise, const tess_noise_level *levels, double *most)
{
    const int64_t all = noise->triple_count, count = tess_max_i64(FEWEST, (int64_t)(quietest * (double)all));
    double square[CHANNELS] = {0}, both[CHANNELS] = {0}, sum = 0;
    *most = 0;
    if (all < FEWEST)
        return 0;
    for (int64_t i = 0; i < all; i++)
        noise->order[i] = tess_noise_key(noise->triples[i].energy, i);
    tess_noise_sort(noise->order, all, noise->order + noise->most);
    for (int64_t i = 0; i < count; i++) {
        const tess_noise_triple *triple = &noise->triples[noise->order[i] & UINT32_MAX];
        double high[CHANNELS]; /* in noise levels */
        for (int c = 0; c < CHANNELS; c++) {
            if (!(levels[c].sigma > 0))
                return 0;
            high[c] = (double)triple->high[c] / levels[c].sigma;
            square[c] += high[c] * high[c] / (double)count;
        }
        for (int p = 0; p < CHANNELS; p++)
            both[p] += (double)triple->cosine[p] * high[pairs[p][0]] * high[pairs[p][1]] / (double)count;
    }
    for (int p = 0; p < CHANNELS; p++) {
        const double a = square[pairs[p][0]], b = square[pairs[p][1]], apart = (a + b) / 2 - both[p];
        const double shared = fmax(fmin(both[p] / sqrt(a * b), 1 - apart), 0);
        sum += shared / CHANNELS;
        *most = fmax(*most, shared);
    }
    return sum;
}
