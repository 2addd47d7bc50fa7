#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/picture.h"

static const unsigned char NO_VALUE[3] = {196, 43, 28};

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The values between which all but a share of them lie on each side; without memory, or values, 0 and 1. */
static void stretch(const tess_reduced *image, double share, double *low, double *high)
{
    const int64_t all = image->height * image->width * image->channels;
    float *sorted = tess_small_alloc((size_t)all, sizeof *sorted);
    int64_t count = 0;
    *low = 0;
    *high = 1;
    for (int64_t i = 0; sorted && i < all; i++)
        if (isfinite(image->values[i]))
            sorted[count++] = image->values[i];
    if (count > 0) {
        qsort(sorted, (size_t)count, sizeof *sorted, by_value);
        *low = (double)sorted[(int64_t)(share * (double)(count - 1))];
        *high = (double)sorted[(int64_t)((1 - share) * (double)(count - 1))];
    }
    if (!(*high > *low))
        *high = *low + 1;
    tess_small_free(sorted);
}

static unsigned char byte_of(double fraction)
{
    return (unsigned char)(255 * fmin(fmax(fraction, 0), 1) + 0.5);
}

void tess_draw_plain(const tess_reduced *image, unsigned char *pixels)
{
    double low, high;
    stretch(image, image->fraction ? 0 : 0.005, &low, &high);
    if (image->fraction || (low >= -0.05 && high <= 1.05 && high > 0.05)) {
        low = 0;
        high = 1;
    }
    for (int64_t i = 0; i < image->height * image->width; i++) {
        const float *v = image->values + i * image->channels;
        for (int c = 0; c < 3; c++) {
            const float value = v[image->channels == 3 ? c : 0];
            pixels[3 * i + c] = isfinite(value) ? byte_of(((double)value - low) / (high - low)) : NO_VALUE[c];
        }
    }
}

void tess_draw_heat(const tess_reduced *image, unsigned char *pixels)
{
    /* readable in gray and to people who do not see all colours: brightness grows evenly */
    static const double scale[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    enum { STEPS = sizeof scale / sizeof scale[0] - 1 };
    double low, high;
    stretch(image, 0.002, &low, &high);
    for (int64_t i = 0; i < image->height * image->width; i++) {
        const float value = image->values[i * image->channels];
        const double at = STEPS * fmin(fmax(((double)value - low) / (high - low), 0), 1);
        const int step = isfinite(value) ? (int)fmin(at, STEPS - 1) : 0;
        for (int c = 0; c < 3; c++)
            pixels[3 * i + c] =
                !isfinite(value)
                    ? (unsigned char)128
                    : byte_of((scale[step][c] + (at - step) * (scale[step + 1][c] - scale[step][c])) / 255);
    }
}

/* Differences to the neighbours, or to the place itself where they have no value or do not exist. */
static void slopes(const tess_reduced *image, int64_t y, int64_t x, double *east, double *south)
{
    const float *v = image->values;
    const int64_t w = image->width, here = y * w + x;
    const int64_t left = x > 0 && isfinite(v[here - 1]) ? here - 1 : here,
                  right = x + 1 < w && isfinite(v[here + 1]) ? here + 1 : here,
                  up = y > 0 && isfinite(v[here - w]) ? here - w : here,
                  down = y + 1 < image->height && isfinite(v[here + w]) ? here + w : here;
    *east = right > left ? ((double)v[right] - (double)v[left]) / (double)(right - left) : 0;
    *south = down > up ? ((double)v[down] - (double)v[up]) / (double)((down - up) / w) : 0;
}

static double usual_slope(const tess_reduced *image)
{
    double sum = 0, east, south;
    int64_t count = 0;
    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++)
            if (isfinite(image->values[y * image->width + x])) {
                slopes(image, y, x, &east, &south);
                sum += east * east + south * south;
                count++;
            }
    return count && sum > 0 ? sqrt(sum / (double)count) : 1;
}

void tess_draw_hillshade(const tess_reduced *image, double *steepness, unsigned char *pixels)
{
    if (image->channels != 1) {
        tess_draw_plain(image, pixels);
        return;
    }
    if (!(*steepness > 0))
        *steepness = usual_slope(image);
    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++) {
            const int64_t i = y * image->width + x;
            double east, south;
            if (!isfinite(image->values[i])) {
                memcpy(pixels + 3 * i, NO_VALUE, 3);
                continue;
            }
            slopes(image, y, x, &east, &south);
            east *= 0.7 / *steepness;
            south *= 0.7 / *steepness;
            /* the surface's normal (-east, -south, 1) with light from the north-west at 45 degrees */
            const double light =
                (0.5 * east + 0.5 * south + sqrt(0.5)) / sqrt(1 + east * east + south * south);
            const unsigned char gray = byte_of(0.1 + 0.85 * fmax(light, 0));
            pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = gray;
        }
}
