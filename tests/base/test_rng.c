/* test_rng.c: Philox gives the known answers of its authors (Random123's kat_vectors); values derived from it do not
 * depend on how a range is cut and have the moments of their distributions. */
#define _POSIX_C_SOURCE 200809L
#include "base/rng.h"

#include "support.h"

static void test_known_answers(void)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        tess_philox(cases[i].counter, cases[i].key, out);
        CHECK_MSG(memcmp(out, cases[i].out, sizeof out) == 0, "vector %zu: %08x %08x %08x %08x", i, out[0],
                  out[1], out[2], out[3]);
    }
}

typedef void (*draw_fn)(tess_rng_key, int64_t, int64_t, float *);

/* Ranges far out, where the element's number needs more than 32 bits, too. */
static void check_cuts(draw_fn draw, int64_t origin)
{
    enum { COUNT = 203 };
    const tess_rng_key key = {0x123456789abcdef0u, 5, 9};
    float whole[COUNT], parts[COUNT + 1];
    draw(key, origin, COUNT, whole);
    for (int seed = 0; seed < 200; seed++) {
        dice d = {(uint64_t)seed};
        memset(parts, 0xff, sizeof parts);
        parts[COUNT] = 42;
        for (int64_t at = 0, step; at < COUNT; at += step) {
            step = pick(&d, 0, 9);
            step = step < COUNT - at ? step : COUNT - at;
            draw(key, origin + at, step, parts + at);
        }
        CHECK_MSG(memcmp(whole, parts, sizeof whole) == 0 && parts[COUNT] == 42, "origin %lld, seed %d",
                  (long long)origin, seed);
    }
}

/* Every part of the key and of the counter matters. */
static void check_distinct(draw_fn draw)
{
    static const struct {
        tess_rng_key key;
        int64_t first;
    } places[] = {{{1, 0, 0}, 0},          {{2, 0, 0}, 0}, {{1 + ((uint64_t)1 << 32), 0, 0}, 0},
                  {{1, 1, 0}, 0},          {{1, 0, 1}, 0}, {{1, 0, 0}, (int64_t)1 << 34},
                  {{1, 0, 0}, (int64_t)16}};
    enum { PLACES = sizeof places / sizeof places[0] };
    float values[PLACES][8];
    for (int i = 0; i < PLACES; i++) {
        draw(places[i].key, places[i].first, 8, values[i]);
        for (int j = 0; j < i; j++)
            CHECK_MSG(memcmp(values[i], values[j], sizeof values[i]) != 0, "places %d and %d agree", i, j);
    }
}

enum { MANY = 1 << 20 };
static float values[MANY];

/* Five standard errors: these are fixed numbers, so the test cannot fail by chance, only by change. */
static void test_normal(void)
{
    tess_rng_normal((tess_rng_key){2026, 1, 0}, 0, MANY, values);
    double mean = 0, m2 = 0, m3 = 0, m4 = 0, lag[3] = {0};
    bool finite = true;
    int beyond = 0;
    for (int i = 0; i < MANY; i++) {
        finite &= isfinite(values[i]) != 0;
        mean += values[i];
        m2 += (double)values[i] * values[i];
        m3 += pow(values[i], 3);
        m4 += pow(values[i], 4);
        beyond += fabsf(values[i]) > 1.959964f;
        for (int k = 0; k < 3; k++)
            lag[k] += i > k ? (double)values[i] * values[i - k - 1] : 0;
    }
    const double n = MANY, error = 1 / sqrt(n);
    CHECK(finite);
    CHECK_MSG(fabs(mean / n) < 5 * error, "mean %g", mean / n);
    CHECK_MSG(fabs(m2 / n - 1) < 5 * sqrt(2.0) * error, "variance %g", m2 / n);
    CHECK_MSG(fabs(m3 / n) < 5 * sqrt(15.0) * error, "skewness %g", m3 / n);
    CHECK_MSG(fabs(m4 / n - 3) < 5 * sqrt(96.0) * error, "kurtosis %g", m4 / n);
    CHECK_MSG(fabs(beyond / n - 0.05) < 5 * sqrt(0.05 * 0.95) * error, "tails %g", beyond / n);
    for (int k = 0; k < 3; k++)
        CHECK_MSG(fabs(lag[k] / n) < 5 * error, "neighbours %d apart: %g", k + 1, lag[k] / n);
}

static void test_uniform(void)
{
    tess_rng_uniform((tess_rng_key){2026, 2, 0}, 0, MANY, values);
    double mean = 0, m2 = 0;
    int bins[16] = {0};
    bool inside = true;
    for (int i = 0; i < MANY; i++) {
        inside &= values[i] >= 0 && values[i] < 1;
        mean += values[i];
        m2 += (double)values[i] * values[i];
        bins[(int)(values[i] * 16) & 15]++;
    }
    const double n = MANY, error = 1 / sqrt(n);
    CHECK(inside);
    CHECK_MSG(fabs(mean / n - 0.5) < 5 * sqrt(1.0 / 12) * error, "mean %g", mean / n);
    CHECK_MSG(fabs(m2 / n - 1.0 / 3) < 5 * sqrt(4.0 / 45) * error, "second moment %g", m2 / n);
    double chi = 0;
    for (int b = 0; b < 16; b++)
        chi += (bins[b] - n / 16) * (bins[b] - n / 16) / (n / 16);
    CHECK_MSG(chi < 45, "chi squared %g for 15 degrees of freedom", chi); /* 1e-4 */
}

int main(void)
{
    test_known_answers();
    const draw_fn draws[] = {tess_rng_normal, tess_rng_uniform};
    for (int i = 0; i < 2; i++) {
        for (int64_t origin = 0; origin < 4; origin++)
            check_cuts(draws[i], origin);
        check_cuts(draws[i], ((int64_t)1 << 34) - 101); /* the block's number passes 2^32 */
        check_distinct(draws[i]);
    }
    test_normal();
    test_uniform();
    return check_end();
}
