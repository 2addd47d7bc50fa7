/* test_image_mask.c: samples that a raster marks as void, by its nodata value or by a mask band, are distinguished
 * from those that hold a value, in every type; the written TIFF contains the mask, and no side file is created. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <unistd.h>

#include "io/image.h"

/* An ENVI raster of one row and `bands` bands, one after another. */
static void write_envi(int type, const char *nodata, int samples, int bands, const void *data, size_t bytes)
{
    FILE *file = fopen(in_folder("e.hdr"), "wb");
    fprintf(file,
            "ENVI\nsamples = %d\nlines = 1\nbands = %d\nheader offset = 0\nfile type = ENVI Standard\n"
            "data type = %d\ninterleave = bsq\nbyte order = 0\ndata ignore value = %s\n",
            samples, bands, type, nodata);
    fclose(file);
    file = fopen(in_folder("e.img"), "wb");
    fwrite(data, 1, bytes, file);
    fclose(file);
}

/* Reads all rows at once and returns which are valid, as text of 0 and 1, row by row. */
static const char *valid_of(const char *name, bool *masked)
{
    static char text[4096];
    unsigned char samples[16384], valid[4096];
    tess_error error = {""};
    tess_reader *reader = NULL;
    text[0] = '\0';
    CHECK_MSG(tess_reader_open(&test_counter, in_folder(name), &reader, &error) == TESS_OK, "%s", error.text);
    if (!reader)
        return text;
    const tess_image_info *info = tess_reader_info(reader);
    const size_t row = (size_t)info->width * (size_t)info->channels;
    *masked = info->masked;
    CHECK(tess_reader_valid(reader, 1, valid, NULL) == TESS_INTERNAL); /* nothing was read yet */
    CHECK_MSG(tess_reader_rows(reader, info->height, samples, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_reader_valid(reader, info->height, valid, &error) == TESS_OK, "%s", error.text);
    for (size_t i = 0; i < row * (size_t)info->height; i++)
        text[i] = valid[i] ? '1' : '0', text[i + 1] = '\0';
    tess_reader_close(reader);
    return text;
}

static void test_nodata(void)
{
    static const uint8_t bytes[4] = {0, 7, 255, 7};
    static const int16_t shorts[4] = {-9999, 7, -9998, -32768};
    static const uint16_t words[4] = {65535, 7, 0, 9999};
    static const int32_t longs[4] = {INT32_MIN, 7, INT32_MAX, -9999};
    static const uint32_t wide[4] = {UINT32_MAX, 7, UINT32_MAX - 1, 0};
    static const float floats[4] = {-9999.1f, NAN, -9999, INFINITY};
    static const float least[4] = {-3.40282347e+38f, 1, -3.4e38f, 0};
    static const double doubles[4] = {-9999.1, 1e30, -9999, 0.1};
    static const double far[4] = {-1.7976931348623157e308, 1, 3.4e38, -1};
    static const struct {
        int type;
        const char *nodata;
        const void *data;
        size_t bytes;
        const char *valid;
    } cases[] = {
        {1, "7", bytes, sizeof bytes, "1010"},
        {1, "255", bytes, sizeof bytes, "1101"},
        {1, "-9999", bytes, sizeof bytes, "1111"}, /* no byte is */
        {1, "7.5", bytes, sizeof bytes, "1111"},
        {2, "-9999", shorts, sizeof shorts, "0111"},
        {2, "-32768", shorts, sizeof shorts, "1110"},
        {12, "65535", words, sizeof words, "0111"},
        {3, "-2147483648", longs, sizeof longs, "0111"},
        {3, "2147483647", longs, sizeof longs, "1101"},
        {13, "4294967295", wide, sizeof wide, "0111"},
        {4, "-9999.1", floats, sizeof floats, "0111"}, /* the float next to that double */
        {4, "nan", floats, sizeof floats, "1011"},
        {4, "-3.40282347e+38", least, sizeof least, "0111"},
        {5, "-9999.1", doubles, sizeof doubles, "0111"},
        {5, "0.1", doubles, sizeof doubles, "1110"},
        {5, "-1.7976931348623157e308", far, sizeof far, "0111"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool masked = false;
        write_envi(cases[i].type, cases[i].nodata, 4, 1, cases[i].data, cases[i].bytes);
        const char *valid = valid_of("e.img", &masked);
        CHECK_MSG(strcmp(valid, cases[i].valid) == 0, "type %d, nodata %s: %s, not %s", cases[i].type,
                  cases[i].nodata, valid, cases[i].valid);
        CHECK(masked == (strchr(cases[i].valid, '0') != NULL));
    }
    bool masked;
    write_envi(1, "7", 2, 2, bytes, sizeof bytes); /* bands of (0, 7) and (255, 7), given pixel by pixel */
    CHECK(strcmp(valid_of("e.img", &masked), "1100") == 0);
}

/* The nodata value that a TIFF gets is that of the floats in it. */
static void test_nodata_kept(void)
{
    static const double far[2][4] = {{-1.7976931348623157e308, 1, -9999.1, -1}, {-3.4e38, 1, -9999.1, -1}};
    static const char *const values[] = {"-1.7976931348623157e308", "-9999.1"};
    for (int i = 0; i < 2; i++) {
        tess_reader *reader = NULL;
        tess_writer *writer = NULL;
        float row[4];
        bool masked = false;
        write_envi(5, values[i], 4, 1, far[i], sizeof far[i]);
        CHECK(tess_reader_open(&test_counter, in_folder("e.img"), &reader, NULL) == TESS_OK);
        CHECK(tess_reader_rows(reader, 1, row, NULL) == TESS_OK);
        CHECK(tess_writer_open(&test_counter, in_folder("k.tif"), tess_reader_info(reader), reader, &writer,
                               NULL) == TESS_OK);
        CHECK(tess_writer_rows(writer, 1, row, NULL) == TESS_OK &&
              tess_writer_commit(writer, NULL) == TESS_OK);
        tess_writer_close(writer);
        tess_reader_close(reader);
        CHECK_MSG(strcmp(valid_of("k.tif", &masked), i ? "1101" : "0111") == 0 && masked, "nodata %s",
                  values[i]);
    }
}

/* A TIFF of RGB bytes in strips of `strip` rows, and a second directory: the mask, one bit a pixel. */
enum { HEIGHT = 37, WIDTH = 21, ROW = (WIDTH + 7) / 8 };

static bool hole(int y, int x)
{
    return (y * 5 + x * 3) % 7 < 2;
}

static void put(unsigned char **at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(value >> 8 * i);
}

static void put_tag(unsigned char **at, int tag, int type, uint32_t count, uint32_t value)
{
    put(at, (uint32_t)tag, 2);
    put(at, (uint32_t)type, 2);
    put(at, count, 4);
    put(at, value, 4);
}

static void write_masked(const char *name)
{
    enum {
        PIXELS = 8,
        MASK = PIXELS + HEIGHT * WIDTH * 3 + 1,
        FIRST = MASK + HEIGHT * ROW + 1,
        SECOND = FIRST + 200
    };
    static unsigned char file[SECOND + 200];
    memset(file, 0, sizeof file);
    unsigned char *at = file;
    memcpy(at, "II*\0", 4);
    at += 4;
    put(&at, FIRST, 4);
    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        file[PIXELS + i] = (unsigned char)i;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            if (!hole(y, x))
                file[MASK + y * ROW + x / 8] |= (unsigned char)(128 >> x % 8);
    at = file + FIRST;
    put(&at, 10, 2);
    put_tag(&at, 256, 4, 1, WIDTH);
    put_tag(&at, 257, 4, 1, HEIGHT);
    put_tag(&at, 258, 3, 3, FIRST + 140);
    put_tag(&at, 259, 3, 1, 1);
    put_tag(&at, 262, 3, 1, 2);
    put_tag(&at, 273, 4, 1, PIXELS);
    put_tag(&at, 277, 3, 1, 3);
    put_tag(&at, 278, 4, 1, HEIGHT);
    put_tag(&at, 279, 4, 1, HEIGHT * WIDTH * 3);
    put_tag(&at, 284, 3, 1, 1);
    put(&at, SECOND, 4);
    at = file + FIRST + 140;
    for (int c = 0; c < 3; c++)
        put(&at, 8, 2);
    at = file + SECOND;
    put(&at, 10, 2);
    put_tag(&at, 254, 4, 1, 4);
    put_tag(&at, 256, 4, 1, WIDTH);
    put_tag(&at, 257, 4, 1, HEIGHT);
    put_tag(&at, 258, 3, 1, 1);
    put_tag(&at, 259, 3, 1, 1);
    put_tag(&at, 262, 3, 1, 4);
    put_tag(&at, 273, 4, 1, MASK);
    put_tag(&at, 277, 3, 1, 1);
    put_tag(&at, 278, 4, 1, HEIGHT);
    put_tag(&at, 279, 4, 1, HEIGHT * ROW);
    FILE *out = fopen(in_folder(name), "wb");
    fwrite(file, 1, sizeof file, out);
    fclose(out);
}

static void check_mask(const char *name)
{
    bool masked = false;
    const char *valid = valid_of(name, &masked);
    int wrong = strlen(valid) != HEIGHT * WIDTH * 3;
    for (int i = 0; i < HEIGHT * WIDTH * 3 && !wrong; i++)
        wrong = (valid[i] == '0') != hole(i / 3 / WIDTH, i / 3 % WIDTH);
    CHECK_MSG(masked && !wrong, "the mask of %s", name);
}

/* Row by row and in bites, with what is held as it was said. */
static void test_mask(void)
{
    tess_error error = {""};
    tess_reader *reader = NULL;
    tess_writer *writer = NULL;
    static unsigned char data[HEIGHT * WIDTH * 3], valid[HEIGHT * WIDTH * 3];
    sweep_folder(true);
    write_masked("m.tif");
    check_mask("m.tif");
    tess_memory_reset_peak(&test_counter);
    uint64_t before = io_peak();
    CHECK(tess_reader_open(&test_counter, in_folder("m.tif"), &reader, &error) == TESS_OK);
    if (!reader)
        return;
    const tess_image_info info = *tess_reader_info(reader);
    CHECK(info.masked && info.mask_band && !info.alpha && info.channels == 3);
    CHECK(tess_writer_open(&test_counter, in_folder("n.tif"), &info, reader, &writer, &error) == TESS_OK);
    for (int y = 0, bite = 1; y < HEIGHT; y += bite, bite++) {
        bite = bite > HEIGHT - y ? HEIGHT - y : bite;
        /* rows that were read separately but are contiguous can be queried together */
        for (int i = 0; i < bite; i++)
            CHECK(tess_reader_rows(reader, 1, data + (y + i) * WIDTH * 3, NULL) == TESS_OK);
        CHECK(tess_reader_valid(reader, bite, valid + y * WIDTH * 3, NULL) == TESS_OK);
    }
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        CHECK(valid[3 * i] == !hole(i / WIDTH, i % WIDTH) && valid[3 * i + 2] == valid[3 * i]);
    CHECK_MSG(io_peak() - before == info.held_bytes, "held %llu, said %zu",
              (unsigned long long)(io_peak() - before), info.held_bytes);
    tess_reader_close(reader);
    tess_memory_reset_peak(&test_counter);
    before = io_peak();
    CHECK(tess_writer_rows(writer, HEIGHT, data, &error) == TESS_OK);
    CHECK_MSG(tess_writer_commit(writer, &error) == TESS_OK, "%s", error.text);
    CHECK(io_peak() - before == tess_writer_held_bytes(in_folder("n.tif"), &info));
    tess_writer_close(writer);
    check_mask("n.tif");
    CHECK(sweep_folder(true) == 2); /* no .msk */
}

/* Alpha is a channel, PNG and NPY have no void samples. */
static void test_unmasked(void)
{
    static const char *const names[] = {"a.tif", "a.png", "a.npy"};
    const tess_image_info info = {
        .height = 2, .width = 3, .channels = 4, .alpha = true, .dtype = TESS_U8, .full_scale = 255};
    const unsigned char data[24] = {0};
    for (int n = 0; n < 3; n++) {
        tess_writer *writer = NULL;
        bool masked = true;
        CHECK(tess_writer_open(&test_counter, in_folder(names[n]), &info, NULL, &writer, NULL) == TESS_OK);
        CHECK(tess_writer_rows(writer, 2, data, NULL) == TESS_OK &&
              tess_writer_commit(writer, NULL) == TESS_OK);
        tess_writer_close(writer);
        CHECK(strcmp(valid_of(names[n], &masked), "111111111111111111111111") == 0 && !masked);
    }
}

int main(void)
{
    tess_error error = {""};
    if (tess_image_load_library("any.tif", &error) != TESS_OK)
        return check_skip(error.text);
    if (!mkdtemp(folder))
        return 1;
    test_nodata();
    test_nodata_kept();
    test_mask();
    test_unmasked();
    sweep_folder(true);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
