/* test_arena.c: random lifetimes: tensors that live at the same time do not overlap, and the size is between the
 * lower bound and the sum. Chains, which most networks are, must reach the bound. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/arena.h"

#include "support.h"

enum { MOST = 60 };

static size_t padded(size_t size)
{
    return (size + TESS_ARENA_ALIGN - 1) / TESS_ARENA_ALIGN * TESS_ARENA_ALIGN;
}

/* The bound again, step by step. */
static size_t most_alive(const tess_lifetime *buffers, int count, int steps)
{
    size_t most = 0;
    for (int step = 0; step < steps; step++) {
        size_t alive = 0;
        for (int i = 0; i < count; i++)
            if (buffers[i].first <= step && step <= buffers[i].last)
                alive += padded(buffers[i].bytes);
        most = alive > most ? alive : most;
    }
    return most;
}

static bool lie_apart(const tess_lifetime *a, const tess_lifetime *b)
{
    bool meet = a->first <= b->last && b->first <= a->last;
    return !meet || !a->bytes || !b->bytes || a->offset + a->bytes <= b->offset ||
           b->offset + b->bytes <= a->offset;
}

/* Returns the total. */
static size_t check_placing(tess_lifetime *buffers, int count, int steps, int seed)
{
    int order[MOST];
    size_t total = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        buffers[i].offset = SIZE_MAX;
        sum += padded(buffers[i].bytes);
    }
    tess_arena_place(buffers, count, order, &total);
    for (int i = 0; i < count; i++) {
        CHECK_MSG(buffers[i].offset % TESS_ARENA_ALIGN == 0, "seed %d: offset %zu", seed, buffers[i].offset);
        CHECK_MSG(buffers[i].offset + buffers[i].bytes <= total, "seed %d: buffer %d beyond the end", seed,
                  i);
        for (int j = 0; j < i; j++)
            CHECK_MSG(lie_apart(&buffers[i], &buffers[j]), "seed %d: buffers %d and %d overlap", seed, i, j);
    }
    CHECK_MSG(tess_arena_lower_bound(buffers, count) == most_alive(buffers, count, steps), "seed %d", seed);
    CHECK_MSG(total >= most_alive(buffers, count, steps) && total <= sum, "seed %d: %zu", seed, total);
    return total;
}

static void test_random(void)
{
    for (int seed = 0; seed < 400; seed++) {
        dice d = {(uint64_t)seed};
        tess_lifetime buffers[MOST];
        int count = (int)pick(&d, 1, MOST), steps = (int)pick(&d, 1, 40);
        for (int i = 0; i < count; i++) {
            buffers[i] = (tess_lifetime){.first = (int)pick(&d, 0, steps - 1)};
            buffers[i].last = (int)pick(&d, buffers[i].first, steps - 1);
            buffers[i].bytes = pick(&d, 0, 9) ? (size_t)pick(&d, 1, 100000) : 0;
        }
        size_t total = check_placing(buffers, count, steps, seed);
        tess_lifetime again[MOST];
        memcpy(again, buffers, sizeof again);
        CHECK(check_placing(again, count, steps, seed) == total); /* no state, no luck */
        for (int i = 0; i < count; i++)
            CHECK(again[i].offset == buffers[i].offset);
    }
}

/* Each buffer is read by the next step only. When sizes go up and then down, the bound is reached. */
static void test_chains(void)
{
    for (int seed = 0; seed < 200; seed++) {
        dice d = {1000 + (uint64_t)seed};
        tess_lifetime buffers[MOST];
        int count = (int)pick(&d, 2, MOST), peak = (int)pick(&d, 0, count - 1);
        size_t size = (size_t)pick(&d, 1, 5000);
        for (int i = 0; i < count; i++) {
            size =
                i <= peak ? size + (size_t)pick(&d, 0, 3000) : size - (size_t)pick(&d, 0, (int64_t)size / 4);
            buffers[i] = (tess_lifetime){.bytes = size, .first = i, .last = i + 1};
        }
        size_t total = check_placing(buffers, count, count + 1, seed);
        CHECK_MSG(total == tess_arena_lower_bound(buffers, count), "chain %d: %zu for %zu", seed, total,
                  tess_arena_lower_bound(buffers, count));
    }
}

/* A network with skips: the earliest lives longest. */
static void test_nested(void)
{
    for (int scales = 1; scales <= 12; scales++) {
        tess_lifetime buffers[MOST];
        int count = 0;
        for (int s = 0; s < scales; s++)
            buffers[count++] =
                (tess_lifetime){.bytes = (size_t)1000 << s, .first = s, .last = 2 * scales - s};
        size_t total = check_placing(buffers, count, 2 * scales + 1, scales);
        CHECK(total == tess_arena_lower_bound(buffers, count));
    }
}

static void test_empty(void)
{
    size_t total = 7;
    int order[4];
    tess_arena_place(NULL, 0, order, &total);
    CHECK(total == 0 && tess_arena_lower_bound(NULL, 0) == 0);
    tess_lifetime buffers[4] = {{0, 0, 9, 0}, {0, 3, 3, 0}, {100, 0, 9, 0}, {0, 5, 9, 0}};
    CHECK(check_placing(buffers, 4, 10, -1) == TESS_ARENA_ALIGN);
    tess_lifetime nothing[2] = {{0, 0, 1, 0}, {0, 1, 2, 0}};
    CHECK(check_placing(nothing, 2, 3, -2) == 0);
}

int main(void)
{
    test_random();
    test_chains();
    test_nested();
    test_empty();
    return check_end();
}
