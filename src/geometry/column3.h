/* column3.h: columns of voxels along z gather from a staged patch of a view (patch3.h). The position of a
 * column is computed once in fp64, relative to its nearest pixel; all further steps are small numbers in fp32:
 *
 * e is the vector from the source to a voxel (parallel: along the rays), d the vector to a pixel; d = e /
 * depth + dc u + dr v, where (dc, dr) is the pixel's distance from the voxel's shadow. In the voxel's slice
 * across axis a, the ray passes the voxel at (e_a d_b - e_b d_a) / d_a along b. e cancels in that expression,
 * so no large numbers are subtracted. The weights equal those of tess_ray3_weight up to 1e-6.
 *
 * A view is upright if its u has no z component and its v has only z. Then all pixels of a detector column
 * pass a column of voxels at the same distance, and detector rows are evenly spaced along z. Most scanners are
 * upright, and upright views take half of the work. */
#ifndef TESS_GEOMETRY_COLUMN3_H
#define TESS_GEOMETRY_COLUMN3_H

#include "geometry/patch3.h"

#ifdef __CUDA_ARCH__
#define TESS_COLUMN3_UNROLL _Pragma("unroll")
#define TESS_COLUMN3_LOOP   _Pragma("unroll 1")
#else
#define TESS_COLUMN3_UNROLL
#define TESS_COLUMN3_LOOP
#endif

/* Rounds |x| < 2^22 to the nearest integer by an addition: the low bits of x + 3 2^22 hold the integer, and
 * subtracting 3 2^22 gives it as a float. */
#define TESS_COLUMN3_SHIFT 12582912.0f
#define TESS_COLUMN3_BITS  0x4b400000u

TESS_PATCH3_INLINE uint32_t tess_column3_bits(float moved)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(moved);
#else
    union {
        float number;
        uint32_t bits;
    } both;
    both.number = moved;
    return both.bits;
#endif
}

TESS_PATCH3_INLINE float tess_column3_round(float x, int *whole)
{
    const float moved = x + TESS_COLUMN3_SHIFT;
    *whole = (int)(tess_column3_bits(moved) - TESS_COLUMN3_BITS);
    return moved - TESS_COLUMN3_SHIFT;
}

/* A column of voxels as the patch sees it, at the middle of the column and relative to the pixel nearest to
 * its shadow there, so that numbers stay small. */
typedef struct tess_column3 {
    /* rest: distance of the shadow from that pixel, columns and rows, times depth. */
    float depth, inverse, rest[2];
    float even; /* upright views: detector rows per slice */
    int at[2];  /* that pixel */
    float e[3];
} tess_column3;

TESS_PATCH3_INLINE tess_column3 tess_column3_place(const tess_patch3 *p, int lx, int ly)
{
    const double x = lx, y = ly, z = p->middle;
    const double depth = p->of[2][3] + x * p->of[2][0] + y * p->of[2][1] + z * p->of[2][2],
                 inverse = 1 / depth;
    tess_column3 col;
    col.depth = (float)depth;
    col.inverse = (float)inverse;
    /* Fp64, because the length of a column multiplies its rounding. */
    col.even = (float)(p->of[1][2] * inverse);
    TESS_COLUMN3_UNROLL
    for (int k = 0; k < 2; k++) {
        const double seen = p->of[k][3] + x * p->of[k][0] + y * p->of[k][1] + z * p->of[k][2];
        tess_column3_round((float)(seen * inverse), &col.at[k]);
        col.rest[k] = (float)(seen - (double)col.at[k] * depth);
    }
    col.e[0] = p->e[0] + (p->cone ? (float)lx : 0);
    col.e[1] = p->e[1] + (p->cone ? (float)ly : 0);
    col.e[2] = p->e[2] + (p->cone ? p->middle : 0);
    return col;
}

/* Upright views; a is x or y. At most `tall` rows of a pixel column pass within a voxel. */
TESS_PATCH3_INLINE void tess_column3_upright(const tess_patch3 *p, int a, const tess_column3 *col, int deep,
                                             int tall, const float *patch, float *sums)
{
    const float e_a = a ? col->e[1] : col->e[0], e_b = a ? col->e[0] : col->e[1];
    const float u_a = a ? p->u[1] : p->u[0], u_b = a ? p->u[0] : p->u[1];
    const float cross = e_a * u_b - e_b * u_a, lean = u_a / (p->v[2] * e_a);
    const float inverse = col->inverse, even = col->even; /* at the column of the shadow */
    const float column = col->rest[0] * inverse, row = col->rest[1] * inverse;
    const float reach = p->reach[a][0];
    const int wide = (int)ceilf(2 * reach);
    int first;
    float dc = tess_column3_round(column - reach + 0.5f, &first) - column;
    /* Rounding leaves the row as the bits of a float: their constant part is subtracted once, modulo 2^32. */
    uint32_t from = (uint32_t)(col->at[1] * TESS_PATCH3_PITCH + col->at[0] + first) -
                    TESS_COLUMN3_BITS * TESS_PATCH3_PITCH;
    TESS_COLUMN3_LOOP
    for (int i = 0; i < wide; i++, dc += 1, from++) {
        const float d_a = e_a * inverse + (p->cone ? dc * u_a : 0);
        const float beside = tess_gather3_tent(dc * cross * tess_gather3_inverse(d_a));
        const float shift = beside > 0 ? dc * lean : 0, rise = even + (p->cone ? shift : 0);
        const float step = tess_gather3_inverse(rise); /* slices per row */
        const float half = 0.5f - fabsf(rise), back = half * step;
        const float start = row + shift * col->e[2] + half - p->middle * rise;
        TESS_COLUMN3_UNROLL
        for (int t = 0; t < deep; t++) {
            const float low = start + (float)t * rise, moved = low + TESS_COLUMN3_SHIFT;
            const float away = (moved - TESS_COLUMN3_SHIFT - low) * step + back;
            const int at = (int)(from + tess_column3_bits(moved) * TESS_PATCH3_PITCH);
            float sum = 0;
            TESS_COLUMN3_UNROLL
            for (int j = 0; j < tall; j++)
                sum += tess_gather3_tent(away + (float)j * step) * patch[at + j * TESS_PATCH3_PITCH];
            sums[t] += beside * sum;
        }
    }
}

/* The pixels whose rays can pass through a voxel. */
typedef struct tess_window3 {
    float d_a, to_b, to_c;           /* at the first pixel; to_b and to_c are distances times d_a */
    float right_a, right_b, right_c; /* changes from one pixel to the next column, and to the next row */
    float below_a, below_b, below_c;
} tess_window3;

TESS_PATCH3_INLINE float tess_window3_pixel(const tess_window3 *w, float i, float j, const float *at)
{
    const float by = tess_gather3_inverse(w->d_a + i * w->right_a + j * w->below_a);
    return tess_gather3_tent((w->to_b + i * w->right_b + j * w->below_b) * by) *
           tess_gather3_tent((w->to_c + i * w->right_c + j * w->below_c) * by) * *at;
}

/* Any view; b and c are the other axes. `few`: no window is larger than 3 x 3. */
TESS_PATCH3_INLINE void tess_column3_general(const tess_patch3 *p, int a, const tess_column3 *col, int deep,
                                             bool few, const float *patch, float *sums)
{
    const int b = a == 0 ? 1 : 0, c = a == 2 ? 1 : 2;
    const float turn = p->cone ? 1.0f : 0;
    const float step_a = a == 2 ? turn : 0, step_c = a == 2 ? 0 : turn; /* z is a or c */
    const float start_a = a == 0   ? col->e[0]
                          : a == 1 ? col->e[1]
                                   : col->e[2],
                e_b = a == 0 ? col->e[1] : col->e[0], start_c = a == 2 ? col->e[1] : col->e[2];
    const float reach_column = p->reach[a][0], reach_row = p->reach[a][1];
    const int wide = few ? 3 : (int)ceilf(2 * reach_column), high = few ? 3 : (int)ceilf(2 * reach_row);
    const float slope = (float)p->of[2][2],
                slope_column = (float)(p->of[0][2] - (double)col->at[0] * p->of[2][2]),
                slope_row = (float)(p->of[1][2] - (double)col->at[1] * p->of[2][2]);
    const float *beside = patch + col->at[1] * TESS_PATCH3_PITCH + col->at[0];
    const float u_a = p->u[a], u_b = p->u[b], u_c = p->u[c], v_a = p->v[a], v_b = p->v[b], v_c = p->v[c];
    TESS_COLUMN3_UNROLL
    for (int t = 0; t < deep; t++) {
        const float z = (float)t - p->middle, inverse = tess_gather3_inverse(col->depth + z * slope);
        const float column = (col->rest[0] + z * slope_column) * inverse,
                    row = (col->rest[1] + z * slope_row) * inverse;
        const float e_a = start_a + z * step_a, e_c = start_c + z * step_c;
        int i0, j0;
        const float dc = tess_column3_round(column - reach_column + 0.5f, &i0) - column,
                    dr = tess_column3_round(row - reach_row + 0.5f, &j0) - row;
        tess_window3 w;
        w.right_a = turn * u_a, w.below_a = turn * v_a;
        w.right_b = e_a * u_b - e_b * u_a, w.below_b = e_a * v_b - e_b * v_a;
        w.right_c = e_a * u_c - e_c * u_a, w.below_c = e_a * v_c - e_c * v_a;
        w.d_a = e_a * inverse + dc * w.right_a + dr * w.below_a;
        w.to_b = dc * w.right_b + dr * w.below_b;
        w.to_c = dc * w.right_c + dr * w.below_c;
        const float *at = beside + j0 * TESS_PATCH3_PITCH + i0;
        float sum = 0;
        if (few) {
            TESS_COLUMN3_UNROLL
            for (int k = 0; k < 9; k++)
                sum += tess_window3_pixel(&w, (float)(k % 3), (float)(k / 3),
                                          at + k / 3 * TESS_PATCH3_PITCH + k % 3);
        } else {
            TESS_COLUMN3_LOOP
            for (int j = 0; j < high; j++) {
                TESS_COLUMN3_LOOP
                for (int i = 0; i < wide; i++)
                    sum += tess_window3_pixel(&w, (float)i, (float)j, at + j * TESS_PATCH3_PITCH + i);
            }
        }
        sums[t] += sum;
    }
}

/* Adds the contribution of the staged patch of axis a to a column's sums, without the factor `spacing`. `deep`
 * must be a compile-time constant. */
TESS_PATCH3_INLINE void tess_column3_gather(const tess_patch3 *p, int a, int lx, int ly, int deep,
                                            const float *patch, float *sums)
{
    const tess_column3 col = tess_column3_place(p, lx, ly);
    if (p->upright && a < 2) {
        if (p->rise <= 1)
            tess_column3_upright(p, a, &col, deep, 2, patch, sums);
        else if (p->rise <= 1.5f)
            tess_column3_upright(p, a, &col, deep, 3, patch, sums);
        else
            tess_column3_upright(p, a, &col, deep, (int)ceilf(2 * p->rise), patch, sums);
    } else if (p->reach[a][0] <= 1.5f && p->reach[a][1] <= 1.5f) {
        tess_column3_general(p, a, &col, deep, true, patch, sums);
    } else {
        tess_column3_general(p, a, &col, deep, false, patch, sums);
    }
}

#endif
