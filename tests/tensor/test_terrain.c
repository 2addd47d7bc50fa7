/* test_terrain.c: terrain metrics against values known in closed form and against plain sums; the normalisation of windows
 * and its inverse. bench/peers/check_terrain.py holds the metrics against NumPy. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/terrain/terrain.h"

#include "base/rng.h"
#include "check.h"
#include "tensor/terrain/relief.h"
#include "tensor/terrain/smooth.h"

enum { H = 60, W = 50 };

static void *room(size_t bytes)
{
    void *data = NULL;
    if (posix_memalign(&data, 64, bytes + 64))
        abort();
    memset(data, 0xff, bytes);
    return data;
}

static void add_rows(tess_terrain *terrain, const float *result, const float *truth, const uint8_t *flags,
                     const uint8_t *classes)
{
    for (int64_t y = 0; y < H; y++) {
        const float *r = result + y * W, *t = truth + y * W;
        const tess_terrain_rows a = {y ? r - W : NULL, r, y + 1 < H ? r + W : NULL};
        const tess_terrain_rows b = {y ? t - W : NULL, t, y + 1 < H ? t + W : NULL};
        tess_terrain_row(terrain, &a, &b, flags + y * W, classes ? classes + y * W : NULL);
    }
}

/* Planes of known slopes, 10 m x 20 m pixels: the errors are exact. */
static void test_planes(void)
{
    static float result[H * W], truth[H * W];
    static uint8_t flags[H * W], classes[H * W];
    int64_t first = 0;
    for (int i = 0; i < H * W; i++) {
        const int y = i / W, x = i % W;
        truth[i] = (float)(10 * x);      /* 45 degrees */
        result[i] = (float)(20 * y + 3); /* 45 degrees the other way: no error of the slope */
        flags[i] = y < 30;
        classes[i] = x < 5 ? TESS_VOID_NARROW : TESS_VOID_WIDE;
        if (x == 7)
            truth[i] = NAN;
        first += flags[i] && x < 5;
    }
    tess_terrain terrain;
    tess_terrain_begin(&terrain, W, 20, 10);
    add_rows(&terrain, result, truth, flags, classes);
    double sum = 0, square = 0, absolute = 0, count = 0;
    for (int i = 0; i < H * W; i++)
        if (flags[i] && i % W != 7) {
            const double d = (double)(result[i] - truth[i]);
            sum += d, square += d * d, absolute += fabs(d), count++;
        }
    tess_terrain_errors e = tess_terrain_result(&terrain.all);
    CHECK(e.pixels == (int64_t)count && fabs(e.bias - sum / count) < 1e-12 &&
          fabs(e.mae - absolute / count) < 1e-12);
    CHECK(fabs(e.rmse - sqrt(square / count)) < 1e-12);
    CHECK_MSG(e.slope_rmse < 1e-9 && e.slope_mae < 1e-9, "%g", e.slope_rmse);
    CHECK(terrain.all.slopes == 29 * (W - 2 - 3)); /* not at the edges, nor beside the unknown column */
    CHECK(terrain.classes[TESS_VOID_NARROW].pixels == first && terrain.classes[TESS_VOID_MIDDLE].pixels == 0);
    CHECK(terrain.classes[TESS_VOID_NARROW].pixels + terrain.classes[TESS_VOID_WIDE].pixels == e.pixels);
    e = tess_terrain_result(&terrain.classes[TESS_VOID_MIDDLE]);
    CHECK(isnan(e.rmse) && isnan(e.mae) && isnan(e.bias) && isnan(e.slope_rmse) && e.pixels == 0);
    for (int i = 0; i < H * W; i++)
        result[i] = 5, truth[i] = (float)(5 + 10 * (i % W));
    tess_terrain_begin(&terrain, W, 20, 10);
    add_rows(&terrain, result, truth, flags, NULL);
    e = tess_terrain_result(&terrain.all);
    CHECK_MSG(fabs(e.slope_mae - 45) < 1e-9 && fabs(e.slope_rmse - 45) < 1e-9, "%g", e.slope_mae);
}

static void measure(const float *result, const float *truth, int64_t h, int64_t w, double offset,
                    double *psnr, double *ssim)
{
    void *scratch = room(tess_terrain_similarity_bytes(h, w));
    tess_terrain_similarity(&(tess_terrain_pair){result, truth, h, w, W, offset}, scratch, psnr, ssim);
    free(scratch);
}

static void test_similarity(void)
{
    static float a[H * W], b[H * W], noise[H * W];
    double psnr, ssim, other, worse;
    tess_rng_normal((tess_rng_key){8, 0, 0}, 0, H * W, noise);
    for (int i = 0; i < H * W; i++)
        b[i] = 60 + 40 * sinf((float)(i % W) / 6) * cosf((float)(i / W) / 7), a[i] = b[i];
    measure(a, b, H, W, 0, &psnr, &ssim);
    CHECK(isinf(psnr) && fabs(ssim - 1) < 1e-12);
    for (int i = 0; i < H * W; i++)
        a[i] = b[i] + 10 * noise[i] / 10;
    measure(a, b, H, W, 0, &psnr, &ssim);
    for (int i = 0; i < H * W; i++)
        a[i] = b[i] + 10 * noise[i];
    measure(a, b, H, W, 0, &other, &worse);
    CHECK(ssim < 0.9999 && worse < ssim && worse > 0 && fabs(psnr - other - 20) < 3);
    /* The same heights as float minus an offset, and as they are. */
    for (int i = 0; i < H * W; i++)
        a[i] = b[i] + 4;
    measure(a, b, H, W, 0, &psnr, &ssim);
    for (int i = 0; i < H * W; i++)
        a[i] -= 64, b[i] -= 64;
    measure(a, b, H, W, 64, &other, &worse);
    CHECK_MSG(fabs(psnr - other) < 1e-4 && fabs(ssim - worse) < 1e-6, "%g %g", psnr - other, ssim - worse);
    measure(a, b, 40, W, 64, &psnr, &ssim);
    CHECK(isfinite(psnr) && isnan(ssim)); /* too small for three scales */
    measure(a, b, H, W, -1000, &psnr, &ssim);
    CHECK(isnan(psnr) && isnan(ssim)); /* all below 0 */
    b[3] = NAN;
    measure(a, b, H, W, 64, &psnr, &ssim);
    CHECK(isnan(psnr) && isnan(ssim));
}

static void test_relief(void)
{
    static float truth[H * W], smooth[H * W], out[H * W], back[H * W];
    static uint8_t flags[H * W];
    tess_rng_normal((tess_rng_key){9, 0, 0}, 0, H * W, truth);
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < H * W; i++) {
        truth[i] = 500 + 20 * sinf((float)(i % W) / 4) + 5 * truth[i];
        flags[i] = abs(i / W - 30) < 10 && abs(i % W - 25) < 8;
        smooth[i] = flags[i] ? -9999 : truth[i];
        if (!flags[i])
            low = fmin(low, (double)truth[i]), high = fmax(high, (double)truth[i]);
    }
    void *scratch = room(tess_smooth_bytes(H, W)), *other = room(tess_relief_bytes(H, W));
    CHECK(tess_smooth_fill(&(tess_smooth_window){smooth, flags, H, W, scratch}, TESS_SMOOTH_BLEND, NULL) ==
          TESS_OK);
    tess_relief_window window = {truth, flags, smooth, H, W, 0.01, other};
    for (int kind = 0; kind < 2; kind++) {
        tess_relief relief;
        tess_relief_fit(&window, (tess_relief_kind)kind, &relief);
        tess_relief_apply(&relief, truth, NULL, smooth, H * W, out);
        tess_relief_restore(&relief, out, smooth, H * W, back);
        for (int i = 0; i < H * W; i++) {
            const float most = kind == TESS_RELIEF_SMOOTH ? 2 : 1;
            CHECK(fabsf(out[i]) <= most && (fabsf(out[i]) == most || fabsf(back[i] - truth[i]) < 1e-3f));
            CHECK(flags[i] || kind == TESS_RELIEF_MINMAX || out[i] == 0);
        }
        if (kind == TESS_RELIEF_MINMAX)
            CHECK(fabs(relief.centre - (low + high) / 2) < 1e-9 &&
                  fabs(relief.scale - (high - low) / 2) < 1e-9);
        else
            CHECK_MSG(relief.scale > 5 && relief.scale < 100 && relief.width == 16, "%g %g", relief.scale,
                      relief.width);
        tess_relief_apply(&relief, truth, flags, smooth, H * W, out);
        for (int i = 0; i < H * W; i++)
            CHECK(!flags[i] || out[i] == 0);
    }
    for (int i = 0; i < H * W; i++) /* a level window, with NaN in the void */
        truth[i] = flags[i] ? NAN : 7, smooth[i] = 7;
    for (int kind = 0; kind < 2; kind++) {
        tess_relief relief;
        tess_relief_fit(&window, (tess_relief_kind)kind, &relief);
        CHECK(relief.scale == 0.01);
        tess_relief_apply(&relief, truth, flags, smooth, H * W, out);
        tess_relief_restore(&relief, out, smooth, H * W, back);
        for (int i = 0; i < H * W; i++)
            CHECK(out[i] == 0 && back[i] == 7);
    }
    memset(flags, 1, sizeof flags); /* nothing is valid */
    for (int kind = 0; kind < 2; kind++) {
        tess_relief relief;
        tess_relief_fit(&window, (tess_relief_kind)kind, &relief);
        CHECK(relief.scale == 0.01 && relief.centre == 0);
    }
    free(scratch), free(other);
}

int main(void)
{
    test_planes();
    test_similarity();
    test_relief();
    return check_end();
}
