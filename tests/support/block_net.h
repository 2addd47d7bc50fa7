/* block_net.h: a small network with everything that looks at the whole image, as bench/peers/make_op_dumps.py has it, with its
 * weights and what PyTorch made of an image. */
#ifndef TESS_TESTS_BLOCK_NET_H
#define TESS_TESTS_BLOCK_NET_H

#include "net/blocks.h"
#include "op_dumps.h"
#include "support.h"

enum { BLOCK_CHANNELS = 16, BLOCK_LAYERS = 9 }; /* layers that are left when all is fused */

static inline tess_value block_conv(tess_net *net, tess_value in, const char *name, int64_t channels,
                                    int side)
{
    const tess_conv_settings settings = {name, channels, TESS_WINDOW_2D(side, 1, side / 2), true};
    return tess_net_conv(net, in, settings);
}

static inline tess_net *block_net(void)
{
    tess_net *net = tess_net_create();
    tess_error error = {{0}};
    const tess_value image = tess_net_input(net, 3),
                     scale_shift = tess_net_input_vector(net, 2 * BLOCK_CHANNELS);
    tess_value h = block_conv(net, image, "head", BLOCK_CHANNELS, 3);
    h = tess_net_group_norm(net, h,
                            (tess_group_norm_settings){"norm1", .groups = 8, .scale_shift = &scale_shift});
    h = block_conv(net, tess_net_activate(net, h, TESS_SILU), "body", BLOCK_CHANNELS, 3);
    tess_value a = tess_net_group_norm(net, h, (tess_group_norm_settings){"norm2", .groups = 4});
    a = tess_net_attention(net, block_conv(net, a, "qkv", 3 * BLOCK_CHANNELS, 1),
                           (tess_op_attention){2, true});
    h = tess_net_add(net, h, block_conv(net, a, "proj", BLOCK_CHANNELS, 1));
    h = tess_net_group_norm(net, h, (tess_group_norm_settings){"norm3", .groups = 16});
    h = block_conv(net, tess_net_activate(net, h, TESS_SILU), "tail", 3, 3);
    CHECK_MSG(tess_net_finish(net, h, &error) == TESS_OK, "%s", error.text);
    return net;
}

/* Runs images [first, first + n) of the dump; returns the result, to be freed. */
static inline float *block_run(tess_device *device, tess_dtype dtype, const op_dumps *dumps, int64_t first,
                               int64_t n, int64_t *count)
{
    tess_net *net = block_net();
    tess_error error = {{0}};
    const tess_weight *image, *vector;
    float *values = dumps_values(dumps, 0, "in", &image),
          *scale_shift = dumps_values(dumps, 0, "scale_shift", &vector);
    const tess_plan_shape shape = {.n = n, .h = image->dims[1], .w = image->dims[2]};
    const int64_t pixels = shape.h * shape.w;
    ready r;
    CHECK_MSG(ready_make(net, device, dtype, dumps->file, shape, &r, &error) == TESS_OK, "%s", error.text);
    size_t at;
    char *arena = r.arena.data;
    tess_tensor t = tess_net_plan_input_at(r.plan, 0, &at);
    CHECK(t.dtype == TESS_F32 && t.c == 3 && t.stride_n == 3 * pixels);
    device->memory->copy(device, arena + at, values + first * 3 * pixels, (size_t)(n * 3 * pixels) * 4, NULL);
    t = tess_net_plan_input_at(r.plan, 1, &at);
    CHECK(t.dtype == TESS_F32 && t.c == 2 * BLOCK_CHANNELS && t.h == 1 && t.w == 1 && t.n == n);
    device->memory->copy(device, arena + at, scale_shift + first * t.c, (size_t)(n * t.c) * 4, NULL);
    tess_net_plan_run(r.plan, arena, r.workspace.data, r.weights.data, NULL);
    t = tess_net_plan_output(r.plan, &at);
    *count = n * t.stride_n;
    float *result = room((size_t)*count * sizeof *result);
    device->memory->copy(device, result, arena + at, (size_t)*count * sizeof *result, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
    tess_net_plan_destroy(r.plan);
    tess_bound_destroy(r.bound);
    device->memory->free(device, &r.weights);
    device->memory->free(device, &r.arena);
    device->memory->free(device, &r.workspace);
    tess_net_destroy(net);
    free(values), free(scale_shift);
    return result;
}

/* Both images at once against PyTorch's, within `bound` of the largest value; the second alone gives the same bits. */
static inline void check_block_net(tess_device *device, tess_dtype dtype, double bound)
{
    op_dumps dumps;
    if (!dumps_open("network.safetensors", &dumps))
        return;
    int64_t count, half;
    float *want = dumps_values(&dumps, 0, "out", NULL),
          *both = block_run(device, dtype, &dumps, 0, 2, &count),
          *second = block_run(device, dtype, &dumps, 1, 1, &half);
    double most = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)both[i] - (double)want[i]);
        most = off <= most ? most : off;
        largest = fmax(largest, fabs((double)want[i]));
    }
    CHECK_MSG(most <= bound * largest, "%s: |a-b| %.3g of %.3g", tess_dtype_name(dtype), most, largest);
    CHECK(2 * half == count && memcmp(second, both + half, (size_t)half * sizeof *second) == 0);
    free(want), free(both), free(second);
    dumps_close(&dumps);
}

#endif
