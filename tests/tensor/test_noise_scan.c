/* test_noise_scan.c: the noise of views with known noise: disks without noise, with white noise, with the noise of
 * counts, cut off at zero, and with too few views or columns. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/noise_scan.h"

#include "support.h"

enum { VIEWS = 90, COLUMNS = 128 };

typedef struct scan {
    int64_t views, columns;
    float *values;
} scan;

/* Line integrals of three disks as a detector that turns by 2 degrees a view sees them, times `scale`. */
static scan disks(int64_t views, int64_t columns, double scale)
{
    static const double disk[3][4] = {{1, 0.1, -0.2, 0.13}, {0.4, 0, 0, 0.4}, {0.3, -0.22, 0.1, 0.1}};
    scan s = {views, columns, room((size_t)(views * columns) * sizeof(float))};
    for (int64_t i = 0; i < views * columns; i++) {
        const double turn = (double)(i / columns) * 2 * 3.14159265358979 / 180, side = (double)columns;
        double sum = 0;
        for (int k = 0; k < 3; k++) {
            const double centre = side * (0.5 + disk[k][1] * cos(turn) - disk[k][2] * sin(turn)),
                         away = (double)(i % columns) + 0.5 - centre, radius = disk[k][3] * side;
            sum += disk[k][0] * 2 * sqrt(fmax(radius * radius - away * away, 0));
        }
        s.values[i] = (float)(scale * sum);
    }
    return s;
}

/* Gaussian noise whose variance is `level`^2, times exp(value) for counts. */
static void add_noise(scan *s, double level, bool counts)
{
    float *normal = room((size_t)(s->views * s->columns) * sizeof *normal);
    tess_rng_normal((tess_rng_key){5, 1, 0}, 0, s->views * s->columns, normal);
    for (int64_t i = 0; i < s->views * s->columns; i++)
        s->values[i] += normal[i] * (float)(level * (counts ? exp(0.5 * (double)s->values[i]) : 1));
    free(normal);
}

static double estimate(const scan *s)
{
    float highest = 0;
    for (int64_t i = 0; i < s->views * s->columns; i++)
        highest = fmaxf(highest, s->values[i]);
    tess_scan_noise *noise = room(sizeof *noise);
    tess_scan_noise_begin(noise, (double)highest);
    const float *row = s->values;
    for (int64_t k = 1; k + 1 < s->views; k++, row += s->columns)
        tess_scan_noise_row(noise, row, row + s->columns, row + 2 * s->columns, s->columns);
    for (int64_t k = 0; s->views < 3 && k < s->views; k++, row += s->columns)
        tess_scan_noise_row(noise, NULL, row, NULL, s->columns);
    const double sigma = tess_scan_noise_end(noise);
    free(noise);
    return sigma;
}

static double after(scan s, double level, bool counts, bool clamped)
{
    add_noise(&s, level, counts);
    for (int64_t i = 0; clamped && i < s.views * s.columns; i++)
        s.values[i] = fmaxf(s.values[i], 0);
    const double sigma = estimate(&s);
    free(s.values);
    return sigma;
}

static void test_white(void)
{
    static const double scales[] = {1, 1e-3, 1e4};
    for (int i = 0; i < 3; i++)
        for (double level = 0.1; level < 10; level *= 3) {
            const double found = after(disks(VIEWS, COLUMNS, scales[i]), scales[i] * level, false, false);
            CHECK_MSG(fabs(found / (scales[i] * level) - 1) < 0.12, "noise %g: %g", scales[i] * level, found);
        }
    const double cut = after(disks(VIEWS, COLUMNS, 1), 0.5, false, true);
    CHECK_MSG(fabs(cut / 0.5 - 1) < 0.12, "no values below zero: %g", cut);
}

/* Each ray weighted by its variance. */
static void test_counts(void)
{
    scan s = disks(VIEWS, COLUMNS, 0.07);
    double squares = 0, fourths = 0;
    for (int64_t i = 0; i < VIEWS * COLUMNS; i++) {
        const double variance = exp((double)s.values[i]) / 5000;
        squares += variance, fourths += variance * variance;
    }
    const double right = sqrt(fourths / squares), found = after(s, 1 / sqrt(5000), true, false);
    CHECK_MSG(fabs(found / right - 1) < 0.15, "counts: %g, but it is %g", found, right);
}

static void test_clean(void)
{
    const double found = after(disks(VIEWS, COLUMNS, 1), 0, false, false);
    CHECK_MSG(found >= 0 && found < 0.02, "without noise: %g", found);
    scan nothing = {VIEWS, COLUMNS, room(VIEWS * COLUMNS * sizeof(float))};
    CHECK(after(nothing, 0, false, false) < 0);
}

static void test_few(void)
{
    const double found = after(disks(2, 4096, 1), 2, false, false);
    CHECK_MSG(fabs(found / 2 - 1) < 0.2, "two views: %g", found);
    CHECK(after(disks(VIEWS, 2, 1), 1, false, false) < 0);
    CHECK(after(disks(1, 8, 1), 1, false, false) < 0);
}

int main(void)
{
    test_white();
    test_counts();
    test_clean();
    test_few();
    return check_end();
}
