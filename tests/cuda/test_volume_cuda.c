/* Volumes on the card: compares ops with a depth, maps and sums of side slices with the plain reference kernels, with
 * passes by either family of kernels; compares small 3-D networks, dense, folded and inflated, with the CPU; checks
 * planned bytes, and graphs that repeat the bits of a run. TESSERA_TEST_CASE selects one op by its name. */
#define _GNU_SOURCE
#include <unistd.h>

#include "counter.h"
#include "cpu/reference/reference.h"
#include "gpu.h"
#include "model/architecture.h"
#include "support.h"

enum { FAMILIES = 2 };
static const char *const families[FAMILIES] = {"generic", "hopper"};
static char path[512];

typedef struct volume_case {
    const char *name;
    tess_op_kind kind;
    int64_t n, d, h, w, cin, cout;
    int kernel[2], stride[2]; /* in depth, in the slice */
    int pad[3];               /* before and after in depth, in the slice */
    bool bias, relu;
    int residuals;
    bool in_place, mapped;
    int gap;  /* channels between pixels that belong to somebody else */
    int ends; /* in half precision: 1 = the input is fp32, 2 = the output and its residuals are */
} volume_case;

/* What most cases share: a 3x3x3 convolution; and a 3x3 one of every slice. */
#define CONV TESS_OP_CONV
#define CUBE                                                                                                 \
    {3, 3}, {1, 1},                                                                                          \
    {                                                                                                        \
        1, 1, 1                                                                                              \
    }
#define FLAT                                                                                                 \
    {1, 3}, {1, 1},                                                                                          \
    {                                                                                                        \
        0, 0, 1                                                                                              \
    }
#define HALF                                                                                                 \
    {2, 2}, {2, 2},                                                                                          \
    {                                                                                                        \
        0, 0, 0                                                                                              \
    }

static const volume_case cases[] = {
    {"wide", CONV, 1, 5, 9, 11, 64, 64, CUBE, true, true, 0, false, false, 0, 0},
    {"wide-in-place", CONV, 2, 4, 8, 7, 32, 32, CUBE, false, true, 2, true, false, 0, 0},
    {"wide-view", CONV, 1, 4, 19, 21, 64, 64, CUBE, true, true, 1, false, false, 64, 0},
    {"deep", CONV, 1, 6, 9, 10, 128, 256, CUBE, true, false, 1, false, false, 0, 0},
    {"head", CONV, 1, 6, 7, 9, 2, 64, CUBE, false, false, 0, false, false, 0, 1},
    {"head-one", CONV, 1, 5, 7, 9, 1, 64, CUBE, true, true, 0, false, false, 0, 1},
    {"tail", CONV, 1, 3, 9, 7, 64, 1, CUBE, true, false, 1, false, false, 0, 2},
    {"one-slice", CONV, 1, 1, 9, 6, 16, 16, CUBE, true, true, 1, true, false, 0, 0},
    {"two-slices", CONV, 1, 2, 9, 6, 5, 7, CUBE, true, true, 1, false, false, 3, 0},
    {"strip", CONV, 1, 5, 6, 7, 32, 32, {3, 3}, {1, 1}, {0, 1, 1}, true, true, 0, false, false, 0, 0},
    {"strip-end", CONV, 1, 5, 6, 7, 8, 8, {3, 3}, {1, 1}, {1, 0, 1}, true, true, 1, false, false, 0, 0},
    {"open", CONV, 1, 5, 6, 7, 8, 8, {3, 3}, {1, 1}, {0, 0, 0}, true, true, 0, false, false, 0, 0},
    {"five", CONV, 1, 4, 6, 7, 4, 6, {5, 5}, {1, 1}, {2, 2, 2}, true, true, 1, false, false, 0, 0},
    {"odd-pads", CONV, 1, 3, 6, 7, 4, 6, {5, 3}, {1, 1}, {4, 4, 1}, true, true, 1, true, false, 0, 0},
    {"mapped-cube", CONV, 2, 4, 6, 7, 32, 32, CUBE, true, true, 1, true, true, 0, 0},
    {"mapped", CONV, 2, 3, 6, 7, 64, 64, FLAT, true, true, 1, true, true, 0, 0},
    {"mapped-narrow", CONV, 1, 3, 6, 7, 3, 5, FLAT, false, true, 2, false, true, 2, 0},
    {"mapped-head", CONV, 1, 3, 6, 7, 2, 64, FLAT, false, false, 0, false, true, 0, 1},
    {"mapped-tail", CONV, 1, 3, 6, 7, 64, 1, FLAT, false, false, 1, false, true, 0, 2},
    {"mapped-image", CONV, 2, 1, 16, 17, 64, 64, FLAT, true, true, 0, false, true, 0, 0},
    {"slices", CONV, 2, 3, 6, 7, 64, 64, FLAT, true, true, 1, true, false, 0, 0},
    {"down", CONV, 2, 6, 8, 6, 64, 128, HALF, false, false, 0, false, false, 0, 0},
    {"down-narrow", CONV, 1, 6, 34, 22, 32, 64, HALF, true, true, 0, false, false, 0, 0},
    {"down-three", CONV, 1, 4, 18, 70, 64, 192, HALF, false, false, 2, false, false, 64, 0},
    {"down-odd", CONV, 1, 5, 8, 6, 8, 16, HALF, true, true, 0, false, false, 0, 0},
    {"stride-pad", CONV, 1, 7, 9, 7, 8, 16, {3, 3}, {2, 2}, {1, 1, 1}, true, true, 1, true, false, 0, 0},
    {"up", TESS_OP_CONV_TRANSPOSE, 2, 3, 4, 5, 128, 64, HALF, false, false, 0, false, false, 0, 0},
    {"up-bias", TESS_OP_CONV_TRANSPOSE, 1, 3, 4, 5, 12, 7, HALF, true, true, 1, true, false, 4, 0},
    {"pool", TESS_OP_MAX_POOL, 2, 3, 4, 6, 8, 8, {1, 2}, {1, 2}, {0}, false, false, 0, false, false, 0, 0},
    {"add", TESS_OP_ADD, 2, 3, 4, 6, 8, 8, {1, 1}, {1, 1}, {0}, false, false, 2, true, false, 1, 0},
    {"side", TESS_OP_SIDE_SUM, 2, 4, 7, 6, 21, 1, CUBE, false, false, 0, false, false, 0, 0},
    {"side-wide", TESS_OP_SIDE_SUM, 1, 5, 17, 33, 256, 1, CUBE, false, false, 0, false, false, 0, 0},
    {"side-view", TESS_OP_SIDE_SUM, 1, 1, 9, 8, 64, 1, CUBE, false, false, 0, false, false, 64, 0},
    {"side-five",
     TESS_OP_SIDE_SUM,
     1,
     4,
     7,
     6,
     32,
     1,
     {5, 3},
     {1, 1},
     {2, 2, 1},
     false,
     false,
     0,
     false,
     false,
     0,
     0},
};

static bool is_half(tess_dtype dtype)
{
    return dtype == TESS_F16 || dtype == TESS_BF16;
}

static float value_in(tess_dtype dtype, const void *data, size_t i)
{
    return dtype == TESS_BF16  ? tess_bf16_to_float(((const uint16_t *)data)[i])
           : dtype == TESS_F16 ? tess_half_to_float(((const uint16_t *)data)[i])
                               : ((const float *)data)[i];
}

static void put_value(tess_dtype dtype, void *data, size_t i, float value)
{
    if (dtype == TESS_BF16)
        ((uint16_t *)data)[i] = tess_float_to_bf16(value);
    else if (dtype == TESS_F16)
        ((uint16_t *)data)[i] = tess_float_to_half(value);
    else
        ((float *)data)[i] = value;
}

static int64_t side_after(const volume_case *c, int64_t in, int kernel, int stride, int pads)
{
    if (c->kind == TESS_OP_CONV_TRANSPOSE)
        return in * stride;
    return c->kind == TESS_OP_ADD ? in : (in + pads - kernel) / stride + 1;
}

static tess_op op_of(const volume_case *c, tess_dtype dtype)
{
    tess_op op = {.kind = c->kind,
                  .outputs = 1,
                  .bias = c->bias,
                  .activation = c->relu ? TESS_RELU : TESS_LINEAR,
                  .inputs = 1 + c->residuals,
                  .mapped = c->mapped};
    for (int s = 0; s < TESS_SPATIAL; s++) {
        op.kernel[s] = c->kernel[s > 0];
        op.stride[s] = c->stride[s > 0];
        op.pad_before[s] = s ? c->pad[2] : c->pad[0];
        op.pad_after[s] = s ? c->pad[2] : c->pad[1];
    }
    const bool side = c->kind == TESS_OP_SIDE_SUM;
    const int64_t d = side_after(c, c->d, c->kernel[0], c->stride[0], c->pad[0] + c->pad[1]),
                  h = side_after(c, c->h, c->kernel[1], c->stride[1], 2 * c->pad[2]),
                  w = side_after(c, c->w, c->kernel[1], c->stride[1], 2 * c->pad[2]);
    op.in[0] = tess_tensor_channels(
        tess_tensor_3d(c->ends == 1 ? TESS_F32 : dtype, c->n, c->d, c->h, c->w, c->cin + c->gap), c->cin);
    op.out[0] = tess_tensor_channels(
        tess_tensor_3d(side || c->ends == 2 ? TESS_F32 : dtype, c->n, d, h, w, c->cout + c->gap), c->cout);
    for (int r = 0; r < c->residuals; r++)
        op.in[1 + r] = op.out[0];
    if (c->mapped)
        op.in[op.inputs++] = tess_tensor_3d(TESS_F32, c->n, d, h, w, 1);
    if (side)
        op.side.value = 0.25;
    return op;
}

/* On the host and on the card, followed by guard bytes that must not change. */
typedef struct field {
    tess_dtype dtype;
    size_t bytes;
    void *data;
    tess_block there;
} field;

static tess_block upload(tess_device *device, const void *data, size_t size)
{
    tess_block block;
    tess_error error = {{0}};
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, size, &error) == TESS_OK, "%s", error.text);
    if (data)
        device->memory->copy(device, block.data, data, size, NULL);
    return block;
}

static field random_field(tess_device *device, const tess_tensor *t, uint32_t item)
{
    field f = {.dtype = t->dtype};
    CHECK(tess_tensor_bytes(t, &f.bytes));
    f.bytes += 256;
    f.data = room(f.bytes);
    const int64_t count = (int64_t)(f.bytes / tess_dtype_size(t->dtype));
    float *values = room((size_t)count * sizeof *values);
    tess_rng_normal((tess_rng_key){17, item, 0}, 0, count, values);
    for (int64_t i = 0; i < count; i++)
        put_value(t->dtype, f.data, (size_t)i, values[i]);
    free(values);
    f.there = upload(device, f.data, f.bytes);
    return f;
}

static void drop_field(tess_device *device, field *f)
{
    device->memory->free(device, &f->there);
    free(f->data);
}

static tess_block pack(tess_device *device, const tess_op *op, size_t size, const float *kernel,
                       const float *bias)
{
    tess_block weights = upload(device, NULL, size + 64);
    const int64_t rows = op->kind == TESS_OP_CONV ? op->out[0].c : op->in[0].c, first = rows / 3;
    const int64_t row = (int64_t)op->kernel[0] * op->kernel[1] * op->kernel[2] *
                        (op->kind == TESS_OP_CONV ? op->in[0].c : op->out[0].c);
    device->ops->pack(device, op, TESS_PARAM_KERNEL, 0, first, kernel, weights.data);
    device->ops->pack(device, op, TESS_PARAM_KERNEL, first, rows - first, kernel + first * row, weights.data);
    if (op->bias)
        device->ops->pack(device, op, TESS_PARAM_BIAS, 0, op->out[0].c, bias, weights.data);
    return weights;
}

/* Largest difference, of the largest value. */
static double off_by(tess_dtype dtype, const void *a, const void *b, size_t count)
{
    double most = 0, largest = 1e-30;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)value_in(dtype, a, i) - value_in(dtype, b, i));
        most = off <= most ? most : off;
        largest = fmax(largest, fabs((double)value_in(dtype, b, i)));
    }
    return most / largest;
}

/* Half precision rounds the sum once a depth tap, and with the map. */
static double bound_of(const volume_case *c, tess_dtype dtype)
{
    const double passes = c->kernel[0] + c->mapped;
    return dtype == TESS_F16 ? 2e-3 * passes : dtype == TESS_BF16 ? 1.5e-2 * passes : 1e-5;
}

static void check_case(tess_device *device, const char *family, const volume_case *c, tess_dtype dtype)
{
    const tess_op op = op_of(c, dtype);
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    if (device->ops->query(device, &op, &needs, &error) != TESS_OK ||
        device->ops->prepare(device, &op, &prepared, &error) != TESS_OK) {
        CHECK_MSG(false, "%s %s: %s", family, c->name, error.text);
        return;
    }
    const bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE;
    const int64_t taps = (int64_t)op.kernel[0] * op.kernel[1] * op.kernel[2], count = taps * c->cin * c->cout;
    float *kernel = room((size_t)count * sizeof *kernel), *bias = room((size_t)c->cout * sizeof *bias);
    tess_rng_normal((tess_rng_key){17, 6, 0}, 0, count, kernel);
    tess_rng_normal((tess_rng_key){17, 7, 0}, 0, c->cout, bias);
    for (int64_t i = 0; i < count; i++) { /* as kernels of that type will see them */
        float seen;
        put_value(dtype, &seen, 0, kernel[i] / sqrtf((float)(c->cin * taps)));
        kernel[i] = value_in(dtype, &seen, 0);
    }
    field in = random_field(device, &op.in[0], 1),
          out = random_field(device, &op.out[0], c->in_place ? 3 : 2),
          extra[2] = {random_field(device, &op.out[0], 3), random_field(device, &op.out[0], 4)},
          map = c->mapped ? random_field(device, tess_op_map(&op), 5) : (field){0};
    tess_block weights = conv ? pack(device, &op, needs.weights, kernel, bias) : (tess_block){0},
               workspace = upload(device, NULL, needs.workspace + 64);
    tess_op_buffers buffers = {
        .in = {in.there.data, c->in_place ? out.there.data : extra[0].there.data, extra[1].there.data},
        .out = {out.there.data},
        .weights = weights.data,
        .workspace = workspace.data};
    if (c->mapped)
        buffers.in[op.inputs - 1] = map.there.data;
    void *got[2] = {room(out.bytes), room(out.bytes)};
    for (int i = 0; i < 2; i++) {
        device->memory->copy(device, out.there.data, out.data, out.bytes, NULL);
        const uint64_t calls = tess_mem_calls();
        device->ops->run(device, prepared, &buffers, NULL);
        CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", c->name);
        device->memory->copy(device, got[i], out.there.data, out.bytes, NULL);
        CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s %s: %s", family, c->name,
                  error.text);
    }
    tess_op_buffers truth = {.in = {in.data, extra[0].data, extra[1].data}, .out = {out.data}};
    if (c->mapped)
        truth.in[op.inputs - 1] = map.data;
    tess_reference_run(&op, &truth, conv ? kernel : NULL, c->bias ? bias : NULL);
    const double off = off_by(out.dtype, got[0], out.data, out.bytes / tess_dtype_size(out.dtype));
    CHECK_MSG(off <= bound_of(c, is_half(dtype) && c->kind != TESS_OP_SIDE_SUM ? dtype : TESS_F32),
              "%s %s %s: off by %.3g of the largest value", family, tess_dtype_name(dtype), c->name, off);
    CHECK_MSG(memcmp(got[0], got[1], out.bytes) == 0, "%s %s %s: two runs differ", family,
              tess_dtype_name(dtype), c->name);
    device->ops->release(device, prepared);
    field *fields[] = {&in, &out, &extra[0], &extra[1], &map};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i]->data)
            drop_field(device, fields[i]);
    if (conv)
        device->memory->free(device, &weights);
    device->memory->free(device, &workspace);
    free(kernel), free(bias), free(got[0]), free(got[1]);
}

static void check_ops(tess_device *device, const char *family)
{
    static const tess_dtype types[] = {TESS_F32, TESS_F16, TESS_BF16};
    const char *only = getenv("TESSERA_TEST_CASE");
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            if ((!only || strcmp(only, cases[i].name) == 0) && (!cases[i].ends || is_half(types[t])))
                check_case(device, family, &cases[i], types[t]);
    printf("%s: %zu ops on volumes\n", family, sizeof cases / sizeof cases[0]);
}

static const drunet_shape small = {"", 1, {16, 32, 32, 48}, 1, true};
static const tess_plan_shape tiny = {.n = 2, .h = 8, .w = 16, .d = 8};
enum { VALUES = 2 * 8 * 16 * 8 }; /* of the tiny shape */

typedef struct network {
    tess_device *device;
    ready r;
    tess_block blocks[3];
} network;

/* From fp32 values to the plan's input, and back from its output; run between, by a graph if there is one. */
static void run_network(const network *net, const float *in, float *out, tess_graph *graph,
                        tess_stream *stream)
{
    tess_device *device = net->device;
    tess_error error = {{0}};
    size_t at, size = 0;
    tess_tensor tensor = tess_net_plan_input(net->r.plan, &at);
    CHECK(tess_tensor_bytes(&tensor, &size));
    void *values = room(size);
    for (size_t i = 0; i < size / tess_dtype_size(tensor.dtype); i++)
        put_value(tensor.dtype, values, i, in[i]);
    device->memory->copy(device, (char *)net->r.arena.data + at, values, size, stream);
    CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
    free(values);
    const uint64_t calls = tess_mem_calls();
    if (graph)
        device->graphs->launch(device, graph, stream);
    else
        tess_net_plan_run(net->r.plan, net->r.arena.data, net->r.workspace.data, net->r.weights.data, stream);
    CHECK(tess_mem_calls() == calls);
    tensor = tess_net_plan_output(net->r.plan, &at);
    CHECK(tess_tensor_bytes(&tensor, &size) && size / tess_dtype_size(tensor.dtype) == VALUES);
    values = room(size);
    device->memory->copy(device, values, (char *)net->r.arena.data + at, size, stream);
    CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
    for (size_t i = 0; i < VALUES; i++)
        out[i] = value_in(tensor.dtype, values, i);
    free(values);
}

static void check_bytes(const network *net)
{
    tess_device *device = net->device;
    const uint64_t total = counted_peak();
    size_t workspace = 0;
    CHECK(tess_bound_workspace(net->r.bound, tiny, &workspace, NULL) == TESS_OK &&
          workspace == tess_net_plan_workspace_bytes(net->r.plan));
    const uint64_t planned = device->memory->granted(device, tess_bound_weight_bytes(net->r.bound)) +
                             device->memory->granted(device, tess_net_plan_arena_bytes(net->r.plan)) +
                             device->memory->granted(device, workspace);
    CHECK_MSG(total == planned, "%llu bytes counted, %llu planned", (unsigned long long)total,
              (unsigned long long)planned);
}

static void check_graph(const network *net, const float *in, const float *want)
{
    tess_device *device = net->device;
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    tess_error error = {{0}};
    if (!device->graphs)
        return;
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK);
    CHECK_MSG(device->graphs->begin(device, stream, &error) == TESS_OK, "%s", error.text);
    tess_net_plan_run(net->r.plan, net->r.arena.data, net->r.workspace.data, net->r.weights.data, stream);
    CHECK_MSG(device->graphs->end(device, stream, &graph, &error) == TESS_OK, "%s", error.text);
    if (graph) {
        float *got = room(VALUES * sizeof *got);
        run_network(net, in, got, graph, stream);
        CHECK(memcmp(got, want, VALUES * sizeof *got) == 0);
        free(got);
        device->graphs->release(device, graph);
    }
    device->streams->destroy(device, stream);
}

/* The model on the device; on the card its bytes and a graph of it are checked too. */
static float *run_model(const tess_model_net *model, tess_weights *weights, tess_device *device,
                        tess_dtype dtype, const float *in)
{
    network net = {.device = device};
    tess_error error = {{0}};
    float *out = room(VALUES * sizeof *out);
    tess_memory_reset_peak(&test_counter);
    const tess_status status = ready_make(model->net, device, dtype, weights, tiny, &net.r, &error);
    CHECK_MSG(status == TESS_OK, "%s", error.text);
    if (status == TESS_OK) {
        run_network(&net, in, out, NULL, NULL);
        check_bytes(&net);
        check_graph(&net, in, out);
    }
    tess_net_plan_destroy(net.r.plan);
    tess_bound_destroy(net.r.bound);
    device->memory->free(device, &net.r.weights), device->memory->free(device, &net.r.arena);
    device->memory->free(device, &net.r.workspace);
    return out;
}

typedef enum net_form { DENSE, LIGHT, INFLATED } net_form;
static const char *const form_names[] = {"dense", "light", "inflated"};

static tess_weights *weights_of(net_form form)
{
    tensor_list list = {.volume = form != INFLATED, .side = form == LIGHT ? 0.01f : 0};
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    add_drunet(&list, &small);
    save_tensors(&list, path);
    const tess_status status = form == INFLATED
                                   ? tess_model_open_volume(path, TESS_INFLATE_LEVEL, &weights, &error)
                                   : tess_weights_open(path, &weights, &error);
    CHECK_MSG(status == TESS_OK, "%s", error.text);
    return weights;
}

static void check_network(tess_device *device, tess_device *cpu, const char *family, net_form form)
{
    static const struct {
        tess_dtype dtype;
        double bound;
    } types[] = {{TESS_F32, 5e-5}, {TESS_F16, 0.02}, {TESS_BF16, 0.08}};
    tess_weights *weights = weights_of(form);
    tess_model_net model;
    tess_error error = {{0}};
    CHECK_MSG(tess_model_recognise(weights, &model, &error) == TESS_OK, "%s", error.text);
    int maps = 0;
    for (int i = 0; i < tess_net_layer_count(model.net); i++)
        maps += tess_net_layer(model.net, i)->mapped;
    CHECK_MSG((maps > 0) == (form != DENSE), "%s: %d maps", form_names[form], maps);
    float *in = room(2 * VALUES * sizeof *in);
    tess_rng_uniform((tess_rng_key){23, 1, 0}, 0, 2 * VALUES, in);
    float *want = run_model(&model, weights, cpu, TESS_F32, in);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        float *got = run_model(&model, weights, device, types[t].dtype, in);
        const double off = off_by(TESS_F32, got, want, VALUES);
        printf("%s, %s network in %s: off by %.2g of the largest value\n", family, form_names[form],
               tess_dtype_name(types[t].dtype), off);
        CHECK_MSG(off <= types[t].bound, "%s, %s in %s: off by %g", family, form_names[form],
                  tess_dtype_name(types[t].dtype), off);
        free(got);
    }
    free(in), free(want);
    tess_model_clear(&model);
    tess_weights_close(weights);
}

int main(void)
{
    char folder[] = "/tmp/tessera-volume-XXXXXX";
    int status;
    tess_device *cpu = NULL;
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/net.safetensors", folder);
    CHECK(setenv("TESSERA_CACHE", folder, 1) == 0);
    for (int f = 0; f < FAMILIES; f++) {
        CHECK(setenv("TESSERA_CUDA_ENGINE", families[f], 1) == 0);
        tess_device *device = gpu_open(&status);
        if (!device) {
            rmdir(folder);
            return status;
        }
        check_ops(device, families[f]);
        CHECK(tess_registry_open("cpu", &(tess_device_options){.memory = &test_counter, .threads = 0}, &cpu,
                                 NULL) == TESS_OK);
        for (int form = DENSE; form <= INFLATED; form++)
            check_network(device, cpu, families[f], (net_form)form);
        tess_registry_close(cpu);
        tess_registry_close(device);
    }
    unlink(path);
    rmdir(folder);
    return check_end();
}
