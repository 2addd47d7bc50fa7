/* The shadow of a box is the convex hull of its projected corners, if all of the box is in front of the source; so the corners give the
 * first and the last row. The box is the slab and what interpolation reaches beyond it: a ray is sampled in the slices of its dominant
 * axis, and has a weight in a voxel if it passes within one voxel of it along the other axes (geometry/ray3.h). */
#include "physics/rays_shadow.h"

#include <math.h>

#include "op/scan3.h"

/* Rows beyond the shadow: FDK samples between two rows, at places that are rounded to fp32. */
enum { MARGIN = 2 };

/* Voxels; more than the rounding of positions, as in tess_view3_box. */
static const double ROUNDING = 0.001;

/* Along z and along each axis that is not the only dominant one. */
static void box_of(const tess_scan3 *scan, int axes, double low[3], double high[3])
{
    for (int i = 0; i < 3; i++) {
        const double reach = (axes & ~(1 << i)) ? 1 + ROUNDING : ROUNDING;
        low[i] = (i == 2 ? (double)scan->first : 0) - reach;
        high[i] = (double)((i == 2 ? scan->end : scan->size[i]) - 1) + reach;
    }
}

tess_shadow_rows tess_rays_shadow(const tess_rays_settings *settings, int64_t first, int64_t slices,
                                  const double *numbers)
{
    const tess_op op = tess_rays_slab(settings, TESS_OP_PROJECT, first, slices, false);
    const tess_scan3 scan = tess_scan3_of(&op.rays, &op.in[0], &op.out[0]);
    const tess_view3 view = tess_view3_of(&scan, numbers);
    const tess_shadow3 shadow = tess_view3_shadow(&view);
    const tess_shadow_rows all = {0, (int32_t)scan.rows};
    double low[3], high[3], from = INFINITY, to = -INFINITY;
    box_of(&scan, tess_view3_axes(&view, scan.rows, scan.columns), low, high);
    for (int corner = 0; corner < 8; corner++) {
        double point[3], seen[3];
        for (int i = 0; i < 3; i++)
            point[i] = corner >> i & 1 ? high[i] : low[i];
        tess_shadow3_at(&shadow, point, seen);
        if (!(seen[2] > 1e-9) || !isfinite(seen[1])) /* beside or behind the source, or no geometry at all */
            return all;
        from = fmin(from, seen[1]);
        to = fmax(to, seen[1]);
    }
    const double begin = fmax(ceil(from) - MARGIN, 0), end = fmin(floor(to) + 1 + MARGIN, (double)scan.rows);
    return begin < end ? (tess_shadow_rows){(int32_t)begin, (int32_t)end} : (tess_shadow_rows){0, 0};
}

tess_shadow_rows tess_shadow_union(const tess_shadow_rows *shadows, int count)
{
    tess_shadow_rows all = {0, 0};
    for (int i = 0; i < count; i++) {
        const tess_shadow_rows one = shadows[i];
        if (one.first == one.end)
            continue;
        const bool empty = all.first == all.end;
        all.first = empty || one.first < all.first ? one.first : all.first;
        all.end = empty || one.end > all.end ? one.end : all.end;
    }
    return all;
}
