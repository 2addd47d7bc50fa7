/* test_cube_files.c: cubes that are no arrays (GeoTIFF, PNG), masks, folders of cubes, and scores. With TESSERA_DATA
 * set, real scenes as ENVI and as NPY are compared. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "cube_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "io/image.h"
#include "tensor/samples.h"

enum { H = 40, W = 31, C = 6 };

static bool with_gdal = true;
static char samples[H * W * C * 8 + 1];
static const tess_cube_settings usual = {.memory = &test_counter};

static tess_cube *open_cube(const char *path)
{
    tess_error error = {""};
    tess_cube *cube = NULL;
    const tess_status status = tess_cube_open(path, &usual, &cube, &error);
    if (status == TESS_UNSUPPORTED && strstr(error.text, "GDAL"))
        with_gdal = false;
    else
        CHECK_MSG(status == TESS_OK, "%s", error.text);
    return cube;
}

/* Writes the cube of the formula through image.h. */
static void write_image(const char *path, const cube_file *f)
{
    tess_error error = {""};
    tess_writer *writer = NULL;
    const tess_image_info info = {.height = f->height,
                                  .width = f->width,
                                  .channels = f->bands,
                                  .dtype = f->dtype,
                                  .full_scale = tess_samples_full_scale(f->dtype)};
    const size_t size = tess_dtype_size(f->dtype);
    CHECK_MSG(tess_writer_open(&test_counter, path, &info, NULL, &writer, &error) == TESS_OK, "%s",
              error.text);
    for (int64_t y = 0; writer && y < f->height; y++) {
        char row[W * C * 8];
        for (int64_t i = 0; i < f->width * f->bands; i++)
            cube_sample(f->dtype, cube_value(f, 0, y, i / f->bands, i % f->bands), row + (size_t)i * size);
        CHECK(tess_writer_rows(writer, 1, row, &error) == TESS_OK);
    }
    CHECK_MSG(tess_writer_commit(writer, &error) == TESS_OK, "%s", error.text);
    tess_writer_close(writer);
}

static void check_any_order(const char *path, const cube_file *f)
{
    tess_error error = {""};
    tess_memory_reset_peak(&test_counter);
    tess_cube *cube = open_cube(path);
    if (!cube)
        return;
    const tess_cube_info *info = tess_cube_describe(cube);
    CHECK(info->height == f->height && info->width == f->width && info->bands == f->bands &&
          info->dtype == f->dtype && info->stored[0] == '\0');
    for (int i = 0; i < 60; i++) {
        const int64_t first = draw() % f->height, rows = 1 + draw() % (f->height - first);
        CHECK_MSG(tess_cube_read(cube, 0, first, rows, samples, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(cube_wrong(f, 0, first, rows, samples) == 0, "%s rows %d+%d", path, (int)first, (int)rows);
    }
    CHECK(counted_peak() <= info->held_bytes);
    tess_cube_close(cube);
    CHECK(counted_now() == 0);
}

static void test_rasters(void)
{
    static const tess_dtype types[] = {TESS_U8, TESS_U16, TESS_I16, TESS_F32, TESS_F64};
    for (size_t t = 0; with_gdal && t < sizeof types / sizeof *types; t++) {
        const cube_file f = {0, H, W, C, types[t], "HWC", false, false, NULL};
        write_image(in_folder("r.tif"), &f);
        check_any_order(in_folder("r.tif"), &f);
    }
    const cube_file png = {0, H, W, 3, TESS_U16, "HWC", false, false, NULL};
    write_image(in_folder("r.png"), &png);
    check_any_order(in_folder("r.png"), &png);
}

static const int64_t marked[] = {0, 5, W, W * 17 + 3, W *H - 1};
enum { MARKED = sizeof marked / sizeof *marked };

static bool is_marked(int64_t pixel)
{
    for (int i = 0; i < MARKED; i++)
        if (marked[i] == pixel)
            return true;
    return false;
}

static void check_mask(const char *path)
{
    const tess_cube_info cube = {.count = 1, .height = H, .width = W, .bands = C};
    tess_error error = {""};
    tess_cube_mask *mask = NULL;
    tess_memory_reset_peak(&test_counter);
    CHECK_MSG(tess_cube_mask_open(path, &cube, &usual, &mask, &error) == TESS_OK, "%s", error.text);
    if (!mask)
        return;
    for (int i = 0; i < 20; i++) {
        uint8_t marks[H * W];
        const int64_t first = i == 0 ? 0 : draw() % H, rows = i == 0 ? H : 1 + draw() % (H - first);
        int64_t wrong = 0;
        CHECK_MSG(tess_cube_mask_read(mask, 0, first, rows, marks, &error) == TESS_OK, "%s", error.text);
        for (int64_t k = 0; k < rows * W; k++)
            wrong += marks[k] != is_marked(first * W + k);
        CHECK_MSG(wrong == 0, "%s: %d", path, (int)wrong);
    }
    CHECK(counted_peak() <= tess_cube_mask_held_bytes(mask));
    tess_cube_mask_close(mask);
    CHECK(counted_now() == 0);
    tess_cube_info other = cube;
    other.width = W + 1;
    CHECK(tess_cube_mask_open(path, &other, &usual, &mask, &error) == TESS_BAD_INPUT && !mask);
    CHECK_MSG(strstr(error.text, "40 x 31") && strstr(error.text, "40 x 32"), "%s", error.text);
    other = cube;
    other.count = 3;
    CHECK(tess_cube_mask_open(path, &other, &usual, &mask, &error) == TESS_BAD_INPUT && !mask);
    CHECK(counted_now() == 0);
}

/* One channel, through image.h or as an NPY file of a given type. */
static void write_mask(const char *path, tess_dtype dtype, const void *on, const void *off, const char *shape)
{
    const size_t size = tess_dtype_size(dtype);
    tess_error error = {""};
    if (!shape) {
        tess_writer *writer = NULL;
        const tess_image_info info = {
            .height = H, .width = W, .channels = 1, .dtype = dtype, .full_scale = 1};
        static char all[H * W * 8];
        for (int64_t i = 0; i < H * W; i++)
            memcpy(all + (size_t)i * size, is_marked(i) ? on : off, size);
        CHECK_MSG(tess_writer_open(&test_counter, path, &info, NULL, &writer, &error) == TESS_OK, "%s",
                  error.text);
        CHECK(tess_writer_rows(writer, H, all, &error) == TESS_OK &&
              tess_writer_commit(writer, &error) == TESS_OK);
        tess_writer_close(writer);
        return;
    }
    char head[128];
    FILE *file = fopen(path, "wb");
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, shape, strlen(shape));
    head[127] = '\n';
    fwrite(head, 1, sizeof head, file);
    for (int64_t i = 0; i < H * W; i++)
        fwrite(is_marked(i) ? on : off, 1, size, file);
    fclose(file);
}

static void test_masks(void)
{
    const uint8_t one = 1, zero = 0;
    const uint16_t high = 256;
    const int64_t wide = (int64_t)1 << 40, none = 0;
    const double minus = -0.0, small = 1e-300;
    write_mask(in_folder("m1.npy"), TESS_U8, &one, &zero,
               "{'descr': '|u1', 'fortran_order': False, 'shape': (40, 31), }");
    write_mask(in_folder("m2.npy"), TESS_BOOL, &one, &zero,
               "{'descr': '|b1', 'fortran_order': False, 'shape': (40, 31, 1), }");
    write_mask(in_folder("m3.npy"), TESS_I64, &wide, &none,
               "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 40, 31), }");
    write_mask(in_folder("m4.npy"), TESS_F64, &small, &minus,
               "{'descr': '<f8', 'fortran_order': False, 'shape': (40, 31), }");
    check_mask(in_folder("m1.npy"));
    check_mask(in_folder("m2.npy"));
    check_mask(in_folder("m3.npy"));
    check_mask(in_folder("m4.npy"));
    write_mask(in_folder("m.png"), TESS_U8, &one, &zero, NULL);
    check_mask(in_folder("m.png"));
    write_mask(in_folder("n.png"), TESS_U16, &high, &none, NULL);
    check_mask(in_folder("n.png"));
    if (with_gdal) { /* a classification, whose classes have colours */
        const cube_file f = {
            0,
            H,
            W,
            1,
            TESS_U8,
            "HWC",
            false,
            false,
            "file type = ENVI Classification\nclasses = 2\nclass lookup = {0, 0, 0, 255, 0, 0}\n"
            "class names = {background, anomaly}\n"};
        write_mask(in_folder("c.img"), TESS_U8, &one, &zero, NULL);
        cube_write_envi_header(&f, in_folder("c.img"), 0);
        check_mask(in_folder("c.img"));
        tess_error error = {""};
        tess_cube *cube = NULL;
        CHECK(tess_cube_open(in_folder("c.img"), &usual, &cube, &error) == TESS_UNSUPPORTED && !cube);
        CHECK_MSG(strstr(error.text, "palette"), "%s", error.text);
    }
    for (int i = 0; with_gdal && i < 2; i++) {
        const char *name = i == 0 ? "m.tif" : "m.img";
        write_mask(in_folder(name), TESS_U16, &high, &none, NULL);
        check_mask(in_folder(name));
    }
}

static void test_list(void)
{
    char sub[600], path[700];
    tess_error error = {""};
    tess_cube_list list;
    snprintf(sub, sizeof sub, "%s/list", folder);
    CHECK(mkdir(sub, 0700) == 0);
    CHECK(tess_cube_list_make(sub, &usual, &list, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, sub) && strstr(error.text, "no cubes"), "%s", error.text);
    cube_file f = {0, 4, 5, 3, TESS_U16, "HWC", false, false, NULL};
    static const char *const npy[] = {"c.npy", "a.npy", "a_mask.npy", ".hidden.npy", "notes.txt", "view.png"};
    for (size_t i = 0; i < sizeof npy / sizeof *npy; i++) {
        snprintf(path, sizeof path, "%s/%s", sub, npy[i]);
        f.bands = i < 2 ? 3 : 7;
        cube_write_npy(&f, path);
    }
    f = (cube_file){2, 4, 5, 3, TESS_F32, "BHWC", false, false, NULL};
    snprintf(path, sizeof path, "%s/b.npy", sub);
    cube_write_npy(&f, path);
    CHECK_MSG(tess_cube_list_make(sub, &usual, &list, &error) == TESS_OK, "%s", error.text);
    CHECK(list.count == 3 && list.images == 4 && list.pixels == 80 && list.bands == 3 && !list.wavelengths);
    for (int i = 0; i < 3 && list.count == 3; i++)
        CHECK(list.entries[i].path[strlen(sub) + 1] == "abc"[i]);
    CHECK(list.count == 3 && list.entries[1].info.count == 2 && list.entries[1].info.dtype == TESS_F32);
    tess_cube_list_free(&list);
    snprintf(path, sizeof path, "%s/a.npy", sub);
    char *beside = tess_cube_mask_beside(path);
    CHECK(beside && strstr(beside, "/list/a_mask.npy"));
    tess_small_free(beside);
    CHECK_MSG(tess_cube_list_make(path, &usual, &list, &error) == TESS_OK, "%s", error.text);
    CHECK(list.count == 1);
    tess_cube_list_free(&list);
    snprintf(path, sizeof path, "%s/b.npy", sub);
    CHECK(tess_cube_mask_beside(path) == NULL);
    f.bands = 4;
    cube_write_npy(&f, path);
    CHECK(tess_cube_list_make(sub, &usual, &list, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "b.npy has 4 bands") && strstr(error.text, "a.npy has 3"), "%s", error.text);
    remove(path);
    if (with_gdal) { /* one without a known suffix, found by its header */
        f = (cube_file){0, 4, 5, 3, TESS_U16, "CHW", false, false, "wavelength = {400, 500, 600}\n"};
        snprintf(path, sizeof path, "%s/d.raw", sub);
        cube_write_envi(&f, path, 0);
        f.more = "wavelength units = um\nwavelength = {0.4, 0.5, 0.6}\n";
        snprintf(path, sizeof path, "%s/e.bsq", sub);
        cube_write_envi(&f, path, 0);
        CHECK_MSG(tess_cube_list_make(sub, &usual, &list, &error) == TESS_OK, "%s", error.text);
        CHECK(list.count == 4 && list.wavelengths && fabs(list.wavelengths[2] - 600) < 1e-9);
        CHECK(list.count == 4 && list.entries[0].info.wavelengths == list.wavelengths);
        tess_cube_list_free(&list);
        f.more = "wavelength units = um\nwavelength = {0.4, 0.51, 0.6}\n";
        cube_write_envi(&f, path, 0);
        CHECK(tess_cube_list_make(sub, &usual, &list, &error) == TESS_BAD_INPUT);
        CHECK_MSG(strstr(error.text, "510.00 nm") && strstr(error.text, "500.00 nm"), "%s", error.text);
    }
    snprintf(path, sizeof path, "rm -r '%s'", sub);
    CHECK(system(path) == 0);
}

static void write_scores(const tess_cube *cube, int64_t image, const char *path, bool commit)
{
    const tess_cube_info *info = tess_cube_describe(cube);
    const int64_t rows = image < 0 ? info->count * info->height : info->height;
    tess_error error = {""};
    tess_cube_scores *scores = NULL;
    float row[W];
    CHECK_MSG(tess_cube_scores_create(cube, image, path, &scores, &error) == TESS_OK, "%s", error.text);
    for (int64_t y = 0; scores && y < rows; y++) {
        for (int64_t x = 0; x < info->width; x++)
            row[x] = x == 3 ? NAN : (float)(y * 1000 + x) + 0.5f;
        CHECK_MSG(tess_cube_scores_rows(scores, 1, row, &error) == TESS_OK, "%s", error.text);
    }
    CHECK(access(path, F_OK) != 0);
    if (scores && commit)
        CHECK_MSG(tess_cube_scores_commit(scores, &error) == TESS_OK, "%s", error.text);
    tess_cube_scores_close(scores);
    CHECK((access(path, F_OK) == 0) == commit);
}

/* Reads them back; the wanted transform and nodata value are those of the cube's file. */
static void check_scores(const char *path, int64_t rows, bool placed)
{
    tess_error error = {""};
    tess_reader *reader = NULL;
    float row[W];
    int64_t wrong = 0;
    CHECK_MSG(tess_reader_open_axes(&test_counter, path, rows > H ? TESS_AXES_DHW : TESS_AXES_AUTO, &reader,
                                    &error) == TESS_OK,
              "%s", error.text);
    if (!reader)
        return;
    const tess_image_info *info = tess_reader_info(reader);
    CHECK(tess_image_rows(info) == rows && info->width == W && info->channels == 1 &&
          info->dtype == TESS_F32);
    for (int64_t y = 0; y < rows; y++) {
        CHECK(tess_reader_rows(reader, 1, row, &error) == TESS_OK);
        for (int64_t x = 0; x < W; x++)
            wrong += x == 3 ? !isnan(row[x]) : row[x] != (float)(y * 1000 + x) + 0.5f;
    }
    CHECK_MSG(wrong == 0, "%s: %d", path, (int)wrong);
    if (placed) {
        CHECK((info->says & TESS_SAYS_TRANSFORM) && (info->says & TESS_SAYS_PROJECTION));
        CHECK(info->transform[0] == 500000 && info->transform[3] == 4000000 && info->transform[1] == 2);
        CHECK(info->has_nodata && isnan(info->nodata) && !(info->says & TESS_SAYS_SCALE));
    }
    tess_reader_close(reader);
}

static void test_scores(void)
{
    cube_file f = {2, H, W, C, TESS_U16, "BHWC", false, false, NULL};
    tess_error error = {""};
    cube_write_npy(&f, in_folder("s.npy"));
    tess_cube *cube = open_cube(in_folder("s.npy"));
    tess_cube_scores *scores = NULL;
    write_scores(cube, 1, in_folder("s1.npy"), true);
    check_scores(in_folder("s1.npy"), H, false);
    write_scores(cube, -1, in_folder("s2.npy"), true);
    check_scores(in_folder("s2.npy"), 2 * H, false);
    write_scores(cube, 0, in_folder("s3.npy"), false);
    CHECK(tess_cube_scores_create(cube, 0, in_folder("s.npy"), &scores, &error) == TESS_BAD_OPTION &&
          !scores);
    CHECK(tess_cube_scores_create(cube, -1, in_folder("s.tif"), &scores, &error) == TESS_BAD_OPTION &&
          !scores);
    CHECK(tess_cube_scores_create(cube, 0, in_folder("s.xyz"), &scores, &error) == TESS_BAD_OPTION &&
          !scores);
    tess_cube_close(cube);
    CHECK(counted_now() == 0);
    if (!with_gdal)
        return;
    static const char *const orders[] = {"CHW", "HWC"};
    for (int k = 0; k < 3;
         k++) { /* two arrays, and a cube of one band, whose scale and nodata are not those of scores */
        f = (cube_file){0,
                        H,
                        W,
                        k < 2 ? C : 1,
                        TESS_F32,
                        orders[k % 2],
                        false,
                        false,
                        "map info = {UTM, 1, 1, 500000, 4000000, 2, 2, 33, North, WGS-84}\n"
                        "data ignore value = 12\n"};
        cube_write_envi(&f, in_folder("g.img"), 0);
        cube = open_cube(in_folder("g.img"));
        tess_memory_reset_peak(&test_counter);
        write_scores(cube, 0, in_folder("g.tif"), true);
        CHECK(counted_peak() <= tess_cube_scores_bytes(tess_cube_describe(cube), 0, in_folder("g.tif")));
        check_scores(in_folder("g.tif"), H, true);
        CHECK(tess_cube_scores_create(cube, 0, in_folder("g.hdr"), &scores, &error) == TESS_BAD_OPTION);
        tess_cube_close(cube);
        CHECK(counted_now() == 0);
        /* Scores of a cube that is no array: the georeference is the open reader's. */
        cube = open_cube(in_folder("g.tif"));
        if (cube) {
            CHECK(tess_cube_describe(cube)->georeferenced && isnan(tess_cube_describe(cube)->nodata));
            write_scores(cube, 0, in_folder("h.tif"), true);
            check_scores(in_folder("h.tif"), H, true);
        }
        tess_cube_close(cube);
        remove(in_folder("g.tif"));
        remove(in_folder("h.tif"));
    }
    CHECK(counted_now() == 0);
}

/* Real scenes that are there as ENVI and as NPY: all samples and masks are the same. */
static void test_scenes(const char *data)
{
    static const char *const scenes[] = {"abu_airport_2", "abu_urban_2", "muufl_gulfport"};
    static const int wanted[] = {87, 155, 269};
    for (int k = 0; k < 3; k++) {
        tess_error error = {""};
        char path[1024];
        tess_cube *cubes[2];
        char *bytes[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s/hsi/%s.%s", data, scenes[k], i ? "img" : "npy");
            cubes[i] = open_cube(path);
            if (!cubes[i])
                continue;
            const tess_cube_info *info = tess_cube_describe(cubes[i]);
            bytes[i] = malloc(tess_cube_bytes(info, info->height));
            CHECK(tess_cube_read(cubes[i], 0, 0, info->height, bytes[i], &error) == TESS_OK);
            tess_cube_mask *mask = NULL;
            uint8_t marks[100 * 100];
            char *beside = tess_cube_mask_beside(path);
            int anomalies = 0;
            CHECK_MSG(beside && tess_cube_mask_open(beside, info, &usual, &mask, &error) == TESS_OK, "%s",
                      error.text);
            CHECK(mask && tess_cube_mask_read(mask, 0, 0, 100, marks, &error) == TESS_OK);
            for (int p = 0; mask && p < 100 * 100; p++)
                anomalies += marks[p];
            CHECK_MSG(anomalies == wanted[k], "%s: %d", path, anomalies);
            tess_cube_mask_close(mask);
            tess_small_free(beside);
        }
        if (bytes[0] && bytes[1]) {
            const tess_cube_info *one = tess_cube_describe(cubes[0]), *two = tess_cube_describe(cubes[1]);
            CHECK(one->bands == two->bands && one->dtype == two->dtype);
            CHECK(memcmp(bytes[0], bytes[1], tess_cube_bytes(one, one->height)) == 0);
        }
        for (int i = 0; i < 2; i++) {
            free(bytes[i]);
            tess_cube_close(cubes[i]);
        }
    }
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    const cube_file f = {0, 2, 2, 2, TESS_U8, "HWC", false, false, NULL};
    cube_write_envi(&f, in_folder("x.img"), 0);
    tess_cube_close(open_cube(in_folder("x.img"))); /* finds out whether there is GDAL */
    test_rasters();
    test_masks();
    test_list();
    test_scores();
    const char *data = getenv("TESSERA_DATA"); /* make passes it on, empty when it is not set */
    char hsi[4096];
    snprintf(hsi, sizeof hsi, "%s/hsi", data ? data : "");
    if (data && data[0] && access(hsi, F_OK) == 0)
        test_scenes(data);
    else
        printf("real scenes skipped: set TESSERA_DATA to the folder that holds hsi/\n");
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
