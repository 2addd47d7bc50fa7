/* Ops that training adds to convolutions, on the card: masked convolutions against the convolution and the mask, kernels
 * turned by FLIP, and sums of channels. test_repack_cuda.c has the packing of weights. */
#define _GNU_SOURCE
#include "device/kernel.h"
#include "fields.h"
#include "gpu.h"
#include "op/row.h"

enum { FAMILIES = 2 };
static const char *const families[FAMILIES] = {"generic", "hopper"};
static tess_device *devices[FAMILIES];

typedef struct mask_case {
    const char *name;
    int64_t n, h, w, cin, cout;
    int kernel, stride, pad, residuals;
    bool up, bias;
    int image; /* 1: the input is an fp32 image, 2: the output is */
    int gap;   /* of the mask, in channels */
} mask_case;

static const mask_case mask_cases[] = {
    {"3x3", 2, 33, 21, 64, 64, 3, 1, 1, 0, false, false, 0, 0},
    {"3x3, bias", 2, 40, 24, 64, 64, 3, 1, 1, 0, false, true, 0, 64},
    {"3x3, residual", 1, 35, 17, 128, 64, 3, 1, 1, 1, false, false, 0, 0},
    {"3x3, two residuals", 1, 18, 30, 128, 192, 3, 1, 1, 2, false, true, 0, 0},
    {"3x3, few channels", 2, 20, 19, 24, 40, 3, 1, 1, 1, false, false, 0, 8},
    {"3x3, large", 1, 200, 150, 32, 32, 3, 1, 1, 0, false, false, 0, 0},
    {"down", 2, 40, 24, 64, 128, 2, 2, 0, 0, false, false, 0, 0},
    {"down, three groups", 2, 18, 38, 64, 192, 2, 2, 0, 1, false, true, 0, 0},
    {"up", 2, 20, 13, 128, 64, 2, 2, 0, 0, true, false, 0, 0},
    {"up, residual", 2, 19, 22, 128, 64, 2, 2, 0, 1, true, false, 0, 0},
    {"up, odd groups", 2, 18, 21, 72, 200, 2, 2, 0, 0, true, true, 0, 8},
    {"image of 3", 2, 37, 21, 3, 64, 3, 1, 1, 0, false, false, 1, 0},
    {"image of 4", 2, 16, 40, 4, 64, 3, 1, 1, 0, false, true, 1, 64},
    {"image of 1", 1, 130, 50, 1, 48, 3, 1, 1, 0, false, true, 1, 0},
    {"to an image", 2, 20, 37, 64, 3, 3, 1, 1, 1, false, true, 2, 1},
    {"odd channels", 2, 9, 14, 5, 7, 3, 1, 1, 1, false, true, 0, 1},
    {"1x1", 2, 9, 14, 48, 64, 1, 1, 0, 0, false, true, 0, 0},
    {"1x1, three groups", 2, 17, 22, 64, 192, 1, 1, 0, 1, false, true, 0, 0},
};

static tess_block upload(tess_device *device, const void *data, size_t bytes)
{
    tess_block block;
    tess_error error = {{0}};
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, bytes ? bytes : 1, &error) == TESS_OK, "%s",
              error.text);
    if (data)
        device->memory->copy(device, block.data, data, bytes, NULL);
    return block;
}

static void synchronize(tess_device *device)
{
    tess_error error = {{0}};
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
}

static tess_op conv_of(const mask_case *c, tess_dtype dtype)
{
    tess_op op = {
        .kind = c->up ? TESS_OP_CONV_TRANSPOSE : TESS_OP_CONV, .outputs = 1, .inputs = 1 + c->residuals};
    const int64_t h = c->up ? 2 * c->h : (c->h + 2 * c->pad - c->kernel) / c->stride + 1,
                  w = c->up ? 2 * c->w : (c->w + 2 * c->pad - c->kernel) / c->stride + 1;
    op.in[0] = tess_tensor_2d(c->image == 1 ? TESS_F32 : dtype, c->n, c->h, c->w, c->cin);
    op.out[0] = tess_tensor_2d(c->image == 2 ? TESS_F32 : dtype, c->n, h, w, c->cout);
    for (int r = 0; r < c->residuals; r++)
        op.in[1 + r] = op.out[0];
    for (int s = 0; s < TESS_SPATIAL; s++)
        op.kernel[s] = op.stride[s] = 1;
    for (int s = TESS_HEIGHT; s <= TESS_WIDTH; s++) {
        op.kernel[s] = c->kernel;
        op.stride[s] = c->stride;
        op.pad_before[s] = op.pad_after[s] = c->pad;
    }
    op.bias = c->bias;
    return op;
}

/* Runs an op whose inputs are on the host; the result comes to `out`, which is also the initial content. Input
 * `in_place` (0: none) is the memory of the output. */
static bool run_on(int family, const tess_op *op, const field *in, const float *const weights[TESS_OP_PARAMS],
                   int in_place, field *out)
{
    tess_device *device = devices[family];
    tess_error error = {{0}};
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_op_param params[TESS_OP_PARAMS];
    CHECK_MSG(device->ops->query(device, op, &needs, &error) == TESS_OK, "%s", error.text);
    if (device->ops->prepare(device, op, &prepared, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        return false;
    }
    const bool mine = strcmp(tess_prepared_kernel(prepared)->name, families[family]) == 0;
    tess_block blocks[TESS_OP_INPUTS] = {{0}}, to = upload(device, out->data, out->bytes),
               packed = upload(device, NULL, needs.weights),
               workspace = upload(device, NULL, needs.workspace);
    tess_op_buffers buffers = {.out = {to.data}, .weights = packed.data, .workspace = workspace.data};
    for (int i = 0; i < op->inputs; i++) {
        blocks[i] = upload(device, in[i].data, in[i].bytes);
        buffers.in[i] = i > 0 && i == in_place ? to.data : blocks[i].data;
    }
    for (int p = 0; weights && p < tess_op_params(op, params); p++)
        device->ops->pack(device, op, p, 0, params[p].rows, weights[p], packed.data);
    device->ops->run(device, prepared, &buffers, NULL);
    device->memory->copy(device, out->data, to.data, out->bytes, NULL);
    synchronize(device);
    device->ops->release(device, prepared);
    for (int i = 0; i < op->inputs; i++)
        device->memory->free(device, &blocks[i]);
    device->memory->free(device, &to);
    device->memory->free(device, &packed);
    device->memory->free(device, &workspace);
    return mine;
}

/* `plain` where the mask is positive, else zero. */
static void apply_mask(const tess_op *op, const field *mask, field *plain)
{
    const tess_tensor *o = &op->out[0], *m = tess_op_mask(op);
    for (int64_t n = 0; n < o->n; n++)
        for (int64_t y = 0; y < o->h; y++)
            for (int64_t x = 0; x < o->w; x++)
                for (int64_t c = 0; c < o->c; c++) {
                    const int64_t from = n * m->stride_n + y * m->stride_h + x * m->stride_w + c;
                    if (!(value_in(m->dtype, mask->data, (size_t)from) > 0))
                        put_value(o->dtype, plain->data,
                                  (size_t)(n * o->stride_n + y * o->stride_h + x * o->stride_w + c), 0);
                }
}

static void check_mask(int family, const mask_case *c, tess_dtype dtype)
{
    const tess_op plain = conv_of(c, dtype);
    tess_op masked = plain;
    masked.masked = true;
    masked.in[masked.inputs++] =
        strided(plain.out[0].dtype, plain.out[0].n, plain.out[0].h, plain.out[0].w, c->cout, c->gap);
    field in[TESS_OP_INPUTS];
    for (int i = 0; i < masked.inputs; i++)
        in[i] = random_field(&masked.in[i], 1 + (uint32_t)i);
    tess_op_param params[TESS_OP_PARAMS];
    float *weights[TESS_OP_PARAMS] = {NULL};
    for (int p = 0; p < tess_op_params(&plain, params); p++) {
        const tess_tensor t = tess_tensor_2d(TESS_F32, 1, 1, params[p].rows, params[p].row);
        weights[p] = random_field(&t, 9 + (uint32_t)p).data;
    }
    const float *const given[TESS_OP_PARAMS] = {weights[0], weights[1]};
    field want = random_field(&plain.out[0], 20), got = random_field(&plain.out[0], 20);
    const bool mine =
        run_on(family, &plain, in, given, 0, &want) && run_on(family, &masked, in, given, 0, &got);
    if (mine && family > 0) { /* the families agree */
        field other = random_field(&plain.out[0], 20);
        double largest = 0;
        (void)run_on(0, &plain, in, given, 0, &other);
        const double most = difference(&plain.out[0], &want, &other, &largest);
        CHECK_MSG(most <= 2e-2 * largest, "%s %s: |a-b| %.3g of %.3g without a mask", tess_dtype_name(dtype),
                  c->name, most, largest);
        free(other.data);
    }
    apply_mask(&masked, &in[masked.inputs - 1], &want);
    CHECK_MSG(!mine || memcmp(want.data, got.data, want.bytes) == 0, "%s %s %s: wrong with a mask",
              families[family], tess_dtype_name(dtype), c->name);
    if (mine && c->gap == 0) { /* the mask is the memory of the output */
        memcpy(got.data, in[masked.inputs - 1].data, got.bytes);
        memcpy((char *)got.data + got.bytes - 256, (char *)want.data + want.bytes - 256, 256);
        (void)run_on(family, &masked, in, given, masked.inputs - 1, &got);
        CHECK_MSG(memcmp(want.data, got.data, want.bytes) == 0, "%s %s %s: wrong with a mask in place",
                  families[family], tess_dtype_name(dtype), c->name);
    }
    for (int i = 0; i < masked.inputs; i++)
        free(in[i].data);
    free(weights[0]), free(weights[1]), free(want.data), free(got.data);
}

static void check_flip(int64_t outer, int64_t inner, int64_t taps)
{
    tess_op op = {.kind = TESS_OP_FLIP, .inputs = 1, .outputs = 1, .flip = {outer, inner, taps}};
    op.in[0] = op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, outer * inner * taps);
    field in = random_field(&op.in[0], 1), want = random_field(&op.out[0], 2),
          got = random_field(&op.out[0], 2);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            for (int64_t t = 0; t < taps; t++)
                ((float *)want.data)[(i * outer + o) * taps + taps - 1 - t] =
                    ((float *)in.data)[(o * inner + i) * taps + t];
    (void)run_on(0, &op, &in, NULL, 0, &got);
    CHECK_MSG(memcmp(want.data, got.data, want.bytes) == 0, "flip of %lldx%lldx%lld", (long long)outer,
              (long long)inner, (long long)taps);
    free(in.data), free(want.data), free(got.data);
}

static void check_channel_sum(tess_dtype dtype, int64_t n, int64_t h, int64_t w, int64_t c, int gap,
                              bool accumulate)
{
    tess_op op = {.kind = TESS_OP_CHANNEL_SUM, .inputs = 1, .outputs = 1, .grad = {accumulate}};
    op.in[0] = strided(dtype, n, h, w, c, gap);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, c);
    const tess_tensor *t = &op.in[0];
    field in = random_field(t, 1), want = random_field(&op.out[0], 2), got = random_field(&op.out[0], 2),
          again = random_field(&op.out[0], 2);
    for (int64_t i = 0; i < c; i++) {
        double sum = accumulate ? (double)((float *)want.data)[i] : 0;
        for (int64_t p = 0; p < n * h * w; p++)
            sum += (double)value_in(
                dtype, in.data,
                (size_t)(p / (h * w) * t->stride_n + p / w % h * t->stride_h + p % w * t->stride_w + i));
        ((float *)want.data)[i] = (float)sum;
    }
    (void)run_on(0, &op, &in, NULL, 0, &got);
    (void)run_on(0, &op, &in, NULL, 0, &again);
    double largest = 0;
    const double most = difference(&op.out[0], &got, &want, &largest);
    CHECK_MSG(most <= 1e-5 * largest, "channel sum of %s %lldx%lldx%lldx%lld: |a-b| %.3g of %.3g",
              tess_dtype_name(dtype), (long long)n, (long long)h, (long long)w, (long long)c, most, largest);
    CHECK_MSG(memcmp(got.data, again.data, got.bytes) == 0, "two channel sums differ");
    free(in.data), free(want.data), free(got.data), free(again.data);
}

int main(void)
{
    static const tess_dtype types[] = {TESS_F32, TESS_F16, TESS_BF16};
    for (int f = 0; f < FAMILIES; f++) {
        int status;
        CHECK(setenv("TESSERA_CUDA_ENGINE", families[f], 1) == 0);
        devices[f] = gpu_open(&status);
        if (!devices[f])
            return status;
    }
    for (size_t i = 0; i < sizeof mask_cases / sizeof mask_cases[0]; i++)
        for (int t = 0; t < 3; t++)
            for (int f = 0; f < FAMILIES; f++)
                if (!mask_cases[i].image || types[t] != TESS_F32)
                    check_mask(f, &mask_cases[i], types[t]);
    check_flip(64, 64, 9);
    check_flip(40, 100, 9);
    check_flip(3, 64, 9);
    check_flip(128, 65, 1);
    check_flip(5, 7, 25);
    for (int t = 0; t < 3; t++) {
        check_channel_sum(types[t], 3, 40, 33, 64, 0, false);
        check_channel_sum(types[t], 2, 128, 128, 64, 64, true);
        check_channel_sum(types[t], 2, 9, 11, 7, 1, true);
        check_channel_sum(types[t], 30, 1, 1, 1000, 0, false);
    }
    for (int f = 0; f < FAMILIES; f++)
        tess_registry_close(devices[f]);
    return check_end();
}
