/* test_void_maker.c: voids for training: the same for one counter, different for others, of the shapes and sizes asked for. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/terrain/void_maker.h"

#include "check.h"
#include "tensor/terrain/voids.h"

enum { N = 128 };

static uint8_t flags[N * N], again[N * N];
static unsigned char scratch[N * N * 8 + (1 << 16)];
static _Alignas(64) unsigned char walk[N * N * 64];

static tess_void_request plain(tess_void_shape shape)
{
    tess_void_request request;
    tess_void_request_init(&request, N, N);
    for (int k = 0; k < TESS_VOID_SHAPES; k++)
        request.shares[k] = k == (int)shape;
    return request;
}

typedef struct found {
    int count;
    bool at_edge;
    double width;
    int64_t largest;
    tess_void_one one;
} found;

static void add(void *arg, const tess_void_one *one, const int32_t *pixels)
{
    (void)pixels;
    found *sum = arg;
    sum->count++;
    sum->at_edge |= one->at_edge;
    sum->width = fmax(sum->width, one->width);
    if (one->pixels > sum->largest)
        sum->largest = one->pixels, sum->one = *one;
}

static found look(void)
{
    found sum = {0};
    tess_voids_walk(flags, N, N, walk, add, &sum);
    return sum;
}

static void test_counter(void)
{
    tess_void_request request;
    tess_void_request_init(&request, N, N);
    int same = 0;
    for (uint32_t i = 0; i < 50; i++) {
        request.seed = 7, request.step = 3, request.index = i;
        memset(scratch, (int)i, sizeof scratch);
        tess_void_make(&request, flags, scratch);
        memset(scratch, 0xff, sizeof scratch);
        tess_void_make(&request, again, scratch);
        CHECK(memcmp(flags, again, sizeof flags) == 0);
        request.step = 4;
        tess_void_make(&request, again, scratch);
        same += memcmp(flags, again, sizeof flags) == 0;
        request.step = 3, request.seed = 8;
        tess_void_make(&request, again, scratch);
        same += memcmp(flags, again, sizeof flags) == 0;
        int64_t set = 0;
        for (int k = 0; k < N * N; k++) {
            CHECK(flags[k] <= 1);
            set += flags[k];
        }
        CHECK(set > 0 && (float)set <= request.most * N * N);
    }
    CHECK_MSG(same < 3, "%d are equal", same);
}

static void test_rectangles(void)
{
    tess_void_request request = plain(TESS_VOID_RECTANGLE);
    request.smallest = 10, request.largest = 50, request.at_edge = 0.5f;
    int edges = 0;
    for (uint32_t i = 0; i < 100; i++) {
        request.index = i;
        tess_void_make(&request, flags, scratch);
        const found f = look();
        const int64_t h = f.one.bottom - f.one.top, w = f.one.right - f.one.left;
        CHECK(f.count == 1 && f.largest == h * w && h <= 50 && w <= 50);
        CHECK(f.at_edge || (h >= 10 && w >= 10));
        edges += f.at_edge;
    }
    CHECK_MSG(edges > 10 && edges < 60, "%d at the edge", edges);
}

static void test_stripes(void)
{
    tess_void_request request = plain(TESS_VOID_STRIPES);
    request.smallest = 6, request.largest = 30;
    for (uint32_t i = 0; i < 50; i++) {
        request.index = i;
        tess_void_make(&request, flags, scratch);
        const found f = look();
        CHECK_MSG(f.at_edge && f.width <= 66, "width %g",
                  f.width); /* twice the stripe, where the edge cuts it */
    }
}

/* The logarithm of the blobs' areas has the median and the spread that were asked for. */
static void test_blobs(void)
{
    enum { COUNT = 400 };
    tess_void_request request = plain(TESS_VOID_BLOBS);
    request.median = 20, request.spread = 0.8f, request.at_edge = 0;
    request.smallest = 1, request.largest = 100;
    double sum = 0, square = 0, round = 0;
    int inside = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        request.index = i;
        tess_void_make(&request, flags, scratch);
        const found f = look();
        int64_t set = 0;
        for (int k = 0; k < N * N; k++)
            set += flags[k];
        const double area = log((double)set);
        sum += area, square += area * area;
        inside += !f.at_edge;
        round += f.width / sqrt((double)f.largest * 4 / 3.14159265);
    }
    const double mean = sum / COUNT, deviation = sqrt(square / COUNT - mean * mean),
                 median = log(3.14159265 / 4 * 400);
    /* Some windows have several blobs, so their sum is somewhat above. */
    CHECK_MSG(mean > median && mean < median + 0.6, "%g, not %g", mean, median);
    CHECK_MSG(deviation > 0.6 && deviation < 1.0, "%g", deviation);
    CHECK_MSG(inside > COUNT * 8 / 10, "%d", inside);
    CHECK_MSG(round / COUNT > 0.5 && round / COUNT < 0.95, "%g", round / COUNT); /* neither thin nor a disc */
}

int main(void)
{
    CHECK(tess_void_maker_bytes(N, N) <= sizeof scratch && tess_voids_walk_bytes(N, N) <= sizeof walk);
    test_counter();
    test_rectangles();
    test_stripes();
    test_blobs();
    return check_end();
}
