/* Gradients of convolutions: the reference against central differences, every instruction set against the reference with
 * one thread and several, to the same bits; masked convolutions of every kernel; channel sums and flips. */
#include "counter.h"
#include "cpu/conv/kernels.h"
#include "grad_cases.h"
#include "op_table.h"

static tess_device *opened(const char *isa, int threads)
{
    const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = isa};
    tess_device *device = NULL;
    return tess_registry_open("cpu", &options, &device, NULL) == TESS_OK ? device : NULL;
}

/* The sum of gradient * convolution, in fp64. */
static double objective(const tess_op *conv, const field *in, const field *gradient, const float *kernel,
                        const float *bias)
{
    const tess_tensor *t = &conv->out[0];
    field out = random_field(t, 9);
    double sum = 0;
    tess_reference_run(conv, &(tess_op_buffers){.in = {in->data}, .out = {out.data}}, kernel, bias);
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t d = 0; d < t->d; d++)
            for (int64_t y = 0; y < t->h; y++)
                for (int64_t i = 0; i < t->w * t->c; i++) {
                    const int64_t at = n * t->stride_n + d * t->stride_d + y * t->stride_h +
                                       i / t->c * t->stride_w + i % t->c;
                    sum +=
                        (double)((const float *)out.data)[at] * (double)((const float *)gradient->data)[at];
                }
    free(out.data);
    return sum;
}

/* A convolution is linear in its parameters, so that a central difference with a step of 1 is exact but for rounding. */
static void check_differences(const grad_case *c, tess_op_kind kind)
{
    const tess_op op = grad_op(c, TESS_F32, TESS_F32);
    const int from = kind == TESS_OP_CONV ? 0 : 1; /* a transposed convolution swaps the inputs */
    tess_op conv = op;
    conv.kind = kind;
    conv.inputs = conv.outputs = 1;
    conv.in[0] = op.in[from];
    conv.out[0] = op.in[1 - from];
    conv.bias = kind == TESS_OP_CONV;
    field in[2] = {random_field(&op.in[0], 1), random_field(&op.in[1], 2)},
          out[2] = {random_field(&op.out[0], 3), random_field(&op.out[1], 4)},
          before[2] = {random_field(&op.out[0], 3), random_field(&op.out[1], 4)};
    float *param[2] = {calloc((size_t)op.out[0].c, sizeof(float)),
                       calloc((size_t)op.out[1].c, sizeof(float))};
    tess_reference_conv_grad(
        &op, &(tess_op_buffers){.in = {in[0].data, in[1].data}, .out = {out[0].data, out[1].data}});
    for (int p = 0; p < op.outputs; p++)
        for (int64_t i = 0; i < op.out[p].c; i += 1 + op.out[p].c / 11) {
            param[p][i] = 1;
            double want = objective(&conv, &in[from], &in[1 - from], param[0], conv.bias ? param[1] : NULL);
            param[p][i] = -1;
            want =
                (want - objective(&conv, &in[from], &in[1 - from], param[0], conv.bias ? param[1] : NULL)) /
                2;
            param[p][i] = 0;
            if (c->accumulate)
                want += (double)((const float *)before[p].data)[i];
            const double got = (double)((const float *)out[p].data)[i];
            CHECK_MSG(fabs(got - want) <= 1e-5 * (1 + fabs(want)), "%s, parameter %d, %lld: %.7g, not %.7g",
                      c->name, p, (long long)i, got, want);
        }
    for (int i = 0; i < 2; i++)
        free(in[i].data), free(out[i].data), free(before[i].data), free(param[i]);
}

/* One, two and three threads give the same bits, near the reference. */
static void check_case(const char *isa, const grad_case *c, tess_dtype in, tess_dtype gradient)
{
    grad_truth truth = grad_truth_of(c, in, gradient);
    field got[3][2];
    for (int threads = 1; threads <= 3; threads++) {
        tess_device *device = opened(isa, threads);
        check_grad(device, &truth, 3e-6, got[threads - 1]);
        tess_registry_close(device);
        for (int i = 0; i < 2; i++)
            CHECK_MSG(memcmp(got[threads - 1][i].data, got[0][i].data, got[0][i].bytes) == 0,
                      "%s: %d threads differ", c->name, threads);
    }
    for (int t = 0; t < 3; t++)
        free(got[t][0].data), free(got[t][1].data);
    grad_truth_free(&truth);
}

/* Packs and runs a convolution of the op table; the mask, if there is one, shares memory with `out`. */
static void run_conv(tess_device *device, const op_case *c, const tess_op *op, const field *in,
                     const field *residual, field *out, const float *kernel, const float *bias)
{
    tess_op_needs needs;
    tess_error error = {{0}};
    tess_prepared *prepared = NULL;
    CHECK_MSG(device->ops->query(device, op, &needs, &error) == TESS_OK, "%s: %s", c->name, error.text);
    CHECK(device->ops->prepare(device, op, &prepared, &error) == TESS_OK);
    void *weights = calloc(1, needs.weights + 64), *workspace = malloc(needs.workspace + 64);
    tess_op_buffers at = {.in = {in->data}, .out = {out->data}, .weights = weights, .workspace = workspace};
    for (int r = 0; r < tess_op_residuals(op); r++)
        at.in[1 + r] = residual[r].data;
    if (op->masked)
        at.in[op->inputs - 1] = out->data;
    device->ops->pack(device, op, TESS_PARAM_KERNEL, 0, c->kind == TESS_OP_CONV ? c->cout : c->cin, kernel,
                      weights);
    if (op->bias)
        device->ops->pack(device, op, TESS_PARAM_BIAS, 0, c->cout, bias, weights);
    device->ops->run(device, prepared, &at, NULL);
    device->ops->release(device, prepared);
    free(weights), free(workspace);
}

/* The same bits as the convolution without its mask, and zeros where the mask is not positive. */
static void check_mask(tess_device *device, const op_case *c, tess_dtype dtype)
{
    tess_op plain = op_of(c, dtype);
    plain.activation = TESS_LINEAR;
    tess_op masked = plain;
    masked.masked = true;
    masked.in[masked.inputs++] = plain.out[0];
    field in = random_field(&plain.in[0], 1),
          residual[2] = {random_field(&plain.out[0], 3), random_field(&plain.out[0], 4)};
    field out = random_field(&plain.out[0], 2), mask = random_field(&plain.out[0], 5),
          want = random_field(&plain.out[0], 5);
    float *kernel, *bias;
    random_weights(c, dtype, &kernel, &bias);
    const tess_tensor *t = &plain.out[0];
    put_value(t->dtype, mask.data, 0, 0); /* zero is not positive */
    run_conv(device, c, &plain, &in, residual, &out, kernel, bias);
    for (int64_t p = 0; p < t->n * t->h * t->w; p++)
        for (int64_t i = 0; i < t->c; i++) {
            const size_t at = (size_t)(p / t->w / t->h * t->stride_n + p / t->w % t->h * t->stride_h +
                                       p % t->w * t->stride_w + i);
            const bool keep = value_in(t->dtype, mask.data, at) > 0;
            put_value(t->dtype, want.data, at, keep ? value_in(t->dtype, out.data, at) : 0);
        }
    run_conv(device, c, &masked, &in, residual, &mask, kernel, bias);
    double largest = 0, most = difference(t, &mask, &want, &largest);
    CHECK_MSG(!(most > 0), "masked %s %s: |a-b| %.3g of %.3g", tess_dtype_name(dtype), c->name, most,
              largest);
    free(in.data), free(residual[0].data), free(residual[1].data), free(out.data), free(mask.data),
        free(want.data);
    free(kernel), free(bias);
}

static void check_sums(tess_device *device, tess_dtype dtype, bool accumulate)
{
    tess_op op = {.kind = TESS_OP_CHANNEL_SUM, .inputs = 1, .outputs = 1, .grad = {accumulate}};
    op.in[0] = strided(dtype, 3, 37, 41, 70, 5);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, 70);
    field in = random_field(&op.in[0], 1), out = random_field(&op.out[0], 2),
          before = random_field(&op.out[0], 2);
    grad_run(device, &op, &in, &out);
    for (int64_t c = 0; c < 70; c++) {
        double want = accumulate ? (double)((const float *)before.data)[c] : 0;
        for (int64_t p = 0; p < 3 * 37 * 41; p++)
            want += (double)value_in(dtype, in.data, (size_t)(p * 75 + c));
        const double got = (double)((const float *)out.data)[c];
        CHECK_MSG(fabs(got - want) <= 1e-5 * (1 + fabs(want)), "channel %lld: %.7g, not %.7g", (long long)c,
                  got, want);
    }
    free(in.data), free(out.data), free(before.data);
}

static void check_flip(tess_device *device)
{
    enum { OUTER = 3, INNER = 5, TAPS = 9, COUNT = OUTER * INNER * TAPS };
    tess_op op = {.kind = TESS_OP_FLIP, .inputs = 1, .outputs = 1, .flip = {OUTER, INNER, TAPS}};
    op.in[0] = op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, COUNT);
    field in = random_field(&op.in[0], 1), out = random_field(&op.out[0], 2);
    grad_run(device, &op, &in, &out);
    const float *from = in.data, *to = out.data;
    for (int o = 0; o < OUTER; o++)
        for (int i = 0; i < INNER; i++)
            for (int t = 0; t < TAPS; t++)
                CHECK(memcmp(&to[(i * OUTER + o) * TAPS + TAPS - 1 - t], &from[(o * INNER + i) * TAPS + t],
                             sizeof *to) == 0);
    free(in.data), free(out.data);
}

/* Shapes that do not belong together. */
static void check_refusals(tess_device *device)
{
    tess_op op = grad_op(&grad_cases[0], TESS_F32, TESS_F32);
    tess_op_needs needs;
    tess_error error = {{0}};
    op.in[1].h++;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    op.in[1].h--;
    op.out[0].c--;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    op.out[0].c++;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_OK);
}

/* The reference as a device takes the time of all others together: it gets only what its threads could break. */
static bool few(const grad_case *c)
{
    return c->h * c->w * c->cin * c->cout * c->kernel[1] < 200000;
}

static void check_set(const char *isa)
{
    const bool reference = strcmp(isa, "reference") == 0;
    tess_device *device = opened(isa, 3);
    if (!device) {
        printf("%s: not on this CPU\n", isa);
        return;
    }
    for (size_t i = 0; i < sizeof grad_cases / sizeof grad_cases[0]; i++) {
        const grad_case *c = &grad_cases[i];
        if (reference && !few(c))
            continue;
        check_case(isa, c, TESS_F32, TESS_F32);
        check_case(isa, c, i % 2 ? TESS_BF16 : TESS_F32, TESS_BF16);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const op_case *c = &cases[i];
        const bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE;
        if (!conv || (reference && c->cin * c->cout > 5000))
            continue;
        check_mask(device, c, TESS_F32);
        if (tess_cpu_bf16_kernels())
            check_mask(device, c, TESS_BF16);
    }
    for (int i = 0; i < 4; i++)
        check_sums(device, i % 2 ? TESS_BF16 : TESS_F32, i / 2);
    check_flip(device);
    check_refusals(device);
    tess_registry_close(device);
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof grad_cases / sizeof grad_cases[0]; i++)
        if (few(&grad_cases[i]))
            check_differences(&grad_cases[i],
                              strcmp(grad_cases[i].name, "up") == 0 ? TESS_OP_CONV_TRANSPOSE : TESS_OP_CONV);
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        check_set(sets[s]);
    return check_end();
}
