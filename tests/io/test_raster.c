/* test_raster.c: what counts as void, which sample a value becomes, windows of a raster and their flags, the
 * memory that is counted, and outputs that are abandoned, stopped, or short of memory. e2e/raster.py compares
 * whole files with GDAL's own view of them. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "io/raster.h"

enum { H = 70, W = 90 };

static bool with_gdal = true;

static void test_rule(void)
{
    const double low = -9999.1, nan_value = NAN, far = -DBL_MAX, wide = 70000, half = 7.5;
    tess_void_rule rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, &low);
    CHECK(tess_void_sample(&rule, (double)-9999.1f) && !tess_void_sample(&rule, -9999.1));
    CHECK(tess_void_sample(&rule, NAN) && tess_void_sample(&rule, INFINITY) &&
          !tess_void_sample(&rule, -9999));
    rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, &nan_value);
    CHECK(tess_void_sample(&rule, NAN) && !tess_void_sample(&rule, -9999) && !tess_void_sample(&rule, 0));
    rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0,
                               &far); /* the lowest double in a file of floats */
    CHECK(tess_void_sample(&rule, (double)-FLT_MAX) && !tess_void_sample(&rule, (double)FLT_MAX));
    rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, &wide);
    CHECK(!rule.exact && !tess_void_sample(&rule, 4464) &&
          tess_void_sample(&rule, -9999)); /* as if undeclared */
    rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, &half);
    CHECK(!rule.exact);
    rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_sample(&rule, -9999) && tess_void_sample(&rule, -32768) && tess_void_sample(&rule, -999));
    CHECK(!tess_void_sample(&rule, 0) && !tess_void_sample(&rule, -998));
    rule = tess_void_rule_make(TESS_F64, 0, TESS_NODATA_NONE, 0, &low);
    CHECK(!tess_void_sample(&rule, -9999.1) && tess_void_sample(&rule, NAN));
    rule = tess_void_rule_make(TESS_F64, 0, TESS_NODATA_GIVEN, 12, &low);
    CHECK(tess_void_sample(&rule, 12) && !tess_void_sample(&rule, -9999.1));
    uint8_t empty[4];
    rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, NULL);
    tess_void_samples(&rule, (const double[4]){1, NAN, -9999, 1e30}, 4, empty);
    CHECK(!empty[0] && empty[1] && empty[2] && empty[3]);
}

static void test_limits(void)
{
    double samples[1000];
    for (int i = 0; i < 1000; i++)
        samples[i] = i % 100;
    samples[3] = 1e9, samples[4] = -9999, samples[5] = NAN;
    tess_void_rule rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_find_limits(&rule, samples, 1000) == 998);
    CHECK(rule.limits && rule.low < -9000 && rule.low > -11000 && rule.high > 9000 && rule.high < 11000);
    CHECK(tess_void_sample(&rule, 1e9) && !tess_void_sample(&rule, 500));
    for (int i = 0; i < 1000; i++)
        samples[i] = 5;
    CHECK(tess_void_find_limits(&rule, samples, 1000) == 0 && !rule.limits); /* flat */
    rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, NULL);
    samples[0] = 9;
    CHECK(tess_void_find_limits(&rule, samples, 1000) == 0 && !rule.limits); /* integers have none */
}

/* The largest numbers of 16 bits are voids when they are far above everything else, and summits when they are not. */
static void test_tops(void)
{
    double samples[1000];
    for (int i = 0; i < 1000; i++)
        samples[i] = i % 5 == 0 ? 65535 : i % 7 == 0 ? 32767 : 800 + i % 300;
    tess_void_rule rule = tess_void_rule_make(TESS_U16, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(!tess_void_sample(&rule, 65535));
    CHECK(tess_void_find_limits(&rule, samples, 1000) == 0 && !rule.limits);
    CHECK(tess_void_sample(&rule, 65535) && tess_void_sample(&rule, 32767) &&
          !tess_void_sample(&rule, 32766));
    uint8_t empty[3];
    tess_void_samples(&rule, (const double[3]){65535, 800, 32767}, 3, empty);
    CHECK(empty[0] && !empty[1] && empty[2] && tess_void_to_sample(&rule, 1e9) == 65534);
    for (int i = 0; i < 1000; i++) /* heights that are scaled to 16 bits: 1 in 100 is high */
        samples[i] = i % 100 == 0 ? 65535 - 40 * i : 30 * i;
    rule = tess_void_rule_make(TESS_U16, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_find_limits(&rule, samples, 1000) == 0);
    CHECK(!tess_void_sample(&rule, 65535) && !tess_void_sample(&rule, 32767));
    for (int i = 0; i < 1000; i++)
        samples[i] = i == 0 ? 1e9 : i % 3 == 0 ? 32767 : i % 400;
    rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_find_limits(&rule, samples, 1000) > 0 && rule.high < 50000);
    CHECK(tess_void_sample(&rule, 32767) && tess_void_sample(&rule, 1e9) && !tess_void_sample(&rule, 30000));
}

static bool is_found(double mark, double low, double high)
{
    const double declared = -5000;
    const tess_void_rule rule = tess_void_rule_make(TESS_F64, 0, TESS_NODATA_OF_FILE, 0, &declared);
    tess_void_watch watch;
    tess_void_watch_begin(&watch);
    for (int i = 0; i < 10; i++)
        tess_void_watch_count(&watch, &rule, low + (high - low) * i / 9);
    tess_void_watch_count(&watch, &rule, mark);
    return tess_void_watch_end(&watch, &rule);
}

/* Marks beside declared ones are found only if they are far from all heights. */
static void test_watch(void)
{
    CHECK(is_found(-9999, 1200, 2100) && is_found(-999, 0, 8848) && is_found(-32768, -10900, 8848));
    CHECK(!is_found(-9999, -10900, 0) && !is_found(-9999, -9800, 0) && !is_found(-999, -990, 0));
    CHECK(is_found(9999, 0, 4000) && !is_found(9999, 0, 8848) && !is_found(32767, 0, 30000));
    CHECK(!is_found(-999, -998, -998) && is_found(1e20, 0, 1) && !is_found(-500, 1200, 2100));
    const double declared = -32768;
    tess_void_rule rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_GIVEN, -5000, &declared);
    tess_void_watch watch;
    tess_void_watch_begin(&watch);
    for (int i = 0; i < 9; i++)
        tess_void_watch_count(&watch, &rule, i % 3 == 0 ? -32768 : i % 3 == 1 ? -9999 : 700 + i);
    CHECK(tess_void_watch_end(&watch, &rule) && watch.counts[0] == 3);
    tess_void_rule_add(&rule, &watch);
    CHECK(tess_void_sample(&rule, -9999) && !tess_void_sample(&rule, -32768)); /* given in place of it */
    uint8_t empty[3];
    tess_void_samples(&rule, (const double[3]){-9999, 800, -5000}, 3, empty);
    CHECK(empty[0] && !empty[1] && empty[2] && tess_void_to_sample(&rule, -9999) != -9999);
}

static void test_to_sample(void)
{
    const double least = -32768, mid = 120, zero = 0, most = 255;
    tess_void_rule rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, &least);
    CHECK(tess_void_to_sample(&rule, -1e9) == -32767 && tess_void_to_sample(&rule, 1e9) == 32767);
    CHECK(tess_void_to_sample(&rule, 2.5) == 3 && tess_void_to_sample(&rule, -2.4) == -2);
    rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, &mid);
    CHECK(tess_void_to_sample(&rule, 119.7) == 119 && tess_void_to_sample(&rule, 120.3) == 121);
    rule = tess_void_rule_make(TESS_U16, 0, TESS_NODATA_OF_FILE, 0, &zero);
    CHECK(tess_void_to_sample(&rule, -5) == 1);
    rule = tess_void_rule_make(TESS_U8, 0, TESS_NODATA_OF_FILE, 0, &most);
    CHECK(tess_void_to_sample(&rule, 300) == 254);
    rule = tess_void_rule_make(TESS_U16, 12, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_to_sample(&rule, 5000) == 4095);
    rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, &mid);
    const double near = tess_void_to_sample(&rule, 120);
    CHECK(near != 120 && fabs(near - 120) < 1e-4 && near == (double)(float)near);
    CHECK(tess_void_to_sample(&rule, 1e300) == (double)FLT_MAX);
    rule =
        tess_void_rule_make(TESS_I16, 0, TESS_NODATA_GIVEN, 7, &mid); /* the declared value stays forbidden */
    CHECK(tess_void_to_sample(&rule, 120) != 120 && tess_void_to_sample(&rule, 7) != 7);
    rule = tess_void_rule_make(TESS_I16, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_to_sample(&rule, -40000) == -32766 && tess_void_to_sample(&rule, -9999) != -9999);
}

static float height_at(int64_t y, int64_t x)
{
    return (float)(500 + 3 * y - 2 * x) + 0.125f;
}

static bool is_void(int64_t y, int64_t x)
{
    return (y > 10 && y < 30 && x > 20 && x < 50) || (y * 7 + x) % 31 == 0;
}

/* An ENVI raster of floats, with -9999 where it is void. */
static void write_input(const char *name)
{
    char header[64];
    snprintf(header, sizeof header, "%.*s.hdr", (int)(strlen(name) - 4), name);
    FILE *file = fopen(in_folder(header), "wb");
    fprintf(file,
            "ENVI\nsamples = %d\nlines = %d\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
            "data type = 4\ninterleave = bsq\nbyte order = 0\ndata ignore value = -9999\n",
            W, H);
    fclose(file);
    file = fopen(in_folder(name), "wb");
    for (int64_t i = 0; i < H * W; i++) {
        const float value = is_void(i / W, i % W) ? -9999.0f : height_at(i / W, i % W);
        fwrite(&value, sizeof value, 1, file);
    }
    fclose(file);
}

static tess_raster *open_input(const char *name)
{
    const tess_raster_settings settings = {0};
    tess_error error = {""};
    tess_raster *raster = NULL;
    const tess_status status = tess_raster_open(&test_counter, in_folder(name), &settings, &raster, &error);
    if (status == TESS_UNSUPPORTED) {
        CHECK_MSG(strstr(error.text, "GDAL"), "%s", error.text);
        with_gdal = false;
    } else {
        CHECK_MSG(status == TESS_OK, "%s", error.text);
    }
    return raster;
}

static void test_windows(void)
{
    tess_raster *raster = open_input("in.img");
    if (!raster)
        return;
    static double values[H * W];
    static uint8_t flags[H * W];
    const tess_raster_info *info = tess_raster_describe(raster);
    CHECK(info->height == H && info->width == W && info->dtype == TESS_F32 && info->has_nodata);
    CHECK(counted_now() == info->held_bytes);
    tess_error error = {""};
    static const int64_t windows[][4] = {{0, 0, H, W}, {0, 0, 1, 1}, {H - 1, W - 1, 1, 1}, {5, 17, 33, 40}};
    for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
        const int64_t y = windows[k][0], x = windows[k][1], h = windows[k][2], w = windows[k][3];
        CHECK_MSG(tess_raster_read(raster, y, x, h, w, values, flags, &error) == TESS_OK, "%s", error.text);
        int64_t wrong = 0;
        for (int64_t i = 0; i < h * w; i++) {
            const int64_t row = y + i / w, column = x + i % w;
            wrong += is_void(row, column)
                         ? flags[i] != TESS_PIXEL_VOID || !isnan(values[i])
                         : flags[i] != TESS_PIXEL_VALID || values[i] != (double)height_at(row, column);
        }
        CHECK(wrong == 0);
    }
    CHECK(tess_raster_read(raster, 0, 1, 1, W, values, flags, NULL) == TESS_INTERNAL);
    CHECK(tess_raster_read(raster, -1, 0, 1, 1, values, flags, NULL) == TESS_INTERNAL);
    tess_raster_close(raster);
    CHECK(counted_now() == 0);
}

static tess_status fill(tess_raster *raster, tess_raster_output *output, int64_t first, int64_t rows,
                        tess_error *error)
{
    double values[W];
    uint8_t flags[W];
    for (int64_t y = first; y < first + rows; y++) {
        TESS_TRY(tess_raster_read(raster, y, 0, 1, W, values, flags, error));
        for (int64_t x = 0; x < W; x++)
            values[x] = flags[x] ? 1000 + (double)y : -1; /* what is not flagged must not be written */
        TESS_TRY(tess_raster_output_write(output, y, 0, 1, W, values, flags, error));
    }
    return TESS_OK;
}

static void check_result(const char *name)
{
    tess_raster *raster = open_input(name);
    static double values[H * W];
    static uint8_t flags[H * W];
    int64_t wrong = 0;
    if (!raster)
        return;
    CHECK(tess_raster_read(raster, 0, 0, H, W, values, flags, NULL) == TESS_OK);
    for (int64_t i = 0; i < H * W; i++)
        wrong += flags[i] || values[i] != (is_void(i / W, i % W) ? 1000 + (double)(i / W)
                                                                 : (double)height_at(i / W, i % W));
    CHECK_MSG(wrong == 0, "%s: %lld pixels", name, (long long)wrong);
    tess_raster_close(raster);
}

/* In place (ENVI), and through GDAL's copy (TIFF). */
static void test_outputs(void)
{
    static const char *const names[] = {"out.img", "out.tif", "out.bil", "out.bip"};
    for (size_t k = 0; with_gdal && k < sizeof names / sizeof *names; k++) {
        tess_memory_reset_peak(&test_counter);
        tess_raster *raster = open_input("in.img");
        const tess_raster_target target = {0};
        tess_raster_output *output = NULL;
        tess_raster_bytes bytes = {0};
        tess_error error = {""};
        CHECK(tess_raster_output_plan(raster, in_folder(names[k]), &target, &bytes, &error) == TESS_OK);
        CHECK_MSG(tess_raster_output_create(raster, in_folder(names[k]), &target, NULL, &output, &error) ==
                      TESS_OK,
                  "%s", error.text);
        CHECK(counted_now() == tess_raster_describe(raster)->held_bytes + bytes.held);
        CHECK_MSG(fill(raster, output, 0, H, &error) == TESS_OK, "%s", error.text);
        double back[2];
        CHECK(tess_raster_output_read(output, 11, 21, 1, 2, back, &error) == TESS_OK);
        CHECK(back[0] == 1011 && back[1] == 1011);
        const double bad = NAN;
        const uint8_t flag = TESS_PIXEL_VOID;
        CHECK(tess_raster_output_write(output, 0, 0, 1, 1, &bad, &flag, &error) == TESS_INTERNAL);
        CHECK(access(in_folder(names[k]), F_OK) != 0); /* no name before commit */
        CHECK_MSG(tess_raster_output_commit(output, NULL, NULL, 0, &error) == TESS_OK, "%s", error.text);
        CHECK(counted_peak() <= tess_raster_describe(raster)->held_bytes + bytes.held + bytes.commit);
        tess_raster_close(raster);
        CHECK(counted_now() == 0);
        check_result(names[k]);
    }
}

static void test_abandon(void)
{
    if (!with_gdal)
        return;
    const int before = sweep_folder(false);
    tess_raster *raster = open_input("in.img");
    tess_raster_output *output = NULL, *deviation = NULL;
    const tess_raster_target target = {0};
    tess_error error = {""};
    tess_stop stop;
    CHECK(tess_raster_output_create(raster, in_folder("gone.tif"), &target, NULL, &output, &error) ==
          TESS_OK);
    CHECK(tess_raster_like(raster, in_folder("gone_sd.tif"), "sd", &deviation, &error) == TESS_OK);
    CHECK(fill(raster, output, 0, H / 2, &error) == TESS_OK);
    tess_raster_output_abandon(output);
    tess_raster_output_abandon(deviation);
    tess_raster_output_abandon(NULL);
    tess_stop_init(&stop, NULL, NULL);
    atomic_store(&stop.wanted, true);
    CHECK(tess_raster_output_create(raster, in_folder("gone.tif"), &target, &stop, &output, &error) ==
          TESS_INTERRUPTED);
    CHECK(tess_raster_output_create(raster, in_folder("gone.img"), &target, &stop, &output, &error) ==
          TESS_INTERRUPTED);
    CHECK(tess_raster_output_create(raster, in_folder("gone.img"), &target, NULL, &output, &error) ==
          TESS_OK);
    CHECK(tess_raster_output_commit(output, &stop, NULL, 0, &error) == TESS_INTERRUPTED);
    CHECK(tess_raster_output_create(raster, in_folder("in.hdr"), &target, NULL, &output, &error) ==
          TESS_BAD_OPTION); /* belongs to the input */
    tess_raster_close(raster);
    CHECK(sweep_folder(false) == before);
    CHECK(counted_now() == 0);
}

static tess_status everything(tess_error *error)
{
    const tess_raster_settings settings = {0};
    const tess_raster_target target = {.overwrite = true};
    tess_raster *raster = NULL;
    tess_raster_output *output = NULL;
    tess_status status = tess_raster_open(&test_counter, in_folder("in.img"), &settings, &raster, error);
    if (status == TESS_OK)
        status = tess_raster_output_create(raster, in_folder("short.img"), &target, NULL, &output, error);
    if (status == TESS_OK)
        status = fill(raster, output, 0, H, error);
    if (output && status == TESS_OK) {
        status = tess_raster_output_commit(output, NULL, NULL, 0, error);
        output = NULL;
    }
    tess_raster_output_abandon(output);
    tess_raster_close(raster);
    return status;
}

static void test_no_memory(void)
{
    int64_t n = 1;
    for (tess_status status = TESS_NO_MEMORY; with_gdal && status != TESS_OK && n < 1000; n++) {
        tess_error error = {""};
        tess_mem_fail_at((uint64_t)n);
        status = everything(&error);
        tess_mem_fail_at(0);
        CHECK_MSG(status == TESS_OK || status == TESS_NO_MEMORY || status == TESS_IO_FAILED, "%s",
                  error.text);
        CHECK(status == TESS_OK || error.text[0]);
        CHECK(counted_now() == 0);
    }
    CHECK(n < 1000);
}

typedef struct share {
    tess_raster *raster;
    tess_raster_output *output;
    int64_t first, rows;
    tess_status status;
} share;

static void *fill_share(void *arg)
{
    share *own = arg;
    own->status = fill(own->raster, own->output, own->first, own->rows, NULL);
    return NULL;
}

/* One thread reads ahead while another writes, each on its own raster; both outputs share GDAL's cache. */
static void test_threads(void)
{
    share shares[2] = {{0}};
    pthread_t threads[2];
    const tess_raster_target target = {0};
    static const char *const names[] = {"left.img", "right.tif"};
    for (int i = 0; with_gdal && i < 2; i++) {
        shares[i].raster = open_input("in.img");
        shares[i].rows = H;
        CHECK(tess_raster_output_create(shares[i].raster, in_folder(names[i]), &target, NULL,
                                        &shares[i].output, NULL) == TESS_OK);
    }
    for (int i = 0; with_gdal && i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, fill_share, &shares[i]) == 0);
    for (int i = 0; with_gdal && i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK(shares[i].status == TESS_OK);
        CHECK(tess_raster_output_commit(shares[i].output, NULL, NULL, 0, NULL) == TESS_OK);
        tess_raster_close(shares[i].raster);
        check_result(names[i]);
    }
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_rule();
    test_limits();
    test_tops();
    test_watch();
    test_to_sample();
    write_input("in.img");
    test_windows();
    test_outputs();
    test_abandon();
    test_no_memory();
    test_threads();
    sweep_folder(true);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
