/* Group norm as two rows of the NVIDIA device's kernels, for the same packed parameters: in clusters, for images that fit
 * them, and in three launches, for all. */
#include "cuda/norm/group_norm.h"

#include "cuda/core/device_impl.h"

static bool is_value(tess_dtype dtype)
{
    return dtype == TESS_F32 || dtype == TESS_F16 || dtype == TESS_BF16;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    const tess_dtype in = op->in[0].dtype, out = op->out[0].dtype;
    if (op->kind != TESS_OP_GROUP_NORM)
        return tess_kernel_refuse(why, NULL);
    if (!is_value(in) || !is_value(out) || (op->inputs > 1 && !is_value(op->in[1].dtype)))
        return tess_kernel_refuse(why, "values are fp32, fp16 or bf16");
    if (in != out && in != TESS_F32 && out != TESS_F32)
        return tess_kernel_refuse(why, "values change their type from or to fp32 only");
    if (op->in[0].c > 1 << 20 || op->in[0].d * op->in[0].h * op->in[0].w > INT32_MAX)
        return tess_kernel_refuse(why, "takes up to 1048576 channels and 2147483647 pixels an image");
    return TESS_OK;
}

static tess_status cluster_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    TESS_TRY(refuses(device, op, why));
    const char *reason = tess_cuda_norm_cluster_refuses(op, tess_cuda_of((tess_device *)device)->capability);
    return reason ? tess_kernel_refuse(why, reason) : TESS_OK;
}

static void norm_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    needs->workspace = tess_cuda_group_norm_workspace(op);
    needs->weights = 2 * (size_t)op->in[0].c * sizeof(float);
}

static void norm_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                      const float *values, void *packed)
{
    float *to = (float *)packed + (param == TESS_PARAM_BIAS ? op->in[0].c : 0) + first;
    const cudaStream_t stream = tess_cuda_of(device)->stream;
    tess_cuda_enter(device);
    tess_cuda_keep(device,
                   cudaMemcpyAsync(to, values, (size_t)count * sizeof(float), cudaMemcpyDefault, stream),
                   "copy of weights");
    tess_cuda_keep(device, cudaStreamSynchronize(stream), "copy of weights");
}

static void norm_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state;
    tess_cuda_enter(device);
    tess_cuda_keep(device, tess_cuda_group_norm_run(op, buffers, tess_cuda_stream_of(device, stream)),
                   "group norm");
}

/* A later row does the op on a card whose clusters are too small. */
static tess_status cluster_prepare(tess_device *device, const tess_op *op, void **state, tess_error *error)
{
    bool fits = false;
    *state = NULL;
    tess_cuda_enter(device);
    TESS_TRY(tess_cuda_check(tess_cuda_norm_cluster_load(op, &fits), "loading kernels", error));
    return fits ? TESS_OK : tess_kernel_refuse(error, "this card cannot hold a cluster of this size");
}

static void cluster_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                        tess_stream *stream)
{
    (void)state;
    tess_cuda_enter(device);
    tess_cuda_keep(device, tess_cuda_norm_cluster_run(op, buffers, tess_cuda_stream_of(device, stream)),
                   "group norm in clusters");
}

const tess_kernel tess_cuda_norm_clusters = {.name = "norm clusters",
                                             .refuses = cluster_refuses,
                                             .needs = norm_needs,
                                             .pack = norm_pack,
                                             .prepare = cluster_prepare,
                                             .run = cluster_run};

const tess_kernel tess_cuda_group_norm = {
    .name = "group norm", .refuses = refuses, .needs = norm_needs, .pack = norm_pack, .run = norm_run};
