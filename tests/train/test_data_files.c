/* test_data_files.c: what a data set refuses, in one line that names the file or folder; which files it takes, and in
 * which order; a file that does not decode fails its own step and no step before. */
#define _XOPEN_SOURCE 700
#include "train_images.h"

enum { CROP = 16 };
static tess_device *device;

/* Checks that opening fails with a line that holds `one` and `other`. */
static void refused(const tess_folder_settings *settings, const char *one, const char *other)
{
    tess_source *source = NULL;
    tess_error error = {""};
    const tess_status status = tess_folder_open(settings, &source, &error);
    CHECK_MSG(status == TESS_BAD_INPUT || status == TESS_BAD_OPTION, "status %d for %s", (int)status, one);
    CHECK_MSG(strstr(error.text, one) && strstr(error.text, other) && !strchr(error.text, '\n'),
              "\"%s\" lacks \"%s\" or \"%s\"", error.text, one, other);
    CHECK(!source);
    tess_source_close(source);
}

static void put_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_refusals(void)
{
    tess_folder_settings s = folder_settings(3, CROP);
    refused(&s, folder, "holds no image file");
    const char *const missing[] = {in_folder("nowhere")};
    s.images.paths = missing;
    refused(&s, "nowhere", "no such file or folder");
    s = folder_settings(3, CROP);
    mkdir(in_folder("inner"), 0700);
    refused(&s, folder, "`recursive`");
    make_image("inner/deep.png", 20, 20, 3, TESS_U8, 1);
    s.images.recursive = true;
    tess_source_close(open_folder(&s));
    s.images.recursive = false;
    make_image("a.png", 40, 40, 3, TESS_U8, 1);
    const char *const excluded[] = {"a.png"}, *const unknown[] = {"a.pn"};
    s.images.exclude = excluded, s.images.exclude_count = 1;
    refused(&s, folder, "is excluded");
    s.images.exclude = unknown;
    refused(&s, "a.pn", "no image has this name");
    s = folder_settings(3, CROP);
    tess_source_close(open_folder(&s));
    make_image("b.png", 15, 77, 3, TESS_U8, 1);
    refused(&s, "b.png", "77 x 15");
    refused(&s, "b.png", "16 x 16");
    make_image("b.png", 30, 30, 3, TESS_U8, 1);
    s.scales = 2, s.scale[0] = 0.5, s.scale[1] = 0.25;
    refused(&s, "b.png", "0.5 times");
    s = folder_settings(3, CROP);
    make_image("b.png", 30, 30, 1, TESS_U8, 1);
    refused(&s, "b.png", "1 channel,");
    make_image("b.npy", 30, 30, 3, TESS_F32, 1);
    remove(in_folder("b.png"));
    refused(&s, "b.npy", "float32");
    remove(in_folder("b.npy"));
    if (tess_image_load_library("b.img", NULL) == TESS_OK) { /* an ENVI raster with a nodata value */
        put_text("b.img", "0123");
        put_text("b.hdr",
                 "ENVI\nsamples = 4\nlines = 1\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
                 "data type = 1\ninterleave = bsq\nbyte order = 0\ndata ignore value = 48\n");
        refused(&s, "b.img", "void");
        remove(in_folder("b.img"));
        remove(in_folder("b.hdr"));
    }
    put_text("b.png", "no picture");
    refused(&s, "b.png", "not a PNG");
    remove(in_folder("b.png"));
    sweep_folder(true);
}

static void test_settings(void)
{
    make_image("a.png", 40, 40, 3, TESS_U8, 1);
    tess_folder_settings s = folder_settings(3, 0);
    refused(&s, "crop", "0");
    s = folder_settings(3, CROP), s.scale[2] = 0;
    refused(&s, "scale", "0");
    s = folder_settings(3, CROP), s.share[2] = NAN;
    refused(&s, "share", "0.8");
    s = folder_settings(3, CROP), s.low = 0.5;
    refused(&s, "0.5", "0.2");
    s = folder_settings(3, CROP), s.levels = 1, s.level[0] = -1;
    refused(&s, "noise level", "-1");
    s = folder_settings(3, CROP);
    tess_source *source = open_folder(&s);
    tess_data_settings q = {.source = source, .device = device, .batch = 4, .parts = 3, .depth = 2};
    tess_data_queue *queue = NULL;
    tess_error error = {""};
    CHECK(tess_data_open(&q, &queue, &error) == TESS_BAD_OPTION && !queue && strstr(error.text, "3 equal"));
    q.parts = 2, q.depth = 1;
    CHECK(tess_data_open(&q, &queue, &error) == TESS_BAD_OPTION && !queue);
    tess_source_close(source);
    sweep_folder(true);
}

static void test_order(void)
{
    make_image("b.png", 20, 20, 3, TESS_U8, 1);
    make_image("B.png", 20, 20, 3, TESS_U8, 2);
    make_image("a.png", 20, 20, 3, TESS_U8, 3);
    make_image(".c.png", 20, 20, 3, TESS_U8, 4);
    fclose(fopen(in_folder("list.txt"), "w"));
    char single[512];
    snprintf(single, sizeof single, "%s", in_folder("a.png"));
    const char *const paths[] = {single, folder}, *const exclude[] = {"b.png"};
    tess_folder_settings s = folder_settings(1, CROP);
    s.images.paths = paths, s.images.path_count = 2;
    tess_source *source = open_folder(&s);
    const tess_images *images = tess_folder_images(source);
    static const char *const want[] = {"/a.png", "/B.png", "/a.png", "/b.png"};
    CHECK(source->items == 4);
    for (int i = 0; i < 4 && source->items == 4; i++)
        CHECK(strstr(tess_images_at(images, i)->path, want[i]));
    tess_source_close(source);
    s.images.exclude = exclude, s.images.exclude_count = 1;
    source = open_folder(&s);
    CHECK(source->items == 3);
    tess_source_close(source);
    sweep_folder(true);
}

/* A link to a folder is not followed, so that none leads round in a circle; a link to a file is an image. */
static void test_links(void)
{
    mkdir(in_folder("inner"), 0700);
    make_image("inner/a.png", 20, 20, 3, TESS_U8, 1);
    CHECK(symlink("..", in_folder("inner/loop")) == 0 && symlink("inner", in_folder("twice")) == 0 &&
          symlink("inner/a.png", in_folder("file.png")) == 0);
    tess_folder_settings s = folder_settings(3, CROP);
    s.images.recursive = true;
    tess_source *source = open_folder(&s);
    CHECK(source->items == 2 && tess_images_links(tess_folder_images(source)) == 2);
    tess_source_close(source);
    CHECK(remove(in_folder("inner/a.png")) == 0 && remove(in_folder("file.png")) == 0);
    refused(&s, folder, "links to folders are not followed");
    const char *const link[] = {in_folder("twice")}; /* named itself */
    make_image("inner/a.png", 20, 20, 3, TESS_U8, 1);
    s.images.paths = link;
    source = open_folder(&s);
    CHECK(source->items == 1);
    tess_source_close(source);
    CHECK(remove(in_folder("inner/loop")) == 0 && remove(in_folder("twice")) == 0 &&
          remove(in_folder("inner/a.png")) == 0 && rmdir(in_folder("inner")) == 0);
}

static tess_images *list_images(void)
{
    const tess_folder_settings s = folder_settings(3, CROP);
    tess_images *images = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_images_open(&s.images, &images, &error) == TESS_OK, "%s", error.text);
    return images;
}

/* The images are those of `before`, or the line about them has `part`. */
static void compare(const char *before, const char *part)
{
    tess_error error = {""};
    tess_images *images = list_images();
    const tess_status status = tess_images_unchanged(images, before, &error);
    CHECK_MSG((status == TESS_OK) == !part, "%s", error.text);
    CHECK_MSG(!part || (strstr(error.text, part) && !strchr(error.text, '\n')), "%s lacks %s", error.text,
              part);
    tess_images_close(images);
}

/* Each change of a list is noticed, and named. */
static void test_changed(void)
{
    make_image("b.png", 20, 20, 3, TESS_U8, 1);
    make_image("c.png", 20, 20, 3, TESS_U8, 2);
    make_image("d.png", 20, 20, 3, TESS_U8, 3);
    tess_images *images = list_images();
    char *before = tess_images_sums(images), path[512];
    tess_images_close(images);
    compare(before, NULL);
    make_image("a.png", 20, 20, 3, TESS_U8, 4);
    compare(before, "/a.png is new or was changed");
    CHECK(rename(in_folder("a.png"), in_folder("e.png")) == 0);
    compare(before, "/e.png is new or was changed");
    remove(in_folder("e.png"));
    make_image("c.png", 20, 21, 3, TESS_U8, 2);
    compare(before, "/c.png is new or was changed");
    snprintf(path, sizeof path, "%s", in_folder("c.png"));
    remove(path);
    compare(before, "one before ");
    make_image("c.png", 20, 20, 3, TESS_U8, 2);
    compare(before, NULL);
    remove(in_folder("d.png"));
    compare(before, "/c.png is gone");
    tess_small_free(before);
    sweep_folder(true);
}

/* Luma of 8-bit and 16-bit colours, and gray files as they are. */
static void test_luma(void)
{
    make_image("a.png", CROP, CROP, 3, TESS_U8, 1);
    make_image("b.png", CROP, CROP, 4, TESS_U16, 2);
    make_image("c.png", CROP, CROP, 1, TESS_U8, 3);
    const tess_folder_settings s = folder_settings(1, CROP), colour = folder_settings(3, CROP);
    tess_images *images = NULL;
    tess_error error = {""};
    CHECK(tess_images_open(&s.images, &images, &error) == TESS_OK &&
          tess_images_begin(images, &error) == TESS_OK);
    static const int channels[] = {3, 4, 1};
    for (int i = 0; i < 3; i++) {
        static unsigned char scratch[65536];
        static uint16_t samples[CROP * CROP * 4];
        tess_reader *reader = NULL;
        tess_view view;
        CHECK(tess_images_scratch_bytes(images, CROP, CROP) <= sizeof scratch);
        CHECK(tess_images_view(images, i, (tess_rect){0, 0, CROP, CROP}, scratch, NULL, &view, &error) ==
              TESS_OK);
        CHECK(tess_reader_open(&test_counter, tess_images_at(images, i)->path, &reader, &error) == TESS_OK);
        CHECK(tess_reader_rows(reader, CROP, samples, &error) == TESS_OK);
        int wrong = 0;
        for (int k = 0; k < CROP * CROP; k++) {
            double pixel[3] = {0};
            for (int c = 0; c < channels[i] && c < 3; c++)
                pixel[c] = i == 1 ? samples[k * 4 + c] : ((uint8_t *)samples)[k * channels[i] + c];
            const double want =
                i == 2 ? pixel[0] : rint(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]);
            const double got = i == 1 ? ((const uint16_t *)view.data)[k] : ((const uint8_t *)view.data)[k];
            wrong += got != want;
        }
        CHECK(wrong == 0 && view.dtype == (i == 1 ? TESS_U16 : TESS_U8) && view.stride == CROP);
        tess_reader_close(reader);
    }
    tess_images_close(images);
    refused(&colour, "c.png", "1 channel,");
    sweep_folder(true);
}

/* Takes batches until one fails; returns its step. */
static int64_t first_failure(const tess_folder_settings *settings, int workers, tess_error *error)
{
    tess_source *source = open_folder(settings);
    const tess_data_settings q = {.source = source,
                                  .device = device,
                                  .seed = 1,
                                  .batch = 2,
                                  .parts = 1,
                                  .depth = 4,
                                  .workers = workers};
    tess_data_queue *queue = open_queue(&q);
    int64_t step = 0;
    for (tess_batch batch; tess_data_take(queue, &batch, error) == TESS_OK && step < 1000; step++)
        tess_data_release(queue, &batch);
    tess_batch again;
    CHECK(tess_data_take(queue, &again, NULL) == TESS_BAD_INPUT); /* a failed queue stays failed */
    tess_data_close(queue);
    tess_source_close(source);
    return step;
}

static void test_damaged(void)
{
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "%02d.png", i);
        make_image(name, 60, 60, 3, TESS_U8, (uint32_t)i);
    }
    tess_folder_settings s = folder_settings(3, 50); /* needs nearly the whole image */
    tess_source *source = open_folder(&s);
    int64_t first[12], want = 0;
    for (int i = 0; i < 12; i++)
        first[i] = -1;
    for (int64_t i = 0; i < 400; i++) {
        tess_folder_choice choice;
        tess_folder_choose(source, &(tess_sample){.seed = 1, .step = i / 2, .index = i % 2}, &choice);
        if (first[choice.image] < 0)
            first[choice.image] = i / 2;
    }
    char bad[16];
    for (int i = 0; i < 12; i++) /* the image that is used last is damaged */
        if (first[i] > want) {
            want = first[i];
            snprintf(bad, sizeof bad, "%02d.png", i);
        }
    CHECK(want > 5);
    damage(bad);
    tess_source_close(source);
    for (int workers = 1; workers <= 4; workers++)
        for (int kept = 0; kept < 2; kept++) {
            tess_error error = {""};
            s.images.budget = kept ? (size_t)1 << 20 : 0;
            const int64_t step = first_failure(&s, workers, &error);
            CHECK_MSG(step == want, "%d workers: step %d, not %d", workers, (int)step, (int)want);
            CHECK_MSG(strstr(error.text, bad) && !strchr(error.text, '\n'), "%s", error.text);
        }
    /* Replaced by another while the run has only seen its header. */
    make_image("07.png", 60, 61, 3, TESS_U8, 7);
    source = open_folder(&s);
    make_image("07.png", 60, 60, 3, TESS_U8, 7);
    const tess_data_settings q = {
        .source = source, .device = device, .seed = 1, .batch = 64, .parts = 1, .depth = 2};
    tess_data_queue *queue = open_queue(&q);
    tess_error error = {""};
    tess_batch batch;
    CHECK(tess_data_take(queue, &batch, &error) == TESS_BAD_INPUT && strstr(error.text, "was changed"));
    tess_data_close(queue);
    tess_source_close(source);
    sweep_folder(true);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    device = test_device();
    const uint64_t before = counted_now();
    test_refusals();
    remove(in_folder("inner/deep.png"));
    rmdir(in_folder("inner"));
    test_settings();
    test_order();
    test_links();
    test_changed();
    test_luma();
    test_damaged();
    CHECK(counted_now() == before);
    tess_registry_close(device);
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
