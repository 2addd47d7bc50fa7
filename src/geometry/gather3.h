/* gather3.h: the contribution of one view to one voxel, by the transpose of ray3.h's rays, for devices where
 * each voxel searches for its rays. Only the voxel's shadow (its projection onto the detector) is computed in
 * fp64. Rays are described by their distance from the shadow, so that fp32 is enough:
 *
 * e is the vector from the source to the voxel (parallel: along the rays), d the vector to a pixel; rays near
 * the voxel have d = e / depth + dc u + dr v, where (dc, dr) is the pixel's distance from the shadow. In the
 * voxel's slice across axis a, such a ray passes the voxel at a distance of (e_a d_b - e_b d_a) / d_a along b.
 * e cancels in that expression, so no large numbers are subtracted. The weights equal those of
 * tess_ray3_weight up to 1e-7. */
#ifndef TESS_GEOMETRY_GATHER3_H
#define TESS_GEOMETRY_GATHER3_H

#include "geometry/ray3.h"

typedef struct tess_gather3 {
    tess_view3 view;
    tess_shadow3 shadow;
    float u[3], v[3];
} tess_gather3;

/* A voxel as a view sees it. */
typedef struct tess_seen3 {
    double column, row;
    float depth;
    float e[3], d[3]; /* d: to the shadow */
} tess_seen3;

TESS_BOTH tess_gather3 tess_gather3_of(const tess_scan3 *scan, const double *numbers)
{
    tess_gather3 g;
    g.view = tess_view3_of(scan, numbers);
    g.shadow = tess_view3_shadow(&g.view);
    for (int i = 0; i < 3; i++) {
        g.u[i] = (float)g.view.u[i];
        g.v[i] = (float)g.view.v[i];
    }
    return g;
}

/* Fast device versions, one instruction each, with an error of 2 units in the last place; x is never near the
 * limits of float. */
TESS_BOTH float tess_gather3_inverse(float x)
{
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
#else
    return 1.0f / x;
#endif
}

TESS_BOTH float tess_gather3_norm(float square)
{
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square));
    return square * inverse;
#else
    return sqrtf(square);
#endif
}

TESS_BOTH float tess_gather3_tent(float distance)
{
#ifdef __CUDA_ARCH__
    return __saturatef(1.0f - fabsf(distance)); /* one instruction */
#else
    const float rest = 1.0f - fabsf(distance);
    return rest > 0 ? rest : 0;
#endif
}

TESS_BOTH tess_seen3 tess_gather3_see(const tess_gather3 *g, const int voxel[3])
{
    const double point[3] = {(double)voxel[0], (double)voxel[1], (double)voxel[2]};
    const double depth = tess_dot3(g->shadow.of[2], point) + g->shadow.of[2][3], inverse = 1 / depth;
    tess_seen3 seen;
    seen.column = (tess_dot3(g->shadow.of[0], point) + g->shadow.of[0][3]) * inverse;
    seen.row = (tess_dot3(g->shadow.of[1], point) + g->shadow.of[1][3]) * inverse;
    seen.depth = (float)depth;
    for (int i = 0; i < 3; i++) {
        seen.e[i] = (float)(g->view.cone ? point[i] - g->view.source[i] : g->view.source[i]);
        seen.d[i] = seen.e[i] * (float)inverse; /* parallel: depth is 1 */
    }
    return seen;
}

/* True if a ray with dominant axis a can have a weight in this voxel: it passes within one voxel of it along
 * the other axes. */
TESS_BOTH bool tess_gather3_possible(const tess_gather3 *g, const tess_seen3 *seen, int a)
{
    const float more = g->view.cone ? 1.01f : 1e-5f * fabsf(seen->e[a]);
    const int b = (a + 1) % 3, c = (a + 2) % 3;
    return fabsf(seen->e[a]) + more >= fabsf(seen->e[b]) && fabsf(seen->e[a]) + more >= fabsf(seen->e[c]);
}

/* Decides as tess_view3_ray does, for rays too close to a tie for fp32. */
TESS_BOTH int tess_gather3_axis(const tess_view3 *view, int row, int column)
{
    double direction[3];
    for (int i = 0; i < 3; i++) {
        const double point = view->pixel[i] + (double)row * view->v[i] + (double)column * view->u[i];
        direction[i] = view->cone ? point - view->source[i] : view->source[i];
    }
    return tess_ray3_axis(direction);
}

/* The first and the last pixel of [0, count) within `reach` of `at`. */
TESS_BOTH void tess_gather3_range(double at, float reach, int64_t count, int *first, int *last)
{
    const double low = ceil(at - reach), high = floor(at + reach), end = (double)(count - 1);
    *first = low < 0 ? 0 : low > end ? (int)count : (int)low;
    *last = high > end ? (int)end : high < 0 ? -1 : (int)high;
}

/* The sum over the rays with dominant axis a; b and c are the other axes, `values` is the view. */
TESS_BOTH float tess_gather3_along(const tess_scan3 *scan, const tess_gather3 *g, const tess_seen3 *seen,
                                   int a, int b, int c, const float *values, int64_t step_h, int64_t step_w)
{
    /* The shadow of the square from -1 to 1 around the voxel extends this far from the voxel's shadow,
     * slightly enlarged. */
    const float square = 1.001f, column = (float)seen->column, row = (float)seen->row;
    const float of_b[3] = {(float)g->shadow.of[0][b], (float)g->shadow.of[1][b], (float)g->shadow.of[2][b]},
                of_c[3] = {(float)g->shadow.of[0][c], (float)g->shadow.of[1][c], (float)g->shadow.of[2][c]};
    const float nearest = seen->depth - square * (fabsf(of_b[2]) + fabsf(of_c[2]));
    const float larger = nearest > 0 ? square / nearest : 1e30f;
    int first_column, last_column, first_row, last_row;
    tess_gather3_range(seen->column,
                       (fabsf(of_b[0] - column * of_b[2]) + fabsf(of_c[0] - column * of_c[2])) * larger,
                       scan->columns, &first_column, &last_column);
    tess_gather3_range(seen->row, (fabsf(of_b[1] - row * of_b[2]) + fabsf(of_c[1] - row * of_c[2])) * larger,
                       scan->rows, &first_row, &last_row);
    const float e_a = seen->e[a], e_b = seen->e[b], e_c = seen->e[c];
    const float u_b = e_a * g->u[b] - e_b * g->u[a], v_b = e_a * g->v[b] - e_b * g->v[a],
                u_c = e_a * g->u[c] - e_c * g->u[a], v_c = e_a * g->v[c] - e_c * g->v[a];
    float sum = 0;
    for (int j = first_row; j <= last_row; j++) {
        const float dr = (float)(j - seen->row), turn = g->view.cone ? dr : 0;
        const float row_a = seen->d[a] + turn * g->v[a], row_b = seen->d[b] + turn * g->v[b],
                    row_c = seen->d[c] + turn * g->v[c];
        for (int i = first_column; i <= last_column; i++) {
            const float dc = (float)(i - seen->column), swing = g->view.cone ? dc : 0;
            const float d_a = row_a + swing * g->u[a], d_b = row_b + swing * g->u[b],
                        d_c = row_c + swing * g->u[c];
            const float inverse = tess_gather3_inverse(d_a);
            const float weight = tess_gather3_tent((dc * u_b + dr * v_b) * inverse) *
                                 tess_gather3_tent((dc * u_c + dr * v_c) * inverse);
            const float most = fabsf(d_a), other = fmaxf(fabsf(d_b), fabsf(d_c));
            if (!(weight > 0) || other > most * 1.00001f ||
                (other > most * 0.99999f && tess_gather3_axis(&g->view, j, i) != a))
                continue;
            const float length = tess_gather3_norm(d_a * d_a + d_b * d_b + d_c * d_c) * fabsf(inverse);
            sum += weight * length * values[j * step_h + i * step_w];
        }
    }
    return sum;
}

/* The contribution of a view to the voxel. */
TESS_BOTH float tess_gather3_voxel(const tess_scan3 *scan, const tess_gather3 *g, const int voxel[3],
                                   const float *values, int64_t step_h, int64_t step_w)
{
    const tess_seen3 seen = tess_gather3_see(g, voxel);
    float sum = 0;
    if (tess_gather3_possible(g, &seen, 0))
        sum += tess_gather3_along(scan, g, &seen, 0, 1, 2, values, step_h, step_w);
    if (tess_gather3_possible(g, &seen, 1))
        sum += tess_gather3_along(scan, g, &seen, 1, 0, 2, values, step_h, step_w);
    if (tess_gather3_possible(g, &seen, 2))
        sum += tess_gather3_along(scan, g, &seen, 2, 0, 1, values, step_h, step_w);
    return sum * (float)scan->spacing;
}

#endif
