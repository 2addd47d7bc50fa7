/* ray2.h: the positions of the samples of the 2-D Radon transform, and the weight of a pixel in a sample.
 *
 * p[view][s] = sum over h of the bilinear sample of the image at
 *     x = c + (s - a) cos + (h - b) sin,   y = c - (s - a) sin + (h - b) cos,   in pixels, c = (size - 1) / 2.
 * Pixels outside the image (or outside its inscribed circle) are zero. `a` is the detector position of the
 * image centre, in detector pixels, and belongs to the view; b = (along - 1) / 2 for `along` samples of a ray.
 * Samples are one pixel apart along and across a ray, so a view samples the image on a rotated copy of its own
 * grid.
 *
 * Positions are fixed-point numbers with 23 fractional bits. Their sums are exact, and so are the fp32 weights
 * (1 - distance needs at most 24 bits): projection, backprojection and every device get the same weight to the
 * last bit, in any order of work and however a compiler contracts products. The rounding of cos and sin moves
 * a sample by at most 1.2e-4 pixels at the rim of 4096^2, as fp32 coordinates would. */
#ifndef TESS_GEOMETRY_RAY2_H
#define TESS_GEOMETRY_RAY2_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "geometry/both.h"

enum { TESS_RAY2_BITS = 23, TESS_RAY2_ONE = 1 << TESS_RAY2_BITS, TESS_RAY2_MASK = TESS_RAY2_ONE - 1 };
#define TESS_RAY2_UNIT 0x1p-23f

typedef struct tess_ray2 {
    int64_t x, y; /* position of sample (0, 0) */
    int64_t s, h; /* position of pixel (0, 0) in the grid of samples */
    int32_t cosine, sine;
} tess_ray2;

/* Number of values per view in the table of views. */
enum { TESS_RAY2_NUMBERS = 3 }; /* cos, sin, a */

/* Twice `a` has 16 fractional bits, so that a = (size - 1) / 2 is exact. Sums stay below 2^63 for sides up to
 * 2^18 and an `a` of that order. */
TESS_BOTH tess_ray2 tess_ray2_of(const double *numbers, int64_t size, int64_t along)
{
    tess_ray2 view;
    const double cosine = numbers[0], sine = numbers[1];
    view.cosine = (int32_t)floor(cosine * TESS_RAY2_ONE + 0.5);
    view.sine = (int32_t)floor(sine * TESS_RAY2_ONE + 0.5);
    const int64_t one = TESS_RAY2_ONE, c = view.cosine, s = view.sine, last = (size - 1) * 65536;
    const int64_t a = (int64_t)floor(numbers[2] * 131072 + 0.5), b = (along - 1) * 65536;
    view.x = (last * one - a * c - b * s) >> 17;
    view.y = (last * one + a * s - b * c) >> 17;
    view.s = (a * one - last * c + last * s) >> 17;
    view.h = (b * one - last * s - last * c) >> 17;
    return view;
}

/* The position of sample (s, h). */
TESS_BOTH int64_t tess_ray2_x(const tess_ray2 *view, int64_t s, int64_t h)
{
    return view->x + s * view->cosine + h * view->sine;
}

TESS_BOTH int64_t tess_ray2_y(const tess_ray2 *view, int64_t s, int64_t h)
{
    return view->y - s * view->sine + h * view->cosine;
}

/* The position of pixel (x, y) in the grid of samples. A pixel has a weight only in samples less than |cos| +
 * |sin| < 1.5 away: the nearest sample and its neighbours on either side, in s and in h. */
TESS_BOTH int64_t tess_ray2_s(const tess_ray2 *view, int64_t x, int64_t y)
{
    return view->s + x * view->cosine - y * view->sine;
}

TESS_BOTH int64_t tess_ray2_h(const tess_ray2 *view, int64_t x, int64_t y)
{
    return view->h + x * view->sine + y * view->cosine;
}

/* The weight, along one axis, of a pixel at this distance from the sample (in pixels, a multiple of UNIT). */
TESS_BOTH float tess_ray2_weight(float distance)
{
    const float rest = 1.0f - (distance < 0 ? -distance : distance);
    return rest > 0 ? rest : 0.0f;
}

/* True if the pixel is inside the image and, with `circle`, inside its inscribed circle (rim included). */
TESS_BOTH bool tess_ray2_inside(int64_t x, int64_t y, int64_t size, bool circle)
{
    if (x < 0 || y < 0 || x >= size || y >= size)
        return false;
    const int64_t u = 2 * x - (size - 1), v = 2 * y - (size - 1);
    return !circle || u * u + v * v <= (size - 1) * (size - 1);
}

#endif
