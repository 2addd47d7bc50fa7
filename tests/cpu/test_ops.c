/* The op table: compares every op of every instruction set that this CPU runs with the plain reference kernels, at
 * odd sizes, with strides, padding on single sides, residuals that share memory with the output, one thread and
 * three. */
#include "counter.h"
#include "cpu/conv/kernels.h"
#include "op_table.h"

static void check_case(tess_device *device, const char *isa, const op_case *c, tess_dtype dtype)
{
    tess_op op = op_of(c, dtype);
    tess_op_needs needs;
    tess_error error = {{0}};
    CHECK_MSG(device->ops->query(device, &op, &needs, &error) == TESS_OK, "%s: %s", c->name, error.text);
    field in = random_field(&op.in[0], 1), out = random_field(&op.out[0], 2),
          want = random_field(&op.out[0], 2);
    field residual[2] = {random_field(&op.out[0], 3), random_field(&op.out[0], 4)};
    int64_t taps = (int64_t)c->kernel * c->kernel, count = c->cin * c->cout * taps;
    bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE;
    float *kernel, *bias;
    random_weights(c, dtype, &kernel, &bias);
    void *weights = calloc(1, needs.weights + 64), *workspace = malloc(needs.workspace + 64);
    memset(workspace, 0x7f, needs.workspace + 64);
    if (conv) { /* in two pieces, as a loader would */
        int64_t rows = c->kind == TESS_OP_CONV ? c->cout : c->cin, first = rows / 3;
        device->ops->pack(device, &op, TESS_PARAM_KERNEL, 0, first, kernel, weights);
        device->ops->pack(device, &op, TESS_PARAM_KERNEL, first, rows - first,
                          kernel + first * (count / rows), weights);
        if (c->bias)
            device->ops->pack(device, &op, TESS_PARAM_BIAS, 0, c->cout, bias, weights);
    }
    if (c->in_place)
        memcpy(out.data, residual[0].data, out.bytes);
    tess_op_buffers buffers = {.in = {in.data, residual[0].data, residual[1].data},
                               .out = {out.data},
                               .weights = weights,
                               .workspace = workspace};
    if (c->in_place)
        buffers.in[1] = out.data;
    tess_prepared *prepared = NULL;
    CHECK(device->ops->prepare(device, &op, &prepared, &error) == TESS_OK);
    uint64_t calls = tess_mem_calls();
    device->ops->run(device, prepared, &buffers, NULL);
    CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", c->name);
    device->ops->release(device, prepared);

    tess_op_buffers truth = {.in = {in.data, residual[0].data, residual[1].data}, .out = {want.data}};
    if (c->in_place)
        memcpy(want.data, residual[0].data, want.bytes);
    tess_reference_run(&op, &truth, conv ? kernel : NULL, c->bias ? bias : NULL);
    double largest = 0, most = difference(&op.out[0], &out, &want, &largest);
    /* Results in bf16: one step of the last place. Products of bf16 are exact, so fp32 results must be as
     * good as ever; an image that is rounded on the way in is not. */
    double bound = op.out[0].dtype == TESS_BF16 ? 1.0 / 128 : 3e-6;
    CHECK_MSG(most <= bound * largest, "%s %s %s: |a-b| %.3g of %.3g", isa, tess_dtype_name(dtype), c->name,
              most, largest);
    free(in.data), free(out.data), free(want.data), free(residual[0].data), free(residual[1].data);
    free(kernel), free(bias), free(weights), free(workspace);
}

/* What op.h says of import and export, value by value. */
static void check_samples(tess_device *device)
{
    enum { H = 5, W = 6, C = 3, OUT_H = 8, OUT_W = 8 };
    uint8_t file[H * W * C], back[H * W * C];
    float values[OUT_H * OUT_W * 3];
    for (int i = 0; i < H * W * C; i++)
        file[i] = back[i] = (uint8_t)(37 * i);
    tess_op in = {.kind = TESS_OP_IMPORT, .inputs = 1, .outputs = 1, .samples = {255, 1, true, 0.25f}},
            out = {.kind = TESS_OP_EXPORT, .inputs = 1, .outputs = 1};
    in.in[0] = tess_tensor_2d(TESS_U8, 1, H, W, C);
    in.out[0] = tess_tensor_2d(TESS_F32, 1, OUT_H, OUT_W, 3);
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    CHECK_MSG(device->ops->prepare(device, &in, &prepared, &error) == TESS_OK, "%s", error.text);
    device->ops->run(device, prepared, &(tess_op_buffers){.in = {file}, .out = {values}}, NULL);
    device->ops->release(device, prepared);
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) {
            const uint8_t *from = file + ((y < H ? y : H - 1) * W + (x < W ? x : W - 1)) * C + 1;
            const float *to = values + (y * OUT_W + x) * 3;
            CHECK(to[0] == (float)from[0] * (float)(1 / 255.0) &&
                  to[1] == (float)from[1] * (float)(1 / 255.0) && to[2] == 0.25f);
        }
    out.in[0] = tess_tensor_channels(in.out[0], 2);
    out.out[0] = tess_tensor_2d(TESS_U8, 1, 2, 3, C);
    out.samples = (tess_op_samples){.full_scale = 255, .first = 1};
    out.pad_before[TESS_HEIGHT] = 1;
    out.pad_before[TESS_WIDTH] = 2;
    values[(1 * OUT_W + 2) * 3] = NAN;
    values[(1 * OUT_W + 2) * 3 + 1] = 7;
    CHECK_MSG(device->ops->prepare(device, &out, &prepared, &error) == TESS_OK, "%s", error.text);
    device->ops->run(device, prepared, &(tess_op_buffers){.in = {values}, .out = {back}}, NULL);
    device->ops->release(device, prepared);
    CHECK(back[0] == file[0] && back[1] == 0 && back[2] == 255 && back[3] == file[3]);
    for (int c = 1; c < C; c++)
        CHECK(back[(1 * 3 + 2) * C + c] == file[(2 * W + 4) * C + c]);
    out.out[0].dtype = TESS_BOOL;
    CHECK(device->ops->prepare(device, &out, &prepared, &error) == TESS_UNSUPPORTED && !prepared);
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (int threads = 1; threads <= 3; threads += 2) {
            tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            tess_error error = {{0}};
            if (tess_registry_open("cpu", &options, &device, &error) != TESS_OK) {
                if (threads == 1)
                    printf("%s: not on this CPU\n", sets[s]);
                continue;
            }
            check_samples(device);
            bool bf16 = tess_cpu_bf16_kernels() != NULL;
            for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                check_case(device, sets[s], &cases[i], TESS_F32);
                if (bf16)
                    check_case(device, sets[s], &cases[i], TESS_BF16);
            }
            if (threads == 1)
                printf("%s: %zu ops in fp32%s\n", sets[s], sizeof cases / sizeof cases[0],
                       bf16 ? " and bf16" : "");
            tess_registry_close(device);
        }
    return check_end();
}
