/* Checks a geometry before anything is created for it: one wrong number gives a plausible but wrong picture. */
#include <math.h>

#include "op/scan3.h"
#include "physics/rays.h"

static tess_status check_sizes(const tess_rays_settings *s, tess_error *error)
{
    /* MOST_LINES: the grid of a card has at most 65535 blocks of 8 lines in y. */
    enum { MOST = 1 << 20, MOST_LINES = 1 << 18 };
    const int64_t sizes[] = {s->depth, s->height, s->width, s->views, s->rows, s->columns};
    static const int64_t most[] = {MOST, MOST_LINES, MOST, MOST, MOST_LINES, MOST};
    static const char *const names[] = {"depth", "height", "width", "views", "rows", "columns"};
    for (int i = 0; i < 6; i++)
        if (sizes[i] < 1 || sizes[i] > most[i])
            return tess_fail(error, TESS_BAD_INPUT, "%s is %lld; it must be from 1 to %lld", names[i],
                             (long long)sizes[i], (long long)most[i]);
    if (s->geometry != TESS_CONE_3D && s->geometry != TESS_PARALLEL_3D)
        return tess_fail(error, TESS_BAD_INPUT, "rays through a volume are of a cone or parallel");
    if (!(s->spacing > 0) || !isfinite(s->spacing))
        return tess_fail(error, TESS_BAD_INPUT, "the voxel size is %g; it must be above 0", s->spacing);
    return TESS_OK;
}

/* A corner of the volume's box, enlarged by `beyond` voxels on each side. */
static void corner_of(const tess_scan3 *scan, int corner, double beyond, double point[3])
{
    for (int i = 0; i < 3; i++)
        point[i] = corner >> i & 1 ? (double)scan->size[i] - 0.5 + beyond : -0.5 - beyond;
}

static tess_status check_source(const tess_scan3 *scan, const tess_view3 *view, const tess_shadow3 *shadow,
                                int64_t index, tess_error *error)
{
    if (!scan->cone)
        return TESS_OK;
    const double beyond = 0.51; /* covers the weights of voxels at the box's edge */
    bool inside = true;
    for (int i = 0; i < 3; i++)
        inside = inside && view->source[i] > -0.5 - beyond &&
                 view->source[i] < (double)scan->size[i] - 0.5 + beyond;
    if (inside)
        return tess_fail(error, TESS_BAD_INPUT,
                         "view %lld: the source lies inside the volume; move it out, or check the voxel size",
                         (long long)index);
    for (int corner = 0; corner < 8; corner++) {
        double point[3];
        corner_of(scan, corner, beyond, point);
        if (!(tess_dot3(shadow->of[2], point) + shadow->of[2][3] > 0))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "view %lld: part of the volume lies beside or behind the source; the whole of it "
                "must lie on the detector's side",
                (long long)index);
    }
    return TESS_OK;
}

static tess_status check_shadow(const tess_scan3 *scan, const tess_shadow3 *shadow, int64_t index,
                                tess_error *error)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int corner = 0; corner < 8; corner++) {
        double point[3], seen[3];
        corner_of(scan, corner, 0, point);
        tess_shadow3_at(shadow, point, seen);
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], seen[k]);
            high[k] = fmax(high[k], seen[k]);
        }
    }
    if (high[0] - low[0] < 1 && high[1] - low[1] < 1)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "view %lld: the whole volume's shadow is %.2g columns and %.2g rows of the detector; check "
            "the voxel size and the vectors' units",
            (long long)index, high[0] - low[0], high[1] - low[1]);
    for (int k = 0; k < 2; k++) {
        const int64_t size = k ? scan->rows : scan->columns;
        if (high[k] < -0.5 || low[k] > (double)size - 0.5)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "view %lld: the volume's shadow misses the detector: it falls on %s %.0f to %.0f of "
                "%lld; check the vectors and the voxel size",
                (long long)index, k ? "rows" : "columns", low[k], high[k], (long long)size);
    }
    return TESS_OK;
}

static tess_status check_view(const tess_scan3 *scan, const double *numbers, int64_t index, tess_error *error)
{
    for (int i = 0; i < TESS_VIEW3_NUMBERS; i++)
        if (!isfinite(numbers[i]))
            return tess_fail(error, TESS_BAD_INPUT, "view %lld: number %d of its vectors is not finite",
                             (long long)index, i);
    const tess_view3 view = tess_view3_of(scan, numbers);
    double normal[3], to[3];
    tess_cross3(view.u, view.v, normal);
    for (int i = 0; i < 3; i++)
        to[i] = scan->cone ? view.pixel[i] - view.source[i] : view.source[i];
    const double area = sqrt(tess_dot3(normal, normal));
    if (!(area > 1e-9 * sqrt(tess_dot3(view.u, view.u) * tess_dot3(view.v, view.v))))
        return tess_fail(error, TESS_BAD_INPUT,
                         "view %lld: the steps between columns and rows must not be zero or parallel",
                         (long long)index);
    if (!(fabs(tess_dot3(to, normal)) > 1e-9 * area * sqrt(tess_dot3(to, to))))
        return tess_fail(error, TESS_BAD_INPUT, "view %lld: %s", (long long)index,
                         scan->cone ? "the source lies in the detector's plane"
                                    : "the rays' direction is zero or runs along the detector");
    for (int corner = 0; corner < 5; corner++)
        for (int i = 0; i < 3; i++) {
            const double r = corner & 1 ? (double)(scan->rows - 1) : 0,
                         c = corner & 2 ? (double)(scan->columns - 1) : 0;
            const double place = corner == 4 ? view.source[i] : view.pixel[i] + r * view.v[i] + c * view.u[i];
            if (fabs(place) > TESS_RAY3_FARTHEST && (corner < 4 || scan->cone))
                return tess_fail(error, TESS_BAD_INPUT,
                                 "view %lld: the %s is more than %.0f voxels away; check the voxel size",
                                 (long long)index, corner < 4 ? "detector" : "source", TESS_RAY3_FARTHEST);
        }
    const tess_shadow3 shadow = tess_view3_shadow(&view);
    TESS_TRY(check_source(scan, &view, &shadow, index, error));
    return check_shadow(scan, &shadow, index, error);
}

tess_status tess_rays_check(const tess_rays_settings *settings, tess_error *error)
{
    TESS_TRY(check_sizes(settings, error));
    const tess_op op = tess_rays_slab(settings, TESS_OP_PROJECT, 0, settings->depth, false);
    const tess_scan3 scan = tess_scan3_of(&op.rays, &op.in[0], &op.out[0]);
    for (int64_t i = 0; i < settings->views; i++)
        TESS_TRY(check_view(&scan, settings->vectors + i * TESS_VIEW3_NUMBERS, i, error));
    return TESS_OK;
}
