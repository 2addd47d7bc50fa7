/* Holes are filled from their surroundings; the result depends only on the image. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "check.h"
#include "job/common/holes.h"

enum { W = 40, H = 90, C = 2 };

typedef struct rows {
    const float *next;
} rows;

static tess_status read_row(void *user, float *values, tess_error *error)
{
    (void)error;
    rows *r = user;
    memcpy(values, r->next, W * C * sizeof(float));
    r->next += W * C;
    return TESS_OK;
}

static void fill_all(const float *image, float mean, float *out)
{
    tess_holes holes;
    void *memory = tess_small_alloc(tess_holes_bytes(W, C) + 64, 1);
    rows r = {image};
    tess_holes_begin(&holes, W, C, H, mean, (char *)memory + (64 - (uintptr_t)memory % 64) % 64);
    for (int y = 0; y < H; y++)
        CHECK(tess_holes_next(&holes, read_row, &r, out + y * W * C, NULL) == TESS_OK);
    tess_small_free(memory);
}

static float plane(int x, int y, int c)
{
    return 0.2f + 0.005f * (float)x + 0.003f * (float)y + 0.1f * (float)c;
}

static void make(float *image)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < C; c++)
                image[(y * W + x) * C + c] = plane(x, y, c);
}

static float image[H * W * C], out[H * W * C];

/* Values stay, bit for bit; a hole in a sloping plane comes close to the plane, in the middle and at the edges. */
static void test_single_holes(void)
{
    static const int at[][3] = {{5, 5, 0},  {0, 0, 1},      {W - 1, H - 1, 0},
                                {0, 40, 1}, {20, H - 1, 0}, {20, 0, 0}};
    make(image);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        image[(at[i][1] * W + at[i][0]) * C + at[i][2]] = NAN;
    fill_all(image, 0.5f, out);
    for (int i = 0; i < H * W * C; i++)
        if (!isnan(image[i]))
            CHECK(out[i] == image[i]);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        CHECK(fabsf(out[(at[i][1] * W + at[i][0]) * C + at[i][2]] - plane(at[i][0], at[i][1], at[i][2])) <
              0.006f);
}

/* A void of 20 x 20 is bridged: its border is continuous and no value leaves the range of its surroundings. */
static void test_void(void)
{
    make(image);
    for (int y = 30; y < 50; y++)
        for (int x = 10; x < 30; x++)
            image[(y * W + x) * C] = NAN;
    fill_all(image, 0.5f, out);
    for (int y = 30; y < 50; y++)
        for (int x = 10; x < 30; x++) {
            const float v = out[(y * W + x) * C];
            CHECK(v >= plane(9, 29, 0) - 0.01f && v <= plane(30, 50, 0) + 0.01f);
        }
    CHECK(fabsf(out[(30 * W + 10) * C] - plane(10, 30, 0)) < 0.02f);
}

/* Nothing above, nothing below within reach, nothing beside: the mean, and near the first values a passage to them. */
static void test_collar(void)
{
    make(image);
    for (int i = 0; i < 60 * W * C; i++)
        image[i] = NAN;
    fill_all(image, 7, out);
    CHECK(out[0] == 7);
    CHECK(fabsf(out[59 * W * C] - plane(0, 60, 0)) < 0.01f);
}

/* A large hole continues the picture with its own noise, as its mirror image, on each side. Streaks of the values at its
 * edge would be taken for the picture's. */
static void test_mirror(void)
{
    enum { FAR = 8 };
    static float noise[H * W * C];
    uint32_t state = 1;
    for (int i = 0; i < H * W * C; i++)
        noise[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) / (float)(1 << 24);
    for (int side = 0; side < 4; side++) {
        const bool upright = side < 2, after = side % 2;
        const int edge = upright ? 45 : 20; /* the first of the second part */
        for (int i = 0; i < H * W * C; i++)
            image[i] = ((upright ? i / (W * C) : i / C % W) >= edge) == after ? NAN : noise[i];
        fill_all(image, 0.5f, out);
        for (int far = 0; far < FAR; far++)
            for (int i = 0; i < (upright ? W : H) * C; i++) {
                const int at = after ? edge + far : edge - 1 - far, from = 2 * edge - 1 - at;
                const int hole = upright ? at * W * C + i : (i / C * W + at) * C + i % C,
                          mirror = upright ? from * W * C + i : (i / C * W + from) * C + i % C;
                CHECK(fabsf(out[hole] - noise[mirror]) < 0.005f);
            }
    }
}

/* A column or row with few values is filled with these. */
static void test_few(void)
{
    for (int i = 0; i < H * W * C; i++)
        image[i] = i / C % W % 15 == 7 && i / (W * C) % 40 == 25 ? 0.5f : NAN;
    fill_all(image, 0.5f, out);
    for (int i = 0; i < H * W * C; i++)
        CHECK(out[i] == 0.5f);
}

static void test_all_holes(void)
{
    for (int i = 0; i < H * W * C; i++)
        image[i] = NAN;
    fill_all(image, 0, out);
    for (int i = 0; i < H * W * C; i++)
        CHECK(out[i] == 0);
}

/* Rows from any one on are those of the whole image. */
static void test_skip(void)
{
    static float part[H * W * C];
    make(image);
    for (int i = 0; i < H * W * C; i++)
        if (i * 7 % 11 < 4 || (i / (W * C) > 20 && i / (W * C) < 75 && i % (W * C) > 30))
            image[i] = NAN;
    fill_all(image, 0.5f, out);
    for (int first = 0; first < H; first += 13) {
        tess_holes holes;
        void *memory = tess_small_alloc(tess_holes_bytes(W, C) + 64, 1);
        rows r = {image};
        tess_holes_begin(&holes, W, C, H, 0.5f, (char *)memory + (64 - (uintptr_t)memory % 64) % 64);
        CHECK(tess_holes_skip(&holes, first, read_row, &r, NULL) == TESS_OK);
        for (int y = first; y < H; y++)
            CHECK(tess_holes_next(&holes, read_row, &r, part + y * W * C, NULL) == TESS_OK);
        CHECK(memcmp(part + first * W * C, out + first * W * C,
                     (size_t)((H - first) * W * C) * sizeof *out) == 0);
        tess_small_free(memory);
    }
}

int main(void)
{
    test_single_holes();
    test_void();
    test_collar();
    test_mirror();
    test_few();
    test_all_holes();
    test_skip();
    return check_end();
}
