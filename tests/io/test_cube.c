/* test_cube.c: samples of cubes of every type, byte order and order of axes, in blocks of any size and order; the
 * memory that is counted; files far larger than memory; files that are shorter than they say. test_cube_files.c has
 * masks, folders and scores. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "cube_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { H = 23, W = 71, C = 13 }; /* not multiples of the reader's tiles */

static bool with_gdal = true;
static char samples[2 * H * W * C * 8];
static const tess_dtype types[] = {TESS_U8, TESS_U16, TESS_I16, TESS_U32, TESS_I32, TESS_F32, TESS_F64};
enum { TYPES = sizeof types / sizeof *types };

static tess_cube *open_cube(const char *path, const char *axes)
{
    const tess_cube_settings settings = {.axes = axes, .memory = &test_counter};
    tess_error error = {""};
    tess_cube *cube = NULL;
    const tess_status status = tess_cube_open(path, &settings, &cube, &error);
    CHECK_MSG(status == TESS_OK, "%s", error.text);
    return cube;
}

/* Reads in blocks of several sizes, forwards and backwards, and compares every sample. */
static void check_reads(const cube_file *f, const char *path, const char *axes)
{
    static const int64_t blocks[] = {H, 1, 5};
    tess_error error = {""};
    tess_memory_reset_peak(&test_counter);
    tess_cube *cube = open_cube(path, axes);
    if (!cube)
        return;
    const tess_cube_info *info = tess_cube_describe(cube);
    CHECK(info->count == (f->count ? f->count : 1) && info->height == f->height && info->width == f->width);
    CHECK(info->bands == (f->bands ? f->bands : 1) && info->dtype == f->dtype);
    CHECK(info->scale == 1 && info->offset == 0 && info->block_rows >= 1 && info->block_rows <= f->height);
    for (int64_t image = 0; image < info->count; image++)
        for (size_t k = 0; k < 2 * sizeof blocks / sizeof *blocks; k++) {
            const int64_t block = blocks[k / 2], count = (H + block - 1) / block;
            for (int64_t i = 0; i < count; i++) {
                const int64_t first = (k & 1 ? count - 1 - i : i) * block,
                              rows = first + block > H ? H - first : block;
                memset(samples, 0x55, sizeof samples);
                CHECK_MSG(tess_cube_read(cube, image, first, rows, samples, &error) == TESS_OK, "%s",
                          error.text);
                CHECK_MSG(cube_wrong(f, image, first, rows, samples) == 0, "%s rows %d+%d", path, (int)first,
                          (int)rows);
                CHECK(samples[tess_cube_bytes(info, rows)] == 0x55);
            }
        }
    CHECK(counted_now() == info->held_bytes && counted_peak() <= info->held_bytes);
    CHECK(tess_cube_read(cube, 0, H, 1, samples, &error) == TESS_INTERNAL);
    CHECK(tess_cube_read(cube, info->count, 0, 1, samples, &error) == TESS_INTERNAL);
    tess_cube_close(cube);
    CHECK(counted_now() == 0);
}

static void test_npy(void)
{
    for (int t = 0; t < TYPES; t++)
        for (int big = 0; big < 2; big++) {
            cube_file f = {0, H, W, C, types[t], "HWC", big, false, NULL};
            cube_write_npy(&f, in_folder("a.npy"));
            check_reads(&f, in_folder("a.npy"), NULL);
            f.count = 2;
            f.order = "BHWC";
            cube_write_npy(&f, in_folder("b.npy"));
            check_reads(&f, in_folder("b.npy"), "auto");
        }
}

static void test_orders(void)
{
    static const char *const orders[] = {"HCW", "CHW",  "WHC",  "WCH",  "CWH",  "HWC",
                                         "HW",  "BHCW", "BCHW", "BCWH", "BWHC", "BHW"};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        for (int t = 0; t < TYPES; t += 2) {
            const bool bands = strchr(orders[k], 'C'), several = strchr(orders[k], 'B');
            const cube_file f = {several ? 2 : 0, H,      W,     bands ? C : 0, types[t],
                                 orders[k],       t == 2, false, NULL};
            cube_write_npy(&f, in_folder("o.npy"));
            check_reads(&f, in_folder("o.npy"), orders[k]);
        }
    /* An array (H, W, C) in Fortran order lies in the file as (C, W, H). */
    cube_file f = {0, H, W, C, TESS_U16, "CWH", false, true, NULL};
    cube_write_npy(&f, in_folder("f.npy"));
    check_reads(&f, in_folder("f.npy"), NULL);
    f = (cube_file){1, H, W, C, TESS_F32, "CWHB", false, true, NULL};
    cube_write_npy(&f, in_folder("f.npy"));
    check_reads(&f, in_folder("f.npy"), "BHWC");
}

static void test_envi(void)
{
    static const char *const orders[] = {"CHW", "HCW", "HWC"};
    static const char *const names[] = {"e.bsq", "e.bil", "e.img"};
    for (int k = 0; with_gdal && k < 3; k++)
        for (int t = 0; t < TYPES; t++)
            for (int big = 0; big < 2; big++) {
                const cube_file f = {0, H, W, C, types[t], orders[k], big, false, NULL};
                cube_write_envi(&f, in_folder(names[k]), big ? 100 : 0);
                check_reads(&f, in_folder(names[k]), NULL);
                remove(in_folder(names[k]));
            }
}

static void test_wavelengths(void)
{
    static const struct {
        const char *lines;
        double first, last; /* 0: unknown */
    } cases[] = {
        {"wavelength units = Nanometers\nwavelength = {400, 500.5, 600}\n", 400, 600},
        {"wavelength units = Micrometers\nwavelength = {0.4, 0.5, 0.625}\n", 400, 625},
        {"wavelength units = um\nwavelength = {0.4,\n 0.5,\n 2.5}\n", 400, 2500},
        {"wavelength = {0.4, 0.5, 0.6}\n", 400, 600},
        {"wavelength = {400, 500, 600}\n", 400, 600},
        {"wavelength units = Index\nwavelength = {1, 2, 3}\n", 0, 0},
        {"wavelength units = nm\nwavelength = {400, red, 600}\n", 0, 0},
        {"wavelength units = nm\nwavelength = {400, -1, 600}\n", 0, 0},
        {"", 0, 0},
    };
    for (size_t k = 0; with_gdal && k < sizeof cases / sizeof *cases; k++) {
        const cube_file f = {0, 4, 5, 3, TESS_U16, "CHW", false, false, cases[k].lines};
        cube_write_envi(&f, in_folder("w.bsq"), 0);
        tess_cube *cube = open_cube(in_folder("w.bsq"), NULL);
        const double *nm = cube ? tess_cube_describe(cube)->wavelengths : NULL;
        CHECK_MSG((nm != NULL) == (cases[k].first > 0), "%s", cases[k].lines);
        if (nm)
            CHECK_MSG(fabs(nm[0] - cases[k].first) < 1e-9 && fabs(nm[2] - cases[k].last) < 1e-9, "%s: %g %g",
                      cases[k].lines, nm[0], nm[2]);
        tess_cube_close(cube);
    }
}

static void test_header_fields(void)
{
    if (!with_gdal)
        return;
    const cube_file f = {
        0,
        4,
        5,
        3,
        TESS_U16,
        "HCW",
        false,
        false,
        "data ignore value = 7\ndata gain values = {2, 2, 2}\ndata offset values = {1, 1, 1}\n"
        "map info = {UTM, 1, 1, 500000, 4000000, 2, 2, 33, North, WGS-84}\n"};
    cube_write_envi(&f, in_folder("g.bil"), 0);
    tess_cube *cube = open_cube(in_folder("g.bil"), NULL);
    const tess_cube_info *info = cube ? tess_cube_describe(cube) : NULL;
    if (info) {
        CHECK(info->has_nodata && info->nodata == 7 && info->georeferenced);
        CHECK(info->scale == 2 && info->offset == 1 && !info->several_scales);
        CHECK(strcmp(info->stored, "HCW") == 0);
    }
    tess_cube_close(cube);
    cube_file g = f;
    g.more = "data gain values = {1, 2, 3}\n";
    cube_write_envi(&g, in_folder("g.bil"), 0);
    cube = open_cube(in_folder("g.bil"), NULL);
    if (cube)
        CHECK(tess_cube_describe(cube)->several_scales && !tess_cube_describe(cube)->georeferenced);
    tess_cube_close(cube);
}

/* Opening fails, with these words in a message that begins with the path. */
static void check_refused(const char *path, const char *axes, const char *one, const char *two)
{
    const tess_cube_settings settings = {.axes = axes, .memory = &test_counter};
    tess_error error = {""};
    tess_cube *cube = NULL;
    CHECK(tess_cube_open(path, &settings, &cube, &error) != TESS_OK);
    CHECK_MSG(strncmp(error.text, path, strlen(path)) == 0 && strstr(error.text, one) &&
                  strstr(error.text, two),
              "message: %s", error.text);
    CHECK(!cube && counted_now() == 0);
    tess_cube_close(cube);
}

static void test_disagreement(void)
{
    cube_file f = {0, 4, 5, 3, TESS_U16, "HWC", false, false, NULL};
    cube_write_npy(&f, in_folder("d.npy"));
    CHECK(truncate(in_folder("d.npy"), 200) == 0);
    check_refused(in_folder("d.npy"), NULL, "248", "200");
    CHECK(truncate(in_folder("d.npy"), 50) == 0);
    check_refused(in_folder("d.npy"), NULL, "truncated", "header");
    cube_write_npy(&f, in_folder("d.npy"));
    check_refused(in_folder("d.npy"), "BHWC", "(4, 5, 3)", "BHWC");
    check_refused(in_folder("d.npy"), "HWX", "`axes`", "HWC");
    check_refused(in_folder("d.npy"), "HHW", "`axes`", "HWC");
    check_refused(in_folder("d.npy"), "HBW", "`axes`", "HWC");
    f.bands = 0;
    f.order = "HW";
    cube_write_npy(&f, in_folder("d.npy"));
    check_refused(in_folder("d.npy"), NULL, "(4, 5)", "(height, width, bands)");
    f = (cube_file){2, 4, 5, 3, TESS_U16, "CWHB", false, true, NULL};
    cube_write_npy(&f, in_folder("d.npy"));
    check_refused(in_folder("d.npy"), NULL, "fortran_order", "ascontiguousarray");
    f = (cube_file){0, 4, 5, 3, TESS_BOOL, "HWC", false, false, NULL};
    cube_write_npy(&f, in_folder("d.npy"));
    check_refused(in_folder("d.npy"), NULL, "b1", "uint8");
    check_refused(in_folder("none.npy"), NULL, "no such file", "");
    if (!with_gdal)
        return;
    f = (cube_file){0, 4, 5, 30, TESS_U16, "HWC", false, false, NULL};
    cube_write_envi(&f, in_folder("d.img"), 0);
    CHECK(truncate(in_folder("d.img"), 1190) == 0);
    check_refused(in_folder("d.img"), NULL, "1200", "1190");
    CHECK(truncate(in_folder("d.img"), 1201) == 0);
    check_refused(in_folder("d.img"), NULL, "1200", "1201");
    CHECK(truncate(in_folder("d.img"), 10) == 0); /* GDAL itself refuses it */
    check_refused(in_folder("d.img"), NULL, "1200", "10;");
    f.more = "wavelength units = nm\nwavelength = {400, 500, 600}\n";
    cube_write_envi(&f, in_folder("d.img"), 0);
    check_refused(in_folder("d.img"), NULL, "3 wavelengths", "30 bands");
    f.height = 1 << 30;
    f.width = 1 << 30;
    cube_write_envi_header(&f, in_folder("d.img"), 0);
    check_refused(in_folder("d.img"), NULL, "", "");
    check_refused(in_folder("d.hdr"), NULL, "header", "");
}

/* A cube of 60 GB: rows far apart, in any order, with no more memory than was promised. */
static void check_large(const char *path, const cube_file *f, int64_t offset)
{
    tess_error error = {""};
    struct rusage before, after;
    CHECK(truncate(path, offset + f->height * f->width * f->bands * 2) == 0);
    const int file = open(path, O_WRONLY);
    getrusage(RUSAGE_SELF, &before);
    tess_memory_reset_peak(&test_counter);
    tess_cube *cube = open_cube(path, NULL);
    if (!cube)
        return;
    const tess_cube_info *info = tess_cube_describe(cube);
    CHECK(info->held_bytes <= 20 << 20);
    uint16_t *row = malloc(tess_cube_bytes(info, 1));
    const int64_t asked[] = {f->height - 1, 0, f->height / 2, 17};
    for (int i = 0; i < 4; i++) {
        /* One sample, of the last column and band, is not 0. */
        const bool planes = f->order[0] == 'C', lines = f->order[1] == 'C';
        const int64_t y = asked[i], last = f->width - 1, band = f->bands - 1;
        const int64_t at = planes  ? (band * f->height + y) * f->width + last
                           : lines ? (y * f->bands + band) * f->width + last
                                   : (y * f->width + last) * f->bands + band;
        const uint16_t value = (uint16_t)(1000 + i);
        CHECK(pwrite(file, &value, 2, (off_t)(offset + at * 2)) == 2);
        CHECK_MSG(tess_cube_read(cube, 0, y, 1, row, &error) == TESS_OK, "%s", error.text);
        CHECK(row[f->width * f->bands - 1] == value && row[0] == 0);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK(counted_peak() == info->held_bytes);
    CHECK_MSG(after.ru_maxrss - before.ru_maxrss < 200 << 10, "%ld KiB", after.ru_maxrss - before.ru_maxrss);
    free(row);
    close(file);
    tess_cube_close(cube);
}

static void test_large(void)
{
    static const char *const orders[] = {"CHW", "HCW", "HWC"};
    static const char *const names[] = {"l.bsq", "l.bil", "l.img"};
    cube_file f = {0, 30000, 10000, 100, TESS_U16, "HWC", false, false, NULL};
    FILE *file = fopen(in_folder("l.npy"), "wb");
    cube_put_npy_header(&f, file);
    fclose(file);
    if (truncate(in_folder("l.npy"), 60000000128) != 0) {
        printf("no sparse files of 60 GB here\n");
        remove(in_folder("l.npy"));
        return;
    }
    check_large(in_folder("l.npy"), &f, 128);
    remove(in_folder("l.npy"));
    for (int k = 0; with_gdal && k < 3; k++) {
        f.order = orders[k];
        cube_write_envi_header(&f, in_folder(names[k]), 0);
        fclose(fopen(in_folder(names[k]), "wb"));
        check_large(in_folder(names[k]), &f, 0);
        remove(in_folder(names[k]));
    }
}

static void test_shorter(void)
{
    const cube_file f = {0, H, W, C, TESS_U16, "HCW", false, false, NULL};
    tess_error error = {""};
    cube_write_npy(&f, in_folder("s.npy"));
    tess_cube *cube = open_cube(in_folder("s.npy"), "HCW");
    CHECK(truncate(in_folder("s.npy"), 1000) == 0);
    CHECK(tess_cube_read(cube, 0, 10, 2, samples, &error) == TESS_IO_FAILED);
    CHECK_MSG(strstr(error.text, "s.npy") && strstr(error.text, "shorter"), "%s", error.text);
    tess_cube_close(cube);
    tess_stop stop;
    tess_stop_init(&stop, NULL, NULL);
    const tess_cube_settings settings = {.axes = "HCW", .memory = &test_counter, .stop = &stop};
    cube_write_npy(&f, in_folder("s.npy"));
    CHECK(tess_cube_open(in_folder("s.npy"), &settings, &cube, &error) == TESS_OK);
    CHECK(tess_cube_read(cube, 0, 0, 1, samples, &error) == TESS_OK);
    atomic_store(&stop.wanted, true);
    CHECK(tess_cube_read(cube, 0, 0, 1, samples, &error) == TESS_INTERRUPTED);
    tess_cube_close(cube);
    CHECK(counted_now() == 0);
}

static tess_status open_and_read(const char *path, tess_error *error)
{
    const tess_cube_settings settings = {.memory = &test_counter};
    tess_cube *cube = NULL;
    tess_status status = tess_cube_open(path, &settings, &cube, error);
    if (status == TESS_OK)
        status = tess_cube_read(cube, 0, 0, 1, samples, error);
    tess_cube_close(cube);
    return status;
}

static void test_no_memory(void)
{
    static const char *const names[] = {"m.npy", "m.img"};
    const cube_file f = {
        0, H, W, C, TESS_U16, "HCW", false, false, "wavelength = {1,2,3,4,5,6,7,8,9,10,11,12,13}\n"};
    cube_write_npy(&f, in_folder(names[0]));
    cube_write_envi(&f, in_folder(names[1]), 0);
    for (int k = 0; k < (with_gdal ? 2 : 1); k++) {
        int64_t n = 1;
        for (tess_status status = TESS_NO_MEMORY; status != TESS_OK && n < 100; n++) {
            tess_error error = {""};
            tess_mem_fail_at((uint64_t)n);
            status = open_and_read(in_folder(names[k]), &error);
            tess_mem_fail_at(0);
            CHECK_MSG(status == TESS_OK || status == TESS_NO_MEMORY, "%s", error.text);
            CHECK(counted_now() == 0);
        }
        CHECK(n < 100);
    }
}

static void find_gdal(void)
{
    const cube_file f = {0, 2, 2, 2, TESS_U8, "HWC", false, false, NULL};
    tess_error error = {""};
    cube_write_envi(&f, in_folder("x.img"), 0);
    if (open_and_read(in_folder("x.img"), &error) == TESS_UNSUPPORTED) {
        CHECK_MSG(strstr(error.text, "GDAL") || strstr(error.text, "libgdal"), "%s", error.text);
        with_gdal = false;
    }
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    find_gdal();
    test_npy();
    test_orders();
    test_envi();
    test_wavelengths();
    test_header_fields();
    test_disagreement();
    test_large();
    test_shorter();
    test_no_memory();
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
