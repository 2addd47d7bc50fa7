/* Host side of the group norm in clusters: what it accepts, whether the card can hold its clusters, launch. */
#include "cuda/core/load.h"
#include "cuda/norm/group_norm.h"
#include "cuda/norm/norm_cluster_kernel.cuh"

namespace
{

enum { MOST_IMAGES = 65535 }; /* of the grid in z */

typedef void (*cluster_function)(cluster_job);

template <typename T> cluster_function kernel_of_type(int segment)
{
    switch (segment) {
    case 1:
        return cluster_kernel<T, 1>;
    case 2:
        return cluster_kernel<T, 2>;
    case 4:
        return cluster_kernel<T, 4>;
    default:
        return cluster_kernel<T, 16 / (int)sizeof(T)>;
    }
}

cluster_function kernel_of(tess_dtype dtype, int segment)
{
    return dtype == TESS_F16    ? kernel_of_type<__half>(segment)
           : dtype == TESS_BF16 ? kernel_of_type<__nv_bfloat16>(segment)
                                : kernel_of_type<float>(segment);
}

bool split_of(const tess_op *op, tess_norm_split *s)
{
    const tess_tensor *in = &op->in[0];
    return tess_norm_split_of(tess_pixels(in), in->c, op->group_norm.groups, (int)tess_dtype_size(in->dtype),
                              s);
}

/* A launch of so many images: its grid, and the cluster and the early start as attributes. */
struct cluster_launch {
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config;
    cluster_launch(const tess_norm_split &s, int64_t images, cudaStream_t stream) : attributes(), config()
    {
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim.x = (unsigned)s.blocks;
        attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
        attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[1].val.programmaticStreamSerializationAllowed = 1;
        config.gridDim = dim3((unsigned)s.blocks, (unsigned)s.slices, (unsigned)images);
        config.blockDim = dim3(THREADS);
        config.dynamicSmemBytes = (size_t)s.shared;
        config.stream = stream;
        config.attrs = attributes;
        config.numAttrs = 2;
    }
};

bool whole(const tess_op *op, const void *from, const void *to)
{
    const int piece = TESS_NORM_PIECE / (int)tess_dtype_size(op->in[0].dtype);
    return tess_whole(&op->in[0], from, piece) && tess_whole(&op->out[0], to, piece);
}

} // namespace

extern "C" const char *tess_cuda_norm_cluster_refuses(const tess_op *op, int capability)
{
    tess_norm_split s;
    if (capability < 90)
        return "made for compute capability 9.0 and newer";
    if (op->in[0].dtype != op->out[0].dtype)
        return "takes one type at both ends";
    if (!whole(op, NULL, NULL))
        return "takes strides of 16 bytes";
    return split_of(op, &s) ? NULL
                            : "takes images that a cluster can hold in a few fills of its shared memory";
}

extern "C" cudaError_t tess_cuda_norm_cluster_load(const tess_op *op, bool *fits)
{
    tess_norm_split s;
    *fits = false;
    if (!split_of(op, &s))
        return cudaSuccess;
    const void *kernel = (const void *)kernel_of(op->in[0].dtype, s.segment);
    int clusters = 0;
    cluster_launch launch(s, 1, NULL);
    cudaError_t result =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TESS_NORM_SHARED);
    if (result == cudaSuccess)
        result = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (result == cudaSuccess)
        result = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxShared);
    launch.config.numAttrs = 1; /* the early start does not matter here */
    if (result == cudaSuccess)
        result = cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config);
    *fits = result == cudaSuccess && clusters > 0;
    if (!*fits) {
        (void)cudaGetLastError(); /* a card with less shared memory or smaller clusters: not a failure */
        return cudaSuccess;
    }
    return tess_cuda_load(kernel, TESS_NORM_SHARED);
}

extern "C" cudaError_t tess_cuda_norm_cluster_run(const tess_op *op, const tess_op_buffers *b,
                                                  cudaStream_t stream)
{
    cluster_job job = {};
    if (!whole(op, b->in[0], b->out[0])) /* a slice of channels that does not start at 16 bytes */
        return tess_cuda_group_norm_run(op, b, stream);
    if (!split_of(op, &job.s))
        return cudaErrorInvalidValue;
    job.in = op->in[0];
    job.out = op->out[0];
    job.flat_in = tess_flat(&op->in[0]);
    job.flat_out = tess_flat(&op->out[0]);
    job.leads = op->leads;
    job.activation = op->activation;
    job.epsilon = op->group_norm.epsilon;
    job.one = 1 / ((double)job.s.pixels * job.s.width);
    job.from = b->in[0];
    job.to = b->out[0];
    job.weights = (const float *)b->weights;
    job.modulation = op->inputs > 1 ? b->in[1] : NULL;
    job.more = op->in[1].dtype;
    job.more_stride = op->in[1].n == 1 ? 0 : op->in[1].stride_n;
    const cluster_function kernel = kernel_of(op->in[0].dtype, job.s.segment);
    cudaError_t result = cudaSuccess;
    for (; job.first_image < op->in[0].n && result == cudaSuccess; job.first_image += MOST_IMAGES) {
        const int64_t left = op->in[0].n - job.first_image;
        cluster_launch launch(job.s, left < MOST_IMAGES ? left : (int64_t)MOST_IMAGES, stream);
        result = cudaLaunchKernelEx(&launch.config, kernel, job);
    }
    return result;
}
