/* terrain_rates.c: smooth fills, void statistics and terrain metrics for studies that run beside other programs.
 *
 *   terrain_rates fill KIND[,KIND...]          KIND: membrane, biharmonic, blend, or a bending length in widths of the void
 *   terrain_rates voids HEIGHT WIDTH COUNT SEED
 *   terrain_rates relief
 *   terrain_rates metrics PIXEL_HEIGHT PIXEL_WIDTH
 *   terrain_rates map HEIGHT WIDTH SHARE       times the statistics of a map with voids of all sizes; prints one JSON line
 *
 * fill, relief and metrics read windows from standard input: height and width as two 64-bit integers, the heights as
 * floats (for relief and metrics the truth), for metrics the filled heights, and a byte a pixel, not 0 = void. fill writes
 * for each window the width of its widest void as a double, then for each kind the seconds as a double and the filled
 * heights. voids writes a byte a pixel. relief writes four doubles: width, scale, root mean square of the normalised
 * residual, share of it that is clamped. metrics writes one JSON line. fill_smooth.py and check_terrain.py use it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tensor/terrain/relief.h"
#include "tensor/terrain/smooth.h"
#include "tensor/terrain/terrain.h"
#include "tensor/terrain/void_maker.h"

typedef struct window {
    int64_t h, w;
    float *heights, *other;
    uint8_t *flags;
} window;

static void *room(size_t bytes)
{
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!data)
        exit(1);
    return data;
}

static void need(tess_status status, const tess_error *error)
{
    if (status == TESS_OK)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

/* False at the end of the input. */
static bool read_window(window *m, bool two)
{
    int64_t sizes[2];
    if (fread(sizes, sizeof *sizes, 2, stdin) != 2)
        return false;
    const size_t pixels = (size_t)(sizes[0] * sizes[1]);
    *m = (window){sizes[0], sizes[1], room(pixels * 4), room(pixels * 4), room(pixels)};
    if (fread(m->heights, 4, pixels, stdin) != pixels ||
        (two && fread(m->other, 4, pixels, stdin) != pixels) || fread(m->flags, 1, pixels, stdin) != pixels) {
        fprintf(stderr, "the input ends inside a window\n");
        exit(1);
    }
    return true;
}

static void drop(window *m)
{
    free(m->heights), free(m->other), free(m->flags);
}

static void widest(void *arg, const tess_void_one *one, const int32_t *pixels)
{
    (void)pixels;
    double *width = arg;
    *width = one->width > *width ? one->width : *width;
}

static void fill_one(const window *m, const char *kind, double width)
{
    tess_error error = {{0}};
    void *scratch = room(tess_smooth_bytes(m->h, m->w));
    const tess_smooth_window task = {m->other, m->flags, m->h, m->w, scratch};
    memcpy(m->other, m->heights, (size_t)(m->h * m->w) * sizeof(float));
    const double start = tess_clock();
    if (strcmp(kind, "membrane") == 0)
        need(tess_smooth_fill(&task, TESS_SMOOTH_MEMBRANE, &error), &error);
    else if (strcmp(kind, "biharmonic") == 0)
        need(tess_smooth_fill(&task, TESS_SMOOTH_BIHARMONIC, &error), &error);
    else if (strcmp(kind, "blend") == 0)
        need(tess_smooth_fill(&task, TESS_SMOOTH_BLEND, &error), &error);
    else
        need(tess_smooth_fill_tension(&task, 1 / pow(atof(kind) * width, 2), &error), &error);
    const double seconds = tess_clock() - start;
    fwrite(&seconds, sizeof seconds, 1, stdout);
    fwrite(m->other, sizeof(float), (size_t)(m->h * m->w), stdout);
    free(scratch);
}

static void run_fill(const char *kinds)
{
    for (window m; read_window(&m, false); drop(&m)) {
        double width = 0;
        char list[512];
        void *scratch = room(tess_voids_walk_bytes(m.h, m.w));
        tess_voids_walk(m.flags, m.h, m.w, scratch, widest, &width);
        fwrite(&width, sizeof width, 1, stdout);
        snprintf(list, sizeof list, "%s", kinds);
        for (char *kind = strtok(list, ","); kind; kind = strtok(NULL, ","))
            fill_one(&m, kind, width);
        free(scratch);
    }
}

static void run_voids(int64_t h, int64_t w, int count, uint64_t seed)
{
    tess_void_request request;
    uint8_t *flags = room((size_t)(h * w));
    void *scratch = room(tess_void_maker_bytes(h, w));
    tess_void_request_init(&request, h, w);
    request.seed = seed;
    for (int i = 0; i < count; i++) {
        request.index = (uint32_t)i;
        tess_void_make(&request, flags, scratch);
        fwrite(flags, 1, (size_t)(h * w), stdout);
    }
    free(flags), free(scratch);
}

static void run_relief(void)
{
    for (window m; read_window(&m, false); drop(&m)) {
        tess_error error = {{0}};
        const int64_t pixels = m.h * m.w;
        void *scratch = room(tess_smooth_bytes(m.h, m.w)), *other = room(tess_relief_bytes(m.h, m.w));
        tess_relief relief;
        memcpy(m.other, m.heights, (size_t)pixels * sizeof(float));
        need(tess_smooth_fill(&(tess_smooth_window){m.other, m.flags, m.h, m.w, scratch}, TESS_SMOOTH_BLEND,
                              &error),
             &error);
        tess_relief_fit(&(tess_relief_window){m.heights, m.flags, m.other, m.h, m.w, 0.01, other},
                        TESS_RELIEF_SMOOTH, &relief);
        double square = 0, clamped = 0, count = 0;
        for (int64_t i = 0; i < pixels; i++) {
            if (!m.flags[i])
                continue;
            const double y = (double)(m.heights[i] - m.other[i]) / relief.scale;
            square += y * y, count++, clamped += fabs(y) > 2;
        }
        const double out[4] = {relief.width, relief.scale, sqrt(square / count), clamped / count};
        fwrite(out, sizeof *out, 4, stdout);
        free(scratch), free(other);
    }
}

static void print_errors(const char *name, const tess_terrain_sums *sums)
{
    const tess_terrain_errors e = tess_terrain_result(sums);
    if (e.pixels)
        printf("\"%s\":{\"pixels\":%lld,\"rmse\":%.12g,\"mae\":%.12g,\"bias\":%.12g,\"slope_rmse\":%.12g,"
               "\"slope_mae\":%.12g},",
               name, (long long)e.pixels, e.rmse, e.mae, e.bias, e.slope_rmse, e.slope_mae);
}

static void run_metrics(double pixel_height, double pixel_width)
{
    for (window m; read_window(&m, true); drop(&m)) {
        tess_terrain terrain;
        tess_terrain_begin(&terrain, m.w, pixel_height, pixel_width);
        uint8_t *classes = room((size_t)(m.h * m.w));
        void *scratch = room(tess_voids_walk_bytes(m.h, m.w));
        tess_voids_classify(m.flags, m.h, m.w, scratch, classes);
        int64_t top = m.h, left = m.w, bottom = 0, right = 0;
        for (int64_t y = 0; y < m.h; y++) {
            const float *t = m.heights + y * m.w, *r = m.other + y * m.w;
            const tess_terrain_rows truth = {y ? t - m.w : NULL, t, y + 1 < m.h ? t + m.w : NULL};
            const tess_terrain_rows result = {y ? r - m.w : NULL, r, y + 1 < m.h ? r + m.w : NULL};
            tess_terrain_row(&terrain, &result, &truth, m.flags + y * m.w, classes + y * m.w);
            for (int64_t x = 0; x < m.w; x++)
                if (m.flags[y * m.w + x]) {
                    top = y < top ? y : top, bottom = y + 1;
                    left = x < left ? x : left, right = x + 1 > right ? x + 1 : right;
                }
        }
        double psnr, ms_ssim;
        const int64_t first = top * m.w + left;
        void *more = room(tess_terrain_similarity_bytes(bottom - top, right - left));
        const tess_terrain_pair pair = {
            m.other + first, m.heights + first, bottom - top, right - left, m.w, 0};
        tess_terrain_similarity(&pair, more, &psnr, &ms_ssim);
        printf("{");
        print_errors("all", &terrain.all);
        for (int k = 0; k < TESS_VOID_CLASSES; k++)
            print_errors(tess_void_class_name((tess_void_class)k), &terrain.classes[k]);
        printf("\"psnr\":%.12g,\"ms_ssim\":%.12g}\n", psnr, isnan(ms_ssim) ? -1 : ms_ssim);
        free(classes), free(scratch), free(more);
    }
}

/* Voids cut by the generator into tiles of 500 pixels, a collar at the edge, and single pixels. */
static void run_map(int64_t h, int64_t w, double share)
{
    enum { TILE = 500 };
    tess_bitmap voids, outer;
    tess_void_request request;
    uint8_t flags[TILE * TILE];
    const size_t bits = tess_bitmap_bytes(h, w),
                 work = tess_voids_summary_bytes(h, w) + tess_voids_outer_bytes(h, w);
    tess_bitmap_init(&voids, h, w, room(bits));
    tess_bitmap_init(&outer, h, w, room(bits));
    void *scratch = room(work), *maker = room(tess_void_maker_bytes(TILE, TILE));
    tess_void_request_init(&request, TILE, TILE);
    for (int64_t y = 0; y + TILE <= h; y += TILE)
        for (int64_t x = 0; x + TILE <= w; x += TILE) {
            request.index++;
            if ((double)(request.index % 100) >= 100 * share)
                continue;
            tess_void_make(&request, flags, maker);
            tess_bitmap_write(&voids, y, x, TILE, TILE, flags);
        }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w / 20 + y % 100; x++)
            tess_bitmap_set(&voids, y, x);
    tess_void_summary all, inner;
    double times[4] = {tess_clock()};
    tess_voids_summary(&voids, scratch, NULL, NULL, &all);
    times[0] = tess_clock() - times[0], times[1] = tess_clock();
    tess_voids_outer(&voids, &outer, scratch);
    times[1] = tess_clock() - times[1], times[2] = tess_clock();
    tess_bitmap_subtract(&voids, &outer);
    tess_voids_limit(&voids, 40, &voids, scratch);
    times[2] = tess_clock() - times[2];
    tess_voids_summary(&voids, scratch, NULL, NULL, &inner);
    printf("{\"voids\":%lld,\"pixels\":%lld,\"widest\":%.1f,\"inner\":%lld,\"inner_pixels\":%lld,\"summary_"
           "seconds\":%.2f,"
           "\"outer_seconds\":%.2f,\"limit_seconds\":%.2f,\"bitmap_bytes\":%zu,\"scratch_bytes\":%zu}\n",
           (long long)all.count, (long long)all.pixels, all.widest.width, (long long)inner.count,
           (long long)inner.pixels, times[0], times[1], times[2], bits, work);
    free(voids.bits), free(outer.bits), free(scratch), free(maker);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "fill") == 0)
        run_fill(argv[2]);
    else if (argc == 6 && strcmp(argv[1], "voids") == 0)
        run_voids(atoll(argv[2]), atoll(argv[3]), atoi(argv[4]), (uint64_t)atoll(argv[5]));
    else if (argc == 2 && strcmp(argv[1], "relief") == 0)
        run_relief();
    else if (argc == 4 && strcmp(argv[1], "metrics") == 0)
        run_metrics(atof(argv[2]), atof(argv[3]));
    else if (argc == 5 && strcmp(argv[1], "map") == 0)
        run_map(atoll(argv[2]), atoll(argv[3]), atof(argv[4]));
    else {
        fprintf(stderr, "usage: terrain_rates fill KINDS | voids H W COUNT SEED | relief | metrics H W | map "
                        "H W SHARE\n");
        return 2;
    }
    return 0;
}
