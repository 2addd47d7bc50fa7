/* test_local_mean.c: compares the mean around each value of a streamed image with a direct sum. */
#define _POSIX_C_SOURCE 200809L
#include "job/common/local_mean.h"

#include "support.h"

typedef struct image {
    const float *values;
    int64_t row, samples;
} image;

static tess_status next(void *user, float *values, tess_error *error)
{
    (void)error;
    image *from = user;
    memcpy(values, from->values + from->row++ * from->samples, (size_t)from->samples * sizeof *values);
    return TESS_OK;
}

static double direct(const float *values, int64_t height, int64_t width, int64_t channels, int64_t y,
                     int64_t x, int64_t c)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t j = y - TESS_LOCAL_REACH; j <= y + TESS_LOCAL_REACH; j++)
        for (int64_t i = x - TESS_LOCAL_REACH; i <= x + TESS_LOCAL_REACH; i++)
            if (j >= 0 && j < height && i >= 0 && i < width)
                sum += (double)values[(j * width + i) * channels + c], count++;
    return sum / (double)count;
}

static void test_size(int64_t height, int64_t width, int64_t channels)
{
    const int64_t samples = width * channels;
    float *values = room((size_t)(height * samples) * sizeof *values),
          *row = room((size_t)samples * sizeof *row), *means = room((size_t)samples * sizeof *means);
    void *memory = room(tess_local_mean_bytes(width, channels));
    tess_rng_normal((tess_rng_key){3, 1, 0}, 0, height * samples, values);
    tess_local_mean local;
    tess_error error;
    image from = {values, 0, samples};
    tess_local_mean_begin(&local, width, channels, height, memory);
    for (int64_t y = 0; y < height; y++) {
        CHECK(tess_local_mean_next(&local, next, &from, row, means, &error) == TESS_OK);
        CHECK(memcmp(row, values + y * samples, (size_t)samples * sizeof *row) == 0);
        for (int64_t i = 0; i < samples; i++)
            CHECK(fabs((double)means[i] -
                       direct(values, height, width, channels, y, i / channels, i % channels)) < 1e-5);
    }
    CHECK(from.row == height);
    for (int64_t y = 0; y < height; y++) { /* a part that begins here has the same means */
        tess_local_mean_begin(&local, width, channels, height, memory);
        from.row = tess_local_mean_go_to(&local, y);
        CHECK(from.row >= 0 && from.row <= y);
        CHECK(tess_local_mean_next(&local, next, &from, row, means, &error) == TESS_OK);
        CHECK(memcmp(row, values + y * samples, (size_t)samples * sizeof *row) == 0);
        for (int64_t i = 0; i < samples; i++)
            CHECK(fabs((double)means[i] -
                       direct(values, height, width, channels, y, i / channels, i % channels)) < 1e-5);
    }
    free(values), free(row), free(means), free(memory);
}

int main(void)
{
    test_size(20, 17, 1);
    test_size(9, 12, 3);
    test_size(1, 1, 1);
    test_size(2, 5, 2);
    return check_end();
}
