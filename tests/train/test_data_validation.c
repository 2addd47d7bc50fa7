/* test_data_validation.c: the noise of a validation image is that of `denoise`, and does not depend on padding,
 * cropping or threads; PSNR is of the image's own pixels; a second validation gives the same. */
#define _XOPEN_SOURCE 700
#include "train_images.h"

#include "train/data_validation.h"

static tess_validation_settings settings_of(int channels)
{
    return (tess_validation_settings){.images = folder_settings(channels, 1).images,
                                      .levels = 2,
                                      .level = {0.1, 0.2},
                                      .seed = 4,
                                      .grid = 8};
}

static tess_validation *open_validation(const tess_validation_settings *s)
{
    tess_validation *v = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_validation_open(s, &v, &error) == TESS_OK, "%s", error.text);
    if (!v)
        exit(1);
    return v;
}

/* The pixel at (y, x) has the clean value plus the noise of its place in the file, also where it is repeated. */
static void check_item(const tess_validation_settings *s, const tess_validation_item *item,
                       int64_t file_width)
{
    int wrong = 0;
    for (int64_t y = 0; y < item->height; y++)
        for (int64_t x = 0; x < item->width; x++) {
            const int64_t r = y < item->kept_rows ? y : item->kept_rows - 1,
                          c = x < item->kept_cols ? x : item->kept_cols - 1;
            const float *clean = item->clean + (y * item->width + x) * item->channels,
                        *origin = item->clean + (r * item->width + c) * item->channels,
                        *noisy = item->noisy + (y * item->width + x) * item->noisy_channels;
            float normal[4];
            tess_rng_normal((tess_rng_key){s->seed, (uint32_t)item->image, 0},
                            (r * file_width + c) * item->channels, item->channels, normal);
            for (int k = 0; k < item->channels; k++)
                wrong += clean[k] != origin[k] || noisy[k] != clean[k] + (float)item->deviation * normal[k];
            if (item->noisy_channels > item->channels)
                wrong += noisy[item->channels] != (float)item->deviation;
        }
    CHECK_MSG(wrong == 0, "%s: %d values", item->path, wrong);
}

/* Returns the PSNR of the noisy images. */
static double validate(tess_validation *v, const tess_validation_settings *s)
{
    static const int64_t sizes[2][2] = {{37, 50}, {64, 40}};
    tess_error error = {""};
    tess_validation_item item;
    bool more;
    int64_t count = 0;
    CHECK(tess_validation_begin(v, &error) == TESS_OK && isnan(tess_validation_psnr(v, 0)));
    while (tess_validation_next(v, NULL, &item, &more, &error) == TESS_OK && more) {
        const int64_t *size = sizes[item.image];
        CHECK(item.image == count / 2 && item.level == count % 2 && item.height % 8 == 0 &&
              item.width % 8 == 0);
        CHECK(item.kept_rows == (s->cropped ? size[0] / 8 * 8 : size[0]));
        CHECK(item.kept_cols == (s->cropped ? size[1] / 8 * 8 : size[1]));
        CHECK(item.noisy_channels == item.channels + s->level_channel);
        check_item(s, &item, size[1]);
        /* The noisy image as the result, spoilt where it is not compared. */
        const int64_t row = item.width * item.channels;
        float *result = malloc((size_t)(item.height * row) * sizeof *result);
        double error_sum = 0;
        for (int64_t i = 0; i < item.height * row; i++) {
            const int64_t y = i / row, x = i % row / item.channels;
            const bool kept = y < item.kept_rows && x < item.kept_cols;
            result[i] = kept ? item.noisy[i / item.channels * item.noisy_channels + i % item.channels] : 9;
            const double d = fmin(fmax(result[i], 0), 1) - item.clean[i];
            error_sum += kept ? d * d : 0;
        }
        const double want =
            -10 * log10(error_sum / (double)(item.kept_rows * item.kept_cols * item.channels));
        CHECK(fabs(tess_validation_add(v, result) - want) < 1e-6);
        free(result);
        count++;
    }
    CHECK(count == 4 && tess_validation_count(v) == 4 && !more);
    CHECK(tess_validation_psnr(v, 0) > tess_validation_psnr(v, 1) + 3);
    const double mean = (tess_validation_psnr(v, 0) + tess_validation_psnr(v, 1)) / 2;
    CHECK(fabs(mean - tess_validation_psnr(v, -1)) < 1e-9);
    return mean;
}

static void test_images(int channels, tess_pool *pool)
{
    for (int way = 0; way < 8; way++) {
        tess_validation_settings s = settings_of(channels);
        s.cropped = way & 1, s.level_channel = way & 2, s.images.budget = way & 4 ? 0 : 1 << 20;
        s.pool = way & 2 ? pool : NULL;
        const uint64_t before = counted_now();
        tess_memory_reset_peak(&test_counter);
        tess_validation *v = open_validation(&s);
        int64_t height, width;
        tess_validation_largest(v, &height, &width);
        CHECK(height == 64 && width == (s.cropped ? 48 : 56));
        const double first = validate(v, &s);
        CHECK(first == validate(v, &s));
        CHECK(counted_peak() - before <= tess_validation_bytes(v));
        tess_validation_close(v);
        CHECK(counted_now() == before);
    }
}

static void test_refusals(void)
{
    tess_validation_settings s = settings_of(3);
    tess_validation *v = NULL;
    tess_error error = {""};
    s.levels = 0;
    CHECK(tess_validation_open(&s, &v, &error) == TESS_BAD_OPTION && !v);
    s = settings_of(3), s.level[1] = -1;
    CHECK(tess_validation_open(&s, &v, &error) == TESS_BAD_OPTION && !v);
    s = settings_of(3), s.grid = 48, s.cropped = true;
    CHECK(tess_validation_open(&s, &v, &error) == TESS_BAD_INPUT && strstr(error.text, "a.png") && !v);
    damage("b.png");
    s = settings_of(3);
    v = open_validation(&s);
    tess_validation_item item;
    bool more;
    CHECK(tess_validation_begin(v, &error) == TESS_OK);
    tess_status status = TESS_OK;
    for (int i = 0; i < 3 && status == TESS_OK; i++)
        status = tess_validation_next(v, NULL, &item, &more, &error);
    CHECK(status == TESS_BAD_INPUT && strstr(error.text, "b.png"));
    tess_validation_close(v);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    make_image("a.png", 37, 50, 3, TESS_U8, 1);
    make_image("b.png", 64, 40, 3, TESS_U16, 2);
    tess_pool *pool = NULL;
    CHECK(tess_pool_create(3, &pool, NULL) == TESS_OK);
    test_images(3, pool);
    test_images(1, pool);
    test_refusals();
    tess_pool_destroy(pool);
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
