/* test_image_parts.c: rows are read from any one on, and several writers write parts of one file, in any order; a file
 * that is not committed leaves nothing behind. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <unistd.h>

#include "io/image.h"

enum { HEIGHT = 37, WIDTH = 11, CHANNELS = 3, PARTS = 3 };

static unsigned char image[HEIGHT][WIDTH * CHANNELS];
static const tess_image_info info = {
    .height = HEIGHT, .width = WIDTH, .channels = CHANNELS, .dtype = TESS_U8, .full_scale = 255};
static tess_error error;

static void test_seek(const char *name, const tess_image_info *as)
{
    char path[256];
    unsigned char rows[HEIGHT][WIDTH * CHANNELS], scratch[WIDTH * CHANNELS];
    tess_writer *writer = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_MSG(tess_writer_open(&test_counter, path, as, NULL, &writer, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_writer_rows(writer, HEIGHT, image, &error) == TESS_OK);
    CHECK(tess_writer_commit(writer, &error) == TESS_OK);
    tess_writer_close(writer);
    for (int64_t first = 0; first < HEIGHT; first += 5) {
        tess_reader *reader = NULL;
        CHECK(tess_reader_open_axes(&test_counter, path, as->axes, &reader, &error) == TESS_OK);
        CHECK(tess_reader_seek(reader, first, scratch, &error) == TESS_OK);
        CHECK(tess_reader_rows(reader, 1, rows[first], &error) == TESS_OK);
        const int64_t then = first + (HEIGHT - first) / 2;
        if (then > first)
            CHECK(tess_reader_seek(reader, then, scratch, &error) == TESS_OK &&
                  tess_reader_rows(reader, HEIGHT - then, rows[then], &error) == TESS_OK);
        CHECK_MSG(memcmp(rows[first], image[first], sizeof *rows) == 0 &&
                      (then == first ||
                       memcmp(rows[then], image[then], (size_t)(HEIGHT - then) * sizeof *rows) == 0),
                  "%s from row %lld", name, (long long)first);
        CHECK(tess_reader_seek(reader, first, scratch, &error) == TESS_INTERNAL || then == first);
        tess_reader_close(reader);
    }
}

/* The last part is written first. */
static void test_parts(const char *name, tess_axes axes, bool commits)
{
    char path[256];
    unsigned char rows[HEIGHT][WIDTH * CHANNELS];
    tess_writer *writers[PARTS] = {NULL};
    tess_image_info as = info;
    as.axes = axes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(tess_writer_takes_parts(path));
    CHECK(tess_writer_open(&test_counter, path, &as, NULL, &writers[0], &error) == TESS_OK);
    for (int i = 1; i < PARTS; i++)
        CHECK(tess_writer_open_part(&test_counter, path, &as, NULL, tess_writer_file(writers[0]), &writers[i],
                                    &error) == TESS_OK);
    for (int i = PARTS - 1; i >= 0; i--) {
        const int64_t first = HEIGHT * i / PARTS, end = HEIGHT * (i + 1) / PARTS;
        tess_writer_seek(writers[i], first);
        CHECK(tess_writer_rows(writers[i], 2, image[first], &error) == TESS_OK);
        CHECK(tess_writer_rows(writers[i], end - first - 2, image[first + 2], &error) == TESS_OK);
    }
    for (int i = PARTS - 1; i >= 0 && commits; i--) {
        CHECK(access(path, F_OK) != 0);
        CHECK_MSG(tess_writer_commit(writers[i], &error) == TESS_OK, "%s", error.text);
    }
    for (int i = 0; i < PARTS; i++)
        tess_writer_close(writers[i]);
    CHECK((access(path, F_OK) == 0) == commits);
    tess_reader *reader = NULL;
    if (!commits)
        return;
    CHECK_MSG(tess_reader_open_axes(&test_counter, path, axes, &reader, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_reader_rows(reader, HEIGHT, rows, &error) == TESS_OK);
    CHECK(memcmp(rows, image, sizeof image) == 0);
    tess_reader_close(reader);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH * CHANNELS; x++)
            image[y][x] = (unsigned char)draw();
    tess_image_info planes = info;
    planes.axes = TESS_AXES_CHW;
    test_seek("a.npy", &info);
    test_seek("b.npy", &planes);
    test_seek("a.png", &info);
    if (tess_image_load_library("any.tif", &error) == TESS_OK)
        test_seek("a.tif", &info);
    test_parts("lost.npy", TESS_AXES_HWC, false);
    test_parts("c.npy", TESS_AXES_HWC, true);
    test_parts("d.npy", TESS_AXES_CHW, true);
    CHECK(!tess_writer_takes_parts("x.png") && !tess_writer_takes_parts("x.tif"));
    sweep_folder(true);
    CHECK(sweep_folder(false) == 0);
    rmdir(folder);
    return check_end();
}
