/* test_noise.c: the blind noise estimate on images with known noise: flat, sloping and textured, with holes, clipped,
 * growing with the signal; and on images that allow little or no estimate. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/noise.h"

#include "support.h"

typedef struct picture {
    tess_noise_shape shape;
    float *values;
    unsigned char *valid;
} picture;

static picture make(int64_t height, int64_t width, int channels)
{
    picture p = {{.height = height, .width = width, .channels = channels}};
    p.values = room((size_t)(height * width * channels) * sizeof *p.values);
    return p;
}

static int64_t total(const picture *p)
{
    return p->shape.height * tess_max_i64(p->shape.depth, 1) * p->shape.width * p->shape.channels;
}

static void release(picture *p)
{
    free(p->values), free(p->valid);
}

/* Noise of variance read^2 + gain * value on top of what is there. */
static void add_noise(picture *p, double read, double gain, uint32_t item)
{
    const int64_t count = total(p);
    float *normal = room((size_t)count * sizeof *normal);
    tess_rng_normal((tess_rng_key){5, item, 0}, 0, count, normal);
    for (int64_t i = 0; i < count; i++)
        p->values[i] += normal[i] * (float)sqrt(read * read + gain * fmax(p->values[i], 0));
    free(normal);
}

static void clip(picture *p, float low, float high)
{
    for (int64_t i = 0; i < total(p); i++)
        p->values[i] = rintf(255 * fminf(fmaxf(p->values[i], low), high)) / 255;
}

static tess_noise_result estimate(const picture *p)
{
    const size_t need = tess_noise_bytes(&p->shape);
    const int64_t row = p->shape.width * p->shape.channels;
    unsigned char *memory = room(need + 64);
    memset(memory, 0xff, need + 64); /* NaN, until something was written there */
    tess_noise noise;
    tess_noise_result result;
    tess_noise_begin(&noise, &p->shape, need ? memory : NULL);
    for (int64_t y = 0; y < p->shape.height * tess_max_i64(p->shape.depth, 1); y++)
        tess_noise_row(&noise, p->values + y * row, p->valid ? p->valid + y * row : NULL);
    tess_noise_end(&noise, &result);
    for (int i = 0; i < 64; i++)
        CHECK(memory[need + (size_t)i] == 0xff);
    CHECK(isfinite(result.sigma) && result.sigma >= 0);
    for (int c = 0; c < p->shape.channels && c < TESS_NOISE_CHANNELS; c++) {
        const tess_noise_level *level = &result.channel[c];
        CHECK(isfinite(level->sigma) && isfinite(level->read) && isfinite(level->gain) && level->sigma >= 0);
        CHECK(level->read >= 0 && level->gain >= 0);
        CHECK(level->gain > 0 || level->read == level->sigma);
    }
    free(memory);
    return result;
}

static void check_near(const char *what, double got, double truth, double margin)
{
    CHECK_MSG(fabs(got / truth - 1) <= margin, "%s: %g, should be %g", what, got, truth);
}

static void test_noise_alone(void)
{
    static const double sigmas[] = {1e-4, 0.02, 0.2};
    for (int i = 0; i < 3; i++) {
        picture p = make(200, 260, 1);
        for (int64_t k = 0; k < total(&p); k++)
            p.values[k] = 0.5f;
        add_noise(&p, sigmas[i], 0, (uint32_t)i);
        tess_noise_result result = estimate(&p);
        check_near("noise alone", result.sigma, sigmas[i], 0.04);
        CHECK(result.confidence == TESS_NOISE_SURE && result.channel[0].gain == 0);
        release(&p);
    }
}

/* Channels are estimated separately, and the overall level is their root mean square. */
static void test_channels(void)
{
    static const float sigma[3] = {0.01f, 0.02f, 0.04f};
    picture p = make(180, 200, 3);
    add_noise(&p, 1, 0, 9);
    for (int64_t i = 0; i < total(&p); i++)
        p.values[i] = 0.4f + p.values[i] * sigma[i % 3];
    tess_noise_result result = estimate(&p);
    for (int c = 0; c < 3; c++)
        check_near("a channel", result.channel[c].sigma, sigma[c], 0.04);
    check_near("overall", result.sigma, sqrt((1e-4 + 4e-4 + 16e-4) / 3), 0.04);
    release(&p);
}

/* What channels share of their noise, however strong it is in each. */
static void test_shared(double share)
{
    static const float sigma[3] = {0.02f, 0.03f, 0.04f};
    picture p = make(180, 200, 3), common = make(180, 200, 1);
    add_noise(&p, sqrt(1 - share), 0, 9);
    add_noise(&common, sqrt(share), 0, 10);
    for (int64_t i = 0; i < total(&p); i++) {
        const double texture = 0.1 * sin(0.4 * (double)(i / 3 % 200)) * sin(0.3 * (double)(i / 600));
        p.values[i] = 0.4f + (float)texture + (p.values[i] + common.values[i / 3]) * sigma[i % 3];
    }
    const tess_noise_result found = estimate(&p);
    const double shared = found.shared;
    CHECK_MSG(fabs(shared - share) < 0.15, "%g of the noise is shared, and %g is found", share, shared);
    CHECK_MSG(found.most_shared >= shared && found.most_shared < share + 0.2, "two share %g, all %g",
              found.most_shared, shared);
    release(&p);
    release(&common);
}

/* Noise of different places: the level is the root mean square, and not sure. */
static void test_places(double left, double right, bool patchy)
{
    picture p = make(256, 320, 1);
    add_noise(&p, 1, 0, 11);
    for (int64_t i = 0; i < total(&p); i++)
        p.values[i] = 0.5f + p.values[i] * (float)(i % 320 < 160 ? left : right);
    const tess_noise_result result = estimate(&p);
    check_near("places", result.sigma, sqrt((left * left + right * right) / 2), 0.1);
    CHECK(result.channel[0].patchy == patchy &&
          result.confidence == (patchy ? TESS_NOISE_ROUGH : TESS_NOISE_SURE));
    release(&p);
}

/* A slope, a sinusoid of large contrast over three quarters of the width, and edges. */
static void test_texture(void)
{
    picture p = make(300, 320, 1);
    for (int64_t y = 0; y < 300; y++)
        for (int64_t x = 0; x < 320; x++) {
            double value = 0.2 + 0.5 * (double)y / 300 + (y / 40 % 2 ? 0.1 : 0);
            if (x < 240)
                value += 0.2 * sin(2.1 * (double)x) * sin(1.3 * (double)y + 0.01 * (double)x);
            p.values[y * 320 + x] = (float)value;
        }
    add_noise(&p, 5.0 / 255, 0, 3);
    tess_noise_result result = estimate(&p);
    check_near("texture", result.sigma, 5.0 / 255, 0.1);
    CHECK(result.channel[0].gain == 0);
    release(&p);
}

/* Texture without a quiet place: the answer need not be near, but says so. */
static void test_texture_everywhere(void)
{
    picture p = make(200, 200, 1);
    for (int64_t i = 0; i < total(&p); i++)
        p.values[i] = (float)(0.5 + 0.2 * sin(0.9 * (double)(i % 200)) * sin(0.7 * (double)(i / 200)));
    add_noise(&p, 0.01, 0, 3);
    CHECK(estimate(&p).confidence == TESS_NOISE_ROUGH);
    release(&p);
}

static void test_holes(void)
{
    picture p = make(200, 200, 1);
    add_noise(&p, 0.03, 0, 4);
    p.valid = room((size_t)total(&p));
    for (int64_t i = 0; i < total(&p); i++) {
        int64_t y = i / 200, x = i % 200;
        p.valid[i] = x < 60 || x > 100 || y > 150;
        if (!p.valid[i])
            p.values[i] = 0.7f; /* flat: would be taken for no noise */
        if (y == 170 && x % 30 == 0)
            p.values[i] = x % 60 ? NAN : INFINITY;
    }
    check_near("holes", estimate(&p).sigma, 0.03, 0.05);
    memset(p.valid, 0, (size_t)total(&p));
    tess_noise_result result = estimate(&p);
    CHECK(result.confidence == TESS_NOISE_UNKNOWN && result.sigma == 0);
    release(&p);
}

/* A constant frame around the picture is not a quiet place. */
static void test_frame(void)
{
    picture p = make(200, 200, 1);
    add_noise(&p, 0.03, 0, 8);
    for (int64_t i = 0; i < total(&p); i++)
        p.values[i] = i % 200 < 50 || i / 200 < 40 ? 0.7f : p.values[i] + 0.3f;
    check_near("frame", estimate(&p).sigma, 0.03, 0.05);
    release(&p);
}

/* Bands of brightness, some at the limits or beyond: what is clipped must not count as quiet. */
static void test_clipped(void)
{
    static const double sigmas[] = {5.0 / 255, 0.1, 50.0 / 255};
    for (int i = 0; i < 3; i++) {
        picture p = make(240, 240, 1);
        for (int64_t k = 0; k < total(&p); k++)
            p.values[k] = -0.05f + 0.14f * (float)(k / 240 / 30);
        add_noise(&p, sigmas[i], 0, (uint32_t)i);
        clip(&p, 0, 1);
        check_near("clipped", estimate(&p).sigma, sigmas[i], 0.06);
        release(&p);
    }
    picture p = make(240, 240, 1); /* a sensor that ends at 0.6 */
    for (int64_t k = 0; k < total(&p); k++)
        p.values[k] = 0.62f - 0.04f * (float)(k / 240 / 30);
    add_noise(&p, 0.04, 0, 7);
    clip(&p, 0, 0.6f);
    check_near("clipped at 0.6", estimate(&p).sigma, 0.04, 0.06);
    release(&p);
}

static void test_gain(void)
{
    picture p = make(400, 400, 2);
    for (int64_t y = 0; y < 400; y++)
        for (int64_t x = 0; x < 400; x++)
            for (int c = 0; c < 2; c++)
                p.values[(y * 400 + x) * 2 + c] = 0.05f + 0.8f * (float)y / 400;
    add_noise(&p, 0.01, 0.004, 2);
    tess_noise_result result = estimate(&p);
    for (int c = 0; c < 2; c++) {
        check_near("gain", result.channel[c].gain, 0.004, 0.15);
        check_near("sigma", result.channel[c].sigma, sqrt(1e-4 + 0.004 * 0.45), 0.05);
        CHECK(fabs(result.channel[c].read - 0.01) < 0.01);
    }
    release(&p);
}

static void test_volume(void)
{
    picture p = make(30 * 20, 40, 1);
    p.shape.height = 20, p.shape.depth = 30;
    for (int64_t i = 0; i < total(&p); i++)
        p.values[i] = i / (40 * 20) % 2 ? 0.9f : 0.1f;
    add_noise(&p, 0.02, 0, 2);
    tess_noise_result result = estimate(&p);
    check_near("volume", result.sigma, 0.02, 0.06);
    CHECK(result.channel[0].patches == 30 * 13 * 33); /* none across two slices */
    release(&p);
}

static void test_little_to_say(void)
{
    picture p = make(64, 64, 1); /* constant */
    CHECK(estimate(&p).sigma == 0 && estimate(&p).confidence == TESS_NOISE_ROUGH);
    for (int64_t i = 0; i < total(&p); i++) /* two values */
        p.values[i] = (float)(i / 64 / 16 % 2);
    CHECK(estimate(&p).confidence == TESS_NOISE_ROUGH);
    for (int64_t i = 0; i < total(&p); i++) /* an edge: what the transform rounds is no noise */
        p.values[i] = i % 64 < 29 ? 0.3f : 1;
    CHECK(estimate(&p).sigma == 0 && estimate(&p).confidence == TESS_NOISE_ROUGH);
    for (int64_t i = 0; i < total(&p); i++) /* huge numbers: squares do not fit */
        p.values[i] = i % 2 ? 3e38f : -3e38f;
    CHECK(estimate(&p).confidence == TESS_NOISE_UNKNOWN);
    release(&p);
    static const int64_t sizes[][2] = {{7, 7}, {7, 300}, {300, 7}, {1, 1},
                                       {8, 8}, {9, 8},   {12, 12}, {16, 40}};
    for (int i = 0; i < 8; i++) {
        p = make(sizes[i][0], sizes[i][1], 1);
        add_noise(&p, 0.1, 0, 1);
        tess_noise_result result = estimate(&p);
        CHECK(result.confidence == (i < 4 ? TESS_NOISE_UNKNOWN : TESS_NOISE_ROUGH));
        if (i >= 4)
            check_near("a small image", result.sigma, 0.1, 0.45);
        release(&p);
    }
    p = make(16, 16, TESS_NOISE_CHANNELS + 1);
    CHECK(estimate(&p).confidence == TESS_NOISE_UNKNOWN);
    release(&p);
}

/* Patterns of 2 x 2 samples over a smooth scene: a checker, the colours of a raw sensor, stripes. They are no
 * noise. The last has no pattern. */
static void test_mosaic(void)
{
    static const float patterns[4][4] = {
        {1, 0.3f, 0.3f, 1}, {0.6f, 1, 1, 0.4f}, {1, 1, 0.2f, 0.7f}, {1, 1, 1, 1}};
    static const double sigmas[] = {0.005, 0.05};
    for (int i = 0; i < 8; i++) {
        picture p = make(200, 240, 1);
        const float *pattern = patterns[i % 4];
        for (int64_t k = 0; k < total(&p); k++) {
            const int64_t y = k / 240, x = k % 240;
            p.values[k] =
                pattern[y % 2 * 2 + x % 2] * (0.5f + 0.2f * sinf((float)x / 40) * cosf((float)y / 30));
        }
        const double sigma = sigmas[i / 4];
        add_noise(&p, sigma, 0, (uint32_t)i);
        const tess_noise_result result = estimate(&p);
        check_near("under a pattern", result.sigma, sigma, i < 3 ? 0.5 : 0.15); /* 60 times as strong, then */
        CHECK(result.channel[0].mosaic == (i % 4 < 3));
        CHECK(result.confidence == (i % 4 < 3 ? TESS_NOISE_ROUGH : TESS_NOISE_SURE));
        release(&p);
    }
}

/* A reddish scene of a raw sensor, where the mean of red and blue is green: no checker, but texture in each colour. */
static void test_reddish(void)
{
    static const float pattern[4] = {1, 0.6f, 0.6f, 0.2f};
    for (int i = 0; i < 4; i++) {
        picture p = make(200, 240, 1);
        for (int64_t k = 0; k < total(&p); k++) {
            const int64_t y = k / 240, x = k % 240;
            const float texture = i < 2 ? 0 : 0.1f * sinf((float)(x * x) / 90 + (float)y / 3);
            p.values[k] = pattern[y % 2 * 2 + x % 2] *
                          (0.5f + 0.2f * sinf((float)x / 40) * cosf((float)y / 30) + texture);
        }
        add_noise(&p, i % 2 ? 0.01 : 0.04, 0, (uint32_t)i);
        const tess_noise_result result = estimate(&p);
        CHECK(result.channel[0].mosaic && result.confidence == TESS_NOISE_ROUGH);
        release(&p);
    }
}

/* Edges, lines and blinds have the frequencies of a mosaic, but not its phase everywhere. */
static void test_no_mosaic(void)
{
    for (int i = 0; i < 12; i++) {
        picture p = make(200, 240, 1);
        for (int64_t k = 0; k < total(&p); k++) {
            const int64_t y = k / 240, x = k % 240, at = i % 2 ? x : y;
            const int64_t kind = i / 2 % 3;
            const bool bright = kind == 0 ? at > 100 : kind == 1 ? at % 40 == 20 : at % 25 < 12;
            p.values[k] = bright ? 0.7f : 0.2f;
        }
        add_noise(&p, i / 6 ? 0.01 : 0.04, 0, (uint32_t)i);
        CHECK(!estimate(&p).channel[0].mosaic);
        release(&p);
    }
}

/* Beside its 8 rows, a value for each 8 of their columns, and the levels of its slices, an estimate holds a bounded number of patches whatever the size. */
static void test_bytes(void)
{
    tess_noise_shape shape = {.height = 1000000, .width = 1000000, .channels = 3};
    const size_t lines = (size_t)shape.width * 3 * (8 * 8 + 1) / 8 * sizeof(float);
    CHECK(tess_noise_bytes(&shape) > lines && tess_noise_bytes(&shape) < lines + ((size_t)24 << 20));
    shape.depth = 1000;
    CHECK(tess_noise_bytes(&shape) < lines + ((size_t)24 << 20) + 3000 * sizeof(tess_noise_level));
    shape.depth = INT64_MAX / 2;
    CHECK(tess_noise_bytes(&shape) == 0);
    shape = (tess_noise_shape){.height = 7, .width = 1000, .channels = 1};
    CHECK(tess_noise_bytes(&shape) == 0);
}

int main(void)
{
    test_noise_alone();
    test_channels();
    test_shared(0);
    test_shared(0.5);
    test_shared(1);
    test_places(0.02, 0.02, false);
    test_places(0.02, 0.15, true);
    test_places(0.02, 0.04, true);
    test_texture();
    test_texture_everywhere();
    test_holes();
    test_frame();
    test_clipped();
    test_gain();
    test_volume();
    test_little_to_say();
    test_mosaic();
    test_reddish();
    test_no_mosaic();
    test_bytes();
    return check_end();
}
