/* Moments: merges in any order and size of blocks against sums in long double, affine maps against moments of the mapped
 * pixels. */
#include "tensor/moments.h"

#include <stdint.h>

#include "base/rng.h"
#include "check.h"

enum { C = 7, PIXELS = 1000 };
enum { VALUES = TESS_MOMENTS_MEAN + C + C * C };

static float pixels[PIXELS][C];

/* Values near `level`, far from zero compared with their deviation, and correlated. */
static void fill(double level)
{
    tess_rng_normal((tess_rng_key){5, 1, 1}, 0, (int64_t)PIXELS * C, pixels[0]);
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < C; c++)
            pixels[i][c] =
                (float)(level * (c + 1) + (double)pixels[i][c] + (c ? 0.5 * (double)pixels[i][0] : 0));
}

static void plain(int first, int end, const double *a, const double *b, int outputs, double *to)
{
    long double mean[C] = {0}, m2[C][C] = {{0}}, y[C];
    tess_moments_clear(to, outputs, true);
    for (int pass = 0; pass < 2; pass++)
        for (int i = first; i < end; i++) {
            for (int o = 0; o < outputs; o++) {
                y[o] = b ? b[o] : 0;
                for (int c = 0; c < C; c++)
                    y[o] += (a ? (long double)a[o * C + c] : o == c) * (long double)pixels[i][c];
                to[TESS_MOMENTS_LEAST] = fmin(to[TESS_MOMENTS_LEAST], (double)y[o]);
                to[TESS_MOMENTS_LARGEST] = fmax(to[TESS_MOMENTS_LARGEST], (double)y[o]);
                if (pass == 0)
                    mean[o] += y[o] / (end - first);
            }
            for (int o = 0; pass && o < outputs; o++)
                for (int p = 0; p < outputs; p++)
                    m2[o][p] += (y[o] - mean[o]) * (y[p] - mean[p]);
        }
    to[TESS_MOMENTS_COUNT] = end - first;
    for (int o = 0; o < outputs; o++) {
        to[TESS_MOMENTS_MEAN + o] = (double)mean[o];
        for (int p = 0; p < outputs; p++)
            to[TESS_MOMENTS_MEAN + outputs + o * outputs + p] = (double)m2[o][p];
    }
}

/* Relative to the largest mean, and the largest second moment. */
static void compare(const double *got, const double *want, int c, double bound, const char *what)
{
    double mean = 0, m2 = 0;
    CHECK_MSG(got[0] == want[0], "%s: count %g, not %g", what, got[0], want[0]);
    for (int i = 0; i < c; i++)
        mean = fmax(mean, fabs(want[TESS_MOMENTS_MEAN + i]));
    for (int i = 0; i < c * c; i++)
        m2 = fmax(m2, fabs(want[tess_moments_second(c) + (size_t)i]));
    for (int i = 0; i < c; i++)
        CHECK_MSG(fabs(got[TESS_MOMENTS_MEAN + i] - want[TESS_MOMENTS_MEAN + i]) <= bound * mean,
                  "%s: mean %d", what, i);
    for (int i = 0; i < c * c; i++) {
        const size_t at = tess_moments_second(c) + (size_t)i;
        CHECK_MSG(fabs(got[at] - want[at]) <= bound * m2, "%s: M2 %d: %.17g, not %.17g", what, i, got[at],
                  want[at]);
    }
}

static void check_merge(double level)
{
    double all[VALUES], want[VALUES], part[VALUES], small[VALUES], mean_only[VALUES];
    const int cuts[] = {1, 7, 250, PIXELS};
    fill(level);
    plain(0, PIXELS, NULL, NULL, C, want);
    for (int k = 0; k < 4; k++)
        for (int backwards = 0; backwards < 2; backwards++) {
            const int step = cuts[k], blocks = (PIXELS + step - 1) / step;
            tess_moments_clear(all, C, true);
            tess_moments_clear(mean_only, C, false);
            for (int i = 0; i < blocks; i++) {
                const int first = (backwards ? blocks - 1 - i : i) * step;
                plain(first, first + step < PIXELS ? first + step : PIXELS, NULL, NULL, C, part);
                tess_moments_merge(all, part, C, true);
                tess_moments_merge(mean_only, part, C, false);
            }
            tess_moments_clear(small, C, true);
            tess_moments_merge(all, small, C, true); /* nothing */
            compare(all, want, C, 1e-11, "merge");
            CHECK(all[TESS_MOMENTS_LEAST] == want[TESS_MOMENTS_LEAST] &&
                  all[TESS_MOMENTS_LARGEST] == want[TESS_MOMENTS_LARGEST]);
            CHECK(memcmp(mean_only, all, tess_moments_values(C, false) * sizeof *all) == 0);
            for (int i = 0; i < C; i++)
                for (int j = 0; j < C; j++)
                    CHECK(all[tess_moments_second(C) + (size_t)(i * C + j)] ==
                          all[tess_moments_second(C) + (size_t)(j * C + i)]);
        }
}

static void check_affine(void)
{
    enum { K = 3 };
    double from[VALUES], got[VALUES], want[VALUES], a[C * C] = {0}, b[C];
    fill(20);
    plain(0, PIXELS, NULL, NULL, C, from);
    for (int i = 0; i < K * C; i++)
        a[i] = sin(i + 1);
    for (int i = 0; i < K; i++)
        b[i] = 100 * cos(i);
    tess_moments_affine(from, C, a, b, K, got);
    plain(0, PIXELS, a, b, K, want);
    compare(got, want, K, 1e-11, "affine");
    CHECK(isnan(got[TESS_MOMENTS_LEAST]) && isnan(got[TESS_MOMENTS_LARGEST]));
    /* Every channel, in reverse order, times 0.25, plus 3. */
    memset(a, 0, sizeof a);
    for (int i = 0; i < C; i++) {
        a[i * C + C - 1 - i] = 0.25;
        b[i] = 3;
    }
    tess_moments_affine(from, C, a, b, C, got);
    plain(0, PIXELS, a, b, C, want);
    compare(got, want, C, 1e-11, "scalar");
    CHECK(got[TESS_MOMENTS_LEAST] == want[TESS_MOMENTS_LEAST] &&
          got[TESS_MOMENTS_LARGEST] == want[TESS_MOMENTS_LARGEST]);
    tess_moments_affine(from, C, a, b, C - 1, got); /* one channel is left out: it may have had the extreme */
    CHECK(isnan(got[TESS_MOMENTS_LEAST]));
    a[C - 1] = -0.25;
    tess_moments_affine(from, C, a, b, C, got);
    CHECK(isnan(got[TESS_MOMENTS_LEAST]));
    tess_moments_clear(from, C, true);
    tess_moments_affine(from, C, a, b, C, got);
    CHECK(got[TESS_MOMENTS_COUNT] == 0 && got[TESS_MOMENTS_MEAN] == 0);
}

int main(void)
{
    check_merge(0);
    check_merge(1000);
    check_affine();
    return check_end();
}
