/* tile3.h: rays of a tile of pixels through a few slices at a time, for devices that stage voxels in quick memory. All
 * rays of the tile must follow one axis; then in each slice they pass inside the hull of its four corners' rays, and
 * voxels around that hull, zeros where there are none, are all that they need.
 *
 * Within the slices positions fit 32 bits, from the staged box's first voxel: the sums of ray3.h rounded to 2^-25 of a
 * voxel, so that weights are the same up to 2e-7. */
#ifndef TESS_DEVICE_TILE3_H
#define TESS_DEVICE_TILE3_H

#include "device/ray3.h"

enum {
    TESS_TILE3_SLICES = 8,
    TESS_TILE3_MOST = 60,    /* voxels of a staged box's sides: positions have 6 bits for them */
    TESS_TILE3_ROOM = 10240, /* voxels in all */
    TESS_TILE3_BITS = 25
};

/* Where a tile's rays are staged for slices from `slice`: voxels [b, b + wide) x [c, c + high). Slices lie `step` apart,
 * rows `wide`; the step is 4 more than a multiple of 32, for the sake of memory banks. */
typedef struct tess_tile3 {
    int slice, b, c, wide, high, step;
} tess_tile3;

/* A ray in a staged box: position at its first slice and step, along b and c. */
typedef struct tess_local3 {
    int at[2], step[2];
} tess_local3;

/* Do all pixels between four corners see with the same sign along this axis? */
TESS_BOTH bool tess_tile3_sees(const tess_view3 *view, int axis, const int64_t rows[2],
                               const int64_t columns[2])
{
    int signs = 0;
    for (int corner = 0; corner < 4 && view->cone; corner++) {
        const double d = view->pixel[axis] + (double)rows[corner >> 1] * view->v[axis] +
                         (double)columns[corner & 1] * view->u[axis] - view->source[axis];
        signs |= d > 0 ? 1 : 2;
    }
    return signs != 3;
}

/* The voxel before a corner's ray, or the one after it, a little generously: more than rounding, less than matters. */
TESS_BOTH int tess_tile3_before(const tess_ray3 *corner, int which, int slice)
{
    return (int)((tess_ray3_at(corner, which, slice) - (1 << 16)) >> 32);
}

TESS_BOTH int tess_tile3_after(const tess_ray3 *corner, int which, int slice)
{
    return (int)((tess_ray3_at(corner, which, slice) + (1 << 16)) >> 32) + 1;
}

/* From the least voxel before and the greatest after, of all corners at the first and the last slice, along b and c. */
TESS_BOTH tess_tile3 tess_tile3_between(int slice, const int before[2], const int after[2])
{
    const int64_t most = TESS_TILE3_MOST + 1, wide = (int64_t)after[0] - before[0] + 1,
                  high = (int64_t)after[1] - before[1] + 1;
    tess_tile3 tile;
    tile.slice = slice;
    tile.b = before[0];
    tile.c = before[1];
    tile.wide = (int)(wide < most ? wide : most);
    tile.high = (int)(high < most ? high : most);
    tile.step = (tile.wide * tile.high + 27) / 32 * 32 + 4;
    return tile;
}

TESS_BOTH tess_tile3 tess_tile3_of(const tess_ray3 corners[4], int slice)
{
    int before[2] = {INT32_MAX, INT32_MAX}, after[2] = {INT32_MIN, INT32_MIN};
    for (int k = 0; k < 16; k++) {
        const int which = k & 1, at = slice + (k >> 1 & 1) * (TESS_TILE3_SLICES - 1);
        const int low = tess_tile3_before(&corners[k >> 2], which, at),
                  high = tess_tile3_after(&corners[k >> 2], which, at);
        before[which] = low < before[which] ? low : before[which];
        after[which] = high > after[which] ? high : after[which];
    }
    return tess_tile3_between(slice, before, after);
}

/* Asked of the first and the last tile: the hull is largest at one of these, but for a voxel's rounding. */
TESS_BOTH bool tess_tile3_fits(const tess_tile3 *tile)
{
    return tile->wide < TESS_TILE3_MOST && tile->high < TESS_TILE3_MOST &&
           ((tile->wide + 1) * (tile->high + 1) + 32) * TESS_TILE3_SLICES <= TESS_TILE3_ROOM;
}

TESS_BOTH tess_local3 tess_tile3_local(const tess_tile3 *tile, const tess_ray3 *ray)
{
    const int drop = 32 - TESS_TILE3_BITS;
    const int64_t half = 1 << (drop - 1), one = (int64_t)1 << 32;
    tess_local3 local;
    local.at[0] = (int)((tess_ray3_at(ray, 0, tile->slice) - tile->b * one + half) >> drop);
    local.at[1] = (int)((tess_ray3_at(ray, 1, tile->slice) - tile->c * one + half) >> drop);
    local.step[0] = (int)((ray->slope[0] + half) >> drop);
    local.step[1] = (int)((ray->slope[1] + half) >> drop);
    return local;
}

/* 1 + the fraction: 23 of its bits are a mantissa. */
TESS_BOTH float tess_tile3_fraction(int at)
{
    const uint32_t bits = 0x3f800000u | ((uint32_t)at >> (TESS_TILE3_BITS - 23) & 0x7fffffu);
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits) - 1.0f;
#else
    union {
        uint32_t bits;
        float number;
    } both;
    both.bits = bits;
    return both.number - 1.0f;
#endif
}

/* The ray's sample in slice k of the box, but for its length. */
TESS_BOTH float tess_tile3_sample(const tess_tile3 *tile, const tess_local3 *local, int k,
                                  const float *staged)
{
    const int b = local->at[0] + k * local->step[0], c = local->at[1] + k * local->step[1];
    const float far_b = tess_tile3_fraction(b), far_c = tess_tile3_fraction(c);
    const float *at = staged + k * tile->step + (c >> TESS_TILE3_BITS) * tile->wide + (b >> TESS_TILE3_BITS);
    const float above = at[0] + far_b * (at[1] - at[0]),
                below = at[tile->wide] + far_b * (at[tile->wide + 1] - at[tile->wide]);
    return above + far_c * (below - above);
}

#endif
