/* cpu.h: what the files of this room share. A driver decides blocking and threads; a kernel table does the
 * arithmetic. For each op family there are three functions, used alike by planning and execution: needs,
 * pack, run. */
#ifndef TESS_CPU_CPU_H
#define TESS_CPU_CPU_H

#include "base/pool.h"
#include "cpu/conv/kernels.h"
#include "device/device.h"

typedef struct tess_cpu {
    tess_device device; /* first: a tess_device * is a tess_cpu * */
    tess_pool *pool;
    const tess_f32_kernels *f32; /* NULL: the reference kernels */
    const tess_bf16_kernels *bf16;
    char name[96];
} tess_cpu;

/* How one op is done here. */
typedef struct tess_cpu_family {
    const char *name;
    void (*needs)(const tess_cpu *, const tess_op *, tess_op_needs *);
    void (*pack)(const tess_cpu *, const tess_op *, int param, int64_t first, int64_t count,
                 const float *values, void *packed);
    void (*run)(const tess_cpu *, const tess_op *, const tess_op_buffers *);
} tess_cpu_family;

extern const tess_cpu_family tess_cpu_radon; /* 2-D */
tess_status tess_cpu_check_radon(const tess_op *op, tess_error *error) TESS_MUST_CHECK;
extern const tess_cpu_family tess_cpu_rays, tess_cpu_fdk; /* 3-D */
tess_status tess_cpu_check_rays(const tess_op *op, tess_error *error) TESS_MUST_CHECK;

extern const tess_cpu_family tess_cpu_vector, tess_cpu_fft_family; /* for solvers */
tess_status tess_cpu_vector_check(const tess_op *op, tess_error *error) TESS_MUST_CHECK;
/* An FFT keeps its library's plans from prepare to run. */
typedef struct tess_cpu_fft tess_cpu_fft;
tess_status tess_cpu_fft_check(const tess_op *op, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cpu_fft_prepare(const tess_cpu *cpu, const tess_op *op, tess_cpu_fft **out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_cpu_fft_run(const tess_cpu *cpu, const tess_op *op, const tess_cpu_fft *plans,
                      const tess_op_buffers *buffers);
void tess_cpu_fft_release(tess_cpu_fft *plans);
/* A filter is made of two transforms, each with plans of its own. */
extern const tess_cpu_family tess_cpu_filter_family;
tess_status tess_cpu_filter_check(const tess_op *op, tess_error *error) TESS_MUST_CHECK;
tess_op tess_cpu_filter_transform(const tess_op *op, bool inverse);
void tess_cpu_filter_run(const tess_cpu *cpu, const tess_op *op, const tess_cpu_fft *to,
                         const tess_cpu_fft *back, const tess_op_buffers *buffers);

extern const tess_cpu_family tess_cpu_direct, tess_cpu_winograd, tess_cpu_bf16, tess_cpu_pointwise,
    tess_cpu_samples, tess_cpu_reference;
extern const tess_cpu_family tess_cpu_volume, tess_cpu_side_sum;

const tess_cpu_family *tess_cpu_family_of(const tess_cpu *cpu, const tess_op *op);
/* TESS_UNSUPPORTED, and what would do, for ops that no family takes. */
tess_status tess_cpu_check(const tess_cpu *cpu, const tess_op *op, tess_error *error) TESS_MUST_CHECK;
/* Is it an op of the networks with a depth, which passes of 2-D ops do? */
bool tess_cpu_is_volume(const tess_op *op);

/* Weights of a direct convolution in fp32 blocks: [cout block][tap][cin][block]; a transposed one is one of a
 * single tap for each of its taps in turn. The bias follows, padded. */
typedef struct tess_f32_layout {
    int64_t block, blocks; /* output channels of a block; blocks */
    int64_t taps, cin;
    bool transposed; /* tap outermost */
    int64_t bias_at; /* in floats */
    int64_t floats;  /* all */
} tess_f32_layout;

tess_f32_layout tess_f32_layout_of(const tess_cpu *cpu, const tess_op *op);
void tess_f32_layout_pack(const tess_f32_layout *layout, const tess_op *op, int param, int64_t first,
                          int64_t count, const float *values, float *packed);

#endif
