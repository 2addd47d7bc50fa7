/* op_outputs.h: one op with several outputs on any device, from operands on the host to operands on the host: twice, to
 * the same bits and without an allocation, and once more as a captured graph where the device has graphs. */
#ifndef TESS_TESTS_OP_OUTPUTS_H
#define TESS_TESTS_OP_OUTPUTS_H

#include "base/mem.h"
#include "device/device.h"
#include "fields.h"
#include "op/row.h"

typedef struct operand {
    tess_tensor t;
    field f;
    size_t skip; /* values before the tensor: a view of later channels, or memory that is not aligned */
} operand;

typedef struct train_call {
    tess_op op; /* the tensors are set from the operands */
    operand in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    int over; /* 1 + the input that the first output lies over; 0: none */
} train_call;

static inline operand operand_random(tess_tensor t, size_t skip, uint32_t item)
{
    tess_tensor more = t;
    more.stride_n += (int64_t)skip; /* room for what is skipped */
    more.n = t.n + 1;
    return (operand){t, random_field(&more, item), skip};
}

/* A view of `c` channels from `skip` on, among `gap` others. */
static inline operand operand_view(tess_dtype dtype, const int64_t size[4], int64_t c, int gap, size_t skip,
                                   uint32_t item)
{
    const tess_tensor whole = tess_tensor_3d(dtype, size[0], size[1], size[2], size[3], c + gap);
    return operand_random(tess_tensor_channels(whole, c), skip, item);
}

/* (n, 1, 1, 1, c) values of 8 bytes. */
static inline operand operand_table(tess_dtype dtype, int64_t n, int64_t c, const void *values)
{
    operand o = {tess_tensor_2d(dtype, n, 1, 1, c), {NULL, (size_t)(n * c) * 8}, 0};
    o.f.data = malloc(o.f.bytes);
    memcpy(o.f.data, values, o.f.bytes);
    return o;
}

static inline operand operand_copy(const operand *from)
{
    operand o = *from;
    o.f.data = malloc(o.f.bytes);
    memcpy(o.f.data, from->f.data, o.f.bytes);
    return o;
}

static inline void train_free(train_call *call)
{
    for (int i = 0; i < TESS_OP_INPUTS; i++)
        free(call->in[i].f.data);
    for (int i = 0; i < TESS_OP_OUTPUTS; i++)
        free(call->out[i].f.data);
}

static inline size_t operand_at(const operand *o, int64_t n, int64_t z, int64_t y, int64_t x, int64_t c)
{
    return o->skip +
           (size_t)(n * o->t.stride_n + z * o->t.stride_d + y * o->t.stride_h + x * o->t.stride_w + c);
}

static inline double get(const operand *o, int64_t n, int64_t z, int64_t y, int64_t x, int64_t c)
{
    return value_in(o->t.dtype, o->f.data, operand_at(o, n, z, y, x, c));
}

static inline void put(operand *o, int64_t n, int64_t z, int64_t y, int64_t x, int64_t c, double value)
{
    put_value(o->t.dtype, o->f.data, operand_at(o, n, z, y, x, c), (float)value);
}

/* All positions of a tensor. */
#define EACH(t, n_, z_, y_, x_, c_)                                                                          \
    for (int64_t n_ = 0; n_ < (t).n; n_++)                                                                   \
        for (int64_t z_ = 0; z_ < (t).d; z_++)                                                               \
            for (int64_t y_ = 0; y_ < (t).h; y_++)                                                           \
                for (int64_t x_ = 0; x_ < (t).w; x_++)                                                       \
                    for (int64_t c_ = 0; c_ < (t).c; c_++)

static inline tess_block train_block(tess_device *device, const field *f, size_t bytes)
{
    tess_block block;
    tess_error error = {{0}};
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, bytes, &error) == TESS_OK, "%s", error.text);
    if (f)
        device->memory->copy(device, block.data, f->data, f->bytes, NULL);
    return block;
}

typedef struct train_blocks {
    tess_block in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS], workspace;
    tess_op_buffers buffers;
} train_blocks;

static inline void train_upload(tess_device *device, const train_call *call, size_t workspace,
                                train_blocks *b)
{
    b->workspace = train_block(device, NULL, workspace);
    b->buffers = (tess_op_buffers){.workspace = b->workspace.data};
    for (int i = 0; i < call->op.outputs; i++) {
        const operand *o = &call->out[i];
        b->out[i] = train_block(device, NULL, o->f.bytes);
        b->buffers.out[i] = (char *)b->out[i].data + o->skip * tess_dtype_size(o->t.dtype);
    }
    for (int i = 0; i < call->op.inputs; i++) {
        const operand *o = &call->in[i];
        b->in[i] = train_block(device, &o->f, o->f.bytes);
        b->buffers.in[i] = call->over == i + 1
                               ? b->buffers.out[0]
                               : (char *)b->in[i].data + o->skip * tess_dtype_size(o->t.dtype);
    }
}

/* The outputs as they are before the op, to the device; the op, or the graph; the outputs back. */
static inline void train_once(tess_device *device, const train_call *call, const tess_prepared *prepared,
                              train_blocks *b, tess_graph *graph, tess_stream *stream, operand *got)
{
    tess_error error = {{0}};
    for (int i = 0; i < call->op.outputs; i++) {
        const field *before = i == 0 && call->over ? &call->in[call->over - 1].f : &call->out[i].f;
        device->memory->copy(device, b->out[i].data, before->data, before->bytes, stream);
    }
    if (graph)
        device->graphs->launch(device, graph, stream);
    else
        device->ops->run(device, prepared, &b->buffers, stream);
    for (int i = 0; i < call->op.outputs; i++)
        device->memory->copy(device, got[i].f.data, b->out[i].data, got[i].f.bytes, stream);
    CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
}

static inline void train_same(const train_call *call, const operand *a, const operand *b, const char *name,
                              const char *what)
{
    for (int i = 0; i < call->op.outputs; i++)
        CHECK_MSG(memcmp(a[i].f.data, b[i].f.data, a[i].f.bytes) == 0, "%s: output %d of %s differs", name, i,
                  what);
}

static inline void train_as_graph(tess_device *device, const train_call *call, const tess_prepared *prepared,
                                  train_blocks *b, const operand *got, operand *again, const char *name)
{
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    tess_error error = {{0}};
    CHECK_MSG(device->streams->create(device, &stream, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(device->graphs->begin(device, stream, &error) == TESS_OK, "%s: %s", name, error.text);
    device->ops->run(device, prepared, &b->buffers, stream);
    CHECK_MSG(device->graphs->end(device, stream, &graph, &error) == TESS_OK, "%s: %s", name, error.text);
    if (graph) {
        train_once(device, call, prepared, b, graph, stream, again);
        train_same(call, got, again, name, "a graph");
        device->graphs->release(device, graph);
    }
    device->streams->destroy(device, stream);
}

/* Runs the op; `got` are new operands, of the caller. False: the device does not do it. */
static inline bool train_run(tess_device *device, train_call *call, operand got[TESS_OP_OUTPUTS],
                             const char *name)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    for (int i = 0; i < call->op.inputs; i++)
        call->op.in[i] = call->in[i].t;
    for (int i = 0; i < call->op.outputs; i++)
        call->op.out[i] = call->out[i].t;
    const bool done = tess_op_check(&call->op, &error) == TESS_OK &&
                      device->ops->query(device, &call->op, &needs, &error) == TESS_OK &&
                      device->ops->prepare(device, &call->op, &prepared, &error) == TESS_OK;
    CHECK_MSG(done, "%s %s: %s", tess_op_kind_name(call->op.kind), name, error.text);
    if (!done)
        return false;
    train_blocks blocks;
    operand again[TESS_OP_OUTPUTS];
    train_upload(device, call, needs.workspace, &blocks);
    for (int i = 0; i < call->op.outputs; i++) {
        got[i] = operand_copy(&call->out[i]);
        again[i] = operand_copy(&call->out[i]);
    }
    train_once(device, call, prepared, &blocks, NULL, NULL, got);
    const uint64_t calls = tess_mem_calls();
    train_once(device, call, prepared, &blocks, NULL, NULL, again);
    CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", name);
    train_same(call, got, again, name, "two runs");
    if (device->graphs)
        train_as_graph(device, call, prepared, &blocks, got, again, name);
    device->ops->release(device, prepared);
    for (int i = 0; i < call->op.inputs; i++)
        device->memory->free(device, &blocks.in[i]);
    for (int i = 0; i < call->op.outputs; i++) {
        device->memory->free(device, &blocks.out[i]);
        free(again[i].f.data);
    }
    device->memory->free(device, &blocks.workspace);
    return true;
}

/* What the outputs should be, to be filled in: what they are before, which stays outside of the tensors. */
static inline void train_want(const train_call *call, operand want[TESS_OP_OUTPUTS])
{
    for (int i = 0; i < call->op.outputs; i++) {
        want[i] = call->out[i];
        want[i].f = operand_copy(i == 0 && call->over ? &call->in[call->over - 1] : &call->out[i]).f;
    }
}

static inline void operand_compare(const operand *got, const operand *want, double bound, const char *kind,
                                   const char *name, int output)
{
    double largest = 0, most = 0;
    if (got->t.dtype == TESS_F64) {
        const double x = *(const double *)got->f.data, y = *(const double *)want->f.data;
        most = fabs(x - y);
        largest = fabs(y);
    } else {
        most = difference(&got->t, &got->f, &want->f, &largest);
    }
    CHECK_MSG(most <= bound * largest, "%s %s %s, output %d: |a-b| %.3g of %.3g", kind, name,
              tess_dtype_name(got->t.dtype), output, most, largest);
}

/* Compares output by output, within bound[i] of the largest value, and frees both. */
static inline void train_compare(const train_call *call, operand *got, operand *want, const double *bound,
                                 const char *name)
{
    for (int i = 0; i < call->op.outputs; i++) {
        operand_compare(&got[i], &want[i], bound[i], tess_op_kind_name(call->op.kind), name, i);
        free(got[i].f.data);
        free(want[i].f.data);
    }
}

/* Of results that are rounded to this type once. */
static inline double train_bound(tess_dtype dtype, double fp32)
{
    return dtype == TESS_F16 ? 1.0 / 1024 : dtype == TESS_BF16 ? 1.0 / 128 : fp32;
}

#endif
