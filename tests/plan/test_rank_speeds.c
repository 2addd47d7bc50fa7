/* The rows of an image divided among ranks by their speeds; the rates of a rank of mean speed. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Strips of a network of four levels, whose kernels compute four rows at a time. */
static tess_strips with_levels(int64_t height, int64_t ranks)
{
    tess_strips s = tess_strips_of(32, height, ranks);
    s.levels = (tess_levels){.count = 4,
                             .step = {4, 4, 4, 4},
                             .least = {1, 1, 1, 1},
                             .share = {2 / 7.0, 2 / 7.0, 2 / 7.0, 1 / 7.0},
                             .grid = 8};
    return s;
}

/* Speeds that are known to 3 % do not change a division, whatever is left over. */
static void check_equal(void)
{
    double speeds[MOST];
    uint32_t state = 7;
    for (int64_t height = 16; height < 1100; height += 11)
        for (int64_t ranks = 1; ranks < 20; ranks++) {
            const tess_strips equal =
                height % 2 ? with_levels(height, ranks) : tess_strips_of(8, height, ranks);
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

static double longest_at(const tess_strips *s, int level, const double *speeds)
{
    double longest = 0;
    for (int64_t i = 0; i < s->count; i++)
        longest = fmax(longest, (double)tess_strips_level_rows(s, i).rows[level] / speeds[i]);
    return longest;
}

/* All levels are covered, strips begin where kernels allow it, and neighbours have what layers between levels read of them. */
static void check_level_rows(const tess_strips *s)
{
    const int64_t padded = (s->height + 7) / 8 * 8;
    int64_t end[4] = {0};
    for (int64_t i = 0; i < s->count; i++) {
        const tess_level_rows mine = tess_strips_level_rows(s, i),
                              above = tess_strips_level_rows(s, i ? i - 1 : 0);
        for (int l = 0; l < 4; l++) {
            CHECK_MSG(mine.first[l] == end[l] && mine.first[l] % 4 == 0 && mine.rows[l] > 0,
                      "level %d: strip %lld of %lld rows at %d", l, (long long)i, (long long)mine.rows[l],
                      mine.first[l]);
            end[l] += mine.rows[l];
            const int apart = l < 3 ? abs(2 * mine.first[l + 1] - mine.first[l]) : 0;
            CHECK(apart <= mine.rows[l] && apart <= above.rows[l]);
            CHECK(l == 3 || (apart <= 2 * mine.rows[l + 1] && apart <= 2 * above.rows[l + 1]));
        }
        CHECK(tess_strips_row(s, i) == mine.first[0] && tess_strips_rows(s, i) > 0);
    }
    for (int l = 0; l < 4; l++)
        CHECK(end[l] == padded >> l);
}

/* With two steps of the deepest level for each rank, nothing could be divided by speed if all levels began at the same place. */
static void check_levels(void)
{
    static const double speeds[] = {1, 0.7, 1, 1};
    const tess_strips equal = with_levels(256, 4), s = tess_strips_by_speed(&equal, speeds);
    tess_strips same_place = equal;
    same_place.levels.count = 0;
    CHECK(!tess_strips_by_speed(&same_place, speeds).by_speed);
    CHECK(s.by_speed && s.by_level);
    if (!s.by_level)
        return;
    static const int32_t slow[] = {48, 24, 12, 8};
    const tess_level_rows rows = tess_strips_level_rows(&s, 1);
    check_level_rows(&s);
    for (int l = 0; l < 4; l++)
        CHECK_MSG(rows.rows[l] == slow[l], "level %d: %d rows", l, rows.rows[l]);
    CHECK(fabs(tess_strips_longest(&s, speeds) - (2 * 72 + 2 * 72 + 2 * 80 + 64 / 0.7) / 7) < 1e-9);
    const tess_level_rows none = tess_strips_level_rows(&equal, 1);
    CHECK(!tess_level_rows_given(&none) && tess_level_rows_given(&rows));
}

/* The deepest level is divided as well as it can be; the whole is better than strips that begin at the same place everywhere. */
static void check_random_levels(void)
{
    double speeds[MOST];
    uint32_t state = 3;
    int by_level = 0;
    for (int64_t ranks = 2; ranks < 24; ranks++)
        for (int i = 0; i < 20; i++) {
            const int64_t height = 32 * ranks + (int64_t)(number(&state) * 40 * (double)ranks);
            const tess_strips equal = with_levels(height, ranks);
            tess_strips same_place = equal;
            same_place.levels.count = 0;
            for (int64_t r = 0; r < ranks; r++)
                speeds[r] = i % 2 ? 0.2 + number(&state) : 1 - 0.3 * floor(2 * number(&state));
            const tess_strips s = tess_strips_by_speed(&equal, speeds),
                              other = tess_strips_by_speed(&same_place, speeds);
            by_level += s.by_level;
            if (!s.by_level) {
                CHECK(same(&s, &other));
                continue;
            }
            check_level_rows(&s);
            CHECK(tess_strips_longest(&s, speeds) <= 0.97 * tess_strips_longest(&other, speeds));
            if (ranks > 4)
                continue;
            const tess_strips deepest = tess_strips_of(4, (height + 7) / 8, ranks);
            CHECK(fabs(longest_at(&s, 3, speeds) - best_of(&deepest, speeds, 0, deepest.steps)) < 1e-9);
        }
    CHECK_MSG(by_level > 100, "%d", by_level);
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
    check_levels();
    check_random_levels();
    return check_end();
}
