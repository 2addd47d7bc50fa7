#include "plan/op_bench.h"

#include "base/rng.h"
#include "plan/rates_impl.h"

enum { IN, OUT, RESIDUAL, WEIGHTS, WORKSPACE };

tess_status tess_op_bench_sizes(tess_device *device, const tess_op *op, size_t sizes[TESS_OP_BENCH_BLOCKS],
                                tess_error *error)
{
    tess_op_needs needs;
    TESS_TRY(device->ops->query(device, op, &needs, error));
    if (!tess_tensor_bytes(&op->in[0], &sizes[IN]) || !tess_tensor_bytes(&op->out[0], &sizes[OUT]))
        return tess_fail(error, TESS_INTERNAL, "a calibration op is too large");
    sizes[RESIDUAL] = tess_op_residuals(op) ? sizes[OUT] : 0;
    for (int i = 1; i < op->inputs && tess_calibrate_of_pixels(op); i++) {
        size_t bytes;
        if (tess_tensor_bytes(&op->in[i], &bytes) && bytes > sizes[RESIDUAL])
            sizes[RESIDUAL] = bytes;
    }
    sizes[WEIGHTS] = needs.weights;
    sizes[WORKSPACE] = needs.workspace;
    return TESS_OK;
}

tess_status tess_op_bench_bytes(tess_device *device, const tess_op *op, size_t *bytes, tess_error *error)
{
    size_t sizes[TESS_OP_BENCH_BLOCKS];
    TESS_TRY(tess_op_bench_sizes(device, op, sizes, error));
    *bytes = 0;
    for (int i = 0; i < TESS_OP_BENCH_BLOCKS; i++)
        *bytes += device->memory->granted(device, sizes[i]);
    return TESS_OK;
}

/* Writes random values, because the zeros of a fresh block can be faster than real data. */
static void fill(tess_device *device, const tess_block *block, tess_dtype dtype)
{
    float values[256];
    uint16_t halves[256];
    tess_rng_normal((tess_rng_key){1, 2, 3}, 0, 256, values);
    for (int i = 0; i < 256; i++)
        halves[i] = dtype == TESS_F16 ? tess_float_to_half(values[i]) : tess_float_to_bf16(values[i]);
    const bool half = tess_dtype_size(dtype) == 2;
    const size_t first = half ? sizeof halves : sizeof values;
    if (block->bytes < first)
        return;
    device->memory->copy(device, block->data, half ? (const void *)halves : (const void *)values, first,
                         NULL);
    for (size_t done = first, more; done < block->bytes; done += more) { /* doubled each time */
        more = done < block->bytes - done ? done : block->bytes - done;
        device->memory->copy(device, (char *)block->data + done, block->data, more, NULL);
    }
}

tess_status tess_op_bench_open(tess_op_bench *b, tess_device *device, const tess_op *op, tess_error *error)
{
    static const tess_mem_category of[] = {TESS_MEM_ACTIVATIONS, TESS_MEM_ACTIVATIONS, TESS_MEM_ACTIVATIONS,
                                           TESS_MEM_WEIGHTS, TESS_MEM_WORKSPACE};
    size_t sizes[TESS_OP_BENCH_BLOCKS];
    *b = (tess_op_bench){.device = device};
    TESS_TRY(tess_op_bench_sizes(device, op, sizes, error));
    for (int i = 0; i < TESS_OP_BENCH_BLOCKS; i++)
        TESS_TRY(device->memory->alloc(device, &b->blocks[i], of[i], sizes[i], error));
    TESS_TRY(device->ops->prepare(device, op, &b->prepared, error));
    fill(device, &b->blocks[IN], op->in[0].dtype);
    fill(device, &b->blocks[RESIDUAL], op->out[0].dtype);
    fill(device, &b->blocks[WEIGHTS], tess_op_precision(op));
    void *residual = b->blocks[RESIDUAL].data;
    b->buffers = (tess_op_buffers){.in = {b->blocks[IN].data, residual, residual},
                                   .out = {b->blocks[OUT].data},
                                   .weights = b->blocks[WEIGHTS].data,
                                   .workspace = b->blocks[WORKSPACE].data};
    return TESS_OK;
}

void tess_op_bench_run(const tess_op_bench *b)
{
    b->device->ops->run(b->device, b->prepared, &b->buffers, NULL);
}

void tess_op_bench_close(tess_op_bench *b)
{
    if (b->prepared)
        b->device->ops->release(b->device, b->prepared);
    for (int i = 0; i < TESS_OP_BENCH_BLOCKS; i++)
        b->device->memory->free(b->device, &b->blocks[i]);
    *b = (tess_op_bench){.device = b->device};
}
