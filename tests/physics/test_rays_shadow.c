/* test_rays_shadow.c: no row outside of a slab's shadow sees the slab, and no backprojection of the slab reads one: over random geometries,
 * circular, helical, and with tilted, turned and shifted detectors, of slabs of any thickness. The shadow is not much larger than what is seen. */
#define _POSIX_C_SOURCE 200809L
#include "physics/rays_shadow.h"

#include "adjoint.h"
#include "odd_views.h"
#include "solver_ops.h"

enum { VIEWS = 4, DRAWS = 120 };

/* Numbers from 0 to 1, one after another. */
static double draw(uint64_t *at)
{
    float value;
    tess_rng_uniform((tess_rng_key){.seed = 77}, (int64_t)(*at)++, 1, &value);
    return value;
}

/* A helix, of which every view is disturbed a little or much. */
static void draw_views(uint64_t *at, const tess_rays_settings *s, double *vectors)
{
    const double far = (1.2 + 3 * draw(at)) * (double)s->width, pitch = 0.4 + 2 * draw(at),
                 climb = draw(at) < 0.5 ? 0 : 0.3 * (double)s->depth;
    if (draw(at) < 0.3) {
        odd_views(VIEWS, s->geometry == TESS_CONE_3D, far + 8, pitch, vectors);
        return;
    }
    tess_rays_circle(VIEWS, s->geometry == TESS_CONE_3D ? far : -1, far, pitch, vectors);
    const double wild = draw(at) < 0.5 ? 0 : 0.4 * draw(at);
    for (int64_t i = 0; i < VIEWS; i++) {
        double *view = vectors + i * TESS_VIEW3_NUMBERS;
        for (int k = 0; k < 6; k += s->geometry == TESS_CONE_3D ? 3 : 6)
            view[k + 2] += climb * ((double)i - 1.5);
        for (int k = 3; k < TESS_VIEW3_NUMBERS; k++)
            view[k] += wild * (draw(at) - 0.5) * (k < 6 ? 8 : pitch);
    }
}

/* Widths of the shadow and of what is seen. */
typedef struct widths {
    double shadow, seen;
} widths;

static void check_project(tess_device *device, const tess_rays_settings *s, int64_t first, int64_t slices,
                          widths *sum)
{
    const int64_t view = s->rows * s->columns, voxels = slices * s->height * s->width;
    float *volume = adjoint_floats(voxels), *views = adjoint_floats(VIEWS * view);
    for (int64_t i = 0; i < voxels; i++)
        volume[i] = 1;
    const tess_op op = tess_rays_slab(s, TESS_OP_PROJECT, first, slices, false);
    run_op(device, op, (tess_op_buffers){.in = {volume}, .out = {views}, .weights = s->vectors});
    for (int64_t i = 0; i < VIEWS; i++) {
        const tess_shadow_rows rows = tess_rays_shadow(s, first, slices, s->vectors + i * TESS_VIEW3_NUMBERS);
        int64_t low = s->rows, high = 0, outside = 0;
        for (int64_t k = 0; k < view; k++)
            if (views[i * view + k] != 0) {
                const int64_t row = k / s->columns;
                low = row < low ? row : low;
                high = row + 1 > high ? row + 1 : high;
                outside += row < rows.first || row >= rows.end;
            }
        CHECK_MSG(outside == 0, "slices %lld to %lld: %lld values outside of rows %d to %d", (long long)first,
                  (long long)(first + slices), (long long)outside, rows.first, rows.end);
        CHECK(rows.first >= 0 && rows.first <= rows.end && rows.end <= s->rows);
        if (high > low && low > 0 && high < s->rows) {
            sum->shadow += rows.end - rows.first;
            sum->seen += (double)(high - low);
        }
    }
    free(volume), free(views);
}

/* The bits of a slab do not depend on the rows outside. */
static void check_back(tess_device *device, const tess_rays_settings *s, tess_op_kind kind, int64_t first,
                       int64_t slices)
{
    const int64_t view = s->rows * s->columns, voxels = slices * s->height * s->width;
    float *volume[2] = {adjoint_floats(voxels), adjoint_floats(voxels)},
          *views = adjoint_floats(VIEWS * view);
    tess_op op = tess_rays_slab(s, kind, first, slices, false);
    op.rays.scale = 0.5;
    tess_rng_uniform((tess_rng_key){.seed = 5}, 0, VIEWS * view, views);
    for (int i = 0; i < 2; i++) {
        run_op(device, op, (tess_op_buffers){.in = {views}, .out = {volume[i]}, .weights = s->vectors});
        for (int64_t k = 0; k < VIEWS * s->rows; k++) {
            const tess_shadow_rows rows =
                tess_rays_shadow(s, first, slices, s->vectors + k / s->rows * TESS_VIEW3_NUMBERS);
            if (k % s->rows < rows.first || k % s->rows >= rows.end)
                memset(views + k * s->columns, 0, (size_t)s->columns * sizeof *views);
        }
    }
    CHECK_MSG(memcmp(volume[0], volume[1], (size_t)voxels * sizeof(float)) == 0,
              "op %d, slices %lld to %lld: reads rows outside", kind, (long long)first,
              (long long)(first + slices));
    free(volume[0]), free(volume[1]), free(views);
}

static void check_random(tess_device *device)
{
    widths sum = {0};
    uint64_t at = 0;
    int taken = 0;
    for (int n = 0; n < DRAWS; n++) {
        double vectors[VIEWS * TESS_VIEW3_NUMBERS];
        tess_error error;
        const tess_rays_settings s = {.geometry = draw(&at) < 0.7 ? TESS_CONE_3D : TESS_PARALLEL_3D,
                                      .depth = 3 + (int64_t)(30 * draw(&at)),
                                      .height = 4 + (int64_t)(20 * draw(&at)),
                                      .width = 4 + (int64_t)(20 * draw(&at)),
                                      .spacing = 1,
                                      .views = VIEWS,
                                      .rows = 8 + (int64_t)(60 * draw(&at)),
                                      .columns = 8 + (int64_t)(40 * draw(&at)),
                                      .vectors = vectors};
        draw_views(&at, &s, vectors);
        if (tess_rays_check(&s, &error) != TESS_OK)
            continue;
        taken++;
        for (int64_t first = 0, slices; first < s.depth; first += slices) {
            slices = 1 + (int64_t)(6 * draw(&at));
            slices = slices < s.depth - first ? slices : s.depth - first;
            check_project(device, &s, first, slices, &sum);
            check_back(device, &s, TESS_OP_BACKPROJECT, first, slices);
            check_back(device, &s, TESS_OP_RAY_SPREAD, first, slices);
        }
    }
    printf("%d geometries: shadows have %.0f rows where %.0f are seen\n", taken, sum.shadow, sum.seen);
    CHECK_MSG(taken > DRAWS / 3, "only %d geometries", taken);
    CHECK_MSG(sum.shadow < 1.6 * sum.seen, "shadows are too wide: %g rows, %g seen", sum.shadow, sum.seen);
}

/* Where a corner would lie behind the source, or there is no detector, all rows count. */
static void check_degenerate(void)
{
    double view[TESS_VIEW3_NUMBERS];
    const tess_rays_settings s = {TESS_CONE_3D, 16, 16, 16, 1, 1, 20, 20, view};
    const double wrong[][2] = {{1, -7}, {1, 0}, {1, NAN}, {11, 0}, {4, -40}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tess_rays_circle(1, 40, 20, 1, view);
        view[(int)wrong[i][0]] = wrong[i][1];
        const tess_shadow_rows rows = tess_rays_shadow(&s, 3, 4, view);
        CHECK_MSG(rows.first == 0 && rows.end == 20, "case %d: rows %d to %d", (int)i, rows.first, rows.end);
    }
    tess_rays_circle(1, 40, 20, 1, view);
    view[2] = view[5] = 400; /* the slab is far below the detector */
    const tess_shadow_rows rows = tess_rays_shadow(&s, 3, 4, view);
    CHECK(rows.first == 0 && rows.end == 0);
}

int main(void)
{
    tess_device *device = open_cpu(1);
    check_random(device);
    check_degenerate();
    tess_registry_close(device);
    return check_end();
}
