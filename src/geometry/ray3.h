/* ray3.h: rays through a volume, for every device: the line that a detector pixel sees, and the weight of a
 * voxel in its integral. On the CPU, PROJECT and BACKPROJECT both take their weights from tess_ray3_cell, so
 * that one is the transpose of the other to the last bit. On a card, voxels gather by an equivalent form of
 * the same geometry (gather3.h, column3.h), whose weights agree with these to about 1e-6.
 *
 * Joseph's method (IEEE Trans. Med. Imaging 1, 1982): a ray is sampled where it crosses the slices of its
 * dominant axis, bilinear between the four voxels around it, times its length between two slices. Coordinates
 * are voxel indices of the whole volume, (x, y, z) = (0, 1, 2); a slab is a range of z and changes no weight.
 *
 * A ray is set up once in fp64 and followed in fixed point. Sums are then exact, so that a slice gives the
 * same cell however it is reached, on every device. Positions are monotonic in the slice: if both ends of a
 * range of slices are inside the volume, the whole range is. tess_view3_box finds the rays of a voxel by
 * projecting its footprint. */
#ifndef TESS_GEOMETRY_RAY3_H
#define TESS_GEOMETRY_RAY3_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "geometry/both.h"

enum { TESS_VIEW3_NUMBERS = 12 };
/* One voxel is 2^32. Positions reach 2^31 voxels: physics/ rejects geometries beyond TESS_RAY3_FARTHEST. */
#define TESS_RAY3_ONE      4294967296.0
#define TESS_RAY3_FARTHEST 268435456.0

/* The volume and the detector that all views of an op share. */
typedef struct tess_scan3 {
    bool cone;
    int64_t size[3];    /* of the whole volume: x, y, z */
    int64_t first, end; /* z range of the slab */
    int64_t rows, columns, views;
    double spacing;
} tess_scan3;

/* One view in voxel coordinates. */
typedef struct tess_view3 {
    double source[3];            /* or the direction of the rays */
    double pixel[3], u[3], v[3]; /* pixel (0,0), steps */
    bool cone;
    double spacing;
} tess_view3;

/* In slice k the ray is at (at[0] + k slope[0], at[1] + k slope[1]) on the other two axes, in ascending order. */
typedef struct tess_ray3 {
    int axis;
    int64_t at[2], slope[2];
    float length; /* length of the ray between two slices */
} tess_ray3;

/* The four voxels around a ray in one slice: (b, c), (b+1, c), (b, c+1), (b+1, c+1). */
typedef struct tess_cell3 {
    int b, c;
    float weight[4]; /* not multiplied by the ray's length */
} tess_cell3;

/* The projection of a point onto the detector: column = (of[0] . (x, y, z, 1)) / (of[2] . (x, y, z, 1)), row
 * with of[1]. of[2] gives the depth in units of the distance from source to detector; 1 for parallel rays. */
typedef struct tess_shadow3 {
    double of[3][4];
} tess_shadow3;

TESS_BOTH tess_view3 tess_view3_of(const tess_scan3 *scan, const double *numbers)
{
    tess_view3 view;
    view.cone = scan->cone;
    view.spacing = scan->spacing;
    for (int i = 0; i < 3; i++) {
        const double origin = 0.5 * (double)(scan->size[i] - 1);
        view.source[i] = numbers[i] / scan->spacing + (scan->cone ? origin : 0);
        view.u[i] = numbers[6 + i] / scan->spacing;
        view.v[i] = numbers[9 + i] / scan->spacing;
        view.pixel[i] = numbers[3 + i] / scan->spacing + origin -
                        0.5 * (double)(scan->columns - 1) * view.u[i] -
                        0.5 * (double)(scan->rows - 1) * view.v[i];
    }
    return view;
}

/* The dominant axis of a direction. A tie must be resolved in the same way however a compiler rounds: a later
 * axis wins only by more than the rounding error. */
TESS_BOTH int tess_ray3_axis(const double direction[3])
{
    const double margin = 1 + 1e-9;
    int axis = fabs(direction[1]) > margin * fabs(direction[0]) ? 1 : 0;
    return fabs(direction[2]) > margin * fabs(direction[axis]) ? 2 : axis;
}

TESS_BOTH tess_ray3 tess_view3_ray(const tess_view3 *view, int64_t row, int64_t column)
{
    double point[3], direction[3];
    for (int i = 0; i < 3; i++) {
        point[i] = view->pixel[i] + (double)row * view->v[i] + (double)column * view->u[i];
        direction[i] = view->cone ? point[i] - view->source[i] : view->source[i];
    }
    const int axis = tess_ray3_axis(direction), b = axis == 0 ? 1 : 0, c = axis == 2 ? 1 : 2;
    const double *from = view->cone ? view->source : point;
    const double inverse = 1 / direction[axis];
    const double slope_b = direction[b] * inverse, slope_c = direction[c] * inverse;
    tess_ray3 ray;
    ray.axis = axis;
    ray.slope[0] = (int64_t)(slope_b * TESS_RAY3_ONE);
    ray.slope[1] = (int64_t)(slope_c * TESS_RAY3_ONE);
    ray.at[0] = (int64_t)((from[b] - from[axis] * slope_b) * TESS_RAY3_ONE);
    ray.at[1] = (int64_t)((from[c] - from[axis] * slope_c) * TESS_RAY3_ONE);
    ray.length = (float)(view->spacing * sqrt(1 + slope_b * slope_b + slope_c * slope_c));
    return ray;
}

TESS_BOTH int64_t tess_ray3_at(const tess_ray3 *ray, int which, int slice)
{
    return ray->at[which] + slice * ray->slope[which];
}

/* The cell of the ray in a slice where the ray is inside the volume or next to it. */
TESS_BOTH tess_cell3 tess_ray3_cell(const tess_ray3 *ray, int slice)
{
    const int64_t at_b = tess_ray3_at(ray, 0, slice), at_c = tess_ray3_at(ray, 1, slice);
    const float one = (float)(1 / TESS_RAY3_ONE);
    const float far_b = (float)(uint32_t)at_b * one, far_c = (float)(uint32_t)at_c * one;
    tess_cell3 cell;
    cell.b = (int)(at_b >> 32); /* rounds down, also below 0, with every known compiler */
    cell.c = (int)(at_c >> 32);
    const float near_b = 1 - far_b, near_c = 1 - far_c;
    cell.weight[0] = near_b * near_c;
    cell.weight[1] = far_b * near_c;
    cell.weight[2] = near_b * far_c;
    cell.weight[3] = far_b * far_c;
    return cell;
}

/* The weight of one voxel, for gathering. */
TESS_BOTH float tess_ray3_weight(const tess_ray3 *ray, const int voxel[3])
{
    const int b = ray->axis == 0 ? 1 : 0, c = ray->axis == 2 ? 1 : 2;
    const tess_cell3 cell = tess_ray3_cell(ray, voxel[ray->axis]);
    const unsigned right = (unsigned)(voxel[b] - cell.b), below = (unsigned)(voxel[c] - cell.c);
    return right < 2 && below < 2 ? cell.weight[right + 2 * below] * ray->length : 0;
}

/* The dominant axes that rays of a view can have, as bits. |d_a| > |d_b| where d_a - d_b and d_a + d_b have
 * the same sign; both are affine over the detector, so checking its corners is enough. */
TESS_BOTH int tess_view3_axes(const tess_view3 *view, int64_t rows, int64_t columns)
{
    int axes = 7;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            int signs = 0; /* 1, 2: the difference is positive, negative; 4, 8: the same for the sum */
            for (int corner = 0; corner < 4 && a != b; corner++) {
                const double r = corner & 1 ? (double)(rows - 1) : 0,
                             c = corner & 2 ? (double)(columns - 1) : 0;
                double d[2], size;
                for (int i = 0; i < 2; i++) {
                    const int k = i ? b : a;
                    d[i] = view->cone ? view->pixel[k] + r * view->v[k] + c * view->u[k] - view->source[k]
                                      : view->source[k];
                }
                size = 1e-6 * (fabs(d[0]) + fabs(d[1]));
                signs |= d[0] - d[1] > size ? 1 : d[1] - d[0] > size ? 2 : 3;
                signs |= d[0] + d[1] > size ? 4 : d[0] + d[1] < -size ? 8 : 12;
            }
            if (signs == (1 | 4) || signs == (2 | 8))
                axes &= ~(1 << b);
        }
    return axes;
}

TESS_BOTH void tess_cross3(const double a[3], const double b[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        out[i] = a[j] * b[k] - a[k] * b[j];
    }
}

TESS_BOTH double tess_dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Solves source + t (X - source) = pixel + column u + row v (cone) or X + t direction = ... (parallel) by
 * Cramer's rule for a general X: each of the three unknowns is affine in X. */
TESS_BOTH tess_shadow3 tess_view3_shadow(const tess_view3 *view)
{
    double to[3], normal[3], by_u[3], by_v[3];
    for (int i = 0; i < 3; i++)
        to[i] = view->cone ? view->pixel[i] - view->source[i] : view->source[i];
    tess_cross3(view->u, view->v, normal);
    tess_cross3(view->v, to, by_u);
    tess_cross3(to, view->u, by_v);
    const double scale = 1 / tess_dot3(to, normal);
    const double *from = view->cone ? view->source : view->pixel;
    tess_shadow3 shadow;
    for (int i = 0; i < 3; i++) {
        shadow.of[0][i] = by_u[i] * scale;
        shadow.of[1][i] = by_v[i] * scale;
        shadow.of[2][i] = view->cone ? normal[i] * scale : 0;
    }
    for (int k = 0; k < 3; k++)
        shadow.of[k][3] = k == 2 && !view->cone ? 1 : -tess_dot3(shadow.of[k], from);
    return shadow;
}

/* (column, row, depth) of a point. */
TESS_BOTH void tess_shadow3_at(const tess_shadow3 *shadow, const double point[3], double seen[3])
{
    for (int k = 0; k < 3; k++)
        seen[k] = tess_dot3(shadow->of[k], point) + shadow->of[k][3];
    seen[0] /= seen[2];
    seen[1] /= seen[2];
}

/* The cosine between a pixel's ray and the shortest line from the source to the detector. */
TESS_BOTH double tess_view3_cosine(const tess_view3 *view, int64_t row, int64_t column)
{
    double normal[3], to[3];
    tess_cross3(view->u, view->v, normal);
    for (int i = 0; i < 3; i++)
        to[i] = view->cone ? view->pixel[i] + (double)row * view->v[i] + (double)column * view->u[i] -
                                 view->source[i]
                           : view->source[i];
    return fabs(tess_dot3(to, normal)) / sqrt(tess_dot3(to, to) * tess_dot3(normal, normal));
}

/* The pixels whose rays with this dominant axis can have a weight in a voxel: box = first and last column,
 * first and last row; it is empty if a last is before its first. Such a ray crosses the voxel's slice inside
 * the square from -1 to 1 around the voxel. The perspective image of a square is the convex hull of its
 * projected corners if all of it is in front of the source. The square is enlarged by a little more than the
 * rounding error. */
TESS_BOTH void tess_view3_box(const tess_scan3 *scan, const tess_shadow3 *shadow, const int voxel[3],
                              int axis, int box[4])
{
    const int b = axis == 0 ? 1 : 0, c = axis == 2 ? 1 : 2;
    double low[2] = {1e30, 1e30}, high[2] = {-1e30, -1e30};
    for (int corner = 0; corner < 4; corner++) {
        double point[3], seen[3];
        point[axis] = voxel[axis];
        point[b] = voxel[b] + (corner & 1 ? 1.001 : -1.001);
        point[c] = voxel[c] + (corner & 2 ? 1.001 : -1.001);
        tess_shadow3_at(shadow, point, seen);
        for (int k = 0; k < 2; k++) {
            low[k] = seen[k] < low[k] ? seen[k] : low[k];
            high[k] = seen[k] > high[k] ? seen[k] : high[k];
        }
    }
    for (int k = 0; k < 2; k++) {
        const double last = (double)((k ? scan->rows : scan->columns) - 1);
        const double from = low[k] < 0 ? 0 : low[k] > last ? last + 1 : ceil(low[k]);
        const double to = high[k] > last ? last : high[k] < 0 ? -1 : floor(high[k]);
        box[2 * k] = (int)from;
        box[2 * k + 1] = (int)to;
    }
}

#endif
