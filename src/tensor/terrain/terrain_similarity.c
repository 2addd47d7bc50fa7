/* terrain_similarity.c: PSNR and MS-SSIM (Wang, Simoncelli and Bovik, 2003) of a crop, with piq's conventions: between scales
 * the mean of 2 x 2 pixels, after a row above and a column to the left were repeated when one of the sizes is odd. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/terrain/terrain.h"

enum { TAPS = 11, SCALES = 3, FIELDS = 5 };

/* The scratch: both crops, and the five products filtered along rows. */
static size_t field_bytes(int64_t h, int64_t w)
{
    return tess_align_size((size_t)(h * w) * sizeof(double), 64);
}

size_t tess_terrain_similarity_bytes(int64_t h, int64_t w)
{
    return (2 + FIELDS) * field_bytes(h, w);
}

/* The crops in fractions of the largest height, which is returned; NaN when a value is not finite. */
static double load(const tess_terrain_pair *pair, double *x, double *y)
{
    double most = 0;
    for (int64_t j = 0; j < pair->h; j++)
        for (int64_t i = 0; i < pair->w; i++) {
            const double a = (double)pair->result[j * pair->stride + i] + pair->offset;
            const double b = (double)pair->truth[j * pair->stride + i] + pair->offset;
            if (!isfinite(a) || !isfinite(b))
                return NAN;
            x[j * pair->w + i] = fmax(a, 0), y[j * pair->w + i] = fmax(b, 0);
            most = fmax(most, fmax(a, b));
        }
    for (int64_t i = 0; i < pair->h * pair->w; i++)
        x[i] /= most, y[i] /= most;
    return most > 0 ? most : NAN;
}

static double find_psnr(const double *x, const double *y, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return -10 * log10(sum / (double)count);
}

static void find_window(double window[TAPS])
{
    double sum = 0;
    for (int k = 0; k < TAPS; k++)
        sum += window[k] = exp(-(k - TAPS / 2) * (k - TAPS / 2) / (2 * 1.5 * 1.5));
    for (int k = 0; k < TAPS; k++)
        window[k] /= sum;
}

/* x, y, x^2, y^2 and xy filtered along rows; `fields` are as wide as the positions of the window. */
static void filter_rows(const double *x, const double *y, int64_t h, int64_t w, const double *window,
                        double *fields[FIELDS])
{
    const int64_t columns = w - TAPS + 1;
    for (int64_t j = 0; j < h; j++)
        for (int64_t i = 0; i < columns; i++) {
            double sums[FIELDS] = {0};
            for (int k = 0; k < TAPS; k++) {
                const double a = x[j * w + i + k], b = y[j * w + i + k], weight = window[k];
                sums[0] += weight * a, sums[1] += weight * b;
                sums[2] += weight * a * a, sums[3] += weight * b * b, sums[4] += weight * a * b;
            }
            for (int f = 0; f < FIELDS; f++)
                fields[f][j * columns + i] = sums[f];
        }
}

/* Mean SSIM and mean contrast-structure over the positions of the window. */
static void compare(int64_t h, int64_t w, const double *window, double *fields[FIELDS], double *ssim,
                    double *contrast)
{
    const double c1 = 0.01 * 0.01, c2 = 0.03 * 0.03;
    const int64_t columns = w - TAPS + 1, rows = h - TAPS + 1;
    *ssim = *contrast = 0;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < columns; i++) {
            double s[FIELDS] = {0};
            for (int k = 0; k < TAPS; k++)
                for (int f = 0; f < FIELDS; f++)
                    s[f] += window[k] * fields[f][(j + k) * columns + i];
            const double xx = s[2] - s[0] * s[0], yy = s[3] - s[1] * s[1], xy = s[4] - s[0] * s[1];
            const double cs = (2 * xy + c2) / (xx + yy + c2);
            *contrast += cs;
            *ssim += cs * (2 * s[0] * s[1] + c1) / (s[0] * s[0] + s[1] * s[1] + c1);
        }
    *ssim /= (double)(rows * columns);
    *contrast /= (double)(rows * columns);
}

/* In place: the result is never longer than what was read. */
static void halve(double *x, int64_t h, int64_t w)
{
    const int64_t pad = h % 2 || w % 2, rows = (h + pad) / 2, columns = (w + pad) / 2;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < columns; i++) {
            const int64_t top = tess_max_i64(2 * j - pad, 0), bottom = 2 * j + 1 - pad;
            const int64_t left = tess_max_i64(2 * i - pad, 0), right = 2 * i + 1 - pad;
            x[j * columns + i] =
                (x[top * w + left] + x[top * w + right] + x[bottom * w + left] + x[bottom * w + right]) / 4;
        }
}

void tess_terrain_similarity(const tess_terrain_pair *pair, void *scratch, double *psnr, double *ms_ssim)
{
    static const double weights[SCALES] = {0.0448, 0.2856, 0.3001};
    const size_t stride = field_bytes(pair->h, pair->w) / sizeof(double);
    double *x = scratch, *y = x + stride, *fields[FIELDS], window[TAPS], product = 1;
    int64_t h = pair->h, w = pair->w;
    for (int f = 0; f < FIELDS; f++)
        fields[f] = y + (size_t)(f + 1) * stride;
    *psnr = *ms_ssim = NAN;
    if (h <= 0 || w <= 0 || isnan(load(pair, x, y)))
        return;
    *psnr = find_psnr(x, y, h * w);
    if (h < TESS_TERRAIN_LEAST_CROP || w < TESS_TERRAIN_LEAST_CROP)
        return;
    find_window(window);
    for (int scale = 0; scale < SCALES; scale++) {
        double ssim, contrast;
        if (scale > 0) {
            halve(x, h, w), halve(y, h, w);
            const int64_t pad = h % 2 || w % 2;
            h = (h + pad) / 2, w = (w + pad) / 2;
        }
        filter_rows(x, y, h, w, window, fields);
        compare(h, w, window, fields, &ssim, &contrast);
        product *=
            pow(fmax(scale + 1 < SCALES ? contrast : ssim, 0), weights[scale] / (0.0448 + 0.2856 + 0.3001));
    }
    *ms_ssim = product;
}
