/* test_image_hostile.c: damaged files, impossible headers, full disks, failing allocations. Nothing may
 * crash, leak, hang or leave a file behind, and every failure has one line that names the file. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <png.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/image.h"

static bool gdal;

enum { HEIGHT = 13, WIDTH = 11 };

static void put_file(const char *path, const void *data, size_t bytes)
{
    remove(path); /* a new file each time: file systems flush one that is truncated and written again */
    FILE *file = fopen(path, "wb");
    if (bytes)
        fwrite(data, 1, bytes, file);
    fclose(file);
}

static size_t get_file(const char *path, unsigned char *data, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(data, 1, room, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

/* Reads all rows unless the file promises a giant. The message of a failure must be one line with the name.
 */
static tess_status try_read(const char *path, tess_error *error)
{
    tess_reader *reader = NULL;
    error->text[0] = '\0';
    tess_status status = tess_reader_open(&test_counter, path, &reader, error);
    if (status == TESS_OK) {
        const tess_image_info *info = tess_reader_info(reader);
        CHECK(info->height > 0 && info->width > 0 && info->channels > 0);
        size_t row = (size_t)info->width * (size_t)info->channels * tess_dtype_size(info->dtype);
        if (row < 1 << 20 && info->held_bytes < 32 << 20) {
            unsigned char *data = malloc(row * 3);
            for (int64_t y = 0; y < info->height && y < 500 && status == TESS_OK; y += 3)
                status = tess_reader_rows(reader, info->height - y < 3 ? info->height - y : 3, data, error);
            free(data);
        }
    } else {
        CHECK(reader == NULL);
    }
    tess_reader_close(reader);
    if (status != TESS_OK)
        CHECK_MSG(strncmp(error->text, path, strlen(path)) == 0 && strlen(error->text) > strlen(path) + 2,
                  "message: %s", error->text);
    return status;
}

static bool write_sample(const char *path, int64_t height, int channels, tess_dtype dtype, tess_error *error)
{
    tess_image_info info = {.height = height, .width = WIDTH, .channels = channels, .dtype = dtype};
    info.alpha = channels % 2 == 0;
    size_t bytes = (size_t)height * WIDTH * (size_t)channels * tess_dtype_size(dtype);
    unsigned char *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(draw() & 63);
    tess_writer *writer = NULL;
    bool good = tess_writer_open(&test_counter, path, &info, NULL, &writer, error) == TESS_OK &&
                tess_writer_rows(writer, height, data, error) == TESS_OK &&
                tess_writer_commit(writer, error) == TESS_OK;
    tess_writer_close(writer);
    free(data);
    return good;
}

/* Every length must fail cleanly; where `strict`, it must fail. Then flips, of which nothing is asked but to
 * survive. */
static void mangle(const char *name, bool strict, int flips)
{
    static unsigned char good[65536], bad[65536];
    tess_error error;
    size_t bytes = get_file(in_folder(name), good, sizeof good);
    CHECK(bytes > 0 && bytes < sizeof good && try_read(in_folder(name), &error) == TESS_OK);
    char path[512];
    snprintf(path, sizeof path, "%s/bad-%s", folder, name);
    int missed = 0;
    for (size_t cut = 0; cut < bytes; cut++) {
        put_file(path, good, cut);
        missed += try_read(path, &error) == TESS_OK;
    }
    CHECK_MSG(!strict || missed == 0, "%s: %d of %zu truncations unnoticed", name, missed, bytes);
    for (int i = 0; i < flips; i++) {
        memcpy(bad, good, bytes);
        for (uint32_t n = 1 + draw() % 4; n > 0; n--)
            bad[draw() % (draw() % 2 && bytes > 200 ? 200 : bytes)] = (unsigned char)draw();
        put_file(path, bad, bytes);
        (void)!try_read(path, &error);
    }
    remove(path);
}

static void write_interlaced(const char *path)
{
    unsigned char rows[HEIGHT][WIDTH];
    FILE *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, WIDTH, HEIGHT, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_ADAM7, 0, 0);
    png_write_info(png, info);
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++)
                rows[y][x] = (unsigned char)(x * y);
            png_write_row(png, rows[y]);
        }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(file);
}

static void test_damage(void)
{
    tess_error error = {""};
    write_interlaced(in_folder("i.png"));
    mangle("i.png", true, 1500);
    CHECK(write_sample(in_folder("a.png"), HEIGHT, 3, TESS_U8, &error));
    mangle("a.png", true, 3000);
    CHECK(write_sample(in_folder("b.png"), HEIGHT, 2, TESS_U16, &error));
    mangle("b.png", true, 1500);
    CHECK(write_sample(in_folder("a.npy"), HEIGHT, 3, TESS_F32, &error));
    mangle("a.npy", true, 3000);
    if (!gdal)
        return;
    CHECK(write_sample(in_folder("a.tif"), HEIGHT, 3, TESS_U16, &error));
    mangle("a.tif", true, 1500);
    CHECK(write_sample(in_folder("a.jpg"), HEIGHT, 3, TESS_U8, &error));
    mangle("a.jpg", false, 1500);
    static unsigned char half[65536];
    CHECK(write_sample(in_folder("b.jpg"), 400, 3, TESS_U8, &error));
    put_file(in_folder("b.jpg"), half, get_file(in_folder("b.jpg"), half, sizeof half) / 2);
    CHECK(try_read(in_folder("b.jpg"), &error) == TESS_BAD_INPUT);
    CHECK(write_sample(in_folder("a.bmp"), HEIGHT, 3, TESS_U8, &error));
    mangle("a.bmp", false, 500);
}

static uint32_t crc_of(const unsigned char *data, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_big(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* A PNG that ends after its header, with any size in it and a right checksum. */
static void test_png_sizes(void)
{
    static const uint32_t sizes[][2] = {
        {0, 5},       {5, 0},        {0x7fffffff, 0x7fffffff}, {0xffffffff, 1}, {1000000, 1000000},
        {1000001, 1}, {65536, 65536}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            unsigned char file[57] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";
            tess_error error;
            put_big(file + 16, sizes[s][0]);
            put_big(file + 20, sizes[s][1]);
            file[24] = 16;
            file[25] = 6;
            file[28] = (unsigned char)interlaced;
            put_big(file + 29, crc_of(file + 12, 17));
            memcpy(file + 37, "IDAT", 4);
            put_big(file + 41, crc_of(file + 37, 4));
            memcpy(file + 49, "IEND", 4);
            put_big(file + 53, crc_of(file + 49, 4));
            put_file(in_folder("size.png"), file, sizeof file);
            CHECK(try_read(in_folder("size.png"), &error) == TESS_BAD_INPUT);
        }
}

static void test_npy_headers(void)
{
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 2147483647, 2147483647)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr': '|S16', 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '|i1', 'fortran_order': False, 'shape': (4, 4)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr': '<', 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr': '', 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'extra': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} trailing",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}",
    };
    unsigned char file[256] = "\x93NUMPY\x01";
    tess_error error;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t length = strlen(headers[i]);
        file[6] = 1;
        file[8] = (unsigned char)length;
        file[9] = 0;
        memcpy(file + 10, headers[i], length);
        put_file(in_folder("h.npy"), file, 10 + length + 16);
        tess_status status = try_read(in_folder("h.npy"), &error);
        CHECK_MSG(status == TESS_BAD_INPUT || status == TESS_UNSUPPORTED, "%s: status %d", headers[i],
                  status);
    }
    for (int version = 1; version < 5; version++) { /* lengths behind the end of the file, up to 4 GiB */
        memset(file + 8, 0xff, 4);
        file[6] = (unsigned char)version;
        put_file(in_folder("h.npy"), file, sizeof file);
        CHECK(try_read(in_folder("h.npy"), &error) != TESS_OK);
    }
}

static void test_paths(void)
{
    static const struct {
        const char *name, *content, *hint;
    } cases[] = {{"none.png", NULL, "no such file"},
                 {"empty.png", "", "empty"},
                 {"text.png", "hello world", "not a PNG"},
                 {"text.npy", "hello", "not a NPY"},
                 {"short.png", "x", "not a PNG"}};
    tess_error error = {""};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].content)
            put_file(in_folder(cases[i].name), cases[i].content, strlen(cases[i].content));
        CHECK(try_read(in_folder(cases[i].name), &error) == TESS_BAD_INPUT);
        CHECK_MSG(strstr(error.text, cases[i].hint), "%s", error.text);
    }
    CHECK(try_read(folder, &error) == TESS_BAD_INPUT && strstr(error.text, "folder"));
    CHECK(try_read("/dev/null", &error) == TESS_BAD_INPUT);
    put_file(in_folder("text.tif"), "hello world", 11);
    put_file(in_folder("text.odd"), "hello world", 11);
    CHECK(try_read(in_folder("text.tif"), &error) == (gdal ? TESS_BAD_INPUT : TESS_UNSUPPORTED));
    CHECK(try_read(in_folder("text.odd"), &error) == (gdal ? TESS_BAD_INPUT : TESS_UNSUPPORTED));

    mkdir(in_folder("dir.png"), 0755);
    CHECK(!write_sample(in_folder("dir.png"), 2, 1, TESS_U8, &error) && strstr(error.text, "folder"));
    CHECK(!write_sample(in_folder("no/such/a.npy"), 2, 1, TESS_U8, &error) && strstr(error.text, "folder"));
    remove(in_folder("dir.png"));
    CHECK(symlink("/dev/full", in_folder("full.npy")) ==
          0); /* a device behind a suffix: refused, never replaced */
    CHECK(!write_sample(in_folder("full.npy"), 2, 1, TESS_U8, &error) && strstr(error.text, "regular"));
    if (geteuid() == 0) {
        printf("running as root: the unwritable folder is not tried\n");
        return;
    }
    mkdir(in_folder("locked"), 0555);
    CHECK(!write_sample(in_folder("locked/a.png"), 2, 1, TESS_U8, &error) && strstr(error.text, "writable"));
    remove(in_folder("locked"));
}

static void test_links(void)
{
    tess_error error = {""};
    struct stat about;
    CHECK(write_sample(in_folder("real.npy"), 2, 1, TESS_U8, &error));
    CHECK(symlink(in_folder("real.npy"), in_folder("link.npy")) == 0);
    CHECK(write_sample(in_folder("link.npy"), 5, 1, TESS_U8, &error));
    CHECK(lstat(in_folder("link.npy"), &about) == 0 && S_ISLNK(about.st_mode));
    CHECK(stat(in_folder("real.npy"), &about) == 0 && about.st_size == 128 + 5 * WIDTH);
}

/* A file may grow to 2 KiB and no further: what a full disk does to every write. */
static void test_full_disk(void)
{
    static const char *const names[] = {"f.png", "f.npy", "f.tif", "f.jpg", "f.img", "f.bil", "f.bmp"};
    struct rlimit before, tight;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    for (int n = 0; n < (gdal ? 7 : 2); n++)
        for (int64_t height = 100; height <= 3000; height *= 6) {
            tess_error error = {""};
            tight = before;
            tight.rlim_cur = 2048;
            setrlimit(RLIMIT_FSIZE, &tight);
            bool good = write_sample(in_folder(names[n]), height, 3, TESS_U8, &error);
            setrlimit(RLIMIT_FSIZE, &before);
            CHECK_MSG(!good && strstr(error.text, names[n]), "%s: %s", names[n], error.text);
            CHECK_MSG(sweep_folder(true) == 0, "%s leaves a file", names[n]);
        }
}

/* The n-th allocation fails, for every n until a run succeeds. */
static void test_allocations(void)
{
    static const char *const names[] = {"m.png", "m.npy", "m.tif", "m.jpg", "m.img"};
    for (int k = 0; k < (gdal ? 5 : 2); k++)
        for (int reading = 0; reading < 2; reading++) {
            bool good = false;
            for (uint64_t n = 1; n < 400 && !good; n++) {
                tess_error error = {""};
                tess_mem_fail_at(n);
                good = reading ? try_read(in_folder(names[k]), &error) == TESS_OK
                               : write_sample(in_folder(names[k]), 40, 3, TESS_U8, &error);
                tess_mem_fail_at(0);
                CHECK_MSG(good || error.text[0], "%s: no message", names[k]);
            }
            CHECK_MSG(good, "%s never gets through", names[k]);
        }
}

int main(void)
{
    tess_error error = {""};
    if (!mkdtemp(folder))
        return 1;
    gdal = tess_image_load_library("any.tif", &error) == TESS_OK;
    if (!gdal)
        printf("rasters skipped: %s\n", error.text);
    test_damage();
    test_png_sizes();
    test_npy_headers();
    test_paths();
    test_links();
    sweep_folder(true);
    test_full_disk();
    test_allocations();
    sweep_folder(true);
    CHECK(sweep_folder(false) == 0);
    rmdir(folder);
    return check_end();
}
