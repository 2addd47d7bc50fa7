/* test_voids.c: compares what is found of the voids of random maps, by rows and in words of bits, with plain searches. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/terrain/voids.h"

#include "base/rng.h"
#include "check.h"

enum { CANARY = 64 };

typedef struct map {
    int64_t h, w;
    uint8_t *flags;
    tess_bitmap bits;
} map;

static void *room(size_t bytes)
{
    unsigned char *data = NULL;
    if (posix_memalign((void **)&data, 64, bytes + CANARY))
        abort();
    memset(data, 0xa5, bytes + CANARY);
    return data;
}

static void release(void *data, size_t bytes)
{
    for (int i = 0; i < CANARY; i++)
        CHECK(((unsigned char *)data)[bytes + (size_t)i] == 0xa5);
    free(data);
}

/* Random blocks of `grain` pixels, void with probability `share`. */
static map make(int64_t h, int64_t w, float share, int64_t grain, uint32_t item)
{
    map m = {h, w, room((size_t)(h * w)), {0}};
    tess_bitmap_init(&m.bits, h, w, room(tess_bitmap_bytes(h, w)));
    for (int64_t i = 0; i < h * w; i++) {
        float draw;
        tess_rng_uniform((tess_rng_key){4, item, 0}, i / w / grain * 1000 + i % w / grain, 1, &draw);
        m.flags[i] = draw < share;
    }
    tess_bitmap_write(&m.bits, 0, 0, h, w, m.flags);
    return m;
}

static void drop(map *m)
{
    release(m->bits.bits, tess_bitmap_bytes(m->h, m->w));
    release(m->flags, (size_t)(m->h * m->w));
}

/* Numbers the voids from 1; labels are 0 at valid pixels. Returns how many. */
static int label(const map *m, int *labels)
{
    int64_t *stack = room((size_t)(m->h * m->w) * sizeof *stack), top;
    int count = 0;
    memset(labels, 0, (size_t)(m->h * m->w) * sizeof *labels);
    for (int64_t i = 0; i < m->h * m->w; i++) {
        if (!m->flags[i] || labels[i])
            continue;
        labels[i] = ++count;
        stack[0] = i, top = 1;
        while (top > 0) {
            const int64_t at = stack[--top], y = at / m->w, x = at % m->w;
            for (int64_t j = y - 1; j <= y + 1; j++)
                for (int64_t k = x - 1; k <= x + 1; k++)
                    if (j >= 0 && j < m->h && k >= 0 && k < m->w && m->flags[j * m->w + k] &&
                        !labels[j * m->w + k])
                        labels[j * m->w + k] = count, stack[top++] = j * m->w + k;
        }
    }
    free(stack);
    return count;
}

static int64_t plain_square(const map *m, int64_t y, int64_t x)
{
    int64_t best = TESS_VOID_FAR;
    for (int64_t j = 0; j < m->h; j++)
        for (int64_t k = 0; k < m->w; k++)
            if (!m->flags[j * m->w + k] && (j - y) * (j - y) + (k - x) * (k - x) < best)
                best = (j - y) * (j - y) + (k - x) * (k - x);
    return best;
}

static void keep(void *arg, int64_t y, const int64_t *squares)
{
    const map *m = ((void **)arg)[0];
    int64_t *all = ((void **)arg)[1];
    memcpy(all + y * m->w, squares, (size_t)m->w * sizeof *all);
}

static void check_outer(const map *m, const int *labels, int count)
{
    const size_t bytes = tess_voids_outer_bytes(m->h, m->w);
    tess_bitmap outer, inner = m->bits;
    tess_bitmap_init(&outer, m->h, m->w, room(tess_bitmap_bytes(m->h, m->w)));
    void *scratch = room(bytes);
    bool *touches = room((size_t)count + 1);
    memset(touches, 0, (size_t)count + 1);
    for (int64_t i = 0; i < m->h * m->w; i++)
        if (i / m->w == 0 || i / m->w == m->h - 1 || i % m->w == 0 || i % m->w == m->w - 1)
            touches[labels[i]] = true;
    tess_voids_outer(&m->bits, &outer, scratch);
    int64_t wrong = 0, set = 0;
    for (int64_t i = 0; i < m->h * m->w; i++) {
        const bool expected = m->flags[i] && touches[labels[i]];
        wrong += tess_bitmap_get(&outer, i / m->w, i % m->w) != expected;
        set += expected;
    }
    CHECK_MSG(wrong == 0, "%lld pixels of %lld x %lld", (long long)wrong, (long long)m->h, (long long)m->w);
    CHECK(tess_bitmap_count(&outer) == set); /* none beyond the rows' ends */
    inner.bits = room(tess_bitmap_bytes(m->h, m->w));
    memcpy(inner.bits, m->bits.bits, tess_bitmap_bytes(m->h, m->w));
    tess_bitmap_subtract(&inner, &outer);
    CHECK(tess_bitmap_count(&inner) == tess_bitmap_count(&m->bits) - set);
    release(inner.bits, tess_bitmap_bytes(m->h, m->w)), release(outer.bits, tess_bitmap_bytes(m->h, m->w));
    release(scratch, bytes), free(touches);
}

/* Distances, the limit made from them, and the classes. */
static void check_distances(const map *m, int64_t *squares)
{
    const size_t bytes = tess_voids_distance_bytes(m->h, m->w);
    void *scratch = room(bytes), *args[2] = {(void *)(uintptr_t)m, squares};
    tess_voids_distances(&m->bits, scratch, keep, args);
    int64_t wrong = 0, over = 0;
    tess_bitmap near = m->bits;
    near.bits = room(tess_bitmap_bytes(m->h, m->w));
    memcpy(near.bits, m->bits.bits, tess_bitmap_bytes(m->h, m->w));
    tess_voids_limit(&m->bits, 2.5, &near, scratch);
    for (int64_t i = 0; i < m->h * m->w; i++) {
        wrong += squares[i] != plain_square(m, i / m->w, i % m->w);
        over += tess_bitmap_get(&near, i / m->w, i % m->w) != (m->flags[i] && squares[i] <= 6);
    }
    CHECK_MSG(wrong == 0 && over == 0, "%lld and %lld of %lld x %lld", (long long)wrong, (long long)over,
              (long long)m->h, (long long)m->w);
    tess_bitmap same = m->bits; /* limited in place */
    same.bits = room(tess_bitmap_bytes(m->h, m->w));
    memcpy(same.bits, m->bits.bits, tess_bitmap_bytes(m->h, m->w));
    tess_voids_limit(&same, 2.5, &same, scratch);
    CHECK(memcmp(same.bits, near.bits, tess_bitmap_bytes(m->h, m->w)) == 0);
    release(same.bits, tess_bitmap_bytes(m->h, m->w));
    release(near.bits, tess_bitmap_bytes(m->h, m->w)), release(scratch, bytes);
}

static void count_one(void *arg, const tess_void_one *one)
{
    int64_t *sums = arg;
    sums[0]++, sums[1] += one->pixels;
    sums[2] += one->top + 3 * one->left + 5 * one->bottom + 7 * one->right + 11 * one->at_edge;
}

static void check_summary(const map *m, const int *labels, int count, const int64_t *squares)
{
    tess_void_one *plain = room((size_t)(count + 1) * sizeof *plain);
    tess_void_summary summary;
    int64_t sums[3] = {0}, expected = 0, classes[TESS_VOID_CLASSES] = {0}, largest = 0, edges = 0;
    double widest = 0;
    for (int k = 0; k <= count; k++)
        plain[k] = (tess_void_one){.top = m->h, .left = m->w};
    for (int64_t i = 0; i < m->h * m->w; i++) {
        tess_void_one *one = &plain[labels[i]];
        const int64_t y = i / m->w, x = i % m->w;
        one->pixels++;
        one->top = y < one->top ? y : one->top, one->bottom = y + 1;
        one->left = x < one->left ? x : one->left, one->right = x + 1 > one->right ? x + 1 : one->right;
        one->at_edge |= y == 0 || x == 0 || y == m->h - 1 || x == m->w - 1;
        one->width = fmax(one->width, squares[i] == TESS_VOID_FAR ? INFINITY : 2 * sqrt((double)squares[i]));
    }
    for (int k = 1; k <= count; k++) {
        expected += plain[k].top + 3 * plain[k].left + 5 * plain[k].bottom + 7 * plain[k].right +
                    11 * plain[k].at_edge;
        classes[plain[k].width < 16 ? 0 : plain[k].width <= 64 ? 1 : 2]++;
        largest = plain[k].pixels > largest ? plain[k].pixels : largest;
        edges += plain[k].at_edge;
        widest = fmax(widest, plain[k].width);
    }
    const size_t bytes = tess_voids_summary_bytes(m->h, m->w), walk = tess_voids_walk_bytes(m->h, m->w);
    void *scratch = room(bytes);
    tess_voids_summary(&m->bits, scratch, count_one, sums, &summary);
    CHECK_MSG(summary.count == count && sums[0] == count, "%lld voids, not %d", (long long)summary.count,
              count);
    CHECK(summary.pixels == tess_bitmap_count(&m->bits) && sums[1] == summary.pixels && sums[2] == expected);
    CHECK(summary.largest.pixels == largest && summary.widest.width == widest && summary.at_edge == edges);
    for (int k = 0; k < TESS_VOID_CLASSES; k++)
        CHECK(summary.counts[k] == classes[k]);
    release(scratch, bytes);
    uint8_t *found = room((size_t)(m->h * m->w));
    scratch = room(walk);
    tess_voids_classify(m->flags, m->h, m->w, scratch, found);
    for (int64_t i = 0; i < m->h * m->w; i++)
        CHECK(found[i] == (m->flags[i] ? tess_void_class_of(plain[labels[i]].width) : TESS_VOID_CLASSES));
    release(scratch, walk), release(found, (size_t)(m->h * m->w)), free(plain);
}

static void check_map(map *m)
{
    int *labels = room((size_t)(m->h * m->w) * sizeof *labels);
    int64_t *squares = room((size_t)(m->h * m->w) * sizeof *squares);
    const int count = label(m, labels);
    check_outer(m, labels, count);
    check_distances(m, squares);
    check_summary(m, labels, count, squares);
    free(labels), free(squares);
}

static void test_random(void)
{
    static const int64_t sizes[][2] = {{1, 1},   {1, 70},   {70, 1},   {7, 64}, {20, 65},
                                       {40, 63}, {33, 128}, {50, 130}, {2, 200}};
    static const float shares[] = {0, 0.05f, 0.4f, 0.6f, 0.9f, 1.1f};
    uint32_t item = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
            for (int64_t grain = 1; grain <= 9; grain += 4) {
                map m = make(sizes[s][0], sizes[s][1], shares[k], grain, item++);
                check_map(&m);
                drop(&m);
            }
}

/* A spiral from the edge to the middle, one pixel wide: every turn must be followed. */
static void test_spiral(void)
{
    enum { N = 67 };
    map m = make(N, N, 0, 1, 0);
    int y = 0, x = 0, dy = 0, dx = 1;
    for (int moves = 0; moves < N * N; moves++) {
        m.flags[y * N + x] = 1;
        const int ay = y + 2 * dy, ax = x + 2 * dx, by = y + dy, bx = x + dx;
        const bool out = by < 0 || by >= N || bx < 0 || bx >= N;
        if (out || (ay >= 0 && ay < N && ax >= 0 && ax < N && m.flags[ay * N + ax])) {
            const int turn = dy;
            dy = dx, dx = -turn;
            if (m.flags[(y + dy) * N + x + dx])
                break;
        }
        y += dy, x += dx;
    }
    tess_bitmap_write(&m.bits, 0, 0, N, N, m.flags);
    CHECK(tess_bitmap_count(&m.bits) > N * N / 3);
    check_map(&m);
    m.flags[0] = 0; /* still connected to the edge beside the corner */
    m.flags[5] = 0; /* cut: nothing of the rest touches the edge but the first side */
    tess_bitmap_write(&m.bits, 0, 0, N, N, m.flags);
    check_map(&m);
    drop(&m);
}

static void test_windows(void)
{
    map m = make(30, 200, 0.5f, 3, 99);
    for (int64_t x = 0; x < 140; x += 13) {
        const int64_t y = x % 7, h = 9, w = 1 + x % 60;
        uint8_t part[9 * 60];
        int64_t count = 0;
        tess_bitmap_read(&m.bits, y, x, h, w, part);
        for (int64_t i = 0; i < h * w; i++) {
            CHECK(part[i] == m.flags[(y + i / w) * 200 + x + i % w]);
            count += part[i], part[i] = !part[i];
        }
        CHECK(tess_bitmap_count_window(&m.bits, y, x, h, w) == count);
        const int64_t before = tess_bitmap_count(&m.bits);
        tess_bitmap_write(&m.bits, y, x, h, w, part);
        CHECK(tess_bitmap_count(&m.bits) == before + h * w - 2 * count);
        tess_bitmap_read(&m.bits, 0, 0, 30, 200, m.flags);
    }
    drop(&m);
}

int main(void)
{
    test_random();
    test_spiral();
    test_windows();
    return check_end();
}
