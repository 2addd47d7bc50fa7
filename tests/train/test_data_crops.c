/* test_data_crops.c: crops are the pixels that were chosen, at their scale and turn, with the noise of the op NOISE;
 * choices are spread as the settings say; resizing is PyTorch's. */
#define _XOPEN_SOURCE 700
#include "train_images.h"

#include "train/data_resize.h"

enum { CROP = 16, BATCH = 12 };
static tess_device *device;

/* The pixel of an image that a turned crop shows at (y, x). */
static void unturn(int turn, int64_t y, int64_t x, int64_t *r, int64_t *c)
{
    const int64_t a = turn & 4 ? x : y, b = turn & 4 ? y : x;
    *r = turn & 1 ? CROP - 1 - a : a;
    *c = turn & 2 ? CROP - 1 - b : b;
}

/* Reads an image whole, at a scale. */
static float *whole_image(tess_images *images, const tess_folder_choice *choice, double scale, int64_t *width)
{
    const tess_images_file *file = tess_images_at(images, choice->image);
    const int64_t h = llrint((double)file->height * scale), w = llrint((double)file->width * scale);
    const tess_resize resize = {{file->height, h, 0, h}, {file->width, w, 0, w}, 3};
    const int64_t reach = file->height > file->width ? file->height : file->width;
    float *values = malloc((size_t)(h * w * 3) * sizeof *values);
    float *scratch = malloc((size_t)tess_resize_scratch(reach, reach, 3) * sizeof *scratch);
    void *rows = malloc(tess_images_scratch_bytes(images, reach, reach));
    tess_view view;
    tess_error error = {""};
    const tess_rect all = {0, 0, file->height, file->width};
    CHECK(tess_images_view(images, choice->image, all, rows, NULL, &view, &error) == TESS_OK);
    if (scale != 1)
        tess_resize_run(&resize, &view, scratch, values);
    for (int64_t i = 0; i < h * w * 3 && scale == 1; i++)
        values[i] = view.dtype == TESS_U8 ? (float)((const uint8_t *)view.data)[i] * (float)(1.0 / 255)
                                          : (float)((const uint16_t *)view.data)[i] * (float)(1.0 / 65535);
    free(scratch), free(rows);
    *width = w;
    return values;
}

static void test_crops(void)
{
    tess_folder_settings s = folder_settings(3, CROP);
    s.host_noise = true;
    tess_source *source = open_folder(&s);
    tess_images *images = NULL;
    tess_error error = {""};
    CHECK(tess_source_array(source, TESS_DATA_TARGET) == 0 &&
          tess_source_array(source, TESS_DATA_INPUT) == 2);
    CHECK(tess_source_array(source, TESS_DATA_NOISE_TABLE) == 1 &&
          tess_source_array(source, TESS_DATA_MASK) < 0);
    CHECK(source->table->begin(source, 1, &error) == TESS_OK);
    CHECK(tess_images_open(&s.images, &images, &error) == TESS_OK &&
          tess_images_begin(images, &error) == TESS_OK);
    static float clean[CROP * CROP * 3], noisy[CROP * CROP * 3], normal[CROP * CROP * 3];
    double row[4];
    int scaled = 0;
    for (int64_t step = 0; step < 60; step++) {
        const tess_sample sample = {.seed = 5, .step = step, .index = step % 7};
        void *const arrays[TESS_DATA_ARRAYS] = {clean, row, noisy};
        tess_folder_choice choice;
        tess_folder_choose(source, &sample, &choice);
        CHECK(source->table->draw(source, &sample, arrays, &error) == TESS_OK);
        int64_t width, r, c, wrong = 0;
        float *image = whole_image(images, &choice, s.scale[choice.scale], &width);
        for (int64_t i = 0; i < CROP * CROP * 3; i++) {
            unturn(choice.turn, i / 3 / CROP, i / 3 % CROP, &r, &c);
            wrong += clean[i] != image[((choice.y + r) * width + choice.x + c) * 3 + i % 3];
        }
        CHECK_MSG(wrong == 0, "step %d, scale %d, turn %d: %d values", (int)step, choice.scale, choice.turn,
                  (int)wrong);
        scaled += choice.scale > 0;
        free(image);
        CHECK(row[0] == 1 && row[1] == choice.level && row[2] == (double)sample.index &&
              row[3] == (double)step);
        const tess_rng_key key = {tess_data_seed(5, TESS_DATA_NOISE), (uint32_t)sample.index, (uint32_t)step};
        tess_rng_normal(key, 0, CROP * CROP * 3, normal);
        wrong = 0;
        for (int i = 0; i < CROP * CROP * 3; i++)
            wrong += noisy[i] != clean[i] + (float)choice.level * normal[i];
        CHECK(wrong == 0);
    }
    CHECK(scaled > 10 && scaled < 50);
    tess_images_close(images);
    tess_source_close(source);
}

/* The op NOISE makes the same noisy batch from the clean crops and the table. */
static void test_noise_op(void)
{
    tess_folder_settings s = folder_settings(3, CROP);
    s.host_noise = s.level_channel = true;
    tess_source *source = open_folder(&s);
    const tess_data_settings settings = {.source = source,
                                         .device = device,
                                         .seed = 31,
                                         .batch = BATCH,
                                         .parts = 2,
                                         .first_step = 1000,
                                         .depth = 2,
                                         .workers = 2};
    tess_data_queue *queue = open_queue(&settings);
    tess_error error = {""};
    for (int part = 0; part < 2; part++) {
        tess_batch batch;
        tess_prepared *prepared = NULL;
        CHECK(tess_data_take(queue, &batch, &error) == TESS_OK);
        const tess_op op = {.kind = TESS_OP_NOISE,
                            .inputs = 2,
                            .outputs = 1,
                            .kernel = {1, 1, 1},
                            .stride = {1, 1, 1},
                            .in = {batch.array[TESS_FOLDER_CLEAN], batch.array[TESS_FOLDER_NOISE]},
                            .out = {batch.array[TESS_FOLDER_NOISY]},
                            .random = {.seed = tess_data_seed(settings.seed, TESS_DATA_NOISE)}};
        size_t bytes = 0;
        CHECK(tess_tensor_bytes(&op.out[0], &bytes));
        void *noisy = calloc(1, bytes);
        CHECK_MSG(device->ops->prepare(device, &op, &prepared, &error) == TESS_OK, "%s", error.text);
        const tess_op_buffers buffers = {.in = {batch.data[TESS_FOLDER_CLEAN], batch.data[TESS_FOLDER_NOISE]},
                                         .out = {noisy}};
        if (prepared)
            device->ops->run(device, prepared, &buffers, NULL);
        CHECK(memcmp(noisy, batch.data[TESS_FOLDER_NOISY], bytes) == 0);
        device->ops->release(device, prepared);
        free(noisy);
        tess_data_release(queue, &batch);
    }
    tess_data_close(queue);
    tess_source_close(source);
}

/* PyTorch's interpolate(mode="bicubic", antialias=True) of this row to 9 and to 15 values, clamped to 0 .. 255. */
static void test_resize(void)
{
    static const uint8_t row[12] = {0, 20, 54, 1, 63, 38, 27, 30, 47, 78, 22, 81};
    static const double to9[] = {2.9977,  39.4513, 18.5298, 53.702, 31.5907,
                                 28.2516, 56.9801, 49.1105, 63.2151};
    static const double to15[] = {0,     11.9641, 41.5625, 40.872,  2.934, 59.806,  47.2115, 30.75,
                                  26.43, 31.07,   44.67,   74.6535, 48.25, 34.5686, 83.5529};
    uint8_t square[144];
    for (int i = 0; i < 144; i++)
        square[i] = row[i % 12];
    static float scratch[1024], out[180];
    CHECK(tess_resize_scratch(15, 12, 1) <= 1024);
    for (int transposed = 0; transposed < 2; transposed++)
        for (int64_t size = 9; size <= 15; size += 6) {
            const tess_resize_axis changed = {12, size, 0, size}, same = {12, 12, 0, 12};
            for (int i = 0; i < 144; i++)
                square[i] = row[transposed ? i / 12 : i % 12];
            const tess_resize resize = {transposed ? changed : same, transposed ? same : changed, 1};
            tess_resize_run(&resize, &(tess_view){square, 12, TESS_U8}, scratch, out);
            for (int64_t i = 0; i < 12 * size; i++) {
                const double want = (size == 9 ? to9 : to15)[transposed ? i / 12 : i % size];
                CHECK_MSG(fabs(255 * (double)out[i] - want) < 1e-3, "%d of %d: %g, not %g", (int)i, (int)size,
                          255 * (double)out[i], want);
            }
        }
}

/* Within 5 standard deviations of a binomial count. */
static void check_share(const char *what, int64_t count, int64_t of, double share)
{
    const double mean = (double)of * share, deviation = sqrt(mean * (1 - share));
    CHECK_MSG(fabs((double)count - mean) <= 5 * deviation, "%s: %d of %d, expected %g", what, (int)count,
              (int)of, mean);
}

static void test_spread(void)
{
    enum { DRAWS = 8000 };
    tess_folder_settings s = folder_settings(3, CROP);
    s.low = 0.05;
    tess_source *source = open_folder(&s);
    int64_t images[4] = {0}, scales[4] = {0}, turns[8] = {0}, of_b[4] = {0}, ends[2] = {0}, quarter = 0;
    double least = 1, most = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        const tess_sample sample = {.seed = 3, .step = i / 16, .index = i % 16};
        tess_folder_choice c;
        tess_folder_choose(source, &sample, &c);
        const tess_images_file *file = tess_images_at(tess_folder_images(source), c.image);
        images[c.image]++, turns[c.turn]++;
        (c.image == 1 ? of_b : scales)[c.scale]++; /* the second by name is too small for most scales */
        const int64_t last = llrint((double)file->height * s.scale[c.scale]) - CROP;
        CHECK(c.y >= 0 && c.y <= last && c.x >= 0);
        CHECK(c.x <= llrint((double)file->width * s.scale[c.scale]) - CROP);
        ends[0] += c.y == 0, ends[1] += c.y == last;
        least = fmin(least, c.level), most = fmax(most, c.level);
        quarter += c.level < 0.0875;
    }
    for (int i = 0; i < 8; i++)
        check_share("turn", turns[i], DRAWS, 1.0 / 8);
    for (int i = 0; i < 4; i++) {
        check_share("image", images[i], DRAWS, 0.25);
        check_share("scale", scales[i], DRAWS - images[1], s.share[i]);
    }
    CHECK(of_b[0] == images[1]); /* 17 * 0.9 is 15: smaller than the crop */
    CHECK(ends[0] > 0 && ends[1] > 0);
    check_share("level", quarter, DRAWS, 0.25);
    CHECK(least >= 0.05 && least < 0.051 && most < 0.2 && most > 0.199);
    CHECK(source->arrays == 2 && tess_source_array(source, TESS_DATA_INPUT) < 0);
    tess_source_close(source);
    s.levels = 2, s.level[0] = 0.1, s.level[1] = 0.3, s.upright = true;
    source = open_folder(&s);
    int64_t first = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        tess_folder_choice c;
        tess_folder_choose(source, &(tess_sample){.step = i}, &c);
        CHECK(c.turn == 0 && (c.level == 0.1 || c.level == 0.3));
        first += c.level == 0.1;
    }
    check_share("listed level", first, DRAWS, 0.5);
    tess_source_close(source);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    device = test_device();
    make_four_images();
    test_resize();
    test_spread();
    test_crops();
    test_noise_op();
    tess_registry_close(device);
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
