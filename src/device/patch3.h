/* patch3.h: the transpose of ray3.h's rays for a box of voxels, for devices where voxels gather. All that a view can
 * give to the box comes from a patch of its pixels, the box's shadow. Staged first, into quick memory: pixel by
 * length of its ray, 0 where the ray follows another axis or no pixel is. Then columns of voxels along z are gathered:
 * a column's place is found in fp64 once, from its nearest pixel, and followed in fp32 by small numbers:
 *
 * e goes from the source to a voxel (parallel: along the rays), d to a pixel; d = e / depth + dc u + dr v, (dc, dr)
 * being the pixel's distance from the voxel's shadow. The ray passes the voxel, in its slice across axis a, at
 * (e_a d_b - e_b d_a) / d_a along b. e drops out of that: no large numbers are subtracted. Weights are those of
 * tess_ray3_weight up to 1e-6.
 *
 * Views whose u has no z and whose v has nothing else are upright: all of a column of pixels passes a column of voxels
 * at one distance, and rows follow z evenly. That is the usual scanner, and half of the work. */
#ifndef TESS_DEVICE_PATCH3_H
#define TESS_DEVICE_PATCH3_H

#include "device/gather3.h"

#ifdef __CUDACC__
#define TESS_PATCH3_INLINE static __forceinline__ __host__ __device__
#else
#define TESS_PATCH3_INLINE static inline
#endif
#ifdef __CUDA_ARCH__
#define TESS_PATCH3_UNROLL _Pragma("unroll")
#define TESS_PATCH3_LOOP   _Pragma("unroll 1")
#else
#define TESS_PATCH3_UNROLL
#define TESS_PATCH3_LOOP
#endif

/* What quick memory holds: TALL rows of PITCH pixels. The pitch moves neighbouring rows to other banks. */
enum { TESS_PATCH3_PITCH = 104, TESS_PATCH3_TALL = 58 };

/* Voxels of the whole volume: x, y, z. */
typedef struct tess_box3 {
    int first[3], size[3];
} tess_box3;

/* One view for one box. Places are from the box's first voxel and from the patch's first pixel. */
typedef struct tess_patch3 {
    bool cone, upright;
    bool fits;                   /* else voxels must look for themselves: tess_gather3_voxel */
    int axes;                    /* that rays through the box can have, as bits */
    int column, row, wide, high; /* the patch; it may reach beyond the detector */
    double of[3][4];             /* as in tess_shadow3 */
    float e[3];                  /* of the first voxel */
    float d[3];                  /* of the patch's first pixel */
    float u[3], v[3];
    float reach
        [3]
        [2]; /* by axis: columns and rows between a voxel's shadow and its farthest ray, and a half at least */
    float rise; /* rows a slice, at most; upright views */
} tess_patch3;

/* Which axes rays can follow most that pass within a voxel of the box. */
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
    double reach[2] = {0, 0};
    bool before = true; /* all of it, with a voxel around, before the source */
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
        if (a < 2 && p.axes >> a & 1) /* upright: no depth along z */
            p.rise = (float)fmax(p.rise, fabs(shadow.of[1][2]) / depth * 1.0001);
    }
    /* Windows begin within a pixel of the reach; three pixels from there may end two beyond it. */
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

/* Can rays of more than one axis pass the box? Then each pixel must be asked for its own. */
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

/* Pixel (i, j) of the patch as it is staged for axis a, which its ray follows; `values` is the view. */
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

/* The nearest whole number of |x| < 2^22, by the rounding of an addition: x + 3 2^22 is it, in its low bits; less 3 2^22
 * it is a float again. */
#define TESS_PATCH3_SHIFT 12582912.0f
#define TESS_PATCH3_BITS  0x4b400000u

TESS_PATCH3_INLINE uint32_t tess_patch3_bits(float moved)
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

TESS_PATCH3_INLINE float tess_patch3_round(float x, int *whole)
{
    const float moved = x + TESS_PATCH3_SHIFT;
    *whole = (int)(tess_patch3_bits(moved) - TESS_PATCH3_BITS);
    return moved - TESS_PATCH3_SHIFT;
}

/* A column of voxels as the patch sees it: at its first slice, from the pixel nearest to its middle's shadow, so that
 * numbers stay small. */
typedef struct tess_column3 {
    float depth, rest[2]; /* rest: of the shadow from that pixel, columns and rows, times depth */
    int at[2];            /* that pixel */
    float e[3];
} tess_column3;

TESS_PATCH3_INLINE tess_column3 tess_patch3_place(const tess_patch3 *p, int lx, int ly, int deep)
{
    const double x = lx, y = ly, depth = p->of[2][3] + x * p->of[2][0] + y * p->of[2][1];
    const float half = 0.5f * (float)deep,
                inverse = tess_gather3_inverse((float)depth + half * (float)p->of[2][2]);
    tess_column3 col;
    col.depth = (float)depth;
    TESS_PATCH3_UNROLL
    for (int k = 0; k < 2; k++) {
        const double seen = p->of[k][3] + x * p->of[k][0] + y * p->of[k][1];
        tess_patch3_round(((float)seen + half * (float)p->of[k][2]) * inverse, &col.at[k]);
        col.rest[k] = (float)(seen - (double)col.at[k] * depth);
    }
    col.e[0] = p->e[0] + (p->cone ? (float)lx : 0);
    col.e[1] = p->e[1] + (p->cone ? (float)ly : 0);
    col.e[2] = p->e[2];
    return col;
}

/* Upright views, a of x and y; `tall` rows of a pixel column can pass within a voxel. */
TESS_PATCH3_INLINE void tess_patch3_upright(const tess_patch3 *p, int a, const tess_column3 *col, int deep,
                                            int tall, const float *patch, float *sums)
{
    const float e_a = a ? col->e[1] : col->e[0], e_b = a ? col->e[0] : col->e[1];
    const float u_a = a ? p->u[1] : p->u[0], u_b = a ? p->u[0] : p->u[1];
    const float cross = e_a * u_b - e_b * u_a, lean = u_a / (p->v[2] * e_a);
    const float inverse = tess_gather3_inverse(col->depth);
    const float column = col->rest[0] * inverse, row = col->rest[1] * inverse;
    const float even = (float)p->of[1][2] * inverse; /* rows a slice, at the shadow's own column */
    const float reach = p->reach[a][0];
    const int wide = (int)ceilf(2 * reach);
    int first;
    float dc = tess_patch3_round(column - reach + 0.5f, &first) - column;
    /* Rows come as bits: what these have too much is taken away once, modulo 2^32. */
    uint32_t from = (uint32_t)(col->at[1] * TESS_PATCH3_PITCH + col->at[0] + first) -
                    TESS_PATCH3_BITS * TESS_PATCH3_PITCH;
    TESS_PATCH3_LOOP
    for (int i = 0; i < wide; i++, dc += 1, from++) {
        const float d_a = e_a * inverse + (p->cone ? dc * u_a : 0);
        const float beside = tess_gather3_tent(dc * cross * tess_gather3_inverse(d_a));
        const float shift = beside > 0 ? dc * lean : 0, rise = even + (p->cone ? shift : 0);
        const float step = tess_gather3_inverse(rise); /* slices a row */
        const float half = 0.5f - fabsf(rise), start = row + shift * col->e[2] + half, back = half * step;
        TESS_PATCH3_UNROLL
        for (int t = 0; t < deep; t++) {
            const float low = start + (float)t * rise, moved = low + TESS_PATCH3_SHIFT;
            const float away = (moved - TESS_PATCH3_SHIFT - low) * step + back;
            const int at = (int)(from + tess_patch3_bits(moved) * TESS_PATCH3_PITCH);
            float sum = 0;
            TESS_PATCH3_UNROLL
            for (int j = 0; j < tall; j++)
                sum += tess_gather3_tent(away + (float)j * step) * patch[at + j * TESS_PATCH3_PITCH];
            sums[t] += beside * sum;
        }
    }
}

/* The pixels whose rays can pass a voxel. */
typedef struct tess_window3 {
    float d_a, to_b, to_c;           /* of the first pixel; distances along b and c times d_a */
    float right_a, right_b, right_c; /* one pixel to the right, one below */
    float below_a, below_b, below_c;
} tess_window3;

TESS_PATCH3_INLINE float tess_window3_pixel(const tess_window3 *w, float i, float j, const float *at)
{
    const float by = tess_gather3_inverse(w->d_a + i * w->right_a + j * w->below_a);
    return tess_gather3_tent((w->to_b + i * w->right_b + j * w->below_b) * by) *
           tess_gather3_tent((w->to_c + i * w->right_c + j * w->below_c) * by) * *at;
}

/* Any view; b and c are the other axes. `few`: no window is more than 3 x 3. */
TESS_PATCH3_INLINE void tess_patch3_general(const tess_patch3 *p, int a, const tess_column3 *col, int deep,
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
    TESS_PATCH3_UNROLL
    for (int t = 0; t < deep; t++) {
        const float z = (float)t, inverse = tess_gather3_inverse(col->depth + z * slope);
        const float column = (col->rest[0] + z * slope_column) * inverse,
                    row = (col->rest[1] + z * slope_row) * inverse;
        const float e_a = start_a + z * step_a, e_c = start_c + z * step_c;
        int i0, j0;
        const float dc = tess_patch3_round(column - reach_column + 0.5f, &i0) - column,
                    dr = tess_patch3_round(row - reach_row + 0.5f, &j0) - row;
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
            TESS_PATCH3_UNROLL
            for (int k = 0; k < 9; k++)
                sum += tess_window3_pixel(&w, (float)(k % 3), (float)(k / 3),
                                          at + k / 3 * TESS_PATCH3_PITCH + k % 3);
        } else {
            TESS_PATCH3_LOOP
            for (int j = 0; j < high; j++)
                TESS_PATCH3_LOOP
            for (int i = 0; i < wide; i++)
                sum += tess_window3_pixel(&w, (float)i, (float)j, at + j * TESS_PATCH3_PITCH + i);
        }
        sums[t] += sum;
    }
}

/* Adds to a column's sums what the staged patch of axis a gives, but for the spacing. The compiler
 * must know `deep`. */
TESS_PATCH3_INLINE void tess_patch3_gather(const tess_patch3 *p, int a, int lx, int ly, int deep,
                                           const float *patch, float *sums)
{
    const tess_column3 col = tess_patch3_place(p, lx, ly, deep);
    if (p->upright && a < 2) {
        if (p->rise <= 1)
            tess_patch3_upright(p, a, &col, deep, 2, patch, sums);
        else if (p->rise <= 1.5f)
            tess_patch3_upright(p, a, &col, deep, 3, patch, sums);
        else
            tess_patch3_upright(p, a, &col, deep, (int)ceilf(2 * p->rise), patch, sums);
    } else if (p->reach[a][0] <= 1.5f && p->reach[a][1] <= 1.5f) {
        tess_patch3_general(p, a, &col, deep, true, patch, sums);
    } else {
        tess_patch3_general(p, a, &col, deep, false, patch, sums);
    }
}

#endif
