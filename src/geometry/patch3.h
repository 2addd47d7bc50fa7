/* patch3.h: the part of a view that can contribute to a box of voxels, by the transpose of ray3.h's rays, for
 * devices where voxels gather: a patch of pixels, the shadow of the box. The patch is staged in fast memory.
 * Each pixel is multiplied by the length of its ray; it is 0 if the ray has another dominant axis or the pixel
 * is off the detector. column3.h gathers from the patch. */
#ifndef TESS_GEOMETRY_PATCH3_H
#define TESS_GEOMETRY_PATCH3_H

#include "geometry/gather3.h"

#ifdef __CUDACC__
#define TESS_PATCH3_INLINE static __forceinline__ __host__ __device__
#else
#define TESS_PATCH3_INLINE static inline
#endif

/* Size of the staged patch: TALL rows of PITCH pixels. The pitch puts neighbouring rows into different memory
 * banks. */
enum { TESS_PATCH3_PITCH = 104, TESS_PATCH3_TALL = 58 };

/* A range of voxels of the whole volume: x, y, z. */
typedef struct tess_box3 {
    int first[3], size[3];
} tess_box3;

/* One view for one box. Positions are relative to the box's first voxel and the patch's first pixel. */
typedef struct tess_patch3 {
    bool cone, upright;
    bool fits;                   /* if not, voxels read the view directly: tess_gather3_voxel */
    int axes;                    /* bits: dominant axes that rays through the box can have */
    int column, row, wide, high; /* the patch; it may extend beyond the detector */
    double of[3][4];             /* as in tess_shadow3 */
    float e[3];                  /* at the first voxel */
    float d[3];                  /* at the patch's first pixel */
    float u[3], v[3];
    /* By axis: columns and rows from a shadow to the rays of its voxel, at least a half. */
    float reach[3][2];
    float rise;   /* upright views: most rows per slice */
    float middle; /* slices from a column's first to the middle of those inside the volume */
} tess_patch3;

/* The dominant axes, as bits, of rays that pass within one voxel of the box. */
TESS_BOTH int tess_patch3_axes(const tess_view3 *view, const tess_box3 *box)
{
    double most[3], least[3];
    for (int i = 0; i < 3; i++) {
        const double low = view->cone ? box->first[i] - 1.01 - view->source[i] : view->source[i],
                     high = view->cone ? low + box->size[i] + 1.02 : low;
        most[i] = fmax(fabs(low), fabs(high)) * (1 + 1e-6);
        least[i] = low <= 0 && high >= 0 ? 0 : fmin(fabs(low), fabs(high));
    }
    int axes = 0;
    for (int a = 0; a < 3; a++)
        if (most[a] >= least[(a + 1) % 3] && most[a] >= least[(a + 2) % 3])
            axes |= 1 << a;
    return axes;
}

TESS_BOTH tess_patch3 tess_patch3_of(const tess_scan3 *scan, const double *numbers, const tess_box3 *box)
{
    const tess_view3 view = tess_view3_of(scan, numbers);
    const tess_shadow3 shadow = tess_view3_shadow(&view);
    double low[2] = {1e30, 1e30}, high[2] = {-1e30, -1e30}, nearest = 1e30;
    for (int corner = 0; corner < 8; corner++) {
        double point[3], seen[3];
        for (int i = 0; i < 3; i++)
            point[i] = box->first[i] + (corner >> i & 1 ? box->size[i] - 1 : 0);
        tess_shadow3_at(&shadow, point, seen);
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], seen[k]);
            high[k] = fmax(high[k], seen[k]);
        }
        nearest = fmin(nearest, seen[2]);
    }
    tess_patch3 p;
    p.cone = view.cone;
    p.upright = view.u[2] == 0 && view.v[0] == 0 && view.v[1] == 0;
    p.axes = tess_patch3_axes(&view, box);
    p.rise = 0;
    p.middle = 0.5f * (float)fmin(box->size[2] - 1, (double)(scan->size[2] - 1 - box->first[2]));
    double reach[2] = {0, 0};
    bool before = true; /* the box, with a margin of one voxel, is in front of the source */
    for (int a = 0; a < 3; a++) {
        const int b = a == 0 ? 1 : 0, c = a == 2 ? 1 : 2;
        const double depth = nearest - 1.001 * (fabs(shadow.of[2][b]) + fabs(shadow.of[2][c]));
        for (int k = 0; k < 2; k++) {
            double most = 0;
            for (int end = 0; end < 2; end++) {
                const double at = end ? high[k] : low[k];
                most = fmax(most, fabs(shadow.of[k][b] - at * shadow.of[2][b]) +
                                      fabs(shadow.of[k][c] - at * shadow.of[2][c]));
            }
            p.reach[a][k] = (float)fmax(most / depth * 1.0001, 0.5);
            if (p.axes >> a & 1)
                reach[k] = fmax(reach[k], p.reach[a][k]);
        }
        before = before && (depth > 0 || !(p.axes >> a & 1));
        if (a < 2 && p.axes >> a & 1) /* upright: the depth is constant along z */
            p.rise = (float)fmax(p.rise, fabs(shadow.of[1][2]) / depth * 1.0001);
    }
    /* A window begins within one pixel of the reach; three pixels from there may end two beyond it. */
    const double from_column = floor(low[0] - reach[0]) - 1, to_column = ceil(high[0] + reach[0]) + 3,
                 from_row = floor(low[1] - reach[1]) - 1, to_row = ceil(high[1] + reach[1]) + 3;
    p.fits = before && to_column - from_column <= TESS_PATCH3_PITCH && to_row - from_row <= TESS_PATCH3_TALL;
    if (!p.fits)
        return p;
    if (to_column <= 0 || from_column >= (double)scan->columns || to_row <= 0 ||
        from_row >= (double)scan->rows) {
        p.axes = 0;
        return p;
    }
    p.column = (int)from_column, p.wide = (int)(to_column - from_column);
    p.row = (int)from_row, p.high = (int)(to_row - from_row);
    for (int k = 0; k < 3; k++) {
        const double pixel = k == 2 ? 0 : k ? from_row : from_column;
        for (int i = 0; i < 4; i++)
            p.of[k][i] = shadow.of[k][i] - pixel * shadow.of[2][i] * (k < 2);
        p.of[k][3] += p.of[k][0] * box->first[0] + p.of[k][1] * box->first[1] + p.of[k][2] * box->first[2];
    }
    for (int i = 0; i < 3; i++) {
        p.e[i] = (float)(view.cone ? box->first[i] - view.source[i] : view.source[i]);
        p.d[i] = (float)(view.cone
                             ? view.pixel[i] + from_row * view.v[i] + from_column * view.u[i] - view.source[i]
                             : view.source[i]);
        p.u[i] = (float)view.u[i];
        p.v[i] = (float)view.v[i];
    }
    return p;
}

/* True if rays of more than one dominant axis can pass through the box. Then the axis of each pixel must be
 * computed. */
TESS_BOTH bool tess_patch3_mixed(const tess_patch3 *p)
{
    return (p->axes & (p->axes - 1)) != 0;
}

TESS_BOTH bool tess_patch3_follows(const tess_patch3 *p, const tess_scan3 *scan, const double *numbers, int a,
                                   int i, int j)
{
    const tess_view3 view = tess_view3_of(scan, numbers);
    return tess_gather3_axis(&view, p->row + j, p->column + i) == a;
}

/* Pixel (i, j) of the patch as staged for dominant axis a; `values` is the view. */
TESS_PATCH3_INLINE float tess_patch3_value(const tess_patch3 *p, const tess_scan3 *scan, int a, int i, int j,
                                           const float *values, int64_t step_h, int64_t step_w)
{
    const int column = p->column + i, row = p->row + j;
    if (column < 0 || column >= scan->columns || row < 0 || row >= scan->rows)
        return 0;
    const float right = p->cone ? (float)i : 0, below = p->cone ? (float)j : 0;
    const float x = p->d[0] + right * p->u[0] + below * p->v[0],
                y = p->d[1] + right * p->u[1] + below * p->v[1],
                z = p->d[2] + right * p->u[2] + below * p->v[2],
                along = a == 0   ? x
                        : a == 1 ? y
                                 : z;
    return tess_gather3_norm(x * x + y * y + z * z) * tess_gather3_inverse(fabsf(along)) *
           values[row * step_h + column * step_w];
}

#endif
