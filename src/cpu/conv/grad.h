/* grad.h: shared by the kernels for gradients of convolutions. The fast ones compute the gradient in blocks of rows and
 * columns of a matrix. The pixels are divided into chunks; the sum of each chunk and block is stored in the
 * workspace, and then the chunks are summed in order. Sizes alone set the number of chunks, so that results do not
 * depend on the threads. */
#ifndef TESS_CPU_GRAD_H
#define TESS_CPU_GRAD_H

#include "cpu/core/cpu.h"

/* Rows and columns of a block. */
enum { TESS_GRAD_SIDE = 64 };

/* The partial sums of one op in the workspace: [chunk][row block][column block][part][block], and then, if there is a
 * bias, [chunk][bias]. */
typedef struct tess_grad_sums {
    const tess_grad_kernels *kernels;
    int64_t rows, columns;             /* of the matrix, without padding */
    int64_t row_blocks, column_blocks; /* of TESS_GRAD_SIDE */
    int64_t parts;                     /* matrices side by side: the taps, if rows do not include them */
    int64_t chunks;
    int64_t bias; /* number of bias values, padded to whole blocks; or 0 */
} tess_grad_sums;

/* The sizes of block i of `count` values, rounded up to `unit`. */
static inline int64_t tess_grad_part(int64_t count, int64_t i, int64_t unit)
{
    const int64_t left = count - i * TESS_GRAD_SIDE, most = left < TESS_GRAD_SIDE ? left : TESS_GRAD_SIDE;
    return (most + unit - 1) / unit * unit;
}

/* The most chunks of at least `least` of `units` that are worth their memory. */
int64_t tess_grad_chunks(const tess_grad_sums *sums, int64_t units, int64_t least);
/* Floats of all partial sums. */
int64_t tess_grad_floats(const tess_grad_sums *sums);
float *tess_grad_block(const tess_grad_sums *sums, float *partial, int64_t chunk, int64_t row_block,
                       int64_t column_block);
float *tess_grad_bias(const tess_grad_sums *sums, float *partial, int64_t chunk);
/* The position of a value in a block of `columns` columns, padded. */
static inline int64_t tess_grad_place(const tess_grad_kernels *kernels, int64_t columns, int64_t row,
                                      int64_t column)
{
    const int64_t tile = row / kernels->rows * (columns / kernels->block) + column / kernels->block;
    return (tile * kernels->rows + row % kernels->rows) * kernels->block + column % kernels->block;
}

/* Where a row of one part of the matrix goes: its columns are `step` floats apart in an output of the op. */
typedef struct tess_grad_line {
    float *to;
    int64_t step;
} tess_grad_line;
typedef tess_grad_line (*tess_grad_target)(const tess_op *op, const tess_op_buffers *buffers, int64_t part,
                                           int64_t row);
/* Sums the chunks in order and writes or adds the result to the op's outputs. */
void tess_grad_reduce(const tess_cpu *cpu, const tess_grad_sums *sums, const tess_op *op,
                      const tess_op_buffers *buffers, float *partial, tess_grad_target target);

/* The conditions of all kernels. */
tess_status tess_cpu_conv_grad_refuses(const tess_device *device, const tess_op *op,
                                       tess_error *why) TESS_MUST_CHECK;
tess_status tess_cpu_channel_sum_refuses(const tess_device *device, const tess_op *op,
                                         tess_error *why) TESS_MUST_CHECK;

/* Sums of each channel; the workspace holds tess_cpu_channel_sum_bytes. */
size_t tess_cpu_channel_sum_bytes(const tess_tensor *in);
void tess_cpu_channel_sums(const tess_cpu *cpu, const tess_tensor *in, const void *data, bool accumulate,
                           float *out, void *workspace);

#endif
