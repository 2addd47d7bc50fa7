/* Norms and convolutions that read the same value and run at once: the bits of the same ops one after the other, also in a
 * graph. Each block of the chain is a norm, a skip convolution beside it, and a convolution that reads what both wrote. */
#define _GNU_SOURCE
#include "base/rng.h"
#include "gpu.h"
#include "op_run.h"

enum { BLOCKS = 24, OPS = 3, WAYS = 3 };
enum { NORM, SKIP, LAST };
enum { ONE_BY_ONE, IN_ORDER, AS_GRAPH };
static const char *const ways[WAYS] = {"with waits", "without waits", "in a graph"};
static const struct {
    int64_t images, side, channels;
} shapes[] = {{1, 128, 64}, {1, 64, 96},   {1, 32, 128}, {3, 16, 384},
              {1, 8, 256},  {64, 32, 128}, {40, 64, 64}};

typedef struct layer {
    tess_op op;
    tess_prepared *prepared;
    tess_block weights, workspace;
} layer;

static tess_op op_of(int which, tess_tensor shape, bool beside)
{
    const int side = which == LAST ? 3 : 1;
    tess_op op = {.kind = which == NORM ? TESS_OP_GROUP_NORM : TESS_OP_CONV,
                  .inputs = which == LAST ? 2 : 1,
                  .outputs = 1,
                  .in = {shape, shape},
                  .out = {shape},
                  .kernel = {1, side, side},
                  .stride = {1, 1, 1},
                  .pad_before = {0, side / 2, side / 2},
                  .pad_after = {0, side / 2, side / 2},
                  .bias = which != NORM};
    if (which == NORM) {
        op.activation = TESS_SILU;
        op.group_norm = (tess_op_group_norm){.groups = 32, .epsilon = 1e-5};
    }
    op.leads = beside && which == NORM;
    op.beside = beside && which == SKIP;
    return op;
}

static bool open_layer(tess_device *device, layer *l, tess_op op)
{
    tess_op_param params[TESS_OP_PARAMS];
    tess_op_needs needs;
    tess_error error = {{0}};
    op_call call = {.op = op};
    l->op = op;
    const bool done = device->ops->query(device, &op, &needs, &error) == TESS_OK &&
                      device->ops->prepare(device, &op, &l->prepared, &error) == TESS_OK;
    CHECK_MSG(done, "%s", error.text);
    if (!done)
        return false;
    l->weights = op_upload(device, NULL, needs.weights);
    l->workspace = op_upload(device, NULL, needs.workspace);
    const int count = tess_op_params(&op, params);
    float *values[TESS_OP_PARAMS] = {NULL};
    for (int i = 0; i < count; i++) {
        const int64_t all = params[i].rows * params[i].row;
        values[i] = malloc((size_t)all * sizeof *values[i]);
        tess_rng_normal((tess_rng_key){11, (uint64_t)op.kind, (uint64_t)i}, 0, all, values[i]);
        for (int64_t k = 0; k < all && op.kind == TESS_OP_CONV; k++)
            values[i][k] *= 0.5F / (float)op.in[0].c;
        call.param[i] = values[i];
    }
    op_pack(device, &call, l->weights.data);
    for (int i = 0; i < count; i++)
        free(values[i]);
    return true;
}

/* x becomes the result of one block after another, in two buffers by turns. */
static void run_chain(tess_device *device, const layer *layers, void *const x[2], void *normed, void *skipped,
                      tess_stream *stream, bool waits)
{
    tess_error error = {{0}};
    for (int i = 0; i < BLOCKS; i++) {
        void *from = x[i % 2], *to = x[(i + 1) % 2];
        const tess_op_buffers buffers[OPS] = {{.in = {from}, .out = {normed}},
                                              {.in = {from}, .out = {skipped}},
                                              {.in = {normed, skipped}, .out = {to}}};
        for (int k = 0; k < OPS; k++) {
            tess_op_buffers b = buffers[k];
            b.weights = layers[k].weights.data;
            b.workspace = layers[k].workspace.data;
            device->ops->run(device, layers[k].prepared, &b, stream);
            if (waits)
                CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
        }
    }
}

static void check_shape(tess_device *device, tess_tensor shape)
{
    const size_t bytes = (size_t)(shape.n * shape.stride_n) * tess_dtype_size(shape.dtype);
    layer layers[2][OPS] = {{{.prepared = NULL}}};
    bool opened = true;
    for (int k = 0; k < 2 * OPS && opened; k++)
        opened = open_layer(device, &layers[k / OPS][k % OPS], op_of(k % OPS, shape, k / OPS));
    if (!opened)
        return;
    uint16_t *values = malloc(bytes);
    for (size_t i = 0; i < bytes / 2; i++) /* bf16 of 1/2 to 2, with both signs */
        values[i] = (uint16_t)(0x3F00 + (i * 2654435761u >> 9 & 0xFF) + (i & 1) * 0x8000);
    tess_block x[2] = {op_upload(device, NULL, bytes), op_upload(device, NULL, bytes)},
               normed = op_upload(device, NULL, bytes), skipped = op_upload(device, NULL, bytes);
    void *const both[2] = {x[0].data, x[1].data};
    char *got[WAYS] = {NULL};
    tess_error error = {{0}};
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    CHECK_MSG(device->streams->create(device, &stream, &error) == TESS_OK, "%s", error.text);
    for (int way = 0; way < WAYS; way++) {
        device->memory->copy(device, x[0].data, values, bytes, stream);
        CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
        if (way == AS_GRAPH)
            CHECK_MSG(device->graphs->begin(device, stream, &error) == TESS_OK, "%s", error.text);
        run_chain(device, layers[way != ONE_BY_ONE], both, normed.data, skipped.data, stream,
                  way == ONE_BY_ONE);
        if (way == AS_GRAPH && device->graphs->end(device, stream, &graph, &error) == TESS_OK)
            device->graphs->launch(device, graph, stream);
        got[way] = calloc(1, bytes);
        device->memory->copy(device, got[way], x[BLOCKS % 2].data, bytes, stream);
        CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(memcmp(got[way], got[ONE_BY_ONE], bytes) == 0, "%lld x %lld x %lld: a chain %s differs",
                  (long long)shape.n, (long long)shape.h, (long long)shape.c, ways[way]);
    }
    CHECK_MSG(memcmp(got[ONE_BY_ONE], values, bytes) != 0, "the chain changes nothing");
    if (graph)
        device->graphs->release(device, graph);
    device->streams->destroy(device, stream);
    for (int way = 0; way < WAYS; way++)
        free(got[way]);
    for (int k = 0; k < 2 * OPS; k++) {
        layer *l = &layers[k / OPS][k % OPS];
        device->ops->release(device, l->prepared);
        device->memory->free(device, &l->weights), device->memory->free(device, &l->workspace);
    }
    device->memory->free(device, &x[0]), device->memory->free(device, &x[1]);
    device->memory->free(device, &normed), device->memory->free(device, &skipped);
    free(values);
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_shape(device, tess_tensor_2d(TESS_BF16, shapes[i].images, shapes[i].side, shapes[i].side,
                                           shapes[i].channels));
    tess_registry_close(device);
    return check_end();
}
