/* test_conditions.c: what a model of ours sees of a window: exact heights at valid pixels, channels in their ranges, independence
 * of the unit of height, guesses in the middle of wide voids, and windows with nothing to go by. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/terrain/conditions.h"

#include "base/rng.h"
#include "check.h"
#include "tensor/terrain/smooth.h"
#include "tensor/terrain/void_maker.h"

enum { SIDE = 64, PIXELS = SIDE * SIDE, CANARY = 64 };

static float values[PIXELS], guess[PIXELS], smooth[PIXELS], channels[PIXELS * TESS_CONDITIONS];
static uint8_t flags[PIXELS];

static double least; /* 0: the usual */

static void *room(size_t bytes)
{
    void *data = NULL;
    if (posix_memalign(&data, 64, bytes + CANARY))
        abort();
    memset(data, 0xff, bytes + CANARY); /* NaN */
    return data;
}

static double make(bool guessed)
{
    const size_t bytes = tess_conditions_bytes(SIDE, SIDE);
    unsigned char *scratch = room(bytes);
    tess_error error = {{0}};
    tess_conditions out = {.smooth = smooth, .channels = channels};
    const tess_conditions_window window = {values, flags, guessed ? guess : NULL, SIDE, SIDE, scratch, least};
    CHECK_MSG(tess_conditions_make(&window, &out, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < CANARY; i++)
        CHECK(scratch[bytes + (size_t)i] == 0xff);
    free(scratch);
    for (int64_t i = 0; i < PIXELS; i++) {
        const float *c = channels + i * TESS_CONDITIONS;
        CHECK(fabsf(c[0]) <= 2 && fabsf(c[1]) <= 2 && isfinite(smooth[i]));
        CHECK(flags[i] ? c[2] > 0 && c[2] <= 1 : c[2] == -1 && smooth[i] == values[i]);
    }
    CHECK(out.scale > 0 && isfinite(out.scale));
    return out.scale;
}

static void make_terrain(void)
{
    tess_rng_normal((tess_rng_key){1, 2, 3}, 0, PIXELS, values);
    for (int64_t i = 0; i < PIXELS; i++)
        values[i] += 20 * sinf((float)(i % SIDE) / 9) + 15 * cosf((float)(i / SIDE) / 7);
}

static void cut(int64_t top, int64_t left, int64_t size)
{
    memset(flags, 0, sizeof flags);
    for (int64_t i = 0; i < PIXELS; i++)
        flags[i] = i / SIDE >= top && i / SIDE < top + size && i % SIDE >= left && i % SIDE < left + size;
}

static void test_voids(void)
{
    void *scratch = room(tess_void_maker_bytes(SIDE, SIDE)), *more = room(tess_smooth_bytes(SIDE, SIDE));
    make_terrain();
    for (uint32_t i = 0; i < 12; i++) {
        tess_void_request request;
        tess_void_request_init(&request, SIDE, SIDE);
        request.index = i;
        tess_void_make(&request, flags, scratch);
        const double scale = make(false);
        float filled[PIXELS];
        tess_error error;
        memcpy(filled, values, sizeof filled);
        const tess_smooth_window window = {filled, flags, SIDE, SIDE, more};
        CHECK(tess_smooth_fill(&window, TESS_SMOOTH_BLEND, &error) == TESS_OK);
        double square = 0, low = INFINITY, high = -INFINITY;
        int64_t voids = 0;
        for (int64_t k = 0; k < PIXELS; k++) {
            CHECK(smooth[k] == filled[k]);
            if (!flags[k])
                low = fmin(low, (double)channels[k * TESS_CONDITIONS]),
                high = fmax(high, (double)channels[k * TESS_CONDITIONS]);
            voids += flags[k];
            square += flags[k] ? pow((values[k] - smooth[k]) / scale, 2) : 0;
        }
        CHECK_MSG(fabs(low + 1) < 1e-6 && fabs(high - 1) < 1e-6, "valid pixels span %g to %g", low, high);
        CHECK_MSG(sqrt(square / (double)voids) < 1, "y is %g", sqrt(square / (double)voids));
    }
    free(scratch), free(more);
}

/* Twice the heights give twice the scale and the same channels. */
static void test_unit(void)
{
    float before[PIXELS * TESS_CONDITIONS];
    make_terrain();
    cut(20, 18, 21);
    const double scale = make(false);
    memcpy(before, channels, sizeof before);
    for (int64_t i = 0; i < PIXELS; i++)
        values[i] *= 2;
    CHECK(fabs(make(false) / scale - 2) < 1e-4);
    for (int64_t i = 0; i < PIXELS * TESS_CONDITIONS; i++)
        CHECK(fabsf(before[i] - channels[i]) < 1e-3f);
}

/* Very low relief has the same channels, if the least scale goes with it. */
static void test_low(void)
{
    float before[PIXELS * TESS_CONDITIONS];
    make_terrain();
    cut(20, 18, 21);
    const double scale = make(false);
    memcpy(before, channels, sizeof before);
    for (int64_t i = 0; i < PIXELS; i++)
        values[i] *= 0x1p-20f;
    least = TESS_CONDITIONS_LEAST * 0x1p-20;
    CHECK(fabs(make(false) / scale - 0x1p-20) < 1e-4 * 0x1p-20);
    least = 0;
    for (int64_t i = 0; i < PIXELS * TESS_CONDITIONS; i++)
        CHECK(fabsf(before[i] - channels[i]) < 1e-3f);
}

/* Distances grow from the rim to the middle. */
static void test_distance(void)
{
    make_terrain();
    cut(20, 20, 21);
    (void)make(false);
    const float *row = channels + 30 * SIDE * TESS_CONDITIONS + 2;
    for (int x = 20; x < 30; x++)
        CHECK(row[x * TESS_CONDITIONS] < row[(x + 1) * TESS_CONDITIONS]);
    CHECK(fabsf(row[20 * TESS_CONDITIONS] - 1 / 11.0f) < 0.01f && row[30 * TESS_CONDITIONS] > 0.99f);
}

/* The guess prevails far from valid pixels and has no say near them. */
static void test_guess(void)
{
    make_terrain();
    for (int64_t i = 0; i < PIXELS; i++)
        guess[i] = 1000 + values[i];
    cut(2, 2, 60);
    (void)make(true);
    CHECK(fabsf(smooth[32 * SIDE + 32] - guess[32 * SIDE + 32]) < 0.01f);
    CHECK(smooth[32 * SIDE + 4] < 200);
    memset(flags, 1, sizeof flags); /* no valid pixel */
    const double scale = make(true);
    CHECK(memcmp(smooth, guess, sizeof guess) == 0 && scale > 0.1);
    CHECK(make(false) < 0.1);
}

static void test_level(void)
{
    for (int64_t i = 0; i < PIXELS; i++)
        values[i] = 5;
    cut(10, 10, 9);
    CHECK(make(false) < 0.1);
    for (int64_t i = 0; i < PIXELS; i++)
        CHECK(fabsf(smooth[i] - 5) < 1e-4f && channels[i * TESS_CONDITIONS] == 0);
}

int main(void)
{
    test_voids();
    test_unit();
    test_low();
    test_distance();
    test_guess();
    test_level();
    return check_end();
}
