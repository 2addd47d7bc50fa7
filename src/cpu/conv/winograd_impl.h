/* winograd_impl.h: a Winograd convolution under way, shared by winograd.c (the kernel), winograd_tiles.c (its arithmetic) and
 * winograd_help.c (parts for other ranks). */
#ifndef TESS_CPU_WINOGRAD_IMPL_H
#define TESS_CPU_WINOGRAD_IMPL_H

#include "cpu/core/cpu.h"

/* `count` tiles from `first` on, without the `gap` tiles that follow the first `before_gap` of them. */
typedef struct tile_range {
    int64_t first, count, before_gap, gap;
} tile_range;

typedef struct winograd_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const tess_winograd_kernels *kernels;
    int64_t points, blocks, cin;     /* blocks of output channels */
    size_t bias_at;                  /* offset in the packed weights */
    int64_t tiles_y, tiles_x, tiles; /* tiles: in the whole batch */
    int64_t group, most;             /* tiles per item, and the most of them */
    tile_range range;                /* the tiles of this round of items */
    int64_t chunk;                   /* output channels per inverse transform */
    bool in_parts;                   /* each thread transforms the weights of a chunk when it needs them */
    char *u, *zeros, *scratch;
    size_t u_bytes, part_bytes; /* of all transformed weights, and of a chunk of them */
    size_t weight_bytes, zero_bytes, v_bytes, thread_bytes;
} winograd_job;

/* From point to point of transformed weights, input and products, in elements. The line of a cache between them keeps the points of a
 * pair of channels or of a tile, which are written and read together, out of one set of the cache: counts of channels are powers of
 * two. */
enum { TESS_WINOGRAD_LINE = 64 };
static inline int64_t tess_winograd_u_step(const winograd_job *job, int64_t blocks)
{
    return blocks * job->kernels->block * job->cin + TESS_WINOGRAD_LINE / job->kernels->element;
}
static inline int64_t tess_winograd_v_step(const winograd_job *job, int64_t rows)
{
    return rows * job->cin + TESS_WINOGRAD_LINE / job->kernels->element;
}
static inline int64_t tess_winograd_m_step(int64_t rows, int64_t channels)
{
    return rows * channels + TESS_WINOGRAD_LINE / (int64_t)sizeof(float);
}

/* A group of tiles of the range. */
typedef struct tile_group {
    int64_t first, count, rows; /* rows: of v and m */
    char *v;
    float *m;
} tile_group;

/* Sets everything but the pointers and the range. */
winograd_job tess_winograd_job(const tess_cpu *cpu, const tess_op *op);
tile_group tess_winograd_group(const winograd_job *job, int64_t item, int thread);
/* The input of a group, and then a chunk of its output channels, from `channel` on. */
void tess_winograd_transform(const winograd_job *job, const tile_group *group);
void tess_winograd_chunk(const winograd_job *job, const tile_group *group, int64_t channel, int thread);
/* Computes the range together with ranks that wait. False: they cannot help, and nothing is done. */
bool tess_winograd_helped(const tess_cpu *cpu, const winograd_job *job);

#endif
