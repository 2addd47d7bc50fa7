/* Group norms on the card, by each row of kernels, against the plain reference kernel and PyTorch; the same bits in any
 * batch, and in the order of the stream and of a graph. */
#define _GNU_SOURCE
#include "device/kernel.h"
#include "gpu.h"
#include "group_norm_cases.h"

enum { BATCH = 64, IMAGES = 7, CHAIN = 12 };
static const char CLUSTERS[] = "norm clusters", LAUNCHES[] = "group norm";

/* Of the diffusion network, and sizes at which something is left over: channels of a group that share pieces of 16 bytes
 * with others, pixels that threads and blocks cannot share equally, slices of 32 bytes, images that fill shared memory several times.
 * The last two are not for clusters. */
static const norm_case shapes[] = {
    {"128x128x32", 1, 1, 128, 128, 32, 32, 0, true, TESS_SILU, false, 0, 0},
    {"128x128x64", 1, 1, 128, 128, 64, 32, 0, true, TESS_SILU, false, 0, 0},
    {"128x128x96", 1, 1, 128, 128, 96, 32, 0, false, TESS_SILU, false, 0, 0},
    {"64x64x32", 2, 1, 64, 64, 32, 32, 0, true, TESS_SILU, false, 0, 0},
    {"64x64x64", 2, 1, 64, 64, 64, 32, 0, true, TESS_SILU, false, 0, 0},
    {"64x64x96", 2, 1, 64, 64, 96, 32, 0, false, TESS_SILU, false, 0, 0},
    {"64x64x128", 2, 1, 64, 64, 128, 32, 0, true, TESS_SILU, false, 0, 0, true},
    {"64x64x192", 2, 1, 64, 64, 192, 32, 0, false, TESS_SILU, false, 0, 0},
    {"32x32x64", 2, 1, 32, 32, 64, 32, 0, true, TESS_SILU, false, 0, 0},
    {"32x32x128", 2, 1, 32, 32, 128, 32, 0, true, TESS_SILU, false, 0, 0, true},
    {"32x32x192", 2, 1, 32, 32, 192, 32, 0, false, TESS_SILU, false, 0, 0},
    {"32x32x256", 2, 1, 32, 32, 256, 32, 0, true, TESS_SILU, false, 0, 0},
    {"32x32x384", 2, 1, 32, 32, 384, 32, 0, false, TESS_SILU, false, 0, 0},
    {"16x16x128", 3, 1, 16, 16, 128, 32, 0, true, TESS_SILU, false, 0, 0},
    {"16x16x256", 3, 1, 16, 16, 256, 32, 0, false, TESS_LINEAR, false, 0, 0},
    {"16x16x384", 3, 1, 16, 16, 384, 32, 0, true, TESS_SILU, false, 0, 0},
    {"16x16x512", 3, 1, 16, 16, 512, 32, 0, false, TESS_SILU, false, 0, 0},
    {"8x8x256", 5, 1, 8, 8, 256, 32, 0, true, TESS_SILU, false, 0, 0},
    {"8x8x512", 5, 1, 8, 8, 512, 32, 0, false, TESS_SILU, false, 0, 0},
    {"one a group", 2, 1, 113, 97, 32, 32, 0, true, TESS_SILU, false, 0, 0},
    {"two a group", 2, 1, 67, 61, 64, 32, 0, true, TESS_RELU, false, 0, 0},
    {"three a group", 2, 1, 91, 83, 96, 32, 0, true, TESS_SILU, false, 0, 0},
    {"five a group", 2, 1, 19, 23, 40, 8, 0, true, TESS_SILU, false, 0, 0},
    {"seven a group", 2, 1, 29, 31, 56, 8, 8, true, TESS_SILU, false, 0, 0},
    {"twelve a group", 2, 1, 33, 35, 384, 32, 0, true, TESS_SILU, false, 0, 0},
    {"one group", 2, 1, 31, 37, 136, 1, 0, true, TESS_SILU, true, 0, 0},
    {"few pixels", 3, 1, 3, 1, 64, 2, 0, true, TESS_SILU, false, 0, 0},
    {"wide groups", 2, 1, 11, 13, 2048, 2, 0, true, TESS_SILU, false, 0, 0},
    {"gaps", 2, 1, 45, 47, 64, 32, 40, true, TESS_SILU, true, 0, 0},
    {"volume", 2, 7, 11, 13, 48, 16, 16, true, TESS_SILU, false, 0, 0},
    {"far", 1, 1, 70, 70, 32, 8, 0, false, TESS_LINEAR, false, 0, 300},
    {"sectors", 1, 1, 251, 257, 32, 32, 0, true, TESS_SILU, false, 0, 0},
    {"sectors of three", 1, 1, 256, 256, 96, 32, 0, true, TESS_SILU, false, 0, 0},
    {"several fills", 2, 1, 512, 513, 32, 32, 0, true, TESS_SILU, true, 0, 0},
    {"fills with gaps", 1, 1, 701, 403, 48, 16, 16, true, TESS_SILU, false, 0, 0},
    {"no cluster", 1, 1, 1024, 1025, 16, 16, 0, true, TESS_SILU, false, 0, 0},
    {"no pieces", 2, 1, 40, 40, 36, 12, 0, true, TESS_SILU, false, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], NETWORK = 19 };

/* The output, with the given parameters: those of check_norm. */
static field run_call(tess_device *device, op_call *call, const char *name)
{
    const int64_t c = call->op.in[0].c;
    float *values = malloc(2 * (size_t)c * sizeof *values);
    tess_rng_normal((tess_rng_key){7, 5, 0}, 0, 2 * c, values);
    call->param[0] = values;
    call->param[1] = values + c;
    const field got = op_run(device, call, name);
    free(values);
    return got;
}

static void free_call(op_call *call)
{
    free(call->in[0].data), free(call->in[1].data), free(call->out.data);
}

/* Rows and columns of a larger image: neither the pixels nor the images follow each other without gaps. */
static void check_part(tess_device *device, tess_dtype dtype, double bound)
{
    const norm_case c = {.name = "part",
                         .n = 2,
                         .d = 3,
                         .h = 21,
                         .w = 30,
                         .c = 64,
                         .groups = 32,
                         .scale_shift = true,
                         .activation = TESS_SILU};
    op_call call = norm_call(&c, dtype);
    tess_tensor *in = &call.op.in[0], *out = &call.op.out[0];
    in->d = out->d = 2;
    in->h = out->h = 17;
    in->w = out->w = 23;
    out->stride_n = in->stride_n - 16; /* the two differ */
    float *values = malloc(2 * (size_t)c.c * sizeof *values);
    tess_rng_normal((tess_rng_key){7, 5, 0}, 0, 2 * c.c, values);
    field got = run_call(device, &call, c.name), want = {malloc(call.out.bytes), call.out.bytes};
    memcpy(want.data, call.out.data, want.bytes);
    const tess_op_buffers truth = {.in = {call.in[0].data, call.in[1].data}, .out = {want.data}};
    tess_reference_group_norm(&call.op, &truth, values, values + c.c);
    op_compare(&call, &got, &want, bound, c.name);
    free(values), free(got.data), free(want.data);
    free_call(&call);
}

/* A call whose images are those of `few`, again and again. */
static op_call repeated(const op_call *few, int64_t images)
{
    op_call call = *few;
    const size_t bytes = (size_t)few->op.in[0].stride_n * tess_dtype_size(few->op.in[0].dtype);
    call.op.in[0].n = call.op.out[0].n = images;
    call.in[0].bytes = call.out.bytes = (size_t)images * bytes;
    call.in[0].data = malloc(call.in[0].bytes);
    call.out.data = calloc(1, call.out.bytes);
    for (int64_t i = 0; i < images; i++)
        memcpy((char *)call.in[0].data + (size_t)i * bytes,
               (const char *)few->in[0].data + (size_t)(i % IMAGES) * bytes, bytes);
    return call;
}

/* Every image of a batch has the bits that it has alone. */
static void check_batch(tess_device *device, const norm_case *shape, tess_dtype dtype)
{
    norm_case c = *shape;
    c.n = IMAGES;
    c.shared = true; /* scales and shifts are then those of a single image */
    op_call few = norm_call(&c, dtype),
            batch = repeated(&few, c.h * c.w * c.c <= 128 * 128 * 32 ? BATCH : 2 * IMAGES + 1),
            single = repeated(&few, 1);
    const size_t bytes = single.in[0].bytes;
    field got = run_call(device, &batch, shape->name);
    int different = 0;
    for (int i = 0; i < IMAGES && got.data; i++) {
        memcpy(single.in[0].data, (const char *)few.in[0].data + (size_t)i * bytes, bytes);
        field alone = run_call(device, &single, shape->name);
        for (int64_t k = i; k < batch.op.in[0].n && alone.data; k += IMAGES)
            different += memcmp(alone.data, (const char *)got.data + (size_t)k * bytes, bytes) != 0;
        free(alone.data);
    }
    CHECK_MSG(different == 0, "%s %s: %d images of a batch differ from the image alone", shape->name,
              tess_dtype_name(dtype), different);
    free(got.data);
    free(batch.in[0].data), free(batch.out.data);
    free(single.in[0].data), free(single.out.data);
    free_call(&few);
}

/* Each op reads what the one before wrote: with a wait between them, without, and in a graph. Kernels of a chain may
 * start before the one before has ended. */
static void check_chain(tess_device *device, const norm_case *shape, tess_dtype dtype)
{
    op_call call = norm_call(shape, dtype);
    const int64_t c = call.op.in[0].c;
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    void *got[3] = {NULL};
    if (device->ops->query(device, &call.op, &needs, &error) != TESS_OK ||
        device->ops->prepare(device, &call.op, &prepared, &error) != TESS_OK ||
        device->streams->create(device, &stream, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        return;
    }
    float *values = malloc(2 * (size_t)c * sizeof *values);
    tess_rng_normal((tess_rng_key){7, 5, 0}, 0, 2 * c, values);
    call.param[0] = values, call.param[1] = values + c;
    tess_block first = op_upload(device, call.in[0].data, call.in[0].bytes),
               second = op_upload(device, call.out.data, call.out.bytes),
               more = op_upload(device, call.in[1].data, call.in[1].bytes),
               weights = op_upload(device, NULL, needs.weights),
               workspace = op_upload(device, NULL, needs.workspace);
    op_pack(device, &call, weights.data);
    for (int way = 0; way < 3; way++) {
        device->memory->copy(device, first.data, call.in[0].data, call.in[0].bytes, stream);
        CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
        if (way == 2)
            CHECK(device->graphs->begin(device, stream, &error) == TESS_OK);
        for (int i = 0; i < CHAIN; i++) {
            const tess_op_buffers buffers = {.in = {i % 2 ? second.data : first.data, more.data},
                                             .out = {i % 2 ? first.data : second.data},
                                             .weights = weights.data,
                                             .workspace = workspace.data};
            device->ops->run(device, prepared, &buffers, stream);
            if (way == 0)
                CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
        }
        if (way == 2) {
            CHECK_MSG(device->graphs->end(device, stream, &graph, &error) == TESS_OK, "%s", error.text);
            if (graph)
                device->graphs->launch(device, graph, stream);
        }
        got[way] = calloc(1, call.in[0].bytes);
        device->memory->copy(device, got[way], first.data, call.in[0].bytes, stream);
        CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(memcmp(got[way], got[0], call.in[0].bytes) == 0, "%s: a chain of ops %s differs",
                  shape->name, way == 2 ? "in a graph" : "without waits");
    }
    for (int way = 0; way < 3; way++)
        free(got[way]);
    if (graph)
        device->graphs->release(device, graph);
    device->streams->destroy(device, stream);
    device->ops->release(device, prepared);
    device->memory->free(device, &first), device->memory->free(device, &second);
    device->memory->free(device, &more), device->memory->free(device, &weights);
    device->memory->free(device, &workspace);
    free(values);
    free_call(&call);
}

/* Which row does the shapes of the network: the same for all of them. */
static bool takes_network(tess_device *device, const char *row, tess_dtype dtype)
{
    int taken = 0;
    for (int i = 0; i < NETWORK; i++) {
        op_call call = norm_call(&shapes[i], dtype);
        tess_prepared *prepared = NULL;
        tess_error error = {{0}};
        CHECK_MSG(device->ops->prepare(device, &call.op, &prepared, &error) == TESS_OK, "%s", error.text);
        taken += prepared && strcmp(tess_prepared_kernel(prepared)->name, row) == 0;
        device->ops->release(device, prepared);
        free_call(&call);
    }
    CHECK_MSG(taken == 0 || taken == NETWORK, "%s takes %d of %d shapes", row, taken, NETWORK);
    return taken > 0;
}

static void check_row(tess_device *device, tess_dtype dtype, double bound)
{
    check_norms(device, dtype, bound);
    for (int i = 0; i < SHAPES; i++) {
        check_norm(device, &shapes[i], dtype, bound);
        if (shapes[i].h * shapes[i].w * shapes[i].c <= 128 * 128 * 96)
            check_batch(device, &shapes[i], dtype);
    }
    check_part(device, dtype, bound);
    for (int i = 0; i < NETWORK; i += 3)
        check_chain(device, &shapes[i], dtype);
}

int main(void)
{
    static const char *const rows[] = {CLUSTERS, LAUNCHES};
    int status = 0;
    for (int r = 0; r < 2; r++) {
        if (setenv("TESSERA_CUDA_ENGINE", rows[r], 1) != 0)
            return 1;
        tess_device *device = gpu_open(&status);
        if (!device)
            return status;
        if (!takes_network(device, rows[r], TESS_BF16))
            fprintf(stderr, "the row '%s' refuses on this card\n", rows[r]);
        check_row(device, TESS_F32, 1e-5);
        check_row(device, TESS_F16, 2e-3);
        check_row(device, TESS_BF16, 1.0 / 128);
        check_norm_dumps(device, TESS_F32, 1e-5);
        check_norm_dumps(device, TESS_F16, 2e-3);
        tess_registry_close(device);
    }
    return check_end();
}
