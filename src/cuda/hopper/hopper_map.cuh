/* hopper_map.cuh: tensor maps of images for the Hopper kernels: boxes of 64 channels, in swizzled rows of 128 bytes. */
#ifndef TESS_CUDA_HOPPER_MAP_CUH
#define TESS_CUDA_HOPPER_MAP_CUH

#include "cuda/core/tensor_map.h"
#include "cuda/hopper/hopper_load.cuh"

/* True if the strides are multiples of 16 bytes, as a tensor map requires. */
static inline bool mappable(const tess_tensor *t)
{
    return t->stride_w % 8 == 0 && t->stride_h % 8 == 0 && t->stride_n % 8 == 0;
}

/* A map of every `step`-th pixel of a tensor in each direction, from (dy, dx) on. */
static inline bool map_pixels(CUtensorMap *map, const tess_tensor *t, const void *data, int step, int dy,
                              int dx, int width, int height)
{
    char *base = (char *)data + 2 * (dy * t->stride_h + dx * t->stride_w);
    const uint64_t sizes[4] = {(uint64_t)t->c, (uint64_t)(t->w - dx + step - 1) / step,
                               (uint64_t)(t->h - dy + step - 1) / step, (uint64_t)t->n};
    const uint64_t strides[3] = {2 * (uint64_t)(step * t->stride_w), 2 * (uint64_t)(step * t->stride_h),
                                 2 * (uint64_t)t->stride_n};
    const uint32_t box[4] = {CHANNELS, (uint32_t)width, (uint32_t)height, 1};
    return tess_cuda_tensor_map(map, t->dtype, 4, base, sizes, strides, box, NULL, ROW_BYTES);
}

#endif
