/* Plans: an op's graph bound to one of cuDNN's engines. Creates and runs them. */
#include "cuda/cudnn/cudnn.h"

#include <stdio.h>
#include <string.h>

#include "cuda/convgrad/conv_grad.h"
#include "cuda/cudnn/cudnn_engine.h"

enum { CANDIDATES = 64, PACKS = 32, ALIGNMENT = 256 };

/* cuDNN takes the pointers of a run as a finished descriptor. Layers of one shape share a plan, so it keeps
 * the last sets of pointers. */
typedef struct pack {
    cudnnBackendDescriptor_t item;
    void *pointers[TESS_CUDNN_TENSORS];
    void *workspace;
} pack;

struct tess_cudnn_plan {
    tess_cudnn *cudnn;
    tess_op op;
    tess_cudnn_parts parts;
    tess_cudnn_bag bag;
    cudnnBackendDescriptor_t execution;
    int64_t engine;
    /* Parts of the workspace before cuDNN's own: a rounded bias, or the result and the sums of a gradient. */
    size_t workspace, rounded, result;
    bool adds_bias;
    tess_dtype dtype; /* of a gradient's result */
    char text[256];
    pack packs[PACKS];
    int oldest;
};

static const char *refuses_tensor(const tess_tensor *t, const tess_op *op)
{
    const int64_t unit = 16 / (int64_t)tess_dtype_size(t->dtype);
    if (t->dtype != op->in[0].dtype)
        return "the tensors differ in their type";
    if (t->d != 1)
        return "it is not 2-D";
    if (t->c % 8)
        return "the channels are not a multiple of 8";
    if (t->stride_w % unit || t->stride_h % unit || t->stride_n % unit)
        return "the strides are not multiples of 16 bytes";
    /* Compiled engines accept any strides but ignore gaps. */
    if (t->stride_h != t->w * t->stride_w || (t->n > 1 && t->stride_n != t->h * t->stride_h))
        return "there are gaps between the rows";
    return NULL;
}

static const char *refuses_grad(const tess_op *op)
{
    const char *why = tess_cuda_conv_grad_refuses(op);
    if (!why && tess_op_is_pair(op))
        why = "takes one convolution at a time";
    why = why ? why : refuses_tensor(&op->in[0], op);
    return why ? why : refuses_tensor(&op->in[1], op);
}

const char *tess_cudnn_refuses(const tess_op *op)
{
    if (op->kind == TESS_OP_CONV_GRAD)
        return refuses_grad(op);
    if (op->kind != TESS_OP_CONV && op->kind != TESS_OP_CONV_TRANSPOSE)
        return "not a convolution";
    const tess_dtype dtype = op->in[0].dtype;
    if (dtype == TESS_F32 ? !op->tf32 : dtype != TESS_F16 && dtype != TESS_BF16)
        return dtype == TESS_F32 ? "its sums in fp32 depend on the batch" : "not a type that it computes in";
    if (op->kernel[TESS_DEPTH] != 1 || op->stride[TESS_DEPTH] != 1)
        return "it is not 2-D";
    if (op->mapped || op->masked)
        return op->mapped ? "a map is added" : "it takes no mask";
    const char *why = refuses_tensor(&op->in[0], op);
    why = why ? why : refuses_tensor(&op->out[0], op);
    for (int i = 0; i < tess_op_residuals(op); i++)
        why = why ? why : refuses_tensor(&op->in[1 + i], op);
    if (op->kind == TESS_OP_CONV_TRANSPOSE && (op->bias || tess_op_relu(op) || tess_op_residuals(op)))
        return "something is fused to a transposed convolution";
    for (int s = TESS_HEIGHT; s < TESS_SPATIAL && !why; s++) {
        if (op->pad_before[s] < 0 || op->pad_after[s] < 0)
            why = "a padding is negative";
        if (op->kind == TESS_OP_CONV_TRANSPOSE &&
            (op->kernel[s] != op->stride[s] || op->pad_before[s] || op->pad_after[s]))
            why = "its kernel is not its stride";
    }
    return why;
}

static int propose(tess_cudnn *cudnn, const tess_op *conv, bool any_size, int64_t *engines, int most)
{
    tess_cudnn_bag bag = {.api = &cudnn->api};
    cudnnBackendDescriptor_t graph = tess_cudnn_graph(cudnn, conv, any_size, &bag);
    int count = graph ? tess_cudnn_proposals(conv, any_size, graph, &bag, engines, most) : 0;
    tess_cudnn_bag_free(&bag);
    return count;
}

int tess_cudnn_candidates(tess_cudnn *cudnn, const tess_op *op, size_t workspace_limit, int64_t *engines,
                          int most)
{
    (void)workspace_limit; /* known only after a plan is made; see plan_create */
    if (tess_cudnn_refuses(op))
        return 0;
    tess_cudnn_parts parts;
    tess_cudnn_split(op, &parts);
    if (op->kind == TESS_OP_CONV_GRAD) { /* exact results first */
        const int exact = propose(cudnn, op, false, engines, most);
        return op->in[0].dtype == TESS_F32 || exact == most
                   ? exact
                   : exact + propose(cudnn, op, true, engines + exact, most - exact);
    }
    int count = tess_cudnn_ready_made(&parts.conv) ? propose(cudnn, &parts.conv, false, engines, most) : 0;
    if (op->kind == TESS_OP_CONV && count < most) /* the parts of a transposed convolution have gaps */
        count += propose(cudnn, &parts.conv, true, engines + count, most - count);
    return count;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* A gradient needs room for its result and for the sums of its bias. */
static void place_gradient(tess_cudnn_plan *plan, bool any_size)
{
    const tess_op *op = &plan->op;
    plan->dtype = tess_cudnn_grad_type(op, any_size);
    plan->result =
        aligned((size_t)(tess_op_taps(op) * op->in[0].c * op->in[1].c) * tess_dtype_size(plan->dtype));
    plan->rounded = plan->result + (op->outputs > 1 ? aligned(tess_cuda_channel_sum_bytes(&op->in[1])) : 0);
}

/* Converts the result to the order of a weight file, and sums the bias. */
static tess_status finish_gradient(const tess_cudnn_plan *plan, const tess_op_buffers *buffers,
                                   cudaStream_t stream, tess_error *error)
{
    const tess_op *op = &plan->op;
    const tess_sums sums = {.of = {{.values = buffers->workspace,
                                    .dtype = plan->dtype,
                                    .parts = 1,
                                    .rows = op->in[1].c,
                                    .taps = tess_op_taps(op),
                                    .columns = op->in[0].c,
                                    .out_rows = op->in[1].c,
                                    .out_columns = op->in[0].c,
                                    .out = buffers->out[0]}},
                            .count = 1,
                            .accumulate = op->grad.accumulate};
    TESS_TRY(tess_cuda_check(tess_cuda_sum_parts(&sums, stream), "converting a gradient", error));
    if (op->outputs < 2)
        return TESS_OK;
    return tess_cuda_check(tess_cuda_channel_sum_run(&op->in[1], buffers->in[1],
                                                     (char *)buffers->workspace + plan->result,
                                                     buffers->out[1], op->grad.accumulate, stream),
                           "summing a gradient", error);
}

static tess_status finish(tess_cudnn_plan *plan, int64_t engine, size_t workspace_limit, tess_error *error)
{
    tess_cudnn *cudnn = plan->cudnn;
    tess_cudnn_bag *bag = &plan->bag;
    const tess_op *conv = &plan->parts.conv;
    const bool any_size = tess_cudnn_any_size(engine), grad = plan->op.kind == TESS_OP_CONV_GRAD;
    char text[192] = "";
    if (grad       ? any_size && conv->in[0].dtype == TESS_F32
        : any_size ? plan->op.kind != TESS_OP_CONV
                   : !tess_cudnn_ready_made(conv))
        return tess_fail(error, TESS_UNSUPPORTED, "cuDNN: the engine is not one for this op");
    cudnnBackendDescriptor_t graph = tess_cudnn_graph(cudnn, conv, any_size, bag);
    cudnnBackendDescriptor_t config = tess_cudnn_engine(bag, graph, engine, text, sizeof text);
    cudnnBackendDescriptor_t kernels =
        any_size && config && !grad ? tess_cudnn_kernel_cache(cudnn, conv, graph) : NULL;
    plan->execution = tess_cudnn_make(bag, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    tess_cudnn_set(bag, plan->execution, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                   &cudnn->handle);
    tess_cudnn_set(bag, plan->execution, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (kernels)
        tess_cudnn_set(bag, plan->execution, CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE,
                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &kernels);
    tess_cudnn_seal(bag, plan->execution, "a plan with this engine");
    tess_status status = tess_cudnn_bag_check(bag, error);
    if (status != TESS_OK) /* cuDNN reports an unsupported engine with many different codes */
        return status == TESS_INTERNAL ? TESS_UNSUPPORTED : status;
    int64_t workspace = 0;
    tess_cudnn_get(bag, plan->execution, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                   &workspace);
    plan->adds_bias = tess_cudnn_adds_bias(conv, any_size);
    if (conv->bias && !any_size && conv->in[0].dtype != TESS_F32)
        plan->rounded = aligned((size_t)conv->out[0].c * tess_dtype_size(conv->in[0].dtype));
    if (grad)
        place_gradient(plan, any_size);
    plan->workspace = plan->rounded + (size_t)workspace;
    plan->engine = engine;
    snprintf(plan->text, sizeof plan->text, "cuDNN %s%s", text,
             any_size ? (grad ? " rounded" : " compiled") : "");
    if (plan->workspace > workspace_limit)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "cuDNN: %s needs %zu bytes of workspace, and %zu is the limit", text,
                         plan->workspace, workspace_limit);
    return TESS_OK;
}

static tess_status create_with(tess_cudnn *cudnn, const tess_op *op, int64_t engine, size_t workspace_limit,
                               tess_cudnn_plan **out, tess_error *error)
{
    tess_cudnn_plan *plan = tess_small_alloc(1, sizeof *plan);
    if (!plan)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a plan of cuDNN");
    plan->cudnn = cudnn;
    plan->op = *op;
    plan->bag.api = &cudnn->api;
    tess_cudnn_split(op, &plan->parts);
    tess_status status = finish(plan, engine, workspace_limit, error);
    if (status != TESS_OK) {
        tess_cudnn_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TESS_OK;
}

tess_status tess_cudnn_plan_create(tess_cudnn *cudnn, const tess_op *op, int64_t engine,
                                   size_t workspace_limit, tess_cudnn_plan **out, tess_error *error)
{
    *out = NULL;
    const char *why = tess_cudnn_refuses(op);
    if (why)
        return tess_fail(error, TESS_UNSUPPORTED, "cuDNN is not asked for this op: %s", why);
    if (engine >= 0)
        return create_with(cudnn, op, engine, workspace_limit, out, error);
    int64_t engines[CANDIDATES];
    int count = tess_cudnn_candidates(cudnn, op, workspace_limit, engines, CANDIDATES);
    tess_status status = tess_fail(error, TESS_UNSUPPORTED, "cuDNN has no engine for this op");
    for (int i = 0; i < count; i++) {
        status = create_with(cudnn, op, engines[i], workspace_limit, out, error);
        if (status == TESS_OK || status == TESS_NO_MEMORY)
            break;
    }
    return status;
}

void tess_cudnn_plan_destroy(tess_cudnn_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < PACKS; i++)
        if (plan->packs[i].item)
            plan->cudnn->api.cudnnBackendDestroyDescriptor(plan->packs[i].item);
    tess_cudnn_bag_free(&plan->bag);
    tess_small_free(plan);
}

size_t tess_cudnn_plan_workspace(const tess_cudnn_plan *plan)
{
    return plan->workspace;
}

int64_t tess_cudnn_plan_engine(const tess_cudnn_plan *plan)
{
    return plan->engine;
}

void tess_cudnn_plan_describe(const tess_cudnn_plan *plan, char *text, size_t size)
{
    snprintf(text, size, "%s", plan->text);
}

static tess_status fill(const tess_cudnn_plan *plan, pack *p, tess_error *error)
{
    tess_cudnn_bag bag = {.api = &plan->cudnn->api};
    void *pointers[TESS_CUDNN_TENSORS];
    int64_t ids[TESS_CUDNN_TENSORS];
    int count = 0;
    for (int i = 0; i < TESS_CUDNN_TENSORS; i++)
        if (p->pointers[i]) {
            ids[count] = 1 + i;
            pointers[count++] = p->pointers[i];
        }
    cudnnBackendDescriptor_t item = tess_cudnn_make(&bag, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    tess_cudnn_set(&bag, item, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    tess_cudnn_set(&bag, item, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
    tess_cudnn_set(&bag, item, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &p->workspace);
    tess_cudnn_seal(&bag, item, "the buffers of a run");
    tess_status status = tess_cudnn_bag_check(&bag, error);
    if (status == TESS_OK) {
        p->item = item;
        bag.count = 0; /* the pack owns it now */
    }
    tess_cudnn_bag_free(&bag);
    return status;
}

/* The pack of these pointers: an existing one, or a new one that replaces the oldest. */
static tess_status pack_of(tess_cudnn_plan *plan, const pack *wanted, pack **out, tess_error *error)
{
    for (int i = 0; i < PACKS; i++) {
        pack *p = &plan->packs[i];
        if (p->item && p->workspace == wanted->workspace &&
            memcmp(p->pointers, wanted->pointers, sizeof p->pointers) == 0) {
            *out = p;
            return TESS_OK;
        }
    }
    pack *p = &plan->packs[plan->oldest];
    plan->oldest = (plan->oldest + 1) % PACKS;
    if (p->item)
        plan->cudnn->api.cudnnBackendDestroyDescriptor(p->item);
    *p = *wanted;
    *out = p;
    return fill(plan, p, error);
}

static tess_status bias_of(const tess_cudnn_plan *plan, const tess_op_buffers *buffers, cudaStream_t stream,
                           void **bias, tess_error *error)
{
    const tess_op *conv = &plan->parts.conv;
    *bias = plan->adds_bias ? plan->cudnn->zeros : NULL;
    if (!conv->bias)
        return TESS_OK;
    *bias = (char *)buffers->weights + tess_cuda_bias_at(&plan->op);
    if (!plan->rounded)
        return TESS_OK;
    const float *exact = *bias;
    *bias = buffers->workspace;
    return tess_cuda_check(tess_cudnn_round(exact, *bias, conv->out[0].c, conv->in[0].dtype, stream),
                           "rounding a bias", error);
}

tess_status tess_cudnn_plan_run(tess_cudnn_plan *plan, const tess_op_buffers *buffers, cudaStream_t stream,
                                tess_error *error)
{
    const tess_cudnn_api *api = &plan->cudnn->api;
    pack wanted = {.item = NULL};
    TESS_TRY(tess_cudnn_check(api, api->cudnnSetStream(plan->cudnn->handle, stream), "choosing the stream",
                              error));
    TESS_TRY(bias_of(plan, buffers, stream, &wanted.pointers[TESS_CUDNN_BIAS], error));
    if (plan->workspace > plan->rounded)
        wanted.workspace = (char *)buffers->workspace + plan->rounded;
    for (int i = 0; i < plan->parts.count; i++) {
        pack *p = NULL;
        tess_cudnn_pointers(&plan->op, &plan->parts, i, buffers, wanted.pointers);
        TESS_TRY(pack_of(plan, &wanted, &p, error));
        TESS_TRY(tess_cudnn_check(
            api, api->cudnnBackendExecute(plan->cudnn->handle, plan->execution, p->item), "running", error));
    }
    return plan->op.kind == TESS_OP_CONV_GRAD ? finish_gradient(plan, buffers, stream, error) : TESS_OK;
}
