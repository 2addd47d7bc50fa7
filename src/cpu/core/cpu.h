/* cpu.h: shared by the files of this room. A kernel row decides blocking and threads; a table of vector
 * kernels does the arithmetic. */
#ifndef TESS_CPU_CPU_H
#define TESS_CPU_CPU_H

#include "base/pool.h"
#include "cpu/conv/kernels.h"
#include "device/kernel.h"

typedef struct tess_cpu {
    tess_device device; /* first: a tess_device * is a tess_cpu * */
    tess_pool *pool;
    const tess_f32_kernels *f32; /* NULL: use the reference kernels */
    const tess_bf16_kernels *bf16;
    bool as_host; /* as in tess_device_options */
    char name[96];
} tess_cpu;

static inline tess_cpu *tess_cpu_of(const tess_device *device)
{
    return (tess_cpu *)device;
}

/* The kernels, one file each; the list and its order are in rows.c. */
extern const tess_kernel tess_cpu_winograd, tess_cpu_bf16, tess_cpu_direct, tess_cpu_volume,
    tess_cpu_side_sum;
extern const tess_kernel tess_cpu_grad_winograd, tess_cpu_grad_patches, tess_cpu_channel_sum;
extern const tess_kernel tess_cpu_conv_grad_reference, tess_cpu_channel_sum_reference, tess_cpu_flip;
extern const tess_kernel tess_cpu_pointwise, tess_cpu_samples, tess_cpu_vector, tess_cpu_diffuse;
extern const tess_kernel tess_cpu_fft, tess_cpu_filter;
extern const tess_kernel tess_cpu_radon, tess_cpu_rays, tess_cpu_fdk;
extern const tess_kernel tess_cpu_group_norm, tess_cpu_group_norm_reference;
extern const tess_kernel tess_cpu_attention, tess_cpu_attention_reference;
extern const tess_kernel tess_cpu_gradients, tess_cpu_loss, tess_cpu_loss_rms, tess_cpu_optimize,
    tess_cpu_random;
/* Says what is wrong with the tensors of a LOSS of any kind. */
tess_status tess_cpu_loss_refuses(const tess_op *op, tess_error *why);
extern const tess_kernel tess_cpu_group_norm_grad, tess_cpu_batch_norm, tess_cpu_attention_grad;
extern const tess_kernel tess_cpu_gradients_reference;
extern const tess_kernel tess_cpu_channel_map, tess_cpu_channel_dot, tess_cpu_penalty;
extern const tess_kernel tess_cpu_moments, tess_cpu_score, tess_cpu_local_rx, tess_cpu_statistics_reference;
extern const tess_kernel tess_cpu_reference;
extern const tess_kernel *const tess_cpu_kernels[];

/* The conditions of the CPU for every layer of a network, for all kernels. */
tess_status tess_cpu_refuses_layer(const tess_device *device, const tess_op *op,
                                   tess_error *why) TESS_MUST_CHECK;
static inline bool tess_cpu_is_conv(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
}

/* The conditions of the CPU for backward ops and batch norms in training; of a fast kernel, which knows only some kinds. */
bool tess_cpu_is_pointwise_grad(const tess_op *op); /* and the average pooling */
tess_status tess_cpu_gradients_refuses(const tess_device *device, const tess_op *op,
                                       tess_error *why) TESS_MUST_CHECK;
tess_status tess_cpu_gradients_refuses_fast(const tess_device *device, const tess_op *op, bool known,
                                            tess_error *why) TESS_MUST_CHECK;

/* The conditions of both kernels of 3-D rays. */
tess_status tess_cpu_check_rays(const tess_op *op, tess_error *error) TESS_MUST_CHECK;

/* The functions of the FFT kernel. The filter kernel calls them, and keeps the FFT plans from prepare to run. */
tess_status tess_cpu_fft_refuses(const tess_device *device, const tess_op *op,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_cpu_fft_needs(tess_device *device, const tess_op *op, tess_op_needs *needs);
tess_status tess_cpu_fft_prepare(tess_device *device, const tess_op *op, void **out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_cpu_fft_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream);
void tess_cpu_fft_release(tess_device *device, void *state);

/* Weights of a direct convolution in fp32 blocks: [cout block][tap][cin][block]. A transposed convolution
 * stores a single-tap layout for each of its taps in turn. The padded bias follows. */
typedef struct tess_f32_layout {
    int64_t block, blocks; /* output channels per block; number of blocks */
    int64_t taps, cin;
    bool transposed; /* tap outermost */
    int64_t bias_at; /* offset in floats */
    int64_t floats;  /* total */
} tess_f32_layout;

tess_f32_layout tess_f32_layout_of(const tess_cpu *cpu, const tess_op *op);
void tess_f32_layout_pack(const tess_f32_layout *layout, const tess_op *op, int param, int64_t first,
                          int64_t count, const float *values, float *packed);

#endif
