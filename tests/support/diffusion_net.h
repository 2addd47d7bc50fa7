/* diffusion_net.h: the small diffusion network that bench/peers/make_diffusion_dumps.py made, run on any device and held against
 * what PyTorch computed. */
#ifndef TESS_TESTS_DIFFUSION_NET_H
#define TESS_TESTS_DIFFUSION_NET_H

#include "counter.h"
#include "model/diffusion.h"
#include "support.h"

enum { DIFFUSION_CHANNELS = 3, DIFFUSION_H = 24, DIFFUSION_W = 16, DIFFUSION_GAMMAS = 3 };
static const double diffusion_gammas[DIFFUSION_GAMMAS] = {0.83, 0.12, 0.0007};

/* Tensors of the dump that are results have other names than the network's, and are ignored. */
static inline tess_weights *diffusion_open(const char *name)
{
    char path[1024];
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    snprintf(path, sizeof path, "%s/networks/%s", TESS_TEST_DATA, name);
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    if (!weights)
        exit(check_end());
    CHECK(tess_weights_set_metadata(weights, "num_head_channels", "4", &error) == TESS_OK);
    return weights;
}

/* To be freed. */
static inline float *diffusion_values(tess_weights *weights, const char *name, int64_t *count)
{
    const tess_weight *weight = tess_weights_find(weights, name);
    CHECK_MSG(weight, "the dump has no %s", name);
    if (!weight)
        exit(check_end());
    float *values = room((size_t)weight->elements * sizeof *values);
    CHECK(tess_weights_read(weights, weight, 0, weight->elements, values, NULL) == TESS_OK);
    *count = weight->elements;
    return values;
}

/* Value i of the images of the dumps. */
static inline float diffusion_hashed(int64_t i)
{
    return (float)((double)((uint32_t)((uint64_t)i * 2654435761u) >> 8) / 8388608.0 - 1);
}

static inline void diffusion_compare(const float *got, const float *want, int64_t count, double bound,
                                     const char *what)
{
    double most = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        most = off <= most ? most : off; /* NaN counts */
        largest = fmax(largest, fabs((double)want[i]));
    }
    CHECK_MSG(largest > 0 && most <= bound * largest, "%s: off by %.3g of %.3g", what, most, largest);
}

/* A network that is ready to run on a device. Inputs and outputs are dense fp32 tensors. */
static inline void diffusion_ready(const tess_net *net, tess_device *device, tess_dtype dtype,
                                   tess_weights *weights, tess_plan_shape shape, ready *r)
{
    tess_error error = {{0}};
    CHECK_MSG(ready_make(net, device, dtype, weights, shape, r, &error) == TESS_OK, "%s", error.text);
    if (!r->weights.data)
        exit(check_end());
}

static inline void diffusion_put(tess_device *device, ready *r, int input, const float *values)
{
    size_t at;
    const tess_tensor t = tess_net_plan_input_at(r->plan, input, &at);
    device->memory->copy(device, (char *)r->arena.data + at, values,
                         (size_t)(t.n * t.stride_n) * sizeof *values, NULL);
}

/* The output, to be freed. */
static inline float *diffusion_run(tess_device *device, ready *r)
{
    size_t at;
    tess_error error = {{0}};
    tess_net_plan_run(r->plan, r->arena.data, r->workspace.data, r->weights.data, NULL);
    const tess_tensor t = tess_net_plan_output(r->plan, &at);
    float *values = room((size_t)(t.n * t.stride_n) * sizeof *values);
    device->memory->copy(device, values, (char *)r->arena.data + at,
                         (size_t)(t.n * t.stride_n) * sizeof *values, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
    return values;
}

static inline void diffusion_release(tess_device *device, ready *r)
{
    tess_net_plan_destroy(r->plan);
    tess_bound_destroy(r->bound);
    device->memory->free(device, &r->weights);
    device->memory->free(device, &r->arena);
    device->memory->free(device, &r->workspace);
}

/* The tables of all noise levels, [level][table], against PyTorch's. To be freed. */
static inline float *check_diffusion_tables(tess_device *device, const tess_diffusion_net *net,
                                            tess_weights *weights, tess_dtype dtype, double bound)
{
    ready r;
    int64_t count;
    float *levels = room((size_t)(DIFFUSION_GAMMAS * net->levels) * sizeof *levels),
          *want = diffusion_values(weights, "0.table", &count);
    for (int i = 0; i < DIFFUSION_GAMMAS; i++)
        tess_diffusion_level(diffusion_gammas[i], net->levels, levels + i * net->levels);
    diffusion_ready(net->embedding, device, dtype, weights,
                    (tess_plan_shape){.n = DIFFUSION_GAMMAS, .h = 1, .w = 1}, &r);
    diffusion_put(device, &r, 0, levels);
    float *tables = diffusion_run(device, &r);
    CHECK(count == DIFFUSION_GAMMAS * net->table);
    diffusion_compare(tables, want, count, bound, "tables");
    diffusion_release(device, &r);
    free(levels), free(want);
    return tables;
}

/* n images of a size, the first of which is the dump's; to be freed. */
static inline float *diffusion_images(int64_t n, int64_t h, int64_t w, int64_t first)
{
    const int64_t image = h * w * DIFFUSION_CHANNELS;
    float *values = room((size_t)(n * image) * sizeof *values);
    for (int64_t i = 0; i < n * image; i++)
        values[i] = diffusion_hashed(first * image + i);
    return values;
}

/* Two images at every noise level, within `bound` of the largest value; the second alone gives the same bits, and
 * runs leave the image as it was. */
static inline void check_diffusion_steps(tess_device *device, const tess_diffusion_net *net,
                                         tess_weights *weights, const float *tables, tess_dtype dtype,
                                         double bound)
{
    ready both, one;
    float *images = diffusion_images(2, DIFFUSION_H, DIFFUSION_W, 0),
          *second = diffusion_images(1, DIFFUSION_H, DIFFUSION_W, 1);
    diffusion_ready(net->step, device, dtype, weights,
                    (tess_plan_shape){.n = 2, .h = DIFFUSION_H, .w = DIFFUSION_W}, &both);
    diffusion_ready(net->step, device, dtype, weights,
                    (tess_plan_shape){.n = 1, .h = DIFFUSION_H, .w = DIFFUSION_W}, &one);
    diffusion_put(device, &both, 0, images);
    diffusion_put(device, &one, 0, second);
    for (int i = 0; i < DIFFUSION_GAMMAS; i++) {
        char name[32];
        int64_t count;
        snprintf(name, sizeof name, "%d.out", i);
        float *want = diffusion_values(weights, name, &count);
        diffusion_put(device, &both, 1, tables + i * net->table);
        diffusion_put(device, &one, 1, tables + i * net->table);
        float *got = diffusion_run(device, &both), *alone = diffusion_run(device, &one);
        diffusion_compare(got, want, count, bound, name);
        CHECK_MSG(memcmp(alone, got + count / 2, (size_t)count / 2 * sizeof *got) == 0,
                  "%s: an image alone gives other bits", name);
        free(want), free(got), free(alone);
    }
    diffusion_release(device, &both);
    diffusion_release(device, &one);
    free(images), free(second);
}

static inline void check_diffusion_large(tess_device *device, const tess_diffusion_net *net,
                                         tess_weights *weights, const float *tables, tess_dtype dtype,
                                         double bound)
{
    enum { SIDE = 128 };
    ready r;
    int64_t count;
    tess_weights *dump = diffusion_open("diffusion_128.safetensors");
    float *image = diffusion_images(1, SIDE, SIDE, 0), *want = diffusion_values(dump, "0.out", &count);
    diffusion_ready(net->step, device, dtype, weights, (tess_plan_shape){.n = 1, .h = SIDE, .w = SIDE}, &r);
    diffusion_put(device, &r, 0, image);
    diffusion_put(device, &r, 1, tables);
    float *got = diffusion_run(device, &r);
    diffusion_compare(got, want, count, bound, "128 x 128");
    diffusion_release(device, &r);
    tess_weights_close(dump);
    free(image), free(want), free(got);
}

/* The output of a batch; to be freed. */
static inline float *diffusion_batch(tess_device *device, ready *r, const float *images, const float *table)
{
    diffusion_put(device, r, 0, images);
    diffusion_put(device, r, 1, table);
    return diffusion_run(device, r);
}

/* The network of the bundled model of maps, in fp32: an image gives the same bits alone and in batches of `most`, of half as
 * many and so on, which are all prepared at once, as those of a sampler. */
static inline void check_diffusion_batches(tess_device *device, int64_t side, int64_t most)
{
    enum { SIZES = 8 };
    ready r[SIZES];
    int count = 0;
    int64_t sizes[SIZES];
    tess_weights *weights = NULL;
    tess_diffusion_net net;
    tess_error error = {{0}};
    if (tess_weights_open(TESS_TEST_DATA "/../../models/dem-fill.safetensors", &weights, &error) != TESS_OK ||
        tess_diffusion_recognise(weights, &net, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        exit(check_end());
    }
    const int64_t pixels = side * side, image = pixels * net.channels;
    float *images = room((size_t)(most * image) * sizeof *images),
          *table = room((size_t)net.table * sizeof *table),
          *alone = room((size_t)(most * pixels) * sizeof *alone);
    for (int64_t i = 0; i < most * image; i++)
        images[i] = diffusion_hashed(i);
    for (int64_t i = 0; i < net.table; i++)
        table[i] = 0.25f * diffusion_hashed(7 + i);
    for (int64_t n = most; n > 0; n = n > 1 ? (n + 1) / 2 : 0) {
        sizes[count] = n;
        diffusion_ready(net.step, device, TESS_F32, weights, (tess_plan_shape){.n = n, .h = side, .w = side},
                        &r[count++]);
    }
    for (int64_t i = 0; i < most; i++) {
        float *got = diffusion_batch(device, &r[count - 1], images + i * image, table);
        memcpy(alone + i * pixels, got, (size_t)pixels * sizeof *got);
        free(got);
    }
    CHECK(isfinite(alone[0]) && alone[0] != 0);
    for (int k = 0; k < count; k++) {
        float *got = diffusion_batch(device, &r[k], images, table);
        CHECK_MSG(memcmp(alone, got, (size_t)(sizes[k] * pixels) * sizeof *got) == 0,
                  "%lld images at once give other bits than alone", (long long)sizes[k]);
        diffusion_release(device, &r[k]);
        free(got);
    }
    free(images), free(table), free(alone);
    tess_diffusion_clear(&net);
    tess_weights_close(weights);
}

/* Everything of the dump in one precision; `large`: 128 x 128 too, which takes the reference kernels a minute. */
static inline void check_diffusion_net(tess_device *device, tess_dtype dtype, double bound, bool large)
{
    tess_weights *weights = diffusion_open("diffusion.safetensors");
    tess_diffusion_net net;
    tess_error error = {{0}};
    CHECK_MSG(tess_diffusion_recognise(weights, &net, &error) == TESS_OK, "%s", error.text);
    if (!net.step)
        exit(check_end());
    CHECK(net.channels == DIFFUSION_CHANNELS && net.levels == 4 && net.grid == 2);
    free(check_diffusion_tables(device, &net, weights, dtype, bound));
    float *tables = check_diffusion_tables(device, &net, weights, TESS_F32, 1e-5);
    check_diffusion_steps(device, &net, weights, tables, dtype, bound);
    if (large)
        check_diffusion_large(device, &net, weights, tables, dtype, bound);
    free(tables);
    tess_diffusion_clear(&net);
    tess_weights_close(weights);
}

#endif
