/* The row for rays: the ops that it accepts and their kernels. The tables of views are in the buffers'
 * weights, fp64. */
#include "cuda/rays/rays.h"

static bool is_rays(const tess_op *op)
{
    return op->kind == TESS_OP_PROJECT || op->kind == TESS_OP_BACKPROJECT || op->kind == TESS_OP_RAY_COSINE ||
           op->kind == TESS_OP_RAY_SPREAD;
}

static const char *refuses_2d(const tess_op *op)
{
    const bool forward = op->kind == TESS_OP_PROJECT;
    const tess_tensor *image = forward ? &op->in[0] : &op->out[0],
                      *views = forward ? &op->out[0] : &op->in[0];
    if (op->kind != TESS_OP_PROJECT && op->kind != TESS_OP_BACKPROJECT)
        return "this is for 3-D rays";
    if (image->d != 1 || views->d != 1 || image->stride_w != 1 || views->stride_w != 1 ||
        image->h != image->w || image->h < 2)
        return "the Radon transform takes one square image, at least 2 x 2, and its views";
    if (image->stride_h > 1 << 22 || image->h > 1 << 18 || views->w > 1 << 18 || op->rays.along > 1 << 19)
        return "the Radon transform takes sides of at most 262144 and rows of at most 4194304 values";
    return NULL;
}

static const char *refuses_3d(const tess_op *op)
{
    const bool forward = op->kind == TESS_OP_PROJECT, cosine = op->kind == TESS_OP_RAY_COSINE;
    const tess_tensor *volume = forward ? &op->in[0] : &op->out[0];
    if (!(op->rays.spacing > 0))
        return "voxels must have a size above 0";
    if (cosine)
        return op->out[0].d != op->in[0].d || op->out[0].h != op->in[0].h || op->out[0].w < op->in[0].w
                   ? "weighted views must have room for all that is weighted"
                   : NULL;
    const int64_t depth = op->rays.depth ? op->rays.depth : volume->d, most = 1 << 23;
    if (op->rays.first < 0 || op->rays.first + volume->d > depth)
        return "the slab is not in the volume";
    if (depth > most || volume->h > most || volume->w > most)
        return "a side of more than 8388608 voxels";
    return NULL;
}

static const char *rays_refuses(const tess_op *op, int capability)
{
    (void)capability;
    if (!is_rays(op))
        return "only rays are followed";
    if (op->in[0].dtype != TESS_F32 || op->out[0].dtype != TESS_F32)
        return "rays are computed in fp32";
    if (op->in[0].n != 1 || op->out[0].n != 1 || op->in[0].c != 1 || op->out[0].c != 1)
        return "rays go through one volume of one channel";
    return op->rays.geometry == TESS_PARALLEL_2D ? refuses_2d(op) : refuses_3d(op);
}

static cudaError_t rays_run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const bool flat = op->rays.geometry == TESS_PARALLEL_2D;
    if (op->kind == TESS_OP_PROJECT)
        return (flat ? tess_cuda_radon_project : tess_cuda_rays_project)(op, buffers, stream);
    if (op->kind == TESS_OP_BACKPROJECT)
        return (flat ? tess_cuda_radon_back : tess_cuda_rays_back)(op, buffers, stream);
    return tess_cuda_fdk(op, buffers, stream);
}

const tess_cuda_launch tess_cuda_rays = {.refuses = rays_refuses, .run = rays_run};
