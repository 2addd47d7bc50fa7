/* grad_cases.h: the gradients of convolutions with which every device is compared with the reference kernels. */
#ifndef TESS_TESTS_GRAD_CASES_H
#define TESS_TESTS_GRAD_CASES_H

#include "base/mem.h"
#include "cpu/reference/reference.h"
#include "device/kernel.h"
#include "fields.h"
#include "op/row.h"

typedef struct grad_case {
    const char *name;
    int64_t n, d, h, w, cin, cout; /* of the input */
    int kernel[3], stride, pad[4]; /* depth, height, width; of height and width; top, bottom, left, right */
    bool bias, accumulate;
    int gap; /* channels between pixels that belong to somebody else */
} grad_case;

static const grad_case grad_cases[] = {
    {"wide", 2, 1, 21, 30, 64, 64, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 0},
    {"wide-added", 1, 1, 16, 20, 64, 128, {1, 3, 3}, 1, {1, 1, 1, 1}, true, true, 0},
    {"wide-narrow", 1, 1, 9, 7, 160, 32, {1, 3, 3}, 1, {1, 1, 1, 1}, false, false, 0},
    {"wide-view", 2, 1, 13, 18, 96, 64, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 64},
    {"open-edges", 1, 1, 14, 15, 32, 32, {1, 3, 3}, 1, {0, 1, 1, 0}, true, true, 0},
    {"no-padding", 3, 1, 14, 15, 32, 64, {1, 3, 3}, 1, {0, 0, 0, 0}, false, true, 0},
    {"one-pixel", 1, 1, 1, 1, 64, 64, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 0},
    {"many-tiles", 3, 1, 64, 60, 32, 32, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 0},
    {"head", 2, 1, 40, 40, 3, 64, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 0},
    {"head-level", 1, 1, 19, 70, 4, 64, {1, 3, 3}, 1, {1, 1, 1, 1}, false, true, 0},
    {"head-view", 1, 1, 9, 13, 2, 37, {1, 3, 3}, 1, {1, 0, 1, 0}, true, true, 3},
    {"tail", 2, 1, 40, 40, 64, 3, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 0},
    {"tail-gray", 1, 1, 8, 11, 64, 1, {1, 3, 3}, 1, {1, 1, 1, 1}, true, true, 0},
    {"tail-open", 1, 1, 12, 67, 33, 3, {1, 3, 3}, 1, {0, 1, 1, 0}, true, false, 5},
    {"odd", 1, 1, 10, 9, 37, 53, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 3},
    {"odd-turned", 1, 1, 10, 9, 53, 37, {1, 3, 3}, 1, {1, 1, 1, 1}, true, true, 0},
    {"down", 2, 1, 12, 14, 64, 128, {1, 2, 2}, 2, {0, 0, 0, 0}, true, false, 0},
    {"down-narrow", 1, 1, 12, 14, 128, 32, {1, 2, 2}, 2, {0, 0, 0, 0}, true, true, 0},
    {"down-odd", 1, 1, 13, 15, 20, 24, {1, 2, 2}, 2, {0, 0, 0, 0}, false, false, 0},
    {"up", 1, 1, 8, 10, 12, 20, {1, 2, 2}, 2, {0, 0, 0, 0}, false, false, 0},
    {"stride-3x3", 1, 1, 17, 17, 8, 16, {1, 3, 3}, 2, {1, 1, 1, 1}, true, false, 0},
    {"point", 2, 1, 15, 17, 64, 64, {1, 1, 1}, 1, {0, 0, 0, 0}, true, false, 0},
    {"point-narrow", 1, 1, 15, 17, 64, 3, {1, 1, 1}, 1, {0, 0, 0, 0}, true, true, 0},
    {"linear", 5, 1, 1, 1, 48, 100, {1, 1, 1}, 1, {0, 0, 0, 0}, true, false, 0},
    {"spectra", 3, 1, 17, 19, 50, 20, {1, 1, 1}, 1, {0, 0, 0, 0}, true, false, 0},
    {"spectra-added", 2, 1, 1, 100, 20, 50, {1, 1, 1}, 1, {0, 0, 0, 0}, false, true, 0},
    {"spectra-many", 1, 1, 190, 191, 7, 10, {1, 1, 1}, 1, {0, 0, 0, 0}, true, true, 0},
    {"spectra-wide", 1, 1, 11, 12, 100, 101, {1, 1, 1}, 1, {0, 0, 0, 0}, true, false, 0},
    {"spectra-view", 1, 1, 11, 12, 50, 20, {1, 1, 1}, 1, {0, 0, 0, 0}, true, false, 3},
    {"five", 1, 1, 11, 12, 16, 24, {1, 5, 5}, 1, {2, 2, 2, 2}, true, false, 0},
    {"volume", 1, 5, 6, 7, 6, 5, {3, 3, 3}, 1, {1, 1, 1, 1}, true, true, 0},
    {"slices", 2, 4, 6, 7, 6, 5, {1, 3, 3}, 1, {1, 1, 1, 1}, true, false, 0},
};

static inline tess_op grad_op(const grad_case *c, tess_dtype in, tess_dtype gradient)
{
    tess_op op = {.kind = TESS_OP_CONV_GRAD, .inputs = 2, .outputs = c->bias ? 2 : 1};
    op.grad.accumulate = c->accumulate;
    for (int s = 0; s < TESS_SPATIAL; s++) {
        op.kernel[s] = c->kernel[s];
        op.stride[s] = s ? c->stride : 1;
        op.pad_before[s] = s ? c->pad[2 * s - 2] : c->kernel[0] / 2;
        op.pad_after[s] = s ? c->pad[2 * s - 1] : c->kernel[0] / 2;
    }
    const int64_t h = (c->h + c->pad[0] + c->pad[1] - c->kernel[1]) / c->stride + 1,
                  w = (c->w + c->pad[2] + c->pad[3] - c->kernel[2]) / c->stride + 1;
    op.in[0] = tess_tensor_channels(tess_tensor_3d(in, c->n, c->d, c->h, c->w, c->cin + c->gap), c->cin);
    op.in[1] = tess_tensor_channels(tess_tensor_3d(gradient, c->n, c->d, h, w, c->cout + c->gap), c->cout);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, c->cin * c->cout * tess_op_taps(&op));
    op.out[1] = tess_tensor_2d(TESS_F32, 1, 1, 1, c->cout);
    return op;
}

/* A run of an op with several outputs, whose memory holds `out` before; returns the name of the kernel. */
static inline const char *grad_run(tess_device *device, const tess_op *op, const field *in, field *out)
{
    tess_op_needs needs = {0};
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    const bool done = device->ops->query(device, op, &needs, &error) == TESS_OK &&
                      device->ops->prepare(device, op, &prepared, &error) == TESS_OK;
    CHECK_MSG(done, "%s", error.text);
    if (!done)
        return "none";
    tess_block block[TESS_OP_INPUTS + TESS_OP_OUTPUTS + 1] = {{0}};
    tess_op_buffers at = {0};
    for (int i = 0; i < op->inputs + op->outputs; i++) {
        const field *f = i < op->inputs ? &in[i] : &out[i - op->inputs];
        CHECK(device->memory->alloc(device, &block[i], TESS_MEM_IO, f->bytes, &error) == TESS_OK);
        device->memory->copy(device, block[i].data, f->data, f->bytes, NULL);
        if (i < op->inputs)
            at.in[i] = block[i].data;
        else
            at.out[i - op->inputs] = block[i].data;
    }
    tess_block *work = &block[TESS_OP_INPUTS + TESS_OP_OUTPUTS];
    CHECK(device->memory->alloc(device, work, TESS_MEM_IO, needs.workspace + 64, &error) == TESS_OK);
    field noise = {malloc(needs.workspace + 64),
                   needs.workspace + 64}; /* kernels must not rely on what is there */
    memset(noise.data, 0x7f, noise.bytes);
    device->memory->copy(device, work->data, noise.data, noise.bytes, NULL);
    at.workspace = work->data;
    const uint64_t calls = tess_mem_calls();
    device->ops->run(device, prepared, &at, NULL);
    CHECK_MSG(tess_mem_calls() == calls, "allocated while running");
    for (int i = 0; i < op->outputs; i++)
        device->memory->copy(device, out[i].data, block[op->inputs + i].data, out[i].bytes, NULL);
    device->memory->copy(device, noise.data, work->data, noise.bytes, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
    for (size_t i = needs.workspace; i < noise.bytes; i++)
        CHECK_MSG(((unsigned char *)noise.data)[i] == 0x7f, "wrote behind its workspace");
    const char *name = tess_prepared_kernel(prepared)->name;
    device->ops->release(device, prepared);
    for (int i = 0; i <= TESS_OP_INPUTS + TESS_OP_OUTPUTS; i++)
        if (block[i].data)
            device->memory->free(device, &block[i]);
    free(noise.data);
    return name;
}

/* A case in one type, with the reference's results. */
typedef struct grad_truth {
    const grad_case *of;
    tess_op op;
    field in[2], before[2], want[2];
} grad_truth;

static inline grad_truth grad_truth_of(const grad_case *c, tess_dtype in_type, tess_dtype grad_type)
{
    grad_truth truth = {.of = c, .op = grad_op(c, in_type, grad_type)};
    for (uint32_t i = 0; i < 2; i++) {
        truth.in[i] = random_field(&truth.op.in[i], 1 + i);
        truth.before[i] = random_field(&truth.op.out[i], 3 + i);
        truth.want[i] = random_field(&truth.op.out[i], 3 + i);
    }
    tess_reference_conv_grad(&truth.op, &(tess_op_buffers){.in = {truth.in[0].data, truth.in[1].data},
                                                           .out = {truth.want[0].data, truth.want[1].data}});
    return truth;
}

static inline void grad_truth_free(grad_truth *truth)
{
    for (int i = 0; i < 2; i++)
        free(truth->in[i].data), free(truth->before[i].data), free(truth->want[i].data);
}

/* What a device gives for a case, in memory that the caller frees. bound: of the largest value of the reference. */
static inline void check_grad(tess_device *device, const grad_truth *truth, double bound, field got[2])
{
    for (int i = 0; i < 2; i++)
        got[i] = random_field(&truth->op.out[i], 3 + (uint32_t)i);
    const char *kernel = grad_run(device, &truth->op, truth->in, got);
    for (int i = 0; i < 2; i++) {
        double largest = 0, most = difference(&truth->op.out[i], &got[i], &truth->want[i], &largest);
        CHECK_MSG(most <= bound * largest, "%s %s %s %s, output %d: |a-b| %.3g of %.3g", kernel,
                  tess_dtype_name(truth->op.in[0].dtype), tess_dtype_name(truth->op.in[1].dtype),
                  truth->of->name, i, most, largest);
    }
}

#endif
