/* The kernels of the NVIDIA device, as rows in order of preference when nothing was measured. Each row wraps
 * the launchers of a family of .cu files. cuDNN and the volumes select kernels themselves and have their own
 * files. */
#include "cuda/core/rows.h"

#include "cuda/core/device_impl.h"

static bool is_samples(const tess_op *op)
{
    return op->kind == TESS_OP_IMPORT || op->kind == TESS_OP_EXPORT;
}

static bool is_vector(const tess_op *op)
{
    return op->kind == TESS_OP_COMBINE || op->kind == TESS_OP_DOT || op->kind == TESS_OP_SPECTRUM;
}

static bool is_fft(const tess_op *op)
{
    return op->kind == TESS_OP_FFT;
}

static bool is_filter(const tess_op *op)
{
    return op->kind == TESS_OP_FILTER;
}

static bool is_transform(const tess_op *op)
{
    return is_fft(op) || is_filter(op);
}

static bool is_side_sum(const tess_op *op)
{
    return op->kind == TESS_OP_SIDE_SUM;
}

static bool is_attention(const tess_op *op)
{
    return op->kind == TESS_OP_ATTENTION;
}

static bool is_pointwise_grad(const tess_op *op)
{
    return op->kind == TESS_OP_ACTIVATE_GRAD || op->kind == TESS_OP_POOL_GRAD ||
           op->kind == TESS_OP_UPSAMPLE_GRAD || op->kind == TESS_OP_AVERAGE_POOL ||
           op->kind == TESS_OP_AVERAGE_POOL_GRAD || op->kind == TESS_OP_DROPOUT;
}

static bool is_noise(const tess_op *op)
{
    return op->kind == TESS_OP_NOISE;
}

static bool is_diffuse(const tess_op *op)
{
    return op->kind == TESS_OP_SELECT || op->kind == TESS_OP_DIFFUSE;
}

static bool is_loss(const tess_op *op)
{
    return op->kind == TESS_OP_LOSS && !tess_loss_by_image(op->loss.kind) && op->loss.kind != TESS_IOU;
}

static bool is_loss_iou(const tess_op *op)
{
    return op->kind == TESS_OP_LOSS && op->loss.kind == TESS_IOU;
}

static bool is_channel_map(const tess_op *op)
{
    return op->kind == TESS_OP_CHANNEL_MAP || op->kind == TESS_OP_CHANNEL_MAP_GRAD;
}

static bool is_channel_dot(const tess_op *op)
{
    return op->kind == TESS_OP_CHANNEL_DOT || op->kind == TESS_OP_CHANNEL_DOT_GRAD;
}

static bool is_penalty(const tess_op *op)
{
    return op->kind == TESS_OP_PENALTY;
}

static bool is_loss_rms(const tess_op *op)
{
    return op->kind == TESS_OP_LOSS && tess_loss_by_image(op->loss.kind);
}

static bool is_optimize(const tess_op *op)
{
    return op->kind == TESS_OP_OPTIMIZE || op->kind == TESS_OP_AVERAGE;
}

static bool is_batch_norm(const tess_op *op)
{
    return op->kind == TESS_OP_BATCH_NORM_TRAIN || op->kind == TESS_OP_BATCH_NORM_GRAD;
}

static bool is_group_norm_grad(const tess_op *op)
{
    return op->kind == TESS_OP_GROUP_NORM_GRAD;
}

static bool is_attention_grad(const tess_op *op)
{
    return op->kind == TESS_OP_ATTENTION_GRAD;
}

static bool is_moments(const tess_op *op)
{
    return op->kind == TESS_OP_MOMENTS;
}

static bool is_score(const tess_op *op)
{
    return op->kind == TESS_OP_SCORE;
}

static bool is_local_rx(const tess_op *op)
{
    return op->kind == TESS_OP_LOCAL_RX;
}

static bool is_rays(const tess_op *op)
{
    return op->kind == TESS_OP_PROJECT || op->kind == TESS_OP_BACKPROJECT || op->kind == TESS_OP_RAY_COSINE ||
           op->kind == TESS_OP_RAY_SPREAD;
}

static bool is_flip(const tess_op *op)
{
    return op->kind == TESS_OP_FLIP;
}

static bool is_channel_sum(const tess_op *op)
{
    return op->kind == TESS_OP_CHANNEL_SUM;
}

static bool is_conv_grad(const tess_op *op)
{
    return op->kind == TESS_OP_CONV_GRAD;
}

static bool is_hopper(const tess_op *op)
{
    return &tess_cuda_hopper && tess_cuda_has_choice(op);
}

/* cuFFT reports its needs only after a plan is made. If that fails, the row refuses with cuFFT's message. */
static tess_status refuse_by_prepare(const tess_cuda_launch *launch, const tess_op *op, tess_error *why)
{
    void *handle = NULL;
    if (!why || launch->prepare(op, &handle, why) != TESS_OK)
        return TESS_UNSUPPORTED;
    launch->release(handle);
    return tess_kernel_refuse(why, "it cannot tell its workspace");
}

static tess_status launch_refuses(const tess_cuda_launch *launch, bool mine, const tess_device *device,
                                  const tess_op *op, tess_error *why)
{
    if (!mine)
        return tess_kernel_refuse(why, NULL);
    const char *reason = launch->refuses(op, tess_cuda_of((tess_device *)device)->capability);
    if (reason)
        return tess_kernel_refuse(why, reason);
    return launch->prepare && launch->workspace && launch->workspace(op) == SIZE_MAX
               ? refuse_by_prepare(launch, op, why)
               : TESS_OK;
}

static void launch_needs(const tess_cuda_launch *launch, const tess_op *op, tess_op_needs *needs)
{
    needs->workspace = launch->workspace ? launch->workspace(op) : 0;
    needs->weights = tess_cuda_weight_bytes(op);
}

static void launch_run(const tess_cuda_launch *launch, const char *name, tess_device *device,
                       const tess_op *op, void *state, const tess_op_buffers *buffers, tess_stream *stream)
{
    tess_cuda_enter(device);
    const cudaStream_t queue = tess_cuda_stream_of(device, stream);
    if (!launch->run_prepared) {
        tess_cuda_keep(device, launch->run(op, buffers, queue), name);
        return;
    }
    tess_error error;
    const tess_status status = launch->run_prepared(state, op, buffers, queue, &error);
    if (status != TESS_OK)
        tess_cuda_keep_text(device, status, error.text);
}

static tess_status launch_prepare(const tess_cuda_launch *launch, tess_device *device, const tess_op *op,
                                  void **state, tess_error *error)
{
    tess_cuda_enter(device);
    return launch->prepare ? launch->prepare(op, state, error) : TESS_OK;
}

/* A row made from a table of launchers. */
#define LAUNCHED(row, text, launch, mine)                                                                    \
    static tess_status row##_refuses(const tess_device *device, const tess_op *op, tess_error *why)          \
    {                                                                                                        \
        return launch_refuses(&launch, mine(op), device, op, why);                                           \
    }                                                                                                        \
    static void row##_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)                    \
    {                                                                                                        \
        tess_cuda_enter(device);                                                                             \
        launch_needs(&launch, op, needs);                                                                    \
    }                                                                                                        \
    static tess_status row##_prepare(tess_device *device, const tess_op *op, void **state,                   \
                                     tess_error *error)                                                      \
    {                                                                                                        \
        return launch_prepare(&launch, device, op, state, error);                                            \
    }                                                                                                        \
    static void row##_run(tess_device *device, const tess_op *op, void *state,                               \
                          const tess_op_buffers *buffers, tess_stream *stream)                               \
    {                                                                                                        \
        launch_run(&launch, text, device, op, state, buffers, stream);                                       \
    }                                                                                                        \
    static void row##_release(tess_device *device, void *state)                                              \
    {                                                                                                        \
        tess_cuda_enter(device);                                                                             \
        if (state)                                                                                           \
            launch.release(state);                                                                           \
    }                                                                                                        \
    static const tess_kernel row = {.name = text,                                                            \
                                    .refuses = row##_refuses,                                                \
                                    .needs = row##_needs,                                                    \
                                    .pack = tess_cuda_pack_op,                                               \
                                    .prepare = row##_prepare,                                                \
                                    .run = row##_run,                                                        \
                                    .release = row##_release};

LAUNCHED(samples, "samples", tess_cuda_samples, is_samples)
LAUNCHED(vector, "vector", tess_cuda_vector, is_vector)
LAUNCHED(lines, "lines", tess_cuda_filter, is_transform)
LAUNCHED(cufft, "cufft", tess_cuda_fft, is_fft)
LAUNCHED(cufft_filter, "cufft", tess_cuda_filter_whole, is_filter)
LAUNCHED(side_sum, "side sum", tess_cuda_side_sum, is_side_sum)
LAUNCHED(small_heads, "small heads", tess_cuda_attention_matrix, is_attention)
LAUNCHED(attention, "attention", tess_cuda_attention, is_attention)
LAUNCHED(pointwise_grad, "pointwise", tess_cuda_pointwise_grad, is_pointwise_grad)
LAUNCHED(noise, "noise", tess_cuda_noise, is_noise)
LAUNCHED(diffuse, "diffuse", tess_cuda_diffuse, is_diffuse)
LAUNCHED(loss, "loss", tess_cuda_loss, is_loss)
LAUNCHED(loss_rms, "loss", tess_cuda_loss_rms, is_loss_rms)
LAUNCHED(loss_iou, "loss", tess_cuda_loss_iou, is_loss_iou)
LAUNCHED(channel_map, "channel map", tess_cuda_channel_map, is_channel_map)
LAUNCHED(channel_dot, "channel dot", tess_cuda_channel_dot, is_channel_dot)
LAUNCHED(penalty, "penalty", tess_cuda_penalty, is_penalty)
LAUNCHED(optimize, "optimize", tess_cuda_optimize, is_optimize)
LAUNCHED(batch_norm, "batch norm", tess_cuda_batch_norm, is_batch_norm)
LAUNCHED(group_norm_grad, "group norm", tess_cuda_group_norm_grad, is_group_norm_grad)
LAUNCHED(attention_grad, "attention", tess_cuda_attention_grad, is_attention_grad)
LAUNCHED(moments, "moments", tess_cuda_moments, is_moments)
LAUNCHED(score, "score", tess_cuda_score, is_score)
LAUNCHED(local_rx, "local rx", tess_cuda_local_rx, is_local_rx)
LAUNCHED(rays, "rays", tess_cuda_rays, is_rays)
LAUNCHED(flip, "flip", tess_cuda_flip, is_flip)
LAUNCHED(channel_sum, "channel sum", tess_cuda_channel_sum, is_channel_sum)
LAUNCHED(hopper, "hopper", tess_cuda_hopper, is_hopper)
LAUNCHED(conv_grad, "generic", tess_cuda_conv_grad, is_conv_grad)
LAUNCHED(generic, "generic", tess_cuda_generic, tess_cuda_is_image_layer)

const tess_kernel *const tess_cuda_kernels[] = {&samples,
                                                &vector,
                                                &lines,
                                                &cufft,
                                                &cufft_filter,
                                                &side_sum,
                                                &tess_cuda_volume,
                                                &rays,
                                                &tess_cuda_norm_clusters,
                                                &tess_cuda_group_norm,
                                                &small_heads,
                                                &attention,
                                                &flip,
                                                &channel_sum,
                                                &pointwise_grad,
                                                &noise,
                                                &diffuse,
                                                &loss,
                                                &loss_rms,
                                                &loss_iou,
                                                &channel_map,
                                                &channel_dot,
                                                &penalty,
                                                &optimize,
                                                &batch_norm,
                                                &group_norm_grad,
                                                &attention_grad,
                                                &moments,
                                                &score,
                                                &local_rx,
                                                &hopper,
                                                &tess_cuda_cudnn_row,
                                                &conv_grad,
                                                &generic,
                                                NULL};

tess_status tess_cuda_load_kernels(int capability, tess_error *error)
{
    const tess_cuda_launch *const all[] = {&tess_cuda_vector, &tess_cuda_filter, &tess_cuda_hopper,
                                           &tess_cuda_generic};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] && all[i]->load)
            TESS_TRY(tess_cuda_check(all[i]->load(capability), "loading kernels", error));
    return TESS_OK;
}
