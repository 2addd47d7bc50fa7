/* test_image_axes.c: which axes of an NPY array are depth, height, width and channels; which arrays are refused and
 * with which message; planes and volumes are written as they were read. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <unistd.h>

#include "io/image.h"

/* Bytes 0, 1, 2, … of any type. */
static void write_array(const char *name, const char *descr, const char *shape, size_t bytes)
{
    char header[160];
    const int length = snprintf(header, sizeof header,
                                "{'descr': '%s', 'fortran_order': False, 'shape': %s}\n", descr, shape);
    FILE *file = fopen(in_folder(name), "wb");
    const unsigned char fixed[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, 0};
    fwrite(fixed, 1, sizeof fixed, file);
    fwrite(header, 1, (size_t)length, file);
    for (size_t i = 0; i < bytes; i++)
        fputc((int)(i * 7 % 251), file);
    fclose(file);
}

static void test_taken(void)
{
    static const struct {
        const char *shape;
        tess_axes asked, taken;
        int64_t depth, height, width;
        int channels;
    } cases[] = {
        {"(6, 7)", TESS_AXES_AUTO, TESS_AXES_HW, 0, 6, 7, 1},
        {"(3, 7)", TESS_AXES_AUTO, TESS_AXES_HW, 0, 3, 7, 1},
        {"(6, 7, 3)", TESS_AXES_AUTO, TESS_AXES_HWC, 0, 6, 7, 3},
        {"(6, 7, 1)", TESS_AXES_AUTO, TESS_AXES_HWC, 0, 6, 7, 1},
        {"(3, 7, 4)", TESS_AXES_AUTO, TESS_AXES_HWC, 0, 3, 7, 4},
        {"(6, 7, 5)", TESS_AXES_AUTO, TESS_AXES_DHW, 6, 7, 5, 1},
        {"(5, 8, 9)", TESS_AXES_AUTO, TESS_AXES_DHW, 5, 8, 9, 1},
        {"(4, 4, 9)", TESS_AXES_AUTO, TESS_AXES_DHW, 4, 4, 9, 1},
        {"(5, 6, 7, 3)", TESS_AXES_AUTO, TESS_AXES_DHWC, 5, 6, 7, 3},
        {"(3, 6, 7)", TESS_AXES_CHW, TESS_AXES_CHW, 0, 6, 7, 3},
        {"(3, 6, 7)", TESS_AXES_DHW, TESS_AXES_DHW, 3, 6, 7, 1},
        {"(6, 7, 3)", TESS_AXES_DHW, TESS_AXES_DHW, 6, 7, 3, 1},
        {"(6, 7, 31)", TESS_AXES_HWC, TESS_AXES_HWC, 0, 6, 7, 31},
        {"(2, 6, 7, 9)", TESS_AXES_DHWC, TESS_AXES_DHWC, 2, 6, 7, 9},
        {"(3, 6, 7)", TESS_AXES_PLAIN, TESS_AXES_HWC, 0, 3, 6, 7},
        {"(6, 7, 9)", TESS_AXES_PICTURE, TESS_AXES_HWC, 0, 6, 7, 9},
        {"(3, 7, 4)", TESS_AXES_PICTURE, TESS_AXES_HWC, 0, 3, 7, 4},
        {"(3, 7)", TESS_AXES_PICTURE, TESS_AXES_HW, 0, 3, 7, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tess_error error = {""};
        tess_reader *reader = NULL;
        long long a = 1, b = 1, c = 1, d = 1;
        sscanf(cases[i].shape, "(%lld, %lld, %lld, %lld", &a, &b, &c, &d);
        write_array("t.npy", "|u1", cases[i].shape, (size_t)(a * b * c * d));
        CHECK_MSG(tess_reader_open_axes(&test_counter, in_folder("t.npy"), cases[i].asked, &reader, &error) ==
                      TESS_OK,
                  "%s", error.text);
        if (!reader)
            continue;
        const tess_image_info *info = tess_reader_info(reader);
        CHECK_MSG(info->axes == cases[i].taken && info->depth == cases[i].depth &&
                      info->height == cases[i].height && info->width == cases[i].width &&
                      info->channels == cases[i].channels,
                  "%s as %s: %lld x %lld x %lld x %d", cases[i].shape, tess_axes_name(info->axes),
                  (long long)info->depth, (long long)info->height, (long long)info->width, info->channels);
        CHECK(tess_image_rows(info) * info->width * info->channels == a * b * c * d);
        tess_reader_close(reader);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *shape, *descr;
        tess_axes asked;
        const char *words[3];
    } cases[] = {
        {"(3, 6, 7)", "|u1", TESS_AXES_AUTO, {"(channels, height, width)", "`axes` CHW", "`axes` DHW"}},
        {"(4, 5, 9)", "|u1", TESS_AXES_AUTO, {"(4, 5, 9)", "`axes` CHW", "`axes` DHW"}},
        {"(1, 6, 7)", "|u1", TESS_AXES_AUTO, {"(channels, height, width)", "`axes` CHW", "1 slice"}},
        {"(2, 6, 7, 9)",
         "|u1",
         TESS_AXES_AUTO,
         {"4 dimensions", "(depth, height, width, channels)", "1 to 4"}},
        {"(3, 6, 7)",
         "|u1",
         TESS_AXES_PICTURE,
         {"(3, 6, 7)", "(channels, height, width)", "move its first axis to the end"}},
        {"(9,)", "|u1", TESS_AXES_AUTO, {"1 dimension", "(height, width)", "volume"}},
        {"(6, 7)", "|u1", TESS_AXES_HWC, {"2 dimension", "`axes` HWC", "(height, width, channels)"}},
        {"(6, 7, 3)", "|u1", TESS_AXES_HW, {"3 dimension", "`axes` HW ", "(height, width)"}},
        {"(6, 7, 3)", "|u1", TESS_AXES_DHWC, {"(6, 7, 3)", "`axes` DHWC", "of 4"}},
        {"(6, 7)", "|b1", TESS_AXES_AUTO, {"boolean", "uint8", "255"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tess_error error = {""};
        tess_reader *reader = NULL;
        long long a = 1, b = 1, c = 1, d = 1;
        sscanf(cases[i].shape, "(%lld, %lld, %lld, %lld", &a, &b, &c, &d);
        write_array("r.npy", cases[i].descr, cases[i].shape, (size_t)(a * b * c * d));
        CHECK(tess_reader_open_axes(&test_counter, in_folder("r.npy"), cases[i].asked, &reader, &error) !=
              TESS_OK);
        for (int w = 0; w < 3; w++)
            CHECK_MSG(strstr(error.text, cases[i].words[w]) && strstr(error.text, "r.npy"),
                      "%s: no \"%s\" in: %s", cases[i].shape, cases[i].words[w], error.text);
        tess_reader_close(reader);
    }
}

/* All rows in uneven bites; to be freed. */
static unsigned char *read_all(tess_reader *reader)
{
    const tess_image_info *info = tess_reader_info(reader);
    const size_t row = (size_t)info->width * (size_t)info->channels * tess_dtype_size(info->dtype);
    const int64_t rows = tess_image_rows(info);
    unsigned char *data = malloc(row * (size_t)rows);
    for (int64_t y = 0, bite = 1; y < rows; y += bite, bite = 2 * bite + 1) {
        bite = bite > rows - y ? rows - y : bite;
        CHECK(tess_reader_rows(reader, bite, data + (size_t)y * row, NULL) == TESS_OK);
    }
    CHECK(tess_reader_rows(reader, 1, data, NULL) == TESS_INTERNAL);
    return data;
}

static bool same_bytes(const char *a, const char *b, size_t tail)
{
    unsigned char data[2][70000];
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(i ? b : a, "rb");
        if (!file)
            return false;
        bytes[i] = fread(data[i], 1, sizeof data[i], file);
        fclose(file);
    }
    return bytes[0] > tail && bytes[1] > tail &&
           memcmp(data[0] + bytes[0] - tail, data[1] + bytes[1] - tail, tail) == 0;
}

static bool file_has(const char *path, const char *text)
{
    char head[256] = "";
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    head[fread(head, 1, sizeof head - 1, file)] = '\0';
    fclose(file);
    return strstr(head + 10, text) != NULL;
}

/* Read with its axes and written again: the same shape and the same samples, and what is held is what was said. */
static void keep(const char *descr, const char *shape, size_t bytes, tess_axes axes, bool by_like)
{
    tess_error error = {""};
    tess_reader *reader = NULL;
    tess_writer *writer = NULL;
    write_array("in.npy", descr, shape, bytes);
    tess_memory_reset_peak(&test_counter);
    const uint64_t before = io_peak();
    CHECK_MSG(tess_reader_open_axes(&test_counter, in_folder("in.npy"), axes, &reader, &error) == TESS_OK,
              "%s", error.text);
    if (!reader)
        return;
    tess_image_info info = *tess_reader_info(reader);
    unsigned char *data = read_all(reader);
    CHECK(io_peak() - before == info.held_bytes);
    if (by_like)
        info.axes = TESS_AXES_AUTO;
    CHECK_MSG(tess_writer_open(&test_counter, in_folder("out.npy"), &info, reader, &writer, &error) ==
                  TESS_OK,
              "%s", error.text);
    if (writer) {
        const int64_t rows = tess_image_rows(&info), first = rows / 3;
        const size_t row = (size_t)info.width * (size_t)info.channels * tess_dtype_size(info.dtype);
        CHECK(tess_writer_rows(writer, first, data, NULL) == TESS_OK);
        CHECK(tess_writer_commit(writer, NULL) == TESS_INTERNAL || first == rows);
        tess_writer_close(writer);
        CHECK(tess_writer_open(&test_counter, in_folder("out.npy"), &info, reader, &writer, &error) ==
              TESS_OK);
        CHECK(tess_writer_rows(writer, first, data, NULL) == TESS_OK);
        CHECK(tess_writer_rows(writer, rows - first, data + (size_t)first * row, NULL) == TESS_OK);
        CHECK_MSG(tess_writer_commit(writer, &error) == TESS_OK, "%s", error.text);
        tess_writer_close(writer);
        CHECK_MSG(file_has(in_folder("out.npy"), shape), "%s is written with another shape", shape);
        if (descr[0] != '>')
            CHECK_MSG(same_bytes(in_folder("in.npy"), in_folder("out.npy"), bytes), "%s %s", descr, shape);
    }
    free(data);
    tess_reader_close(reader);
}

static void test_interleaved(void)
{
    tess_reader *reader = NULL;
    write_array("p.npy", "|u1", "(3, 2, 2)", 12);
    CHECK(tess_reader_open_axes(&test_counter, in_folder("p.npy"), TESS_AXES_CHW, &reader, NULL) == TESS_OK);
    if (!reader)
        return;
    unsigned char *data = read_all(reader);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 4; i++)
            CHECK(data[i * 3 + c] == (4 * c + i) * 7 % 251);
    free(data);
    tess_reader_close(reader);
    static const unsigned char doubles[4][8] = {
        {0x3f, 0xf8}, {0xc0}, {0xbf, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a}};
    write_array("d.npy", ">f8", "(2, 1, 2)", 0); /* doubles of either order come as floats */
    FILE *file = fopen(in_folder("d.npy"), "ab");
    fwrite(doubles, 1, sizeof doubles, file);
    fclose(file);
    CHECK(tess_reader_open_axes(&test_counter, in_folder("d.npy"), TESS_AXES_CHW, &reader, NULL) == TESS_OK);
    if (!reader)
        return;
    data = read_all(reader);
    float got[4];
    memcpy(got, data, sizeof got); /* channel 1 of the first pixel is the third double */
    CHECK(got[0] == 1.5f && got[1] == -0.1f && got[2] == -2 && got[3] == 0);
    free(data);
    tess_reader_close(reader);
}

/* Formats of one image say what takes a volume. */
static void test_volume_targets(void)
{
    static const char *const names[] = {"v.png", "v.tif", "v.jpg", "v.img"};
    const tess_image_info info = {
        .depth = 5, .height = 6, .width = 7, .channels = 1, .dtype = TESS_U8, .full_scale = 255};
    for (int n = 0; n < 4; n++) {
        tess_error error = {""};
        tess_writer *writer = NULL;
        CHECK(tess_writer_check(in_folder(names[n]), &info, &error) == TESS_BAD_OPTION);
        CHECK_MSG(strstr(error.text, ".npy") && strstr(error.text, "5 slices"), "%s", error.text);
        CHECK(tess_writer_open(&test_counter, in_folder(names[n]), &info, NULL, &writer, &error) ==
              TESS_BAD_OPTION);
    }
    CHECK(tess_writer_check(in_folder("v.npy"), &info, NULL) == TESS_OK);
    tess_image_info huge = info;
    huge.depth = huge.height = huge.width = INT32_MAX;
    CHECK(tess_writer_check(in_folder("v.npy"), &huge, NULL) == TESS_BAD_OPTION);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_taken();
    test_refused();
    test_interleaved();
    for (int by_like = 0; by_like < 2; by_like++) {
        keep("|u1", "(3, 60, 70)", 3 * 60 * 70, TESS_AXES_CHW, by_like);
        keep("|u1", "(1, 60, 70)", 60 * 70, TESS_AXES_CHW, by_like);
        keep("<u2", "(3, 60, 70)", 2 * 3 * 60 * 70, TESS_AXES_CHW, by_like);
        keep(">i2", "(3, 60, 70)", 2 * 3 * 60 * 70, TESS_AXES_CHW, by_like);
        keep("<u2", "(5, 60, 70)", 2 * 5 * 60 * 70, TESS_AXES_AUTO, by_like);
        keep("|u1", "(5, 60, 70, 3)", 5 * 60 * 70 * 3, TESS_AXES_AUTO, by_like);
        keep("|u1", "(5, 60, 70, 1)", 5 * 60 * 70, TESS_AXES_AUTO, by_like);
        keep("|u1", "(60, 70, 1)", 60 * 70, TESS_AXES_AUTO, by_like);
        keep("|u1", "(60, 70)", 60 * 70, TESS_AXES_AUTO, by_like);
    }
    test_volume_targets();
    static const char *const made[] = {"t.npy", "r.npy", "in.npy", "out.npy", "p.npy", "d.npy"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(in_folder(made[i]));
    CHECK(rmdir(folder) == 0); /* nothing else was left */
    return check_end();
}
