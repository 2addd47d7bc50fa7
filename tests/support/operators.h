/* operators.h: every operator on a given device, at sizes small enough to write out as matrices and at odd sizes of
 * some hundred pixels. */
#ifndef TESS_TESTS_OPERATORS_H
#define TESS_TESTS_OPERATORS_H

#include "adjoint.h"
#include "physics/blur.h"
#include "physics/convolve.h"
#include "physics/mask.h"
#include "physics/radon.h"
#include "physics/rays.h"
#include "physics/stack.h"

static inline tess_operator *made(tess_operator *const *op, tess_status status, const tess_error *error)
{
    if (status != TESS_OK) {
        fprintf(stderr, "%s\n", error->text);
        exit(1);
    }
    return *op;
}

static inline tess_operator *make_blur(tess_device *device, int64_t height, int64_t width, int64_t channels)
{
    static const double angles[] = {0, 30, 75};
    const tess_blur_settings settings = {height, width, channels, 3, angles, 1.5, 0.8};
    tess_operator *op = NULL;
    tess_error error = {{0}};
    return made(&op, tess_blur_create(device, &settings, &op, &error), &error);
}

/* Kernels of several shapes, one of them with negative values; seen whole, or behind uneven margins. */
static inline tess_operator *make_convolve(tess_device *device, int64_t height, int64_t width,
                                           int64_t channels, bool margins)
{
    static const double streak[] = {0, 1, 2, 0.5, 0.25}, sharp[] = {-1, 2, 0, 3, 9, -2, 1, 0.5, 4};
    const tess_blur_kernel kernels[] = {{.values = streak, .height = 5, .width = 1},
                                        {.values = sharp, .height = 3, .width = 3},
                                        {.gaussian = {0.5, 0.3, 30}}};
    const tess_convolve_settings settings = {.height = height,
                                             .width = width,
                                             .channels = channels,
                                             .margin_rows = margins ? 2 : 0,
                                             .margin_columns = margins ? 1 : 0,
                                             .seen_height = margins ? height - 5 : 0,
                                             .seen_width = margins ? width - 4 : 0,
                                             .count = 3,
                                             .kernels = kernels};
    tess_operator *op = NULL;
    tess_error error = {{0}};
    return made(&op, tess_convolve_create(device, &settings, &op, &error), &error);
}

static inline tess_operator *make_mask(tess_device *device, int64_t height, int64_t width, int64_t channels)
{
    tess_operator *op = NULL;
    tess_error error = {{0}};
    float *values = adjoint_floats(height * width);
    tess_rng_uniform((tess_rng_key){.seed = 3}, 0, height * width, values);
    const tess_status status = tess_mask_create(device, height, width, channels, values, &op, &error);
    free(values);
    return made(&op, status, &error);
}

/* A mask between two stacks of blurs: its measurement, and the last one, begin at odd places. */
static inline tess_operator *make_stack(tess_device *device, int64_t height, int64_t width, int64_t channels)
{
    tess_operator *const parts[] = {make_blur(device, height, width, channels),
                                    make_mask(device, height, width, channels),
                                    make_blur(device, height, width, channels)};
    tess_operator *op = NULL;
    tess_error error = {{0}};
    return made(&op, tess_stack_create(parts, 3, &op, &error), &error);
}

static inline tess_operator *make_radon(tess_device *device, int64_t size, int64_t views, bool circle)
{
    double angles[64];
    tess_operator *op = NULL;
    tess_error error = {{0}};
    for (int64_t i = 0; i < views; i++)
        angles[i] = 3 + 180.0 * (double)i / (double)views;
    return made(&op, tess_radon_create(device, size, views, angles, circle, &op, &error), &error);
}

static inline tess_operator *make_rays(tess_device *device, tess_ray_geometry geometry, int64_t depth,
                                       int64_t height, int64_t width, int64_t views)
{
    double vectors[12 * 16];
    const double far = 2.0 * (double)(height > width ? height : width);
    tess_rays_circle(views, far, far, 2, vectors);
    for (int64_t i = 0; i < views && geometry == TESS_PARALLEL_3D; i++)
        for (int k = 0; k < 3; k++) /* the direction in place of the source, and voxels as wide as pixels */
            vectors[12 * i + k] = vectors[12 * i + 3 + k] - vectors[12 * i + k];
    const tess_rays_settings s = {geometry, depth, height, width, 1, views, depth + 3, width + 4, vectors};
    tess_operator *op = NULL;
    tess_error error = {{0}};
    return made(&op, tess_rays_create(device, &s, &op, &error), &error);
}

static inline void check_transpose(tess_operator *op, bool tiny)
{
    if (tiny)
        check_adjoint_matrices(op);
    check_adjoint_draws(op);
    tess_operator_destroy(op);
}

static inline void check_operators(tess_device *device)
{
    check_transpose(make_blur(device, 7, 5, 3), true);
    check_transpose(make_blur(device, 101, 67, 3), false);
    check_transpose(make_blur(device, 256, 683, 1), false);
    for (int margins = 0; margins < 2; margins++) {
        check_transpose(make_convolve(device, 9, 7, 2, margins), true);
        check_transpose(make_convolve(device, 101, 67, 3, margins), false);
    }
    check_transpose(make_mask(device, 7, 5, 3), true);
    check_transpose(make_mask(device, 683, 211, 1), false);
    check_transpose(make_stack(device, 5, 7, 1), true);
    check_transpose(make_stack(device, 67, 101, 3), false);
    for (int circle = 0; circle < 2; circle++) {
        check_transpose(make_radon(device, 9, 7, circle), true);
        check_transpose(make_radon(device, 131, 33, circle), false);
    }
    for (int parallel = 0; parallel < 2; parallel++) {
        const tess_ray_geometry geometry = parallel ? TESS_PARALLEL_3D : TESS_CONE_3D;
        check_transpose(make_rays(device, geometry, 5, 6, 7, 5), true);
        check_transpose(make_rays(device, geometry, 29, 41, 35, 9), false);
    }
}

#endif
