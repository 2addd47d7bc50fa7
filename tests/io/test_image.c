/* test_image.c: every kind of image is written and read back unchanged, with its metadata, in groups of rows of
 * uneven size; the counter sees the bytes that a reader or writer reports; an uncommitted file leaves nothing
 * behind. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/image.h"
#include "io/jpeg_probe.h"

static tess_image_info describe(int64_t height, int64_t width, int channels, bool alpha, tess_dtype dtype)
{
    double scale = dtype == TESS_U8    ? 255
                   : dtype == TESS_U16 ? 65535
                   : dtype == TESS_I16 ? 32767
                   : dtype == TESS_U32 ? 4294967295.0
                   : dtype == TESS_I32 ? 2147483647
                                       : 1;
    return (tess_image_info){.height = height,
                             .width = width,
                             .channels = channels,
                             .alpha = alpha,
                             .dtype = dtype,
                             .full_scale = scale};
}

static size_t row_bytes(const tess_image_info *info)
{
    return (size_t)info->width * (size_t)info->channels * tess_dtype_size(info->dtype);
}

/* Random samples; floats are sane numbers with a NaN and an infinity among them. */
static unsigned char *random_image(const tess_image_info *info)
{
    size_t bytes = row_bytes(info) * (size_t)info->height;
    unsigned char *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)draw();
    if (info->dtype == TESS_F32) {
        float *values = (float *)data;
        for (size_t i = 0; i < bytes / 4; i++)
            values[i] = (float)draw() / 1e9f - 1;
        values[0] = NAN;
        values[bytes / 8] = INFINITY;
    }
    return data;
}

static bool write_image(const char *path, const tess_image_info *info, const tess_reader *like,
                        const void *data)
{
    tess_error error = {""};
    tess_writer *writer = NULL;
    tess_memory_reset_peak(&test_counter);
    uint64_t before = io_peak();
    bool good = tess_writer_open(&test_counter, path, info, like, &writer, &error) == TESS_OK;
    for (int64_t y = 0, bite = 1; good && y < info->height; y += bite, bite = bite * 2 + 1) {
        bite = bite > info->height - y ? info->height - y : bite;
        good = tess_writer_rows(writer, bite, (const char *)data + (size_t)y * row_bytes(info), &error) ==
               TESS_OK;
    }
    good = good && tess_writer_commit(writer, &error) == TESS_OK;
    tess_writer_close(writer);
    CHECK_MSG(good, "%s: %s", path, error.text);
    CHECK_MSG(io_peak() - before == tess_writer_held_bytes(path, info), "%s: writer held %llu, said %zu",
              path, (unsigned long long)(io_peak() - before), tess_writer_held_bytes(path, info));
    return good;
}

/* The whole image, to be freed; *info is filled. NULL after a reported failure. */
static unsigned char *read_image(const char *path, tess_image_info *info)
{
    tess_error error = {""};
    tess_reader *reader = NULL;
    tess_memory_reset_peak(&test_counter);
    uint64_t before = io_peak();
    if (tess_reader_open(&test_counter, path, &reader, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        return NULL;
    }
    *info = *tess_reader_info(reader);
    CHECK(io_peak() == before);
    unsigned char *data = malloc(row_bytes(info) * (size_t)info->height);
    bool good = true;
    for (int64_t y = 0, bite = 2; good && y < info->height; y += bite, bite = bite + 3) {
        bite = bite > info->height - y ? info->height - y : bite;
        good = tess_reader_rows(reader, bite, data + (size_t)y * row_bytes(info), &error) == TESS_OK;
    }
    CHECK_MSG(good, "%s", error.text);
    CHECK_MSG(io_peak() - before == info->held_bytes, "%s: reader held %llu, said %zu", path,
              (unsigned long long)(io_peak() - before), info->held_bytes);
    CHECK(tess_reader_rows(reader, 1, data, &error) == TESS_INTERNAL);
    tess_reader_close(reader);
    tess_memory_reset_peak(&test_counter);
    CHECK(io_peak() == before);
    return data;
}

static bool same_info(const tess_image_info *a, const tess_image_info *b)
{
    return a->height == b->height && a->width == b->width && a->channels == b->channels &&
           a->alpha == b->alpha && a->dtype == b->dtype && a->full_scale == b->full_scale;
}

/* Bit for bit. */
static void round_trip(const char *name, tess_image_info info)
{
    unsigned char *data = random_image(&info);
    tess_image_info back = {0};
    if (write_image(in_folder(name), &info, NULL, data)) {
        unsigned char *again = read_image(in_folder(name), &back);
        CHECK_MSG(same_info(&info, &back), "%s %lldx%lldx%d %s", name, (long long)info.height,
                  (long long)info.width, info.channels, tess_dtype_name(info.dtype));
        CHECK_MSG(again && same_info(&info, &back) &&
                      memcmp(data, again, row_bytes(&info) * (size_t)info.height) == 0,
                  "%s %lldx%lldx%d %s alpha %d", name, (long long)info.height, (long long)info.width,
                  info.channels, tess_dtype_name(info.dtype), info.alpha);
        free(again);
    }
    free(data);
}

static const int64_t sizes[][2] = {{1, 1}, {1, 37}, {53, 1}, {41, 67}, {130, 259}};
enum { SIZES = sizeof sizes / sizeof *sizes, PROFILE = 432 };

static void test_png(void)
{
    for (int s = 0; s < SIZES; s++)
        for (int channels = 1; channels <= 4; channels++)
            for (int deep = 0; deep < 2; deep++)
                round_trip("a.png", describe(sizes[s][0], sizes[s][1], channels, channels % 2 == 0,
                                             deep ? TESS_U16 : TESS_U8));
}

static void test_npy(void)
{
    static const tess_dtype dtypes[] = {TESS_U8, TESS_U16, TESS_I16, TESS_U32, TESS_I32, TESS_F32};
    for (int s = 0; s < SIZES; s++)
        for (int channels = 1; channels <= 4; channels++) /* more would be a volume: test_image_axes.c */
            for (int d = 0; d < 6; d++)
                round_trip("a.npy", describe(sizes[s][0], sizes[s][1], channels, false, dtypes[d]));
}

/* A PNG of any colour type and depth, straight from libpng; `rows` are packed as PNG wants them (big endian).
 */
static void write_raw_png(const char *path, int width, int height, int depth, int colour, bool interlaced,
                          const unsigned char *rows, size_t stride)
{
    static png_color palette[4] = {{1, 2, 3}, {40, 50, 60}, {7, 8, 9}, {255, 254, 253}};
    static png_byte see_through[2] = {0, 128};
    png_color_16 clear = {.gray = 1};
    FILE *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, depth, colour,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 4);
        png_set_tRNS(png, info, see_through, 2, NULL);
    } else if (depth == 2) {
        png_set_tRNS(png, info, NULL, 0, &clear);
    }
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < height; y++)
            png_write_row(png, rows + (size_t)y * stride);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(file);
}

static void test_png_interlaced(void)
{
    static const int colour[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    for (int s = 0; s < SIZES; s++)
        for (int channels = 1; channels <= 4; channels++)
            for (int deep = 0; deep < 2; deep++) {
                tess_image_info info = describe(sizes[s][0], sizes[s][1], channels, channels % 2 == 0,
                                                deep ? TESS_U16 : TESS_U8);
                tess_image_info back = {0};
                size_t bytes = row_bytes(&info) * (size_t)info.height;
                unsigned char *data = random_image(&info);
                write_raw_png(in_folder("i.png"), (int)info.width, (int)info.height, deep ? 16 : 8,
                              colour[channels - 1], true, data, row_bytes(&info));
                for (size_t i = 0; deep && i < bytes; i += 2) { /* the file is big endian */
                    uint16_t value = (uint16_t)(data[i] << 8 | data[i + 1]);
                    memcpy(data + i, &value, 2);
                }
                unsigned char *again = read_image(in_folder("i.png"), &back);
                CHECK(same_info(&info, &back) && again && memcmp(data, again, bytes) == 0);
                CHECK(back.held_bytes ==
                      tess_block_granted(bytes) + 2 * tess_block_granted(row_bytes(&info)));
                free(again);
                free(data);
            }
}

static void test_png_expansion(void)
{
    tess_image_info info = {0};
    const unsigned char bits[2] = {0xa5, 0x80};
    write_raw_png(in_folder("g1.png"), 9, 1, 1, PNG_COLOR_TYPE_GRAY, false, bits, 2);
    unsigned char *data = read_image(in_folder("g1.png"), &info);
    CHECK(data && info.channels == 1 && info.dtype == TESS_U8 && info.width == 9);
    CHECK(data && data[0] == 255 && data[1] == 0 && data[7] == 255 && data[8] == 255);
    free(data);
    const unsigned char pairs[1] = {0x1b}; /* 0 1 2 3 */
    write_raw_png(in_folder("g2.png"), 4, 1, 2, PNG_COLOR_TYPE_GRAY, false, pairs, 1);
    data = read_image(in_folder("g2.png"), &info);
    CHECK(data && info.channels == 2 && info.alpha);
    CHECK(data && data[0] == 0 && data[1] == 255 && data[2] == 85 && data[3] == 0 && data[6] == 255);
    free(data);
    const unsigned char index[4] = {0, 1, 2, 3};
    write_raw_png(in_folder("p.png"), 4, 1, 8, PNG_COLOR_TYPE_PALETTE, false, index, 4);
    data = read_image(in_folder("p.png"), &info);
    CHECK(data && info.channels == 4 && info.alpha);
    CHECK(data && data[0] == 1 && data[3] == 0 && data[4] == 40 && data[7] == 128 && data[12] == 255 &&
          data[15] == 255);
    free(data);
}

/* The least that libpng takes for a profile: a header without tags, and bytes that deflate cannot shrink. */
static void make_profile(unsigned char profile[PROFILE])
{
    memset(profile, 0, PROFILE);
    for (int i = 132; i < PROFILE; i++)
        profile[i] = (unsigned char)draw();
    profile[2] = PROFILE >> 8;
    profile[3] = PROFILE & 255;
    profile[8] = 2;
    memcpy(profile + 12, "mntrRGB XYZ ", 12);
    memcpy(profile + 36, "acsp", 4);
    memcpy(profile + 68, "\x00\x00\xf6\xd6\x00\x01\x00\x00\x00\x00\xd3\x2d", 12);
}

static void test_png_metadata(void)
{
    unsigned char profile[PROFILE], pixels[12] = {9};
    make_profile(profile);
    FILE *file = fopen(in_folder("m.png"), "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, 2, 2, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, 0, 0);
    png_set_iCCP(png, info, "test", 0, profile, PROFILE);
    png_set_pHYs(png, info, 1234, 4321, PNG_RESOLUTION_METER);
    png_write_info(png, info);
    png_write_row(png, pixels);
    png_write_row(png, pixels + 6);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(file);

    tess_reader *like = NULL;
    CHECK(tess_reader_open(&test_counter, in_folder("m.png"), &like, NULL) == TESS_OK);
    if (!like)
        return;
    write_image(in_folder("n.png"), tess_reader_info(like), like, pixels);
    tess_image_info gray =
        describe(2, 2, 1, false, TESS_U8); /* an RGB profile does not fit: dropped, not an error */
    write_image(in_folder("o.png"), &gray, like, pixels);
    tess_reader_close(like);
    file = fopen(in_folder("n.png"), "rb");
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    info = png_create_info_struct(png);
    png_init_io(png, file);
    png_read_info(png, info);
    png_charp name = NULL;
    png_bytep bytes = NULL;
    png_uint_32 length = 0, x = 0, y = 0;
    int kind = 0;
    CHECK(png_get_iCCP(png, info, &name, &kind, &bytes, &length) && length == PROFILE &&
          memcmp(bytes, profile, PROFILE) == 0);
    CHECK(png_get_pHYs(png, info, &x, &y, &kind) && x == 1234 && y == 4321);
    png_destroy_read_struct(&png, &info, NULL);
    fclose(file);
}

static void write_npy(const char *path, int version, const char *header, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    size_t length = strlen(header);
    unsigned char fixed[12] = {0x93,
                               'N',
                               'U',
                               'M',
                               'P',
                               'Y',
                               (unsigned char)version,
                               0,
                               (unsigned char)length,
                               (unsigned char)(length >> 8)};
    fwrite(fixed, 1, version == 1 ? 10 : 12, file);
    fwrite(header, 1, length, file);
    fwrite(data, 1, bytes, file);
    fclose(file);
}

static void test_npy_kinds(void)
{
    tess_image_info info = {0};
    const double doubles[6] = {0, -1.5, INFINITY, 0.25, 3, NAN};
    write_npy(in_folder("d.npy"), 2, "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f8'}\n", doubles,
              48);
    float *values = (float *)read_image(in_folder("d.npy"), &info);
    CHECK(info.dtype == TESS_F32 && info.full_scale == 1 && info.channels == 1);
    CHECK(values && values[1] == -1.5f && isinf(values[2]) && values[3] == 0.25f && isnan(values[5]));
    free(values);
    const uint16_t halves[2] = {0x3c00, 0xc000};
    write_npy(in_folder("h.npy"), 3, "{\"descr\": \"<f2\", \"fortran_order\": True, \"shape\": (1, 2L, 1), }",
              halves, 4);
    values = (float *)read_image(in_folder("h.npy"), &info);
    CHECK(info.dtype == TESS_F32 && info.width == 2 && info.channels == 1);
    CHECK(values && values[0] == 1 && values[1] == -2);
    free(values);
    write_npy(in_folder("b.npy"), 1, "{'descr': '>i2', 'fortran_order': False, 'shape': (1, 2, 1)}",
              "\x01\x02\xff\xfe", 4);
    int16_t *shorts = (int16_t *)read_image(in_folder("b.npy"), &info);
    CHECK(info.dtype == TESS_I16 && info.full_scale == 32767);
    CHECK(shorts && shorts[0] == 0x102 && shorts[1] == -2);
    tess_reader *like = NULL;
    CHECK(tess_reader_open(&test_counter, in_folder("b.npy"), &like, NULL) == TESS_OK);
    if (like && shorts)
        write_image(in_folder("c.npy"), &info, like, shorts);
    tess_reader_close(like);
    free(shorts);
    char text[128] = "";
    FILE *file = fopen(in_folder("c.npy"), "rb");
    if (file) {
        CHECK(fread(text, 1, 127, file) == 127);
        fclose(file);
    }
    CHECK(strstr(text + 10, "(1, 2, 1)") != NULL); /* the rank is kept */
}

/* GDAL's kinds. */

static void test_rasters(void)
{
    static const tess_dtype dtypes[] = {TESS_U8, TESS_U16, TESS_I16, TESS_U32, TESS_I32, TESS_F32};
    static const char *const raw[] = {"a.tif", "a.img", "a.bil", "a.bip", "a.bsq"};
    for (int s = 0; s < SIZES; s++) {
        for (int d = 0; d < 6; d++)
            for (int f = 0; f < 5; f++)
                for (int channels = 1; channels <= 5; channels += 2)
                    round_trip(raw[f], describe(sizes[s][0], sizes[s][1], channels, false, dtypes[d]));
        for (int channels = 2; channels <= 6; channels++) {
            round_trip("a.tif",
                       describe(sizes[s][0], sizes[s][1], channels, true, channels % 2 ? TESS_U8 : TESS_U16));
            round_trip("b.tiff", describe(sizes[s][0], sizes[s][1], channels, false, TESS_U8));
        }
        round_trip("a.bmp", describe(sizes[s][0], sizes[s][1], 1, false, TESS_U8));
        round_trip("a.bmp", describe(sizes[s][0], sizes[s][1], 3, false, TESS_U8));
    }
}

static void test_jpeg(void)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        tess_image_info info = describe(61, 83, channels, false, TESS_U8), back = {0};
        unsigned char data[61 * 83 * 3];
        for (int i = 0; i < 61 * 83 * channels; i++)
            data[i] = (unsigned char)(40 + i / (83 * channels) * 2 + i % (83 * channels) / channels);
        if (!write_image(in_folder("a.jpg"), &info, NULL, data))
            continue;
        unsigned char *again = read_image(in_folder("a.jpg"), &back);
        int worst = 0;
        for (int i = 0; again && i < 61 * 83 * channels; i++)
            worst = abs(again[i] - data[i]) > worst ? abs(again[i] - data[i]) : worst;
        CHECK_MSG(again && same_info(&info, &back) && worst <= 6, "worst %d", worst);
        free(again);
    }
    /* A JPEG under a PNG's name is read for what it is. */
    tess_image_info info = {0};
    rename(in_folder("a.jpg"), in_folder("false.png"));
    free(read_image(in_folder("false.png"), &info));
    CHECK(info.channels == 3 && info.width == 83);
}

static void test_jpeg_probe(void)
{
    static const unsigned char head[] =
        "\xff\xd8\xff\xe0\x00\x04zz\xff\xc2\x00\x11\x08\x00\x21\x00\x31\x03\x01\x22\x00"
        "\x02\x11\x01\x03\x11\x01\xff\xda\x00\x0c\x03";
    unsigned char copy[sizeof head];
    memcpy(copy, head, sizeof head);
    for (int kind = 0; kind < 3; kind++) {
        copy[9] = kind == 0 ? 0xc2 : 0xc0;               /* progressive, or not */
        copy[sizeof head - 2] = kind == 2 ? 0x01 : 0x03; /* components of the first scan */
        FILE *file = fopen(in_folder("probe.jpg"), "wb");
        fwrite(copy, 1, sizeof copy - 1, file);
        fclose(file);
        /* 33 x 49 at 2x2: 3 x 4 MCUs of 4 + 1 + 1 blocks */
        CHECK(tess_jpeg_coefficients(in_folder("probe.jpg")) == (kind == 1 ? 0 : 3 * 4 * 6 * 128));
    }
}

static bool file_has(const char *path, const char *text)
{
    char content[4096] = "";
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    return strstr(content, text) != NULL;
}

/* ENVI in, TIFF out, ENVI again: its text header shows what was carried. */
static void test_georeference(void)
{
    static const char header[] =
        "ENVI\nsamples = 5\nlines = 3\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
        "data type = 4\ninterleave = bsq\nbyte order = 0\ndata ignore value = -9999\n"
        "map info = {UTM, 1, 1, 500000, 4600000, 30, 30, 33, North, WGS-84}\n";
    tess_image_info info = describe(3, 5, 1, false, TESS_F32);
    unsigned char *data = random_image(&info);
    FILE *file = fopen(in_folder("geo.hdr"), "wb");
    fwrite(header, 1, strlen(header), file);
    fclose(file);
    file = fopen(in_folder("geo.img"), "wb");
    fwrite(data, 1, 60, file);
    fclose(file);
    const char *const steps[] = {"geo.img", "geo.tif", "back.img"};
    CHECK(tess_image_load_library(in_folder(steps[0]), NULL) == TESS_OK);
    for (int i = 0; i < 2; i++) {
        tess_error error = {""};
        tess_reader *like = NULL;
        CHECK_MSG(tess_reader_open(&test_counter, in_folder(steps[i]), &like, &error) == TESS_OK, "%s",
                  error.text);
        if (like)
            write_image(in_folder(steps[i + 1]), &info, like, data);
        tess_reader_close(like);
    }
    free(data);
    CHECK(file_has(in_folder("back.hdr"), "data ignore value = -9999"));
    CHECK(file_has(in_folder("back.hdr"), "UTM"));
    CHECK(file_has(in_folder("back.hdr"), "500000"));
}

static void test_no_trace(bool gdal)
{
    static const char *const names[] = {"t.png", "t.npy", "t.tif", "t.jpg", "t.img", "t.bmp"};
    tess_image_info info = describe(40, 30, 3, false, TESS_U8);
    unsigned char *data = random_image(&info);
    sweep_folder(true);
    for (int n = 0; n < (gdal ? 6 : 2); n++)
        for (int rows = 0; rows <= 40; rows += 20) {
            tess_writer *writer = NULL;
            CHECK(tess_writer_open(&test_counter, in_folder(names[n]), &info, NULL, &writer, NULL) ==
                  TESS_OK);
            CHECK(tess_writer_rows(writer, rows, data, NULL) == TESS_OK);
            if (rows < 40)
                CHECK(tess_writer_commit(writer, NULL) == TESS_INTERNAL);
            tess_writer_close(writer);
            CHECK_MSG(sweep_folder(false) == 0, "%s leaves a file", names[n]);
        }
    free(data);
}

static void test_refusals(bool gdal)
{
    static const struct {
        const char *name;
        int channels;
        bool alpha;
        tess_dtype dtype;
        const char *hint;
    } cases[] = {
        {"x.png", 2, false, TESS_U8, ".npy"},  {"x.png", 4, false, TESS_U8, ".npy"},
        {"x.png", 3, false, TESS_F32, ".tif"}, {"x.png", 5, false, TESS_U8, ".npy"},
        {"x.png", 3, true, TESS_U8, ".tif"},   {"x.xyz", 3, false, TESS_U8, ".png, .npy"},
        {"x", 1, false, TESS_U8, ".png"},      {"x.jp2", 1, false, TESS_U8, ".tif"},
        {"x.jpg", 3, false, TESS_U16, ".png"}, {"x.jpeg", 4, true, TESS_U8, ".tif"},
        {"x.bmp", 2, false, TESS_U8, ".tif"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases - (gdal ? 0 : 3); i++) {
        tess_error error = {""};
        tess_writer *writer = NULL;
        tess_image_info info = describe(4, 4, cases[i].channels, cases[i].alpha, cases[i].dtype);
        CHECK(tess_writer_open(&test_counter, in_folder(cases[i].name), &info, NULL, &writer, &error) ==
              TESS_BAD_OPTION);
        CHECK_MSG(strstr(error.text, cases[i].name) && strstr(error.text, cases[i].hint), "%s", error.text);
    }
    CHECK(tess_image_is_known("a.PNG") && tess_image_is_known("b.tiff") && !tess_image_is_known("c.txt"));
    CHECK(!tess_image_is_known(".png") && !tess_image_is_known("png"));
}

int main(void)
{
    tess_error error = {""};
    if (!mkdtemp(folder))
        return 1;
    bool gdal = tess_image_load_library("any.tif", &error) == TESS_OK;
    test_png();
    test_png_interlaced();
    test_png_expansion();
    test_png_metadata();
    test_npy();
    test_npy_kinds();
    test_jpeg_probe();
    if (gdal) {
        test_rasters();
        test_jpeg();
        test_georeference();
    } else {
        printf("rasters skipped: %s\n", error.text);
    }
    test_no_trace(gdal);
    test_refusals(gdal);
    sweep_folder(true);
    CHECK(sweep_folder(false) == 0);
    rmdir(folder);
    return check_end();
}
