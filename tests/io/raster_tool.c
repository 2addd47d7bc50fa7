/* raster_tool.c: opens a raster, fills its voids with known numbers, and prints what it saw, for e2e/raster.py.
 *
 *   raster_tool IN [OUT] [--band N] [--nodata V|none] [--mask FILE] [--format F] [--co K=V] [--world W]
 *               [--resampling R] [--overwrite] [--window N] [--second FILE] [--sd FILE] [--shrink] [--abandon]
 *
 * The number for pixel (y, x) is 100 + (7 y + 3 x) mod 50 + 0.25. With --second it is the second raster's value. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/raster.h"

typedef struct request {
    const char *in, *out, *second, *sd, *creation[8];
    int created;
    int64_t window;
    bool shrink, abandon;
    tess_raster_settings settings;
    tess_raster_target target;
} request;

static tess_memory memory;

static int fail(const tess_error *error)
{
    printf("error: %s\n", error->text);
    return 1;
}

static void parse_option(request *r, const char *name, const char *value)
{
    if (strcmp(name, "--band") == 0)
        r->settings.band = atoi(value);
    else if (strcmp(name, "--mask") == 0)
        r->settings.mask = value;
    else if (strcmp(name, "--nodata") == 0) {
        r->settings.nodata_is = strcmp(value, "none") == 0 ? TESS_NODATA_NONE : TESS_NODATA_GIVEN;
        r->settings.nodata = atof(value);
    } else if (strcmp(name, "--format") == 0)
        r->target.format = value;
    else if (strcmp(name, "--co") == 0 && r->created < 7)
        r->creation[r->created++] = value;
    else if (strcmp(name, "--world") == 0)
        r->target.world = strcmp(value, "corner") == 0 ? TESS_WORLD_CORNER : TESS_WORLD_CENTRE;
    else if (strcmp(name, "--resampling") == 0)
        r->target.resampling = value;
    else if (strcmp(name, "--window") == 0)
        r->window = atoll(value);
    else if (strcmp(name, "--second") == 0)
        r->second = value;
    else if (strcmp(name, "--sd") == 0)
        r->sd = value;
}

static void parse(int argc, char **argv, request *r)
{
    r->window = 512;
    r->target.creation = r->creation;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-')
            *(r->in ? &r->out : &r->in) = argv[i];
        else if (strcmp(argv[i], "--overwrite") == 0)
            r->target.overwrite = true;
        else if (strcmp(argv[i], "--shrink") == 0)
            r->shrink = true;
        else if (strcmp(argv[i], "--abandon") == 0)
            r->abandon = true;
        else if (i + 1 < argc) {
            parse_option(r, argv[i], argv[i + 1]);
            i++;
        }
    }
}

static void print_info(const tess_raster_info *i)
{
    printf("size: %lld %lld\nband: %d of %d\ntype: %s\ndriver: %s\n", (long long)i->height,
           (long long)i->width, i->band, i->bands, tess_dtype_word(i->dtype), i->driver);
    printf("rule: exact %d %.9g usual %d limits %d %.9g %.9g sampled %lld\n", i->rule.exact, i->rule.value,
           i->rule.usual, i->rule.limits, i->rule.low, i->rule.high, (long long)i->sampled);
    printf("marks: band %d alpha %d file %d\noverviews: %d\nheld: %zu\n", i->mask_band, i->alpha,
           i->mask_file, i->overviews, i->held_bytes);
}

typedef struct work {
    tess_raster *raster, *second;
    tess_raster_output *output, *deviation;
    double *values, *others;
    uint8_t *flags;
    int64_t voids, kept, uncovered;
    double sum;
} work;

static tess_status do_window(work *k, int64_t y, int64_t x, int64_t h, int64_t w, tess_error *error)
{
    int64_t voids = 0;
    TESS_TRY(tess_raster_read(k->raster, y, x, h, w, k->values, k->flags, error));
    if (k->second)
        TESS_TRY(tess_raster_read(k->second, y, x, h, w, k->others, NULL, error));
    for (int64_t i = 0; i < h * w; i++) {
        k->kept += k->flags[i] == TESS_PIXEL_KEPT;
        if (k->flags[i] == TESS_PIXEL_VALID)
            k->sum += k->values[i];
        if (k->flags[i] != TESS_PIXEL_VOID)
            continue;
        const int64_t row = y + i / w, column = x + i % w;
        k->values[i] = k->second ? k->others[i] : 100.25 + (double)((7 * row + 3 * column) % 50);
        if (isnan(k->values[i])) {
            k->uncovered++;
            k->flags[i] = TESS_PIXEL_KEPT;
            continue;
        }
        voids++;
    }
    k->voids += voids;
    if (voids && k->output)
        TESS_TRY(tess_raster_output_write(k->output, y, x, h, w, k->values, k->flags, error));
    if (voids && k->deviation)
        TESS_TRY(tess_raster_output_write(k->deviation, y, x, h, w, k->values, k->flags, error));
    return TESS_OK;
}

static tess_status run(const request *r, work *k, tess_error *error)
{
    TESS_TRY(tess_raster_open(&memory, r->in, &r->settings, &k->raster, error));
    const tess_raster_info *info = tess_raster_describe(k->raster);
    const tess_raster_settings plain = {0};
    print_info(info);
    if (r->second)
        TESS_TRY(tess_raster_second(&memory, r->second, k->raster, &plain, TESS_BILINEAR, &k->second, error));
    if (r->out) {
        tess_raster_bytes bytes;
        TESS_TRY(tess_raster_output_plan(k->raster, r->out, &r->target, &bytes, error));
        printf("plan: held %zu commit %zu disk %lld\n", bytes.held, bytes.commit, (long long)bytes.disk);
        TESS_TRY(tess_raster_output_create(k->raster, r->out, &r->target, NULL, &k->output, error));
    }
    if (r->sd)
        TESS_TRY(tess_raster_like(k->raster, r->sd, "standard deviation", &k->deviation, error));
    if (r->shrink && truncate(r->in, 3000) != 0)
        return tess_fail(error, TESS_INTERNAL, "cannot truncate");
    for (int64_t y = 0; y < info->height; y += r->window)
        for (int64_t x = 0; x < info->width; x += r->window)
            TESS_TRY(do_window(k, y, x, tess_min_i64(r->window, info->height - y),
                               tess_min_i64(r->window, info->width - x), error));
    printf("voids: %lld kept %lld uncovered %lld sum %.9g\n", (long long)k->voids, (long long)k->kept,
           (long long)k->uncovered, k->sum);
    tess_raster_output *output = k->output, *deviation = k->deviation;
    if (r->abandon)
        return TESS_OK;
    k->output = k->deviation = NULL;
    char notes[256] = "";
    if (deviation)
        TESS_TRY(tess_raster_output_commit(deviation, NULL, NULL, 0, error));
    if (output)
        TESS_TRY(tess_raster_output_commit(output, NULL, notes, sizeof notes, error));
    printf("notes: %s\n", notes);
    return TESS_OK;
}

int main(int argc, char **argv)
{
    request r = {0};
    work k = {0};
    tess_error error = {""};
    parse(argc, argv, &r);
    if (!r.in)
        return 2;
    const size_t pixels = (size_t)(r.window * r.window);
    k.values = calloc(pixels, sizeof *k.values);
    k.others = calloc(pixels, sizeof *k.others);
    k.flags = calloc(pixels, 1);
    const tess_status status = run(&r, &k, &error);
    tess_mem_usage peak, left;
    tess_memory_peak(&memory, TESS_MEM_OF_PROCESS, &peak);
    tess_raster_output_abandon(k.output);
    tess_raster_output_abandon(k.deviation);
    tess_raster_close(k.second);
    tess_raster_close(k.raster);
    tess_memory_held(&memory, TESS_MEM_OF_PROCESS, &left);
    printf("counted: peak %llu left %llu\n", (unsigned long long)peak.total, (unsigned long long)left.total);
    free(k.values);
    free(k.others);
    free(k.flags);
    return status == TESS_OK ? 0 : fail(&error);
}
