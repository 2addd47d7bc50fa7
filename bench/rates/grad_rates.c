/* Measures the three convolutions of training, for one layer on the CPU: forward, the input gradient (a masked
 * convolution) and the gradients of the parameters. Prints a JSON line for each.
 *
 *   grad_rates CIN COUT SIZE BATCH [fp32|bf16] [THREADS]    e.g. grad_rates 64 64 64 16 */
#include <string.h>

#include "base/mem.h"
#include "cpu/conv/kernels.h"
#include "device/kernel.h"
#include "op/row.h"
#include "rates.h"

enum { REPEATS = 15, TAPS = 9 };

static tess_memory counter;
static tess_error error;

static tess_block filled(tess_device *device, size_t bytes, tess_dtype dtype)
{
    tess_block block;
    need(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, bytes + 64, &error), &error);
    uint32_t state = 1;
    for (size_t i = 0; i < bytes / tess_dtype_size(dtype); i++) {
        state = state * 1664525u + 1013904223u;
        const float value = (float)(state >> 8) / (float)(1 << 23) - 1;
        if (dtype == TESS_BF16)
            ((uint16_t *)block.data)[i] = tess_float_to_bf16(value);
        else
            ((float *)block.data)[i] = value;
    }
    return block;
}

static tess_block filled_tensor(tess_device *device, const tess_tensor *t)
{
    size_t bytes = 0;
    if (!tess_tensor_bytes(t, &bytes))
        exit(1);
    return filled(device, bytes, t->dtype);
}

static void measure(tess_device *device, const char *name, const tess_op *op)
{
    tess_op_needs needs = {0};
    tess_prepared *prepared = NULL;
    tess_block in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    tess_op_buffers at = {0};
    double times[REPEATS];
    need(device->ops->query(device, op, &needs, &error), &error);
    need(device->ops->prepare(device, op, &prepared, &error), &error);
    tess_block weights = filled(device, needs.weights, TESS_F32),
               workspace = filled(device, needs.workspace, TESS_F32);
    at.weights = weights.data;
    at.workspace = workspace.data;
    for (int i = 0; i < op->inputs; i++)
        at.in[i] = (in[i] = filled_tensor(device, &op->in[i])).data;
    for (int i = 0; i < op->outputs; i++)
        at.out[i] = (out[i] = filled_tensor(device, &op->out[i])).data;
    for (int i = -2; i < REPEATS; i++) {
        const double start = tess_clock();
        device->ops->run(device, prepared, &at, NULL);
        times[i < 0 ? 0 : i] = tess_clock() - start;
    }
    qsort(times, REPEATS, sizeof *times, by_value);
    printf(
        "{\"study\":\"grad\",\"op\":\"%s\",\"kernel\":\"%s\",\"ms\":%.3f,\"least_ms\":%.3f,\"gflops\":%.1f,"
        "\"workspace_mib\":%.2f}\n",
        name, tess_prepared_kernel(prepared)->name, 1e3 * times[REPEATS / 2], 1e3 * times[0],
        1e-9 * tess_op_flops(op) / times[REPEATS / 2], (double)needs.workspace / (1 << 20));
    device->ops->release(device, prepared);
    for (int i = 0; i < op->inputs; i++)
        device->memory->free(device, &in[i]);
    for (int i = 0; i < op->outputs; i++)
        device->memory->free(device, &out[i]);
    device->memory->free(device, &weights), device->memory->free(device, &workspace);
}

static tess_op conv_of(const tess_tensor *in, const tess_tensor *out)
{
    tess_op op = {.kind = TESS_OP_CONV, .inputs = 1, .outputs = 1, .in = {*in}, .out = {*out}};
    for (int s = 0; s < TESS_SPATIAL; s++) {
        op.kernel[s] = s ? 3 : 1;
        op.stride[s] = 1;
        op.pad_before[s] = op.pad_after[s] = s ? 1 : 0;
    }
    return op;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("usage: grad_rates CIN COUT SIZE BATCH [fp32|bf16] [THREADS]\n", stderr);
        return 2;
    }
    const int64_t cin = atoll(argv[1]), cout = atoll(argv[2]), size = atoll(argv[3]), batch = atoll(argv[4]);
    const tess_dtype dtype = argc > 5 && strcmp(argv[5], "bf16") == 0 ? TESS_BF16 : TESS_F32;
    const tess_device_options options = {
        .memory = &counter, .threads = argc > 6 ? atoi(argv[6]) : 0, .isa = getenv("TESSERA_ISA")};
    tess_device *device = NULL;
    need(tess_registry_open("cpu", &options, &device, &error), &error);
    const tess_tensor in = tess_tensor_2d(dtype, batch, size, size, cin),
                      out = tess_tensor_2d(dtype, batch, size, size, cout);
    tess_op forward = conv_of(&in, &out), back = conv_of(&out, &in), grad = conv_of(&in, &out);
    forward.bias = true;
    forward.activation = TESS_RELU;
    back.masked = true;
    back.inputs = 2;
    back.in[1] = in;
    grad.kind = TESS_OP_CONV_GRAD;
    grad.inputs = grad.outputs = 2;
    grad.in[1] = out;
    grad.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, cin * cout * TAPS);
    grad.out[1] = tess_tensor_2d(TESS_F32, 1, 1, 1, cout);
    measure(device, "forward", &forward);
    measure(device, "input gradient", &back);
    measure(device, "parameter gradient", &grad);
    tess_registry_close(device);
    return 0;
}
