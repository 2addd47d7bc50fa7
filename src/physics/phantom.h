/* phantom.h: synthetic truths: Shepp and Logan's head (IEEE Trans. Nucl. Sci. 21, 1974) with the usual higher
 * contrast (Toft 1996), in 2-D and 3-D, and a colour test image. All are functions on [-1,1]^n and can be drawn at
 * any size. The ellipsoids are available as a list, because their line integrals are known exactly.
 *
 * Axes grow with the index: x along a row (width), y down the rows (height), z along the slices (depth). The
 * published tables, whose y points up, are therefore stored with y and the angles negated. */
#ifndef TESS_PHYSICS_PHANTOM_H
#define TESS_PHYSICS_PHANTOM_H

#include <stdint.h>

/* Adds `value` inside the ellipsoid, whose axes are turned by `angle` (degrees, from x to y) about z. */
typedef struct tess_ellipsoid {
    double value;
    double axis[3];   /* half lengths: x, y, z */
    double centre[3]; /* x, y, z */
    double angle;
} tess_ellipsoid;

enum { TESS_PHANTOM_PARTS = 10 };

/* The 2-D head: axis[2] and centre[2] are not used. */
extern const tess_ellipsoid tess_shepp_logan_2d[TESS_PHANTOM_PARTS];
extern const tess_ellipsoid tess_shepp_logan_3d[TESS_PHANTOM_PARTS];

/* Draws the mean of samples^2 (samples^3) points in each pixel (voxel), whose centres are at (2 i + 1) / size - 1.
 * Not clipped. */
void tess_ellipses_draw(const tess_ellipsoid *parts, int count, int64_t height, int64_t width, int samples,
                        float *image);
void tess_ellipsoids_draw(const tess_ellipsoid *parts, int count, int64_t depth, int64_t height,
                          int64_t width, int samples, float *volume);

/* Clipped to [0,1]. */
void tess_phantom_2d(int64_t size, int samples, float *image);
void tess_phantom_3d(int64_t depth, int64_t height, int64_t width, int samples, float *volume);

/* A disk, a spot and waves on gradients: height x width x 3, in [0,1]. */
void tess_phantom_colour(int64_t height, int64_t width, float *image);

/* Only `rows` rows of these, from `first` on; those of a volume are counted through its slices. */
void tess_phantom_2d_rows(int64_t size, int samples, int64_t first, int64_t rows, float *image);
void tess_phantom_3d_rows(int64_t depth, int64_t height, int64_t width, int samples, int64_t first,
                          int64_t rows, float *volume);
void tess_phantom_colour_rows(int64_t height, int64_t width, int64_t first, int64_t rows, float *image);

#endif
