/* test_quality.c: compares PSNR and SSIM of streamed rows with plain fp64 computations over whole images, at sizes
 * around the window's. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/quality.h"

#include "support.h"

typedef struct images {
    int64_t h, w, c;
    float *a, *b;
} images;

static bool is_hole(float truth)
{
    return isnan(truth);
}

static double clamped(float value)
{
    return value > 1 ? 1 : value > 0 ? value : 0;
}

/* `base` + noise in a, the same with more noise in b; a slope down the rows, so that their order matters. */
static images make(int64_t h, int64_t w, int64_t c, float base, float noise, uint32_t item)
{
    images m = {h, w, c, room((size_t)(h * w * c) * sizeof(float)),
                room((size_t)(h * w * c) * sizeof(float))};
    tess_rng_normal((tess_rng_key){21, item, 0}, 0, h * w * c, m.a);
    tess_rng_normal((tess_rng_key){21, item, 1}, 0, h * w * c, m.b);
    for (int64_t i = 0; i < h * w * c; i++) {
        float row = (float)(i / (w * c)) / (float)h;
        m.a[i] = base * (0.5f + 0.5f * row * row) + noise * m.a[i];
        m.b[i] = m.a[i] + noise * m.b[i];
    }
    return m;
}

static void release(images *m)
{
    free(m->a), free(m->b);
}

static void stream(const images *m, double *psnr, double *ssim)
{
    size_t need = tess_quality_bytes(m->w, m->c);
    unsigned char *lines = room(need + 64);
    memset(lines, 0xff, need + 64); /* NaN, until a row was written there */
    tess_quality quality;
    tess_quality_begin(&quality, m->w, m->c, need ? lines : NULL);
    for (int64_t y = 0; y < m->h; y++)
        tess_quality_row(&quality, m->a + y * m->w * m->c, m->b + y * m->w * m->c);
    *psnr = tess_quality_psnr(&quality);
    *ssim = tess_quality_ssim(&quality);
    for (int i = 0; i < 64; i++)
        CHECK(lines[need + (size_t)i] == 0xff);
    free(lines);
}

static double plain_psnr(const images *m)
{
    double sum = 0, count = 0;
    for (int64_t i = 0; i < m->h * m->w * m->c; i++) {
        if (is_hole(m->b[i]))
            continue;
        double d = clamped(m->a[i]) - clamped(m->b[i]);
        sum += d * d, count++;
    }
    return 10 * log10(count / sum);
}

static bool has_hole(const images *m, int64_t y, int64_t x, int64_t c)
{
    for (int64_t i = 0; i < 121; i++)
        if (is_hole(m->b[((y + i / 11) * m->w + x + i % 11) * m->c + c]))
            return true;
    return false;
}

/* Wang et al.: weights of the 11 x 11 window at once, covariances from their definition. */
static double plain_ssim(const images *m)
{
    double weight[11][11], all = 0, total = 0;
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 11; j++)
            all += weight[i][j] = exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / (2 * 1.5 * 1.5));
    int64_t positions = 0;
    for (int64_t y = 0; y + 11 <= m->h; y++)
        for (int64_t x = 0; x + 11 <= m->w; x++)
            for (int64_t c = 0; c < m->c; c++) {
                if (has_hole(m, y, x, c))
                    continue;
                positions++;
                double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
                for (int pass = 0; pass < 2; pass++)
                    for (int i = 0; i < 11; i++)
                        for (int j = 0; j < 11; j++) {
                            int64_t at = ((y + i) * m->w + x + j) * m->c + c;
                            double a = clamped(m->a[at]), b = clamped(m->b[at]), w = weight[i][j] / all;
                            mean_a += pass ? 0 : w * a;
                            mean_b += pass ? 0 : w * b;
                            aa += pass ? w * (a - mean_a) * (a - mean_a) : 0;
                            bb += pass ? w * (b - mean_b) * (b - mean_b) : 0;
                            ab += pass ? w * (a - mean_a) * (b - mean_b) : 0;
                        }
                total += (2 * mean_a * mean_b + 1e-4) * (2 * ab + 9e-4) /
                         ((mean_a * mean_a + mean_b * mean_b + 1e-4) * (aa + bb + 9e-4));
            }
    return total / (double)positions;
}

static void test_against_plain(void)
{
    static const int64_t heights[] = {11, 12, 13, 21, 22, 23, 34}, widths[] = {11, 12, 17, 30};
    static const struct {
        float base, noise;
    } contents[] = {{0.5f, 0.1f}, {1.0f, 0.5f}, {0.9f, 0.005f}, {1.0f, 0.0005f}, {0.1f, 0.02f}};
    double most = 0;
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++)
        for (size_t j = 0; j < sizeof widths / sizeof widths[0]; j++)
            for (size_t k = 0; k < sizeof contents / sizeof contents[0]; k++) {
                int64_t channels = 1 + (int64_t)(i + j + k) % 3;
                images m =
                    make(heights[i], widths[j], channels, contents[k].base, contents[k].noise, (uint32_t)k);
                double psnr, ssim;
                stream(&m, &psnr, &ssim);
                CHECK_MSG(fabs(psnr - plain_psnr(&m)) < 1e-9, "%.12g dB, expected %.12g", psnr,
                          plain_psnr(&m));
                double off = fabs(ssim - plain_ssim(&m));
                most = off > most ? off : most;
                CHECK_MSG(off < 2e-5, "%lldx%lldx%lld: %.9f, expected %.9f", (long long)heights[i],
                          (long long)widths[j], (long long)channels, ssim, plain_ssim(&m));
                release(&m);
            }
    printf("SSIM is off by %.2g at most\n", most);
}

static void test_identical(void)
{
    images m = make(40, 25, 3, 0.7f, 0.3f, 9);
    memcpy(m.b, m.a, (size_t)(40 * 25 * 3) * sizeof(float));
    double psnr, ssim;
    stream(&m, &psnr, &ssim);
    CHECK(isinf(psnr) && psnr > 0 && ssim == 1);
    for (int i = 0; i < 40 * 25 * 3; i++) { /* differences beyond [0, 1] do not count */
        m.a[i] = i % 2 ? 1.5f : -0.5f;
        m.b[i] = i % 2 ? 7.0f : -3.0f;
    }
    stream(&m, &psnr, &ssim);
    CHECK(isinf(psnr) && ssim == 1);
    release(&m);
}

/* Samples and windows with a hole do not count, whatever the result has there. */
static void test_holes(void)
{
    images m = make(40, 50, 2, 0.6f, 0.1f, 7);
    for (int64_t i = 0; i < 40 * 50 * 2; i++)
        if ((i / 2 % 50 < 25 && i / 100 > 20) || i == 777)
            m.b[i] = NAN, m.a[i] = i % 3 ? 0 : NAN;
    double psnr, ssim;
    stream(&m, &psnr, &ssim);
    CHECK_MSG(fabs(psnr - plain_psnr(&m)) < 1e-9, "%.9g dB, expected %.9g", psnr, plain_psnr(&m));
    CHECK_MSG(fabs(ssim - plain_ssim(&m)) < 2e-5, "%.9g, expected %.9g", ssim, plain_ssim(&m));
    for (int64_t i = 0; i < 40 * 50 * 2; i += 16)
        m.b[i] = NAN, m.b[i + 1] = NAN;
    stream(&m, &psnr, &ssim);
    CHECK(isnan(ssim) && fabs(psnr - plain_psnr(&m)) < 1e-9);
    for (int64_t i = 0; i < 40 * 50 * 2; i++)
        m.b[i] = NAN;
    stream(&m, &psnr, &ssim);
    CHECK(isnan(ssim) && isnan(psnr));
    release(&m);
}

static void test_small(void)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 40}, {40, 1}, {10, 40}, {40, 10}, {10, 10}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        images m = make(sizes[i][0], sizes[i][1], 2, 0.5f, 0.1f, 5);
        double psnr, ssim;
        stream(&m, &psnr, &ssim);
        CHECK(fabs(psnr - plain_psnr(&m)) < 1e-9 && isnan(ssim));
        CHECK((tess_quality_bytes(sizes[i][1], 2) == 0) == (sizes[i][1] < 11));
        release(&m);
    }
    tess_quality quality;
    tess_quality_begin(&quality, 20, 1, NULL);
    CHECK(isnan(tess_quality_psnr(&quality)) && isnan(tess_quality_ssim(&quality)));
}

/* A known number: 0.1 everywhere is 20 dB. */
static void test_known(void)
{
    images m = make(3, 5, 1, 0, 0, 1);
    for (int i = 0; i < 15; i++)
        m.b[i] = 0.1f;
    double psnr, ssim;
    stream(&m, &psnr, &ssim);
    CHECK_MSG(fabs(psnr - 20) < 1e-6, "%.9g", psnr);
    release(&m);
}

int main(void)
{
    test_against_plain();
    test_identical();
    test_holes();
    test_small();
    test_known();
    return check_end();
}
