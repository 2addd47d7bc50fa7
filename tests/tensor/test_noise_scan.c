/* test_noise_scan.c: the noise of views with known noise: disks without noise, with white noise, with the noise of
 * counts, cut off at zero, with wires that leave no smooth place, and with too few views or columns. */
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

static double estimate(const scan *s, bool *rough)
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
    void *memory = room(tess_scan_waves_bytes(s->views, s->columns) + 1);
    tess_scan_noise_waves(noise, s->values, s->views, s->columns, memory);
    const double sigma = tess_scan_noise_end(noise, rough);
    free(memory);
    free(noise);
    return sigma;
}

static double after(scan s, double level, bool counts, bool clamped)
{
    add_noise(&s, level, counts);
    for (int64_t i = 0; clamped && i < s.views * s.columns; i++)
        s.values[i] = fmaxf(s.values[i], 0);
    bool rough;
    const double sigma = estimate(&s, &rough);
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

/* Wires of 2 columns that cross nearly every column, at an angle of 180 degrees divided by the views, in a faint disk. */
static scan wires(int64_t views, int64_t columns, int count)
{
    scan s = {views, columns, room((size_t)(views * columns) * sizeof(float))};
    float place[64];
    tess_rng_normal((tess_rng_key){9, 1, 0}, 0, 2 * count, place);
    for (int64_t i = 0; i < views * columns; i++) {
        const double turn = (double)(i / columns) * 3.14159265358979 / (double)views, side = (double)columns,
                     at = (double)(i % columns) + 0.5 - side / 2, radius = 0.38 * side;
        double sum = 0.16 * sqrt(fmax(radius * radius - at * at, 0));
        for (int k = 0; k < count; k++) {
            const double away =
                at - 0.13 * side * ((double)place[2 * k] * cos(turn) - (double)place[2 * k + 1] * sin(turn));
            sum += 1.3 * fmin(fmax(1.5 - fabs(away), 0), 1);
        }
        s.values[i] = (float)sum;
    }
    return s;
}

static void test_wires(void)
{
    static const int64_t views[] = {45, 60, 90, 180}, columns[] = {64, 96, 192};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            for (int count = 3; count < 30; count *= 3)
                for (double level = 0.02; level < 0.2; level *= 3) {
                    const double found = after(wires(views[i], columns[k], count), level, false, false);
                    CHECK_MSG(found > 0.7 * level && found < 1.5 * level,
                              "%d wires, %d views of %d columns, noise %g: %g", count, (int)views[i],
                              (int)columns[k], level, found);
                }
}

/* So few views show nothing but what moves. */
static void test_rough(void)
{
    static const int64_t views[] = {90, 12};
    for (int i = 0; i < 2; i++) {
        scan s = wires(views[i], 96, 9);
        bool rough;
        add_noise(&s, 0.02, false);
        const double found = estimate(&s, &rough);
        CHECK_MSG(rough == (views[i] == 12), "%d views: %g, %s", (int)views[i], found,
                  rough ? "rough" : "sure");
        free(s.values);
    }
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
    test_wires();
    test_rough();
    test_few();
    return check_end();
}
