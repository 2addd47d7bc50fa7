/* op_bench.h: one op with memory of its own and random values in it, to be timed. */
#ifndef TESS_PLAN_OP_BENCH_H
#define TESS_PLAN_OP_BENCH_H

#include "device/device.h"

enum { TESS_OP_BENCH_BLOCKS = 5 };

typedef struct tess_op_bench {
    tess_device *device;
    tess_block blocks[TESS_OP_BENCH_BLOCKS]; /* input, output, residual, weights, workspace */
    tess_prepared *prepared;
    tess_op_buffers buffers;
} tess_op_bench;

/* The sizes of its blocks, and the bytes that they take together. */
tess_status tess_op_bench_sizes(tess_device *device, const tess_op *op, size_t sizes[TESS_OP_BENCH_BLOCKS],
                                tess_error *error) TESS_MUST_CHECK;
tess_status tess_op_bench_bytes(tess_device *device, const tess_op *op, size_t *bytes,
                                tess_error *error) TESS_MUST_CHECK;
/* Close it also if this fails. */
tess_status tess_op_bench_open(tess_op_bench *bench, tess_device *device, const tess_op *op,
                               tess_error *error) TESS_MUST_CHECK;
void tess_op_bench_run(const tess_op_bench *bench); /* does not wait for the device */
void tess_op_bench_close(tess_op_bench *bench);

#endif
