/* test_net3d.c: networks of 3-D kernels. Single ops are compared with the reference kernels, whole networks with the
 * reference device; windows in depth repeat the whole bit for bit; weights of 2-D networks made 3-D; folded kernels
 * with constant side slices compared with the dense form; planned bytes. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "counter.h"
#include "cpu/conv/kernels.h"
#include "cpu/reference/reference.h"
#include "model/architecture.h"
#include "plan/rates.h"
#include "support.h"

static char path[512];

typedef struct volume_case {
    const char *name;
    tess_op_kind kind;
    int64_t n, d, h, w, cin, cout;
    int kernel_d, kernel, stride_d, stride;
    int pad_d[2], pad; /* before, after */
    bool bias, relu;
    int residuals;
    bool in_place, mapped;
    int gap; /* channels between pixels that belong to somebody else */
} volume_case;

static const volume_case cases[] = {
    {"wide", TESS_OP_CONV, 1, 5, 9, 11, 32, 32, 3, 3, 1, 1, {1, 1}, 1, true, true, 0, false, false, 0},
    {"wide-in-place", TESS_OP_CONV, 2, 4,    8,     7, 32, 32, 3, 3, 1, 1, {1, 1}, 1,
     false,           true,         2, true, false, 0},
    {"head", TESS_OP_CONV, 1, 6, 7, 9, 2, 16, 3, 3, 1, 1, {1, 1}, 1, false, false, 0, false, false, 0},
    {"tail", TESS_OP_CONV, 1, 3, 9, 6, 32, 1, 3, 3, 1, 1, {1, 1}, 1, true, false, 1, false, false, 0},
    {"one-slice", TESS_OP_CONV, 1, 1, 9, 6, 16, 16, 3, 3, 1, 1, {1, 1}, 1, true, true, 1, true, false, 0},
    {"two-slices", TESS_OP_CONV, 1, 2, 9, 6, 5, 7, 3, 3, 1, 1, {1, 1}, 1, true, true, 1, false, false, 3},
    {"strip", TESS_OP_CONV, 1, 5, 6, 7, 8, 8, 3, 3, 1, 1, {0, 1}, 1, true, true, 0, false, false, 0},
    {"strip-end", TESS_OP_CONV, 1, 5, 6, 7, 8, 8, 3, 3, 1, 1, {1, 0}, 1, true, true, 1, false, false, 0},
    {"open", TESS_OP_CONV, 1, 5, 6, 7, 8, 8, 3, 3, 1, 1, {0, 0}, 0, true, true, 0, false, false, 0},
    {"five", TESS_OP_CONV, 1, 4, 6, 7, 4, 6, 5, 5, 1, 1, {2, 2}, 2, true, true, 1, false, false, 0},
    {"odd-pads", TESS_OP_CONV, 1, 3, 6, 7, 4, 6, 5, 3, 1, 1, {4, 4}, 1, true, true, 1, true, false, 0},
    {"point", TESS_OP_CONV, 1, 4, 6, 7, 8, 8, 1, 1, 1, 1, {0, 0}, 0, true, true, 1, false, false, 0},
    {"slices", TESS_OP_CONV, 2, 3, 6, 7, 32, 32, 1, 3, 1, 1, {0, 0}, 1, true, true, 1, true, true, 0},
    {"slices-narrow", TESS_OP_CONV, 1, 3, 6, 7, 3, 5, 1, 3, 1, 1, {0, 0}, 1, false, true, 2, false, true, 2},
    {"down", TESS_OP_CONV, 2, 6, 8, 6, 32, 48, 2, 2, 2, 2, {0, 0}, 0, false, false, 0, false, false, 0},
    {"down-odd", TESS_OP_CONV, 1, 5, 8, 6, 8, 16, 2, 2, 2, 2, {0, 0}, 0, true, true, 0, false, false, 0},
    {"stride-pad", TESS_OP_CONV, 1, 7, 9, 7, 8, 16, 3, 3, 2, 2, {1, 1}, 1, true, true, 1, true, false, 0},
    {"flat-stride", TESS_OP_CONV, 1, 5, 8, 6, 8, 16, 1, 2, 1, 2, {0, 0}, 0, true, true, 0, false, false, 0},
    {"up", TESS_OP_CONV_TRANSPOSE, 2, 3, 4, 5, 32, 16, 2, 2, 2, 2, {0, 0}, 0, false, false, 0, false, false,
     0},
    {"up-residual",
     TESS_OP_CONV_TRANSPOSE,
     1,
     3,
     4,
     5,
     12,
     7,
     2,
     2,
     2,
     2,
     {0, 0},
     0,
     true,
     true,
     1,
     true,
     false,
     4},
    {"pool", TESS_OP_MAX_POOL, 2, 3, 4, 6, 8, 8, 1, 2, 1, 2, {0, 0}, 0, false, false, 0, false, false, 0},
    {"add", TESS_OP_ADD, 2, 3, 4, 6, 8, 8, 1, 1, 1, 1, {0, 0}, 0, false, false, 2, true, false, 1},
    {"side", TESS_OP_SIDE_SUM, 2, 4, 7, 6, 21, 1, 3, 3, 1, 1, {1, 1}, 1, false, false, 0, false, false, 0},
    {"side-five", TESS_OP_SIDE_SUM, 1, 4,     7,     6, 32,    1,     5, 3, 1,
     1,           {2, 2},           1, false, false, 0, false, false, 0},
    {"side-slab", TESS_OP_SIDE_SUM, 1, 4,     7,     6, 21,    1,     3, 3, 1,
     1,           {0, 0},           1, false, false, 0, false, false, 0},
    {"side-last", TESS_OP_SIDE_SUM, 2, 3,     7,     6, 21,    1,     3, 3, 1,
     1,           {0, 1},           1, false, false, 0, false, false, 0},
    {"side-first",
     TESS_OP_SIDE_SUM,
     1,
     3,
     7,
     6,
     8,
     1,
     5,
     3,
     1,
     1,
     {2, 0},
     1,
     false,
     false,
     0,
     false,
     false,
     0},
};

static int64_t side_after(const volume_case *c, int64_t in, int kernel, int stride, int pads)
{
    if (c->kind == TESS_OP_CONV_TRANSPOSE)
        return in * stride;
    return c->kind == TESS_OP_ADD ? in : (in + pads - kernel) / stride + 1;
}

static tess_op op_of(const volume_case *c, tess_dtype dtype)
{
    tess_op op = {.kind = c->kind,
                  .outputs = 1,
                  .bias = c->bias,
                  .activation = c->relu ? TESS_RELU : TESS_LINEAR,
                  .inputs = 1 + c->residuals,
                  .mapped = c->mapped};
    for (int s = 0; s < TESS_SPATIAL; s++) {
        op.kernel[s] = s ? c->kernel : c->kernel_d;
        op.stride[s] = s ? c->stride : c->stride_d;
        op.pad_before[s] = s ? c->pad : c->pad_d[0];
        op.pad_after[s] = s ? c->pad : c->pad_d[1];
    }
    const bool side = c->kind == TESS_OP_SIDE_SUM;
    const int64_t d = side_after(c, c->d, c->kernel_d, c->stride_d, c->pad_d[0] + c->pad_d[1]),
                  h = side_after(c, c->h, c->kernel, c->stride, 2 * c->pad),
                  w = side_after(c, c->w, c->kernel, c->stride, 2 * c->pad);
    op.in[0] = tess_tensor_channels(tess_tensor_3d(dtype, c->n, c->d, c->h, c->w, c->cin + c->gap), c->cin);
    op.out[0] = tess_tensor_channels(tess_tensor_3d(side ? TESS_F32 : dtype, c->n, d, h, w, c->cout + c->gap),
                                     c->cout);
    for (int r = 0; r < c->residuals; r++)
        op.in[1 + r] = op.out[0];
    if (c->mapped)
        op.in[op.inputs++] = tess_tensor_3d(TESS_F32, c->n, d, h, w, 1);
    if (side)
        op.side.value = 0.25;
    return op;
}

static void *random_tensor(const tess_tensor *t, uint32_t item, size_t *size)
{
    CHECK(tess_tensor_bytes(t, size));
    const int64_t count = (int64_t)(*size / tess_dtype_size(t->dtype));
    float *values = room((size_t)count * sizeof *values);
    tess_rng_normal((tess_rng_key){17, item, 0}, 0, count, values);
    if (t->dtype == TESS_BF16)
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)values)[i] = tess_float_to_bf16(values[i]);
    return values;
}

static float value_at(const tess_tensor *t, const void *data, size_t i)
{
    return t->dtype == TESS_BF16 ? tess_bf16_to_float(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

static void check_case(tess_device *device, const char *isa, const volume_case *c, tess_dtype dtype)
{
    const tess_op op = op_of(c, dtype);
    tess_op_needs needs;
    tess_error error = {{0}};
    CHECK_MSG(device->ops->query(device, &op, &needs, &error) == TESS_OK, "%s: %s", c->name, error.text);
    const bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE;
    const int64_t taps = (int64_t)c->kernel_d * c->kernel * c->kernel, count = taps * c->cin * c->cout;
    size_t in_bytes, size, map_bytes = 0;
    void *in = random_tensor(&op.in[0], 1, &in_bytes), *out = random_tensor(&op.out[0], 2, &size),
         *want = random_tensor(&op.out[0], 2, &size),
         *extra[2] = {random_tensor(&op.out[0], 3, &size), random_tensor(&op.out[0], 4, &size)},
         *map = c->mapped ? random_tensor(tess_op_map(&op), 5, &map_bytes) : NULL;
    float *kernel = room((size_t)count * sizeof *kernel), *bias = room((size_t)c->cout * sizeof *bias);
    tess_rng_normal((tess_rng_key){17, 6, 0}, 0, count, kernel);
    tess_rng_normal((tess_rng_key){17, 7, 0}, 0, c->cout, bias);
    for (int64_t i = 0; i < count; i++) {
        kernel[i] /= sqrtf((float)(c->cin * taps));
        if (dtype == TESS_BF16)
            kernel[i] = tess_bf16_to_float(tess_float_to_bf16(kernel[i]));
    }
    void *weights = room(needs.weights + 64), *workspace = room(needs.workspace + 64);
    memset(workspace, 0x7f, needs.workspace + 64);
    if (conv) { /* in two pieces, as a loader would */
        const int64_t rows = c->kind == TESS_OP_CONV ? c->cout : c->cin, first = rows / 3;
        device->ops->pack(device, &op, TESS_PARAM_KERNEL, 0, first, kernel, weights);
        device->ops->pack(device, &op, TESS_PARAM_KERNEL, first, rows - first,
                          kernel + first * (count / rows), weights);
        if (c->bias)
            device->ops->pack(device, &op, TESS_PARAM_BIAS, 0, c->cout, bias, weights);
    }
    if (c->in_place)
        memcpy(out, extra[0], size), memcpy(want, extra[0], size);
    tess_op_buffers truth = {.in = {in, extra[0], extra[1]}, .out = {want}};
    tess_op_buffers buffers = {.in = {in, c->in_place ? out : extra[0], extra[1]},
                               .out = {out},
                               .weights = weights,
                               .workspace = workspace};
    if (c->mapped)
        truth.in[op.inputs - 1] = buffers.in[op.inputs - 1] = map;
    tess_prepared *prepared = NULL;
    CHECK(device->ops->prepare(device, &op, &prepared, &error) == TESS_OK);
    const uint64_t calls = tess_mem_calls();
    device->ops->run(device, prepared, &buffers, NULL);
    CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", c->name);
    device->ops->release(device, prepared);
    tess_reference_run(&op, &truth, conv ? kernel : NULL, c->bias ? bias : NULL);
    double most = 0, largest = 0;
    for (size_t i = 0; i < size / tess_dtype_size(op.out[0].dtype); i++) {
        const double off = fabs((double)value_at(&op.out[0], out, i) - value_at(&op.out[0], want, i));
        most = off <= most ? most : off;
        largest = fmax(largest, fabs((double)value_at(&op.out[0], want, i)));
    }
    /* bf16 rounds the sum once a depth tap. */
    const double bound = op.out[0].dtype == TESS_BF16 ? 1.0 / 64 : 3e-6;
    CHECK_MSG(most <= bound * largest, "%s %s %s: off by %.3g of %.3g", isa, tess_dtype_name(dtype), c->name,
              most, largest);
    free(in), free(out), free(want), free(extra[0]), free(extra[1]), free(map);
    free(kernel), free(bias), free(weights), free(workspace);
}

static void test_ops(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        tess_device *device = NULL;
        if (tess_registry_open("cpu",
                               &(tess_device_options){.memory = &test_counter, .threads = 2, .isa = sets[s]},
                               &device, NULL) != TESS_OK)
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check_case(device, sets[s], &cases[i], TESS_F32);
            if (tess_cpu_bf16_kernels())
                check_case(device, sets[s], &cases[i], TESS_BF16);
        }
        printf("%s: %zu ops on volumes\n", sets[s], sizeof cases / sizeof cases[0]);
        tess_registry_close(device);
    }
}

static tess_device *open_cpu(const char *isa)
{
    tess_device *device = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_registry_open("cpu",
                                 &(tess_device_options){.memory = &test_counter, .threads = 2, .isa = isa},
                                 &device, &error) == TESS_OK,
              "%s", error.text);
    return device;
}

static tess_weights *open_inflated(tess_inflation how)
{
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_model_open_volume(path, how, &weights, &error) == TESS_OK, "%s", error.text);
    return weights;
}

static tess_weights *open_path(void)
{
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    return weights;
}

static float *random_volume(int64_t count, uint32_t item)
{
    float *volume = room((size_t)count * sizeof *volume);
    tess_rng_uniform((tess_rng_key){23, item, 0}, 0, count, volume);
    return volume;
}

/* The result has the input's size but one channel. */
static float *run(const tess_net *net, tess_device *device, tess_dtype dtype, tess_weights *weights,
                  tess_plan_shape shape, const float *in)
{
    ready r;
    tess_error error = {{0}};
    float *out = room((size_t)(shape.n * shape.d * shape.h * shape.w) * sizeof *out);
    CHECK_MSG(ready_make(net, device, dtype, weights, shape, &r, &error) == TESS_OK, "%s", error.text);
    ready_run(&r, in, out);
    ready_clear(&r);
    return out;
}

static double off_by(const float *a, const float *b, int64_t count, double *largest)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)a[i] - b[i]);
        most = off <= most ? most : off;
        *largest = fmax(*largest, fabs((double)b[i]));
    }
    return most;
}

static const drunet_shape small = {"", 1, {16, 32, 32, 48}, 1, true};

/* Of 3-D kernels, all random; `dense` without the rewriting of constant sides. */
static void save_drunet(float side, bool volume)
{
    tensor_list list = {.volume = volume, .side = side};
    add_drunet(&list, &small);
    save_tensors(&list, path);
}

static tess_model_net dense_model(tess_weights *weights)
{
    tess_model_net model = {.net = tess_net_create()};
    tess_error error = {{0}};
    const tess_value out = tess_drunet.build(weights, "", &model, &error);
    CHECK_MSG(out >= 0 && tess_net_finish(model.net, out, &error) == TESS_OK, "%s", error.text);
    return model;
}

static tess_model_net recognised(tess_weights *weights)
{
    tess_model_net model;
    tess_error error = {{0}};
    CHECK_MSG(tess_model_recognise(weights, &model, &error) == TESS_OK, "%s", error.text);
    CHECK(model.volume && strcmp(model.architecture, "drunet") == 0);
    return model;
}

static const tess_plan_shape tiny = {.n = 2, .h = 8, .w = 16, .d = 8};

static void test_network(void)
{
    save_drunet(0, true);
    tess_weights *weights = open_path();
    tess_model_net model = recognised(weights);
    CHECK(tess_net_grid(model.net, TESS_HEIGHT) == 8 && tess_net_grid(model.net, TESS_DEPTH) == 8 &&
          tess_net_is_volume(model.net));
    for (int i = 0; i < tess_net_layer_count(model.net); i++) /* random sides are not constant */
        CHECK(!tess_net_layer(model.net, i)->mapped);
    const int64_t count = tiny.n * tiny.d * tiny.h * tiny.w;
    float *in = random_volume(2 * count, 1);
    tess_device *plain = open_cpu("reference"), *fast = open_cpu(NULL);
    float *want = run(model.net, plain, TESS_F32, weights, tiny, in),
          *got = run(model.net, fast, TESS_F32, weights, tiny, in);
    double largest = 0, most = off_by(got, want, count, &largest);
    CHECK_MSG(most <= 2e-5 * largest && largest > 0.01, "off by %g of %g", most, largest);
    printf("a 3-D network is off by %.2g of its largest value\n", most / largest);
    if (tess_cpu_bf16_kernels()) {
        float *half = run(model.net, fast, TESS_BF16, weights, tiny, in);
        most = off_by(half, want, count, &largest);
        CHECK_MSG(most <= 0.06 * largest, "bf16 off by %g of %g", most, largest);
        free(half);
    }
    free(in), free(want), free(got);
    tess_registry_close(plain), tess_registry_close(fast);
    tess_model_clear(&model);
    tess_weights_close(weights);
}

/* Slices [core, core + grid) from a window with `halo` slices around them: the bits of the whole? */
static bool repeats(const tess_model_net *model, tess_device *device, tess_dtype dtype, tess_weights *weights,
                    const float *in, const float *whole, tess_plan_shape shape, int64_t core, int64_t halo)
{
    const int64_t slice = shape.h * shape.w, grid = tess_net_grid(model->net, TESS_DEPTH);
    const int64_t from = tess_max_i64(core - halo, 0), to = tess_min_i64(core + grid + halo, shape.d);
    shape.d = to - from;
    float *part = run(model->net, device, dtype, weights, shape, in + from * slice * 2);
    const bool same = memcmp(part + (core - from) * slice, whole + core * slice,
                             (size_t)(grid * slice) * sizeof *part) == 0;
    free(part);
    return same;
}

static void check_windows(const char *what, tess_dtype dtype, bool less_differs)
{
    tess_weights *weights = open_path();
    tess_model_net model = recognised(weights);
    tess_device *device = open_cpu(NULL);
    tess_bound *bound = NULL;
    CHECK(tess_bound_create(model.net, device, dtype, &bound, NULL) == TESS_OK);
    const int64_t reach = tess_bound_reach_depth(bound), grid = tess_net_grid(model.net, TESS_DEPTH),
                  halo = tess_round_up(reach, grid);
    tess_bound_destroy(bound);
    const tess_plan_shape shape = {.n = 1, .h = 8, .w = 8, .d = 2 * halo + 3 * grid};
    float *in = random_volume(2 * shape.d * shape.h * shape.w, 2);
    float *whole = run(model.net, device, dtype, weights, shape, in);
    CHECK_MSG(reach > 8 && reach < 200, "reach %lld", (long long)reach);
    CHECK_MSG(repeats(&model, device, dtype, weights, in, whole, shape, halo + grid, halo), "%s: reach %lld",
              what, (long long)reach);
    CHECK_MSG(repeats(&model, device, dtype, weights, in, whole, shape, 0, halo), "%s", what);
    CHECK_MSG(repeats(&model, device, dtype, weights, in, whole, shape, shape.d - grid, halo), "%s", what);
    if (less_differs)
        CHECK_MSG(!repeats(&model, device, dtype, weights, in, whole, shape, halo + grid, halo - grid), "%s",
                  what);
    free(in), free(whole);
    tess_registry_close(device);
    tess_model_clear(&model);
    tess_weights_close(weights);
}

static void test_windows(void)
{
    save_drunet(0, true);
    check_windows("dense", TESS_F32, true);
    if (tess_cpu_bf16_kernels())
        check_windows("dense bf16", TESS_BF16, false);
    save_drunet(0.01f, true);
    check_windows("light", TESS_F32, true);
}

/* Constant sides: the light form is found, costs less, and is the dense one up to rounding. */
static void test_light(void)
{
    save_drunet(0.01f, true);
    tess_weights *weights = open_path();
    tess_model_net light = recognised(weights), dense = dense_model(weights);
    int maps = 0;
    for (int i = 0; i < tess_net_layer_count(light.net); i++)
        maps += tess_net_layer(light.net, i)->mapped;
    CHECK_MSG(maps == 16, "%d maps", maps); /* head, tail, two for each of 7 blocks */
    tess_device *plain = open_cpu("reference"), *fast = open_cpu(NULL);
    const int64_t count = tiny.n * tiny.d * tiny.h * tiny.w;
    float *in = random_volume(2 * count, 3), *want = run(dense.net, fast, TESS_F32, weights, tiny, in),
          *got = run(light.net, fast, TESS_F32, weights, tiny, in),
          *other = run(light.net, plain, TESS_F32, weights, tiny, in);
    double largest = 0, most = off_by(got, want, count, &largest);
    CHECK_MSG(most <= 2e-5 * largest, "light off by %g of %g", most, largest);
    printf("the light form is off by %.2g of the largest value\n", most / largest);
    CHECK(off_by(other, want, count, &largest) <= 2e-5 * largest);
    if (tess_cpu_bf16_kernels()) {
        float *half = run(light.net, fast, TESS_BF16, weights, tiny, in);
        most = off_by(half, want, count, &largest);
        CHECK_MSG(most <= 0.06 * largest, "bf16 off by %g of %g", most, largest);
        free(half);
    }
    free(in), free(want), free(got), free(other);
    tess_registry_close(plain), tess_registry_close(fast);
    tess_model_clear(&light), tess_model_clear(&dense);
    tess_weights_close(weights);
}

/* Values of the inflated weights, read in pieces. */
static void check_values(tess_weights *flat, tess_weights *weights, tess_inflation how)
{
    CHECK(tess_weights_count(flat) == tess_weights_count(weights) && tess_weights_flat(weights));
    for (int64_t t = 0; t < tess_weights_count(flat); t++) {
        const tess_weight *a = tess_weights_at(flat, t), *b = tess_weights_find(weights, a->name);
        const int64_t side = a->dims[3], area = side * side;
        const bool whole = how == TESS_INFLATE_LEVEL && strncmp(a->name, "m_up", 4) == 0;
        CHECK(b && b->rank == 5 && b->elements == a->elements * side && b->dims[4] == side);
        float *two = room((size_t)a->elements * sizeof *two),
              *three = room((size_t)b->elements * sizeof *three);
        CHECK(tess_weights_read(flat, a, 0, a->elements, two, NULL) == TESS_OK);
        CHECK(tess_weights_read(weights, b, 0, 7, three, NULL) == TESS_OK);
        CHECK(tess_weights_read(weights, b, 7, b->elements - 7, three + 7, NULL) == TESS_OK);
        bool right = true;
        for (int64_t i = 0; i < b->elements; i++) {
            const float value = two[i / area / side * area + i % area];
            const float even = whole ? value : value / 2, odd = i / area % side == side / 2 ? value : 1e-8f;
            right &= three[i] == (side == 2 ? even : odd);
        }
        CHECK_MSG(right, "%s", a->name);
        free(two), free(three);
    }
}

/* A volume of identical slices gives the result of the 2-D network; if transposed kernels are halved, that of the 2-D
 * network with halved kernels. */
static void test_inflated(tess_inflation how)
{
    save_drunet(0, false);
    tess_weights *flat = open_path(), *weights = open_inflated(how);
    check_values(flat, weights, how);
    tess_model_net model = recognised(weights), two;
    tess_device *device = open_cpu(NULL);
    const tess_plan_shape slice = {.n = 1, .h = 16, .w = 16, .d = 1},
                          volume = {.n = 1, .h = 16, .w = 16, .d = 8};
    float *image = random_volume(2 * 256, 4), *in = room(8 * 512 * sizeof *in);
    for (int z = 0; z < 8; z++)
        memcpy(in + z * 512, image, 512 * sizeof *in);
    float *got = run(model.net, device, TESS_F32, weights, volume, in);
    tess_weights_close(flat), tess_weights_close(weights);
    tensor_list list = {.halved = how == TESS_INFLATE_HALVES};
    add_drunet(&list, &small);
    save_tensors(&list, path);
    flat = open_path();
    CHECK(tess_model_recognise(flat, &two, NULL) == TESS_OK && !two.volume && two.halo <= model.halo &&
          model.halo_depth == 0);
    float *want = run(two.net, device, TESS_F32, flat, slice, image);
    for (int z = 0; z < 8; z++) {
        double largest = 0, most = off_by(got + z * 256, want, 256, &largest);
        CHECK_MSG(most <= 1e-4 * largest, "slice %d: off by %g of %g", z, most, largest);
    }
    free(image), free(in), free(want), free(got);
    tess_registry_close(device);
    tess_model_clear(&model), tess_model_clear(&two);
    tess_weights_close(flat);
}

static double products(const tess_model_net *model, tess_device *device, tess_plan_shape shape)
{
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    double flops = 0;
    CHECK(tess_bound_create(model->net, device, TESS_F32, &bound, NULL) == TESS_OK);
    CHECK(tess_net_plan_create(bound, shape, &plan, NULL) == TESS_OK);
    for (int i = 0; i < tess_net_plan_op_count(plan); i++)
        if (tess_net_plan_op(plan, i)->kind != TESS_OP_SIDE_SUM)
            flops += tess_op_flops(tess_net_plan_op(plan, i));
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    return flops / 2 / (double)(shape.n * shape.d * shape.h * shape.w);
}

/* The network of full width: its parameters and products are known. */
static void test_full_width(void)
{
    tess_weights *weights = NULL;
    CHECK(tess_model_open_volume("random:drunet-gray", TESS_INFLATE_HALVES, &weights, NULL) == TESS_OK);
    tess_model_net light = recognised(weights), dense = dense_model(weights);
    tess_device *device = open_cpu(NULL);
    const tess_plan_shape shape = {.n = 1, .h = 32, .w = 32, .d = 16};
    CHECK_MSG(light.parameters == 96539712, "%lld parameters", (long long)light.parameters);
    const double all = products(&dense, device, shape), few = products(&light, device, shape);
    CHECK_MSG(all == 3241024 && few > 1.08e6 && few < 1.11e6, "%.0f and %.0f products a voxel", all, few);
    tess_registry_close(device);
    tess_model_clear(&light), tess_model_clear(&dense);
    tess_weights_close(weights);
}

static void test_bytes(void)
{
    save_drunet(0.01f, true);
    tess_weights *weights = open_path();
    tess_device *device = open_cpu(NULL);
    tess_model_net models[2] = {recognised(weights), dense_model(weights)};
    for (int i = 0; i < 2; i++) {
        ready r;
        tess_error error = {{0}};
        tess_memory_reset_peak(&test_counter);
        CHECK_MSG(ready_make(models[i].net, device, TESS_F32, weights, tiny, &r, &error) == TESS_OK, "%s",
                  error.text);
        const int64_t count = tiny.n * tiny.d * tiny.h * tiny.w;
        float *in = random_volume(2 * count, 5), *out = room((size_t)count * sizeof *out);
        ready_run(&r, in, out);
        const uint64_t total = counted_peak();
        size_t workspace;
        CHECK(tess_bound_workspace(r.bound, tiny, &workspace, &error) == TESS_OK &&
              workspace == tess_net_plan_workspace_bytes(r.plan));
        CHECK_MSG(total == device->memory->granted(device, tess_bound_weight_bytes(r.bound)) +
                               device->memory->granted(device, tess_net_plan_arena_bytes(r.plan)) +
                               device->memory->granted(device, workspace),
                  "%llu bytes counted", (unsigned long long)total);
        CHECK(tess_net_plan_arena_bytes(r.plan) >= tess_net_plan_lower_bound(r.plan));
        free(in), free(out);
        ready_clear(&r);
        tess_model_clear(&models[i]);
    }
    tess_registry_close(device);
    tess_weights_close(weights);
}

/* Classes of ops with a depth can be measured, and give seconds that grow with it. */
static void test_rates(void)
{
    tess_net *net = tess_net_create();
    tess_error error = {{0}};
    tess_conv_settings head = {"head", 8, TESS_WINDOW_3D(3, 1, 1)},
                       down = {"down", 8, TESS_WINDOW_3D(2, 2, 0)}, up = {"up", 8, TESS_WINDOW_3D(2, 2, 0)},
                       tail = {"tail", 1, TESS_WINDOW_3D(3, 1, 1)};
    tess_value x = tess_net_conv(net, tess_net_input(net, 2), head);
    x = tess_net_add(net, tess_net_conv_transpose(net, tess_net_conv(net, x, down), up), x);
    tensor_list list = {.volume = true, .side = 0.5f};
    add_conv(&list, "head", 8, 2, 3, false), add_conv(&list, "down", 8, 8, 2, false);
    add_conv(&list, "up", 8, 8, 2, false), add_conv(&list, "tail", 1, 8, 3, false);
    save_tensors(&list, path);
    tess_weights *weights = open_path();
    CHECK(tess_net_finish(net, tess_net_conv(net, x, tail), &error) == TESS_OK);
    tess_device *device = open_cpu(NULL);
    for (int light = 0; light < 2; light++) {
        if (light)
            CHECK(tess_net_fold_slices(net, weights, &error) == TESS_OK);
        tess_bound *bound = NULL;
        tess_net_plan *plans[2] = {NULL, NULL};
        tess_rates *rates = NULL;
        CHECK(tess_bound_create(net, device, TESS_F32, &bound, &error) == TESS_OK);
        for (int i = 0; i < 2; i++)
            CHECK(tess_net_plan_create(bound, (tess_plan_shape){.n = 1, .h = 32, .w = 32, .d = 8 << i},
                                       &plans[i], &error) == TESS_OK);
        CHECK_MSG(tess_net_plan_op_count(plans[0]) == (light ? 6 : 4), "%d ops",
                  tess_net_plan_op_count(plans[0]));
        CHECK(tess_rates_open(device, &rates, &error) == TESS_OK);
        CHECK_MSG(tess_rates_measure(rates, plans[0], (tess_rates_budget){60, SIZE_MAX}, &error) == TESS_OK,
                  "%s", error.text);
        bool measured = true;
        const double little = tess_rates_plan_seconds(rates, plans[0], &measured),
                     large = tess_rates_plan_seconds(rates, plans[1], &measured);
        CHECK_MSG(measured && little > 0 && large > little, "%g and %g seconds", little, large);
        unlink(tess_rates_path(rates));
        tess_rates_destroy(rates);
        tess_net_plan_destroy(plans[0]), tess_net_plan_destroy(plans[1]);
        tess_bound_destroy(bound);
    }
    tess_registry_close(device);
    tess_weights_close(weights);
    tess_net_destroy(net);
}

/* Files that are neither 2-D nor 3-D throughout are refused. */
static void test_refused(void)
{
    tensor_list list = {
        .volume = true, .bent = "m_body.0.res.2.weight", .bent_rank = 4, .bent_dims = {48, 48, 3, 3}};
    add_drunet(&list, &small);
    save_tensors(&list, path);
    tess_weights *weights = open_path();
    tess_model_net model;
    tess_error error = {{0}};
    CHECK(tess_model_recognise(weights, &model, &error) == TESS_BAD_INPUT && !model.net);
    CHECK_MSG(strstr(error.text, "m_body.0.res.2.weight"), "%s", error.text);
    tess_weights_close(weights);
}

int main(void)
{
    char folder[] = "/tmp/tessera-net3d-XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/net.safetensors", folder);
    CHECK(setenv("TESSERA_CACHE", folder, 1) == 0);
    test_ops();
    test_network();
    test_windows();
    test_light();
    test_inflated(TESS_INFLATE_HALVES);
    test_inflated(TESS_INFLATE_LEVEL);
    test_full_width();
    test_bytes();
    test_rates();
    test_refused();
    unlink(path);
    rmdir(folder);
    return check_end();
}
