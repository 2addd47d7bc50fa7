/* The rows of an image divided among ranks by their speeds; the rates of a rank of mean speed. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "plan/machine.h"
#include "plan/ranks/mean_rates.h"
#include "plan/ranks/strips.h"
#include "rank_threads.h"

enum { MOST = TESS_STRIPS_BY_SPEED + 1 };

/* Numbers that look random, the same on every machine. */
static double number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 24);
}

static void check_covers(const tess_strips *s, int64_t height)
{
    int64_t row = 0, most = 0, fewest = height;
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t rows = tess_strips_rows(s, i);
        CHECK_MSG(tess_strips_row(s, i) == row && row % s->step == 0 &&
                      rows >= (i + 1 < s->count ? s->step : 1),
                  "strip %lld of %lld: %lld rows", (long long)i, (long long)s->count, (long long)rows);
        row += rows;
        most = rows > most ? rows : most;
        fewest = rows < fewest ? rows : fewest;
    }
    CHECK(row == height && tess_strips_row(s, s->count) == height);
    CHECK(tess_strips_most(s) == most && tess_strips_least(s) == fewest);
}

static bool same(const tess_strips *a, const tess_strips *b)
{
    bool equal = a->count == b->count;
    for (int64_t i = 0; i < a->count && equal; i++)
        equal = tess_strips_rows(a, i) == tess_strips_rows(b, i);
    return equal;
}

/* The shortest longest time of all divisions: by trying every number of steps of each strip but the last. */
static double best_of(const tess_strips *s, const double *speeds, int64_t index, int64_t steps)
{
    if (index == s->count - 1)
        return (double)(s->height - (s->steps - steps) * s->step) / speeds[index];
    double best = INFINITY;
    for (int64_t mine = 1; steps - mine >= s->count - 1 - index; mine++)
        best = fmin(best, fmax((double)(mine * s->step) / speeds[index],
                               best_of(s, speeds, index + 1, steps - mine)));
    return best;
}

static void check_random(void)
{
    static const int64_t heights[] = {24, 100, 512, 513, 599, 1000, 1024};
    double speeds[MOST];
    uint32_t state = 1;
    int uneven = 0;
    for (size_t i = 0; i < sizeof heights / sizeof *heights; i++)
        for (int64_t ranks = 1; ranks < 40; ranks++) {
            const tess_strips equal = tess_strips_of(8, heights[i], ranks);
            for (int64_t r = 0; r < ranks; r++)
                speeds[r] = 0.5 + number(&state);
            const tess_strips s = tess_strips_by_speed(&equal, speeds);
            const double longest = tess_strips_longest(&s, speeds),
                         of_equal = tess_strips_longest(&equal, speeds);
            check_covers(&s, heights[i]);
            CHECK(s.count == equal.count);
            CHECK_MSG(same(&s, &equal) || longest <= 0.97 * of_equal, "%lld rows, %lld ranks: %g and %g",
                      (long long)heights[i], (long long)ranks, longest, of_equal);
            uneven += s.by_speed;
            if (ranks < 5 && s.steps < 70) {
                const double best = best_of(&equal, speeds, 0, equal.steps);
                CHECK_MSG(longest <= best / 0.97 * (1 + 1e-12) &&
                              (!s.by_speed || longest <= best * (1 + 1e-12)),
                          "%lld rows, %lld ranks: %g, and %g is possible", (long long)heights[i],
                          (long long)ranks, longest, best);
            }
        }
    CHECK_MSG(uneven > 100, "%d", uneven);
}

/* Speeds that are known to 3 % do not change a division, whatever is left over. */
static void check_equal(void)
{
    double speeds[MOST];
    uint32_t state = 7;
    for (int64_t height = 16; height < 1100; height += 11)
        for (int64_t ranks = 1; ranks < 20; ranks++) {
            const tess_strips equal = tess_strips_of(8, height, ranks);
            for (int64_t r = 0; r < ranks; r++)
                speeds[r] = 2 - 0.059 * number(&state);
            const tess_strips s = tess_strips_by_speed(&equal, speeds);
            CHECK_MSG(!s.by_speed && same(&s, &equal), "%lld rows, %lld ranks", (long long)height,
                      (long long)ranks);
        }
}

/* Three of 16 ranks are slow, as seen on a shared machine. */
static void check_slow(void)
{
    double speeds[MOST];
    for (int r = 0; r < MOST; r++)
        speeds[r] = r >= 10 && r <= 12 ? 0.77 : 1;
    const tess_strips equal = tess_strips_of(8, 1024, 16), s = tess_strips_by_speed(&equal, speeds);
    check_covers(&s, 1024);
    for (int r = 0; r < 16; r++) {
        const int64_t rows = tess_strips_rows(&s, r);
        CHECK_MSG(r >= 10 && r <= 12 ? rows == 48 : rows == 64 || rows == 72, "rank %d: %lld rows", r,
                  (long long)rows);
    }
    CHECK(tess_strips_longest(&s, speeds) == 72 && tess_strips_longest(&equal, speeds) == 64 / 0.77);
    /* One that hardly moves keeps one step. */
    speeds[3] = 1e-6;
    const tess_strips stuck = tess_strips_by_speed(&equal, speeds);
    check_covers(&stuck, 1024);
    CHECK(stuck.by_speed && tess_strips_rows(&stuck, 3) == 8);
    /* Too many strips, one strip, one step for each, and speeds that are none: equal. */
    const tess_strips many = tess_strips_of(1, 4096, MOST), one = tess_strips_of(8, 1024, 1),
                      full = tess_strips_of(64, 1024, 16);
    CHECK(!tess_strips_by_speed(&many, speeds).by_speed && !tess_strips_by_speed(&one, speeds).by_speed &&
          !tess_strips_by_speed(&full, speeds).by_speed);
    static const double wrong[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        speeds[3] = wrong[i];
        CHECK(!tess_strips_by_speed(&equal, speeds).by_speed);
    }
}

/* Rank 2 has not measured all classes, and rank 0 lacks one, which stays as it is. */
static void take_mean(rank_thread *t)
{
    tess_rates *rates = ((tess_rates **)t->user)[t->dist.rank];
    tess_error error = {""};
    CHECK_MSG(tess_mean_rates(rates, &t->dist, &error) == TESS_OK, "%s", error.text);
}

static void check_mean(void)
{
    static const char text[] =
        "{\"kind\": \"cpu\", \"device\": \"d\", \"flops\": 1e11, \"bytes_per_second\": 1e10}";
    char path[] = "/tmp/tessera-mean-XXXXXX";
    const int file = mkstemp(path);
    tess_rates *rates[3] = {NULL};
    tess_error error = {""};
    bool opened = file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
    for (int r = 0; r < 3 && opened; r++) {
        opened = tess_machine_read(path, &rates[r], &error) == TESS_OK;
        if (!opened)
            break;
        tess_rates_set(rates[r], "all", 1 + r, 10 - r);
        if (r < 2)
            tess_rates_set(rates[r], "two", 1, 2 + 2 * r);
        if (r > 0)
            tess_rates_set(rates[r], "beyond", r, r);
    }
    CHECK_MSG(opened, "%s", error.text);
    if (opened)
        rank_threads_run(3, NULL, take_mean, rates);
    for (int r = 0; r < 3 && opened; r++) {
        const tess_run_cost all = tess_rates_cost(rates[r], "all"), two = tess_rates_cost(rates[r], "two"),
                            beyond = tess_rates_cost(rates[r], "beyond");
        CHECK(all.overhead == 2 && all.per_pixel == 9 && two.overhead == 1 && two.per_pixel == 3);
        CHECK(beyond.overhead == r && beyond.per_pixel == r);
    }
    for (int r = 0; r < 3; r++)
        tess_rates_destroy(rates[r]);
    if (file >= 0)
        close(file);
    remove(path);
}

int main(void)
{
    check_mean();
    check_random();
    check_equal();
    check_slow();
    return check_end();
}
