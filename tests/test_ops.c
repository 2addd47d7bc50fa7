/* The op table: every op of every instruction set that this CPU runs, against the plain reference kernels, at
 * odd sizes, with strides, padding on single sides, residuals that share memory with the output, one thread
 * and three. */
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "cpu/kernels.h"
#include "cpu/reference.h"
#include "device/device.h"

typedef struct op_case {
    const char *name;
    tess_op_kind kind;
    int64_t n, h, w, cin, cout;
    int kernel, stride, pad[4]; /* top, bottom, left, right */
    bool bias, relu;
    int residuals;
    bool in_place; /* out is residual[0] */
    int gap;       /* channels between pixels that belong to somebody else */
    int ends;      /* in bf16: 1 = the input is an fp32 image, 2 = the output and its residuals are */
} op_case;

#define PAD1                                                                                                 \
    {                                                                                                        \
        1, 1, 1, 1                                                                                           \
    }

static const op_case cases[] = {
    {"head", TESS_OP_CONV, 1, 19, 23, 4, 64, 3, 1, PAD1, false, false, 0, false, 0, 0},
    {"head-gray", TESS_OP_CONV, 2, 9, 13, 2, 32, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"tail", TESS_OP_CONV, 1, 17, 21, 64, 3, 3, 1, PAD1, true, false, 1, false, 0, 0},
    {"tail-gray", TESS_OP_CONV, 1, 8, 11, 64, 1, 3, 1, PAD1, false, false, 0, false, 0, 0},
    {"wide", TESS_OP_CONV, 1, 21, 30, 64, 64, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"wide-residual", TESS_OP_CONV, 2, 13, 18, 64, 64, 3, 1, PAD1, false, false, 2, true, 0, 0},
    {"wide-strided", TESS_OP_CONV, 1, 16, 16, 64, 128, 3, 1, PAD1, true, true, 0, false, 64, 0},
    {"deep", TESS_OP_CONV, 1, 8, 8, 256, 512, 3, 1, PAD1, false, false, 1, false, 0, 0},
    {"small-net", TESS_OP_CONV, 3, 12, 20, 32, 32, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"odd-channels", TESS_OP_CONV, 1, 10, 9, 37, 53, 3, 1, PAD1, true, true, 1, false, 3, 0},
    {"open-edges", TESS_OP_CONV, 1, 14, 15, 32, 32, 3, 1, {0, 1, 1, 0}, true, false, 0, false, 0, 0},
    {"no-padding", TESS_OP_CONV, 1, 14, 15, 32, 64, 3, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"one-pixel", TESS_OP_CONV, 1, 1, 1, 64, 64, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"five", TESS_OP_CONV, 1, 11, 12, 16, 24, 5, 1, {2, 2, 2, 2}, true, true, 0, false, 0, 0},
    {"point", TESS_OP_CONV, 1, 15, 17, 64, 3, 1, 1, {0, 0, 0, 0}, true, false, 1, false, 0, 0},
    {"down", TESS_OP_CONV, 2, 12, 14, 64, 128, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"down-deep", TESS_OP_CONV, 1, 8, 10, 256, 512, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"stride3", TESS_OP_CONV, 1, 17, 17, 8, 16, 3, 2, PAD1, true, true, 0, false, 0, 0},
    {"up", TESS_OP_CONV_TRANSPOSE, 2, 7, 9, 128, 64, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"up-residual", TESS_OP_CONV_TRANSPOSE, 1, 5, 6, 64, 32, 2, 2, {0, 0, 0, 0}, true, true, 1, false, 32, 0},
    {"pool", TESS_OP_MAX_POOL, 2, 12, 14, 64, 64, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 16, 0},
    {"upsample", TESS_OP_UPSAMPLE, 2, 6, 7, 128, 128, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"add", TESS_OP_ADD, 1, 9, 7, 64, 64, 1, 1, {0, 0, 0, 0}, false, false, 2, false, 0, 0},
    {"image-in", TESS_OP_CONV, 2, 19, 700, 4, 64, 3, 1, PAD1, false, false, 0, false, 2, 1},
    {"image-in-strided", TESS_OP_CONV, 1, 12, 90, 3, 32, 2, 2, {0, 0, 0, 0}, true, true, 0, false, 0, 1},
    {"image-out", TESS_OP_CONV, 1, 17, 41, 64, 3, 3, 1, PAD1, true, false, 1, true, 0, 2},
    {"image-out-wide", TESS_OP_CONV, 1, 9, 41, 64, 64, 3, 1, PAD1, true, true, 1, false, 0, 2},
};

static tess_tensor strided(tess_dtype dtype, int64_t n, int64_t h, int64_t w, int64_t c, int gap)
{
    return tess_tensor_channels(tess_tensor_2d(dtype, n, h, w, c + gap), c);
}

static tess_op op_of(const op_case *c, tess_dtype dtype)
{
    tess_op op = {.kind = c->kind, .bias = c->bias, .relu = c->relu, .residuals = c->residuals};
    int64_t h = c->h, w = c->w;
    op.kernel[0] = op.stride[0] = 1;
    for (int s = 1; s < TESS_SPATIAL; s++) {
        op.kernel[s] = c->kernel;
        op.stride[s] = c->stride;
        op.pad_before[s] = c->pad[2 * s - 2];
        op.pad_after[s] = c->pad[2 * s - 1];
    }
    if (c->kind == TESS_OP_CONV || c->kind == TESS_OP_MAX_POOL) {
        h = (h + c->pad[0] + c->pad[1] - c->kernel) / c->stride + 1;
        w = (w + c->pad[2] + c->pad[3] - c->kernel) / c->stride + 1;
    } else if (c->kind != TESS_OP_ADD) {
        h *= c->stride;
        w *= c->stride;
    }
    op.in = strided(c->ends == 1 ? TESS_F32 : dtype, c->n, c->h, c->w, c->cin, c->gap);
    op.out = strided(c->ends == 2 ? TESS_F32 : dtype, c->n, h, w, c->cout, c->gap);
    for (int r = 0; r < c->residuals; r++)
        op.residual[r] = op.out;
    return op;
}

/* Random values in a buffer with a guard page's worth of pattern behind it. */
typedef struct field {
    void *data;
    size_t bytes;
} field;

static field random_field(const tess_tensor *t, uint32_t item)
{
    field f;
    size_t used = 0;
    CHECK(tess_tensor_bytes(t, &used));
    f.bytes = used + 256;
    f.data = malloc(f.bytes);
    size_t count = f.bytes / tess_dtype_size(t->dtype);
    float *values = malloc(count * sizeof *values);
    tess_rng_normal((tess_rng_key){7, item, 0}, 0, (int64_t)count, values);
    for (size_t i = 0; i < count; i++)
        if (t->dtype == TESS_BF16)
            ((uint16_t *)f.data)[i] = tess_float_to_bf16(values[i]);
        else
            ((float *)f.data)[i] = values[i];
    free(values);
    return f;
}

static double difference(const tess_tensor *t, const field *a, const field *b, double *largest)
{
    size_t count = a->bytes / tess_dtype_size(t->dtype);
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double x =
            t->dtype == TESS_BF16 ? tess_bf16_to_float(((uint16_t *)a->data)[i]) : ((float *)a->data)[i];
        double y =
            t->dtype == TESS_BF16 ? tess_bf16_to_float(((uint16_t *)b->data)[i]) : ((float *)b->data)[i];
        double d = fabs(x - y);
        if (!(d <= most))
            most = d;
        if (fabs(y) > *largest)
            *largest = fabs(y);
    }
    return most;
}

static void check_case(tess_device *device, const char *isa, const op_case *c, tess_dtype dtype)
{
    tess_op op = op_of(c, dtype);
    tess_op_needs needs;
    tess_error error = {{0}};
    CHECK_MSG(device->query(device, &op, &needs, &error) == TESS_OK, "%s: %s", c->name, error.text);
    field in = random_field(&op.in, 1), out = random_field(&op.out, 2), want = random_field(&op.out, 2);
    field residual[2] = {random_field(&op.out, 3), random_field(&op.out, 4)};
    int64_t taps = (int64_t)c->kernel * c->kernel, count = c->cin * c->cout * taps;
    bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE;
    float *kernel = malloc((size_t)count * sizeof *kernel), *bias = malloc((size_t)c->cout * sizeof *bias);
    tess_rng_normal((tess_rng_key){7, 5, 0}, 0, count, kernel);
    tess_rng_normal((tess_rng_key){7, 6, 0}, 0, c->cout, bias);
    float scale = 1.0f / sqrtf((float)(c->cin * taps));
    for (int64_t i = 0; i < count; i++) { /* bf16 kernels see the values that the reference sees */
        kernel[i] *= scale;
        if (dtype == TESS_BF16)
            kernel[i] = tess_bf16_to_float(tess_float_to_bf16(kernel[i]));
    }
    void *weights = calloc(1, needs.weights + 64), *workspace = malloc(needs.workspace + 64);
    memset(workspace, 0x7f, needs.workspace + 64);
    if (conv) { /* in two pieces, as a loader would */
        int64_t rows = c->kind == TESS_OP_CONV ? c->cout : c->cin, first = rows / 3;
        device->pack(device, &op, TESS_PART_KERNEL, 0, first, kernel, weights);
        device->pack(device, &op, TESS_PART_KERNEL, first, rows - first, kernel + first * (count / rows),
                     weights);
        if (c->bias)
            device->pack(device, &op, TESS_PART_BIAS, 0, c->cout, bias, weights);
    }
    if (c->in_place)
        memcpy(out.data, residual[0].data, out.bytes);
    tess_op_buffers buffers = {in.data, out.data, {residual[0].data, residual[1].data}, weights, workspace};
    if (c->in_place)
        buffers.residual[0] = out.data;
    tess_prepared *prepared = NULL;
    CHECK(device->prepare(device, &op, &prepared, &error) == TESS_OK);
    uint64_t calls = tess_mem_calls();
    device->run(device, prepared, &buffers, NULL);
    CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", c->name);
    device->release(device, prepared);

    tess_op_buffers truth = {in.data, want.data, {residual[0].data, residual[1].data}, NULL, NULL};
    if (c->in_place)
        memcpy(want.data, residual[0].data, want.bytes);
    tess_reference_run(&op, &truth, conv ? kernel : NULL, c->bias ? bias : NULL);
    double largest = 0, most = difference(&op.out, &out, &want, &largest);
    /* Results in bf16: one step of the last place. Products of bf16 are exact, so fp32 results must be as
     * good as ever; an image that is rounded on the way in is not. */
    double bound = op.out.dtype == TESS_BF16 ? 1.0 / 128 : 3e-6;
    CHECK_MSG(most <= bound * largest, "%s %s %s: |a-b| %.3g of %.3g", isa, tess_dtype_name(dtype), c->name,
              most, largest);
    free(in.data), free(out.data), free(want.data), free(residual[0].data), free(residual[1].data);
    free(kernel), free(bias), free(weights), free(workspace);
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (int threads = 1; threads <= 3; threads += 2) {
            tess_device_options options = {.threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            tess_error error = {{0}};
            if (tess_device_open("cpu", &options, &device, &error) != TESS_OK) {
                if (threads == 1)
                    printf("%s: not on this CPU\n", sets[s]);
                continue;
            }
            bool bf16 = tess_cpu_bf16_kernels() != NULL;
            for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                check_case(device, sets[s], &cases[i], TESS_F32);
                if (bf16)
                    check_case(device, sets[s], &cases[i], TESS_BF16);
            }
            if (threads == 1)
                printf("%s: %zu ops in fp32%s\n", sets[s], sizeof cases / sizeof cases[0],
                       bf16 ? " and bf16" : "");
            tess_device_close(device);
        }
    return check_end();
}
