/* Attention on the card, by each of its rows, against the plain reference kernel and PyTorch. */
#define _GNU_SOURCE
#include "attention_cases.h"
#include "device/kernel.h"
#include "gpu.h"

enum { ROWS = 2 };
static const char *const rows[ROWS] = {"small heads", "attention"};
static const struct {
    tess_dtype dtype;
    double bound;
} precisions[] = {{TESS_F16, 2e-3}, {TESS_BF16, 1.0 / 128}};
enum { PRECISIONS = sizeof precisions / sizeof precisions[0] };

/* Heads that matrix instructions take: numbers of pixels around a step of 32 keys and a tile of 16 queries, several chunks
 * of keys, pixels that are not aligned, scores that are small and large. */
static const attention_case small_cases[] = {
    {"10x12", 3, 1, 10, 12, 2, 8, true, 0, 0, 1},
    {"10x12-late", 3, 1, 10, 12, 2, 8, false, 0, 0, 1},
    {"8x8", 3, 1, 8, 8, 4, 8, false, 0, 0, 1},
    {"16x16", 3, 1, 16, 16, 2, 8, true, 0, 0, 0.5F},
    {"15", 1, 1, 1, 15, 1, 8, true, 0, 0, 1},
    {"17", 1, 1, 1, 17, 1, 8, true, 0, 0, 1},
    {"33", 1, 1, 3, 11, 1, 8, true, 0, 0, 1},
    {"gap-8", 2, 1, 7, 9, 2, 8, true, 8, 0, 1},
    {"gap-5", 2, 1, 7, 9, 2, 8, false, 5, 0, 1},
    {"sharper", 1, 1, 10, 12, 2, 8, true, 0, 0, 12},
    {"largest", 1, 1, 10, 12, 2, 8, true, 0, 0, 10000},
    {"chunks", 1, 1, 34, 33, 1, 8, true, 0, 0, 0.5F},
    {"chunks-sharp", 1, 1, 34, 33, 1, 8, false, 0, 0, 5},
    {"heads-of-16", 3, 1, 10, 12, 2, 16, true, 0, 0, 1},
    {"heads-of-16-late", 1, 1, 27, 23, 1, 16, false, 0, 0, 0.5F},
    {"heads-of-16-gap", 1, 1, 9, 7, 2, 16, false, 3, 0, 1},
    {"heads-of-32-by-head", 3, 1, 10, 12, 2, 32, true, 0, 0, 1},
    {"heads-of-32-late", 1, 1, 19, 17, 1, 32, false, 0, 0, 0.5F},
    {"volume-of-32", 1, 3, 4, 5, 2, 32, false, 0, 0, 1},
};

/* What the diffusion UNet has. Both rows compute them; the reference kernel would take minutes. */
static const attention_case net_cases[] = {
    {"net-64x64", 1, 1, 64, 64, 4, 8, true, 0, 0, 1},
    {"net-32x32", 3, 1, 32, 32, 16, 8, true, 0, 0, 1},
    {"net-32x32-soft", 8, 1, 32, 32, 16, 8, false, 0, 0, 0.5F},
    {"net-16x16", 3, 1, 16, 16, 32, 8, true, 0, 0, 1},
    {"net-8x8", 64, 1, 8, 8, 32, 8, true, 0, 0, 1},
};

/* The memory around the output is zero, so that the bound is relative to what attention computes. */
static op_call small_call(const attention_case *c, tess_dtype dtype)
{
    const op_call call = attention_call(c, dtype);
    memset(call.out.data, 0, call.out.bytes);
    return call;
}

static void end_call(op_call *call, field *got, field *want)
{
    free(call->in[0].data), free(call->out.data), free(got->data), free(want->data);
}

/* crop: columns at the right that are not part of the image, so that its rows are not beside each other. */
static void check_small(tess_device *device, const attention_case *c, int crop, tess_dtype dtype,
                        double bound)
{
    op_call call = small_call(c, dtype);
    call.op.in[0].w -= crop;
    call.op.out[0].w -= crop;
    field got = op_run(device, &call, c->name), want = {calloc(1, call.out.bytes), call.out.bytes};
    const tess_op_buffers truth = {.in = {call.in[0].data}, .out = {want.data}};
    tess_reference_attention(&call.op, &truth);
    op_compare(&call, &got, &want, bound, c->name);
    end_call(&call, &got, &want);
}

static void check_rows(tess_device *const devices[ROWS], const attention_case *c, tess_dtype dtype,
                       double bound)
{
    op_call call = small_call(c, dtype);
    field got = op_run(devices[0], &call, c->name), want = op_run(devices[1], &call, c->name);
    op_compare(&call, &got, &want, bound, c->name);
    end_call(&call, &got, &want);
}

/* An image alone gives the bits that it gives among others, when the card has more queries for each warp. */
static void check_alone(tess_device *device, float sharp)
{
    enum { IMAGES = 12 };
    const attention_case c = {"alone", IMAGES, 1, 32, 31, 8, 8, true, 0, 0, sharp};
    op_call all = small_call(&c, TESS_F16), one = all;
    one.op.in[0].n = one.op.out[0].n = 1;
    const size_t in = (size_t)all.op.in[0].stride_n * 2, out = (size_t)all.op.out[0].stride_n * 2;
    one.in[0] = (field){(char *)all.in[0].data + (IMAGES - 1) * in, in};
    one.out = (field){all.out.data, out};
    field many = op_run(device, &all, c.name), alone = op_run(device, &one, c.name);
    CHECK(many.data && alone.data && memcmp((char *)many.data + (IMAGES - 1) * out, alone.data, out) == 0);
    end_call(&all, &many, &alone);
}

/* Each row refuses what it cannot do; without a forced row the first that takes an op does it. */
static void check_choice(tess_device *device)
{
    static const struct {
        tess_dtype in, out;
        int head;
        int row;
    } choices[] = {{TESS_F16, TESS_F16, 8, 0},   {TESS_BF16, TESS_BF16, 16, 0}, {TESS_F16, TESS_F16, 32, 0},
                   {TESS_F32, TESS_F32, 8, 1},   {TESS_F16, TESS_F32, 8, 1},    {TESS_F32, TESS_BF16, 8, 1},
                   {TESS_F16, TESS_BF16, 8, 1},  {TESS_F16, TESS_F16, 7, 1},    {TESS_F16, TESS_F16, 24, 1},
                   {TESS_BF16, TESS_BF16, 64, 1}};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        tess_op op = attention_op(2, true);
        tess_prepared *prepared = NULL;
        tess_error error = {{0}};
        op.in[0] = tess_tensor_2d(choices[i].in, 1, 4, 4, 6 * choices[i].head);
        op.out[0] = tess_tensor_2d(choices[i].out, 1, 4, 4, 2 * choices[i].head);
        const bool done = device->ops->prepare(device, &op, &prepared, &error) == TESS_OK;
        CHECK_MSG(done, "choice %zu: %s", i, error.text);
        if (!done)
            continue;
        const char *name = tess_prepared_kernel(prepared)->name;
        CHECK_MSG(strcmp(name, rows[choices[i].row]) == 0, "choice %zu: %s", i, name);
        device->ops->release(device, prepared);
    }
}

static void check_small_heads(tess_device *const devices[ROWS])
{
    const attention_case cropped = {"crop", 2, 2, 5, 12, 2, 8, true, 0, 0, 1};
    for (int p = 0; p < PRECISIONS; p++) {
        const tess_dtype dtype = precisions[p].dtype;
        const double bound = precisions[p].bound;
        for (size_t i = 0; i < sizeof small_cases / sizeof small_cases[0]; i++)
            check_small(devices[0], &small_cases[i], 0, dtype, bound);
        check_small(devices[0], &cropped, 3, dtype, bound);
        for (size_t i = 0; i < sizeof net_cases / sizeof net_cases[0]; i++)
            check_rows(devices, &net_cases[i], dtype, bound);
    }
    check_alone(devices[0], 0.5F);
    check_alone(devices[0], 3);
    check_choice(devices[0]);
}

int main(void)
{
    int status;
    tess_device *devices[ROWS];
    for (int r = 0; r < ROWS; r++) {
        CHECK(setenv("TESSERA_CUDA_ENGINE", rows[r], 1) == 0);
        devices[r] = gpu_open(&status);
        if (!devices[r])
            return status;
        check_attentions(devices[r], TESS_F32, 1e-5);
        check_attentions(devices[r], TESS_F16, 2e-3);
        check_attentions(devices[r], TESS_BF16, 1.0 / 128);
        check_attention_dumps(devices[r], TESS_F32, 1e-5);
        check_attention_dumps(devices[r], TESS_F16, 2e-3);
    }
    check_small_heads(devices);
    for (int r = 0; r < ROWS; r++)
        tess_registry_close(devices[r]);
    return check_end();
}
