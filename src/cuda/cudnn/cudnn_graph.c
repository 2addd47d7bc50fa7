/* cudnn_graph.c: an op as one cuDNN graph: the convolution, then its additions and ReLU. All tensors between
 * them are virtual (they stay in registers, in fp32).
 *
 * cuDNN has prebuilt fast kernels for only one form of graph: convolution, residual, bias in the tensors'
 * type, ReLU, in this order, where all but the bias may be missing. Any other graph is compiled when its plan
 * is made, which takes a third of a second or more for each image size. So that form is used wherever
 * possible, with zeros for a missing bias. The other ops (two residuals) use a graph of any size, which is
 * compiled once per class and is slower.
 *
 * A transposed convolution whose kernel equals its stride writes each input pixel to a separate block: it is
 * one 1x1 convolution for each position in the block, into a strided view of the output. If the output is
 * dense, the positions of one row of the block are additional channels of the same pixel, so one convolution
 * writes the whole row.
 *
 * The gradient of a kernel is a graph of one operation. Its result is [out][kh][kw][in], in fp32 or, since cuDNN has
 * few fast kernels for that, in the type of the inputs; it is converted afterwards. */
#include "cuda/cudnn/cudnn_graph.h"

#include <string.h>

enum { MOST_ENDS = 2 + TESS_OP_RESIDUALS };

static cudnnDataType_t data_type(tess_dtype dtype)
{
    return dtype == TESS_F16 ? CUDNN_DATA_HALF : dtype == TESS_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

void tess_cudnn_split(const tess_op *op, tess_cudnn_parts *parts)
{
    *parts = (tess_cudnn_parts){.conv = *op, .count = 1, .columns = 1};
    if (op->kind != TESS_OP_CONV_TRANSPOSE)
        return;
    const int64_t wide = op->kernel[TESS_WIDTH], together = op->out[0].stride_w == op->out[0].c ? wide : 1;
    tess_op *conv = &parts->conv;
    parts->columns = wide / together;
    parts->count = op->kernel[TESS_HEIGHT] * (int)parts->columns;
    parts->weights = together * op->out[0].c * op->in[0].c;
    conv->kind = TESS_OP_CONV;
    conv->out[0].h = op->in[0].h;
    conv->out[0].w = op->in[0].w;
    conv->out[0].c *= together;
    conv->out[0].stride_h *= op->kernel[TESS_HEIGHT];
    conv->out[0].stride_w *= wide;
    for (int s = 0; s < TESS_SPATIAL; s++)
        conv->kernel[s] = conv->stride[s] = 1;
}

static void *moved(const void *from, int64_t elements, tess_dtype dtype)
{
    return (char *)from + elements * (int64_t)tess_dtype_size(dtype);
}

void tess_cudnn_pointers(const tess_op *op, const tess_cudnn_parts *parts, int part,
                         const tess_op_buffers *buffers, void *pointers[TESS_CUDNN_TENSORS])
{
    int64_t y = part / parts->columns, x = part % parts->columns;
    pointers[TESS_CUDNN_IN] = (void *)buffers->in[0];
    if (op->kind == TESS_OP_CONV_GRAD) {
        pointers[TESS_CUDNN_WEIGHTS] = buffers->workspace;
        pointers[TESS_CUDNN_OUT] = (void *)buffers->in[1];
        return;
    }
    pointers[TESS_CUDNN_WEIGHTS] = moved(buffers->weights, part * parts->weights, op->in[0].dtype);
    pointers[TESS_CUDNN_OUT] =
        moved(buffers->out[0], y * op->out[0].stride_h + x * op->out[0].stride_w, op->out[0].dtype);
    for (int i = 0; i < tess_op_residuals(op); i++)
        pointers[TESS_CUDNN_RESIDUAL + i] = (void *)buffers->in[1 + i];
}

bool tess_cudnn_ready_made(const tess_op *conv)
{
    return conv->kind != TESS_OP_CONV_GRAD && tess_op_residuals(conv) <= 1 &&
           conv->out[0].c <= TESS_CUDNN_CHANNELS;
}

bool tess_cudnn_adds_bias(const tess_op *conv, bool any_size)
{
    return conv->kind != TESS_OP_CONV_GRAD &&
           (conv->bias || (!any_size && (tess_op_residuals(conv) || tess_op_relu(conv))));
}

/* cuDNN orders dimensions as N, C, H, W in every layout. A virtual tensor is a value between two operations. */
static cudnnBackendDescriptor_t tensor(tess_cudnn_bag *bag, int64_t id, cudnnDataType_t type,
                                       const int64_t *size, const int64_t *stride, bool is_virtual)
{
    int64_t alignment = 16;
    cudnnBackendDescriptor_t item = tess_cudnn_make(bag, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tess_cudnn_set(bag, item, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    tess_cudnn_set(bag, item, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    tess_cudnn_set(bag, item, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    tess_cudnn_set(bag, item, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    tess_cudnn_set(bag, item, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    tess_cudnn_set(bag, item, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    tess_cudnn_seal(bag, item, "a tensor");
    return item;
}

static cudnnBackendDescriptor_t image(tess_cudnn_bag *bag, int place, const tess_tensor *t)
{
    const int64_t size[4] = {t->n, t->c, t->h, t->w}, stride[4] = {t->stride_n, 1, t->stride_h, t->stride_w};
    return tensor(bag, 1 + place, data_type(t->dtype), size, stride, false);
}

static cudnnBackendDescriptor_t window(tess_cudnn_bag *bag, const tess_op *op)
{
    const int64_t dims = 2, dilation[2] = {1, 1},
                  stride[2] = {op->stride[TESS_HEIGHT], op->stride[TESS_WIDTH]};
    const int64_t before[2] = {op->pad_before[TESS_HEIGHT], op->pad_before[TESS_WIDTH]};
    const int64_t after[2] = {op->pad_after[TESS_HEIGHT], op->pad_after[TESS_WIDTH]};
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t how = tess_cudnn_make(bag, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    tess_cudnn_set(bag, how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    tess_cudnn_seal(bag, how, "a convolution's description");
    return how;
}

/* A kernel, or its gradient: [out][kh][kw][in]. */
static cudnnBackendDescriptor_t kernel_of(tess_cudnn_bag *bag, const tess_op *op, int64_t outputs,
                                          tess_dtype dtype)
{
    const int64_t kh = op->kernel[TESS_HEIGHT], kw = op->kernel[TESS_WIDTH], c = op->in[0].c;
    const int64_t size[4] = {outputs, c, kh, kw}, strides[4] = {kh * kw * c, 1, kw * c, c};
    return tensor(bag, 1 + TESS_CUDNN_WEIGHTS, data_type(dtype), size, strides, false);
}

static cudnnBackendDescriptor_t convolution(tess_cudnn_bag *bag, const tess_op *op,
                                            cudnnBackendDescriptor_t y)
{
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t x = image(bag, TESS_CUDNN_IN, &op->in[0]);
    cudnnBackendDescriptor_t w = kernel_of(bag, op, op->out[0].c, op->in[0].dtype), how = window(bag, op);
    cudnnBackendDescriptor_t item =
        tess_cudnn_make(bag, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &x);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &w);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &y);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    tess_cudnn_seal(bag, item, "a convolution");
    return item;
}

static cudnnBackendDescriptor_t gradient(tess_cudnn_bag *bag, const tess_op *op, tess_dtype result)
{
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t x = image(bag, TESS_CUDNN_IN, &op->in[0]),
                             dy = image(bag, TESS_CUDNN_OUT, &op->in[1]);
    cudnnBackendDescriptor_t dw = kernel_of(bag, op, op->in[1].c, result), how = window(bag, op);
    cudnnBackendDescriptor_t item =
        tess_cudnn_make(bag, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &x);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   1, &dy);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   1, &dw);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    tess_cudnn_seal(bag, item, "the gradient of a kernel");
    return item;
}

/* y = x + b, or y = max(x, 0) if b is NULL. */
static cudnnBackendDescriptor_t pointwise(tess_cudnn_bag *bag, cudnnBackendDescriptor_t x,
                                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    const cudnnPointwiseMode_t mode = b ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD;
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = tess_cudnn_make(bag, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    tess_cudnn_set(bag, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    tess_cudnn_set(bag, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    tess_cudnn_seal(bag, how, "an add's description");
    cudnnBackendDescriptor_t item = tess_cudnn_make(bag, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &how);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b)
        tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
    tess_cudnn_set(bag, item, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    tess_cudnn_seal(bag, item, "an add");
    return item;
}

tess_dtype tess_cudnn_grad_type(const tess_op *op, bool any_size)
{
    return any_size ? op->in[0].dtype : TESS_F32;
}

/* The operations of a layer: the convolution and its ends. Returns their number. */
static int layer(const tess_op *op, bool any_size, tess_cudnn_bag *bag, cudnnBackendDescriptor_t *operations)
{
    cudnnBackendDescriptor_t adds[MOST_ENDS];
    const tess_tensor *o = &op->out[0];
    const int64_t size[4] = {o->n, o->c, o->h, o->w}, stride[4] = {o->h * o->w * o->c, 1, o->w * o->c, o->c};
    const int64_t bias_size[4] = {1, o->c, 1, 1}, bias_stride[4] = {o->c, 1, o->c, o->c};
    const cudnnDataType_t bias_type = any_size ? CUDNN_DATA_FLOAT : data_type(o->dtype);
    int ends = 0;
    for (int i = 0; i < tess_op_residuals(op); i++)
        adds[ends++] = image(bag, TESS_CUDNN_RESIDUAL + i, &op->in[1 + i]);
    if (tess_cudnn_adds_bias(op, any_size))
        adds[ends++] = tensor(bag, 1 + TESS_CUDNN_BIAS, bias_type, bias_size, bias_stride, false);
    if (tess_op_relu(op))
        adds[ends++] = NULL;
    cudnnBackendDescriptor_t value = NULL;
    for (int i = 0; i <= ends; i++) {
        cudnnBackendDescriptor_t y = i == ends ? image(bag, TESS_CUDNN_OUT, o)
                                               : tensor(bag, 100 + i, CUDNN_DATA_FLOAT, size, stride, true);
        operations[i] = i == 0 ? convolution(bag, op, y) : pointwise(bag, value, adds[i - 1], y);
        value = y;
    }
    return ends + 1;
}

cudnnBackendDescriptor_t tess_cudnn_graph(tess_cudnn *cudnn, const tess_op *op, bool any_size,
                                          tess_cudnn_bag *bag)
{
    cudnnBackendDescriptor_t operations[1 + MOST_ENDS];
    const bool grad = op->kind == TESS_OP_CONV_GRAD;
    int count = 1;
    if (grad)
        operations[0] = gradient(bag, op, tess_cudnn_grad_type(op, any_size));
    else
        count = layer(op, any_size, bag, operations);
    cudnnBackendDescriptor_t graph = tess_cudnn_make(bag, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    tess_cudnn_set(bag, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle);
    tess_cudnn_set(bag, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                   operations);
    if (any_size && !grad)
        tess_cudnn_set(bag, graph, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, CUDNN_TYPE_BOOLEAN, 1,
                       &any_size);
    tess_cudnn_seal(bag, graph, "this op's graph");
    return bag->failed ? NULL : graph;
}
