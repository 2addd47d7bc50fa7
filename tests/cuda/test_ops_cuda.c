/* The op table on the card: compares every op, in every precision, with every family of kernels that supports it,
 * with the plain reference kernels; each runs twice and must give the same bits. TESSERA_TEST_CASE selects cases by
 * parts of their names (a,b,c), TESSERA_TEST_FAMILY one family. */
#define _GNU_SOURCE
#include "base/pool.h"
#include "counter.h"
#include "device/kernel.h"
#include "gpu.h"
#include "op_table.h"
#include "tensor/samples.h"

enum { FAMILIES = 3 };
static const char *const families[FAMILIES] = {"generic", "hopper", "cudnn"};
static tess_device *devices[FAMILIES];
static int done[FAMILIES];
static double worst[FAMILIES][4];

typedef struct precision {
    const char *name;
    tess_dtype dtype;
    bool tf32;
    double bound; /* of the largest value */
} precision;
static const precision precisions[] = {{"fp32", TESS_F32, false, 1e-5},
                                       {"tf32", TESS_F32, true, 2e-3},
                                       {"fp16", TESS_F16, false, 4e-3},
                                       {"bf16", TESS_BF16, false, 3e-2}};

/* The tensors of a case on the host, with what should come out. */
typedef struct op_data {
    tess_op op;
    field in, out, want, residual[2];
    float *kernel, *bias;
} op_data;

static op_data make_data(const op_case *c, const precision *p)
{
    op_data d = {.op = op_of(c, p->dtype)};
    d.op.tf32 = p->tf32;
    d.in = random_field(&d.op.in[0], 1);
    d.out = random_field(&d.op.out[0], 2);
    d.want = random_field(&d.op.out[0], 2);
    for (int r = 0; r < 2; r++)
        d.residual[r] = random_field(&d.op.out[0], 3 + (uint32_t)r);
    random_weights(c, p->dtype, &d.kernel, &d.bias);
    if (c->in_place) {
        memcpy(d.out.data, d.residual[0].data, d.out.bytes);
        memcpy(d.want.data, d.residual[0].data, d.want.bytes);
    }
    bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE || c->kind == TESS_OP_UP_CONV;
    tess_op_buffers truth = {.in = {d.in.data, d.residual[0].data, d.residual[1].data}, .out = {d.want.data}};
    tess_reference_run(&d.op, &truth, conv ? d.kernel : NULL, c->bias ? d.bias : NULL);
    return d;
}

static void free_data(op_data *d)
{
    free(d->in.data), free(d->out.data), free(d->want.data), free(d->residual[0].data);
    free(d->residual[1].data), free(d->kernel), free(d->bias);
}

static tess_block upload(tess_device *device, const void *data, size_t bytes)
{
    tess_block block;
    tess_error error = {{0}};
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, bytes, &error) == TESS_OK, "%s", error.text);
    if (data)
        device->memory->copy(device, block.data, data, bytes, NULL);
    return block;
}

/* Runs the prepared op and brings the result to `result`. */
static void run_once(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                     const op_data *d, void *result)
{
    tess_error error = {{0}};
    device->memory->copy(device, buffers->out[0], d->out.data, d->out.bytes, NULL);
    device->ops->run(device, prepared, buffers, NULL);
    device->memory->copy(device, result, buffers->out[0], d->out.bytes, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
}

static void pack(tess_device *device, const op_case *c, const op_data *d, void *weights)
{
    bool up = c->kind == TESS_OP_CONV_TRANSPOSE;
    int64_t rows = up ? c->cin : c->cout, first = rows / 3;
    int64_t row = (int64_t)c->kernel * c->kernel * (up ? c->cout : c->cin);
    device->ops->pack(device, &d->op, TESS_PARAM_KERNEL, 0, first, d->kernel, weights);
    device->ops->pack(device, &d->op, TESS_PARAM_KERNEL, first, rows - first, d->kernel + first * row,
                      weights);
    if (c->bias)
        device->ops->pack(device, &d->op, TESS_PARAM_BIAS, 0, c->cout, d->bias, weights);
}

static void check_case(int family, const op_case *c, const precision *p, const op_data *d)
{
    tess_device *device = devices[family];
    tess_error error = {{0}};
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    char engine[128] = "?";
    tess_status found = device->ops->query(device, &d->op, &needs, &error);
    if (found == TESS_UNSUPPORTED && c->kind == TESS_OP_UP_CONV)
        return; /* the network then upsamples in a separate op */
    CHECK_MSG(found == TESS_OK, "%s: %s", c->name, error.text);
    if (device->ops->prepare(device, &d->op, &prepared, &error) != TESS_OK) {
        CHECK_MSG(false, "%s %s: %s", families[family], c->name, error.text);
        return;
    }
    snprintf(engine, sizeof engine, "%s", tess_prepared_kernel(prepared)->name);
    if (family > 0 && strcmp(engine, "generic") == 0) { /* this family refused, and generic had its turn */
        device->ops->release(device, prepared);
        return;
    }
    done[family]++;
    bool conv = c->kind == TESS_OP_CONV || c->kind == TESS_OP_CONV_TRANSPOSE || c->kind == TESS_OP_UP_CONV;
    tess_block in = upload(device, d->in.data, d->in.bytes), out = upload(device, NULL, d->out.bytes),
               residual[2] = {upload(device, d->residual[0].data, d->residual[0].bytes),
                              upload(device, d->residual[1].data, d->residual[1].bytes)},
               weights = upload(device, NULL, needs.weights),
               workspace = upload(device, NULL, needs.workspace);
    if (conv)
        pack(device, c, d, weights.data);
    tess_op_buffers buffers = {.in = {in.data, residual[0].data, residual[1].data},
                               .out = {out.data},
                               .weights = weights.data,
                               .workspace = workspace.data};
    if (c->in_place)
        buffers.in[1] = out.data;
    field got = {malloc(d->out.bytes), d->out.bytes}, again = {malloc(d->out.bytes), d->out.bytes};
    run_once(device, prepared, &buffers, d, got.data);
    const uint64_t calls = tess_mem_calls();
    run_once(device, prepared, &buffers, d, again.data);
    CHECK_MSG(tess_mem_calls() == calls, "%s (%s) allocated while running", c->name, engine);
    double largest = 0, most = difference(&d->op.out[0], &got, &d->want, &largest);
    double *bad = &worst[family][p - precisions];
    *bad = most / largest > *bad ? most / largest : *bad;
    CHECK_MSG(most <= p->bound * largest, "%s %s (%s): |a-b| %.3g of %.3g", p->name, c->name, engine, most,
              largest);
    CHECK_MSG(memcmp(got.data, again.data, got.bytes) == 0, "%s %s (%s): two runs differ", p->name, c->name,
              engine);
    device->ops->release(device, prepared);
    tess_block *blocks[] = {&in, &out, &residual[0], &residual[1], &weights, &workspace};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        device->memory->free(device, blocks[i]);
    free(got.data), free(again.data);
}

enum { PRECISIONS = sizeof precisions / sizeof precisions[0] };

/* A table's data, for every case and precision: the plain kernels take their time, so all cores make them. */
typedef struct truths {
    const op_case *cases;
    op_data *data;
} truths;

static bool picked(const char *name)
{
    const char *list = getenv("TESSERA_TEST_CASE");
    if (!list)
        return true;
    for (size_t length; *list; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        if (memmem(name, strlen(name), list, length))
            return true;
    }
    return false;
}

static bool left_out(const op_case *c, const precision *p)
{
    return !picked(c->name) || (c->ends && p->dtype == TESS_F32);
}

static void make_truth(void *arg, int64_t item, int thread)
{
    (void)thread;
    const truths *t = arg;
    const op_case *c = &t->cases[item / PRECISIONS];
    const precision *p = &precisions[item % PRECISIONS];
    if (!left_out(c, p))
        t->data[item] = make_data(c, p);
}

static void check_table(tess_pool *pool, const op_case *cases_of, size_t count)
{
    truths t = {cases_of, calloc(count * PRECISIONS, sizeof(op_data))};
    tess_pool_run(pool, (int64_t)(count * PRECISIONS), make_truth, &t);
    for (size_t i = 0; i < count * PRECISIONS; i++) {
        const op_case *c = &cases_of[i / PRECISIONS];
        const precision *p = &precisions[i % PRECISIONS];
        if (left_out(c, p))
            continue;
        for (int f = 0; f < FAMILIES; f++)
            if (devices[f])
                check_case(f, c, p, &t.data[i]);
        free_data(&t.data[i]);
    }
    free(t.data);
}

/* Samples must agree with the CPU to the last bit. */
static void check_samples(tess_device *cpu, bool import, tess_dtype dtype, double full_scale)
{
    tess_device *cuda = devices[0] ? devices[0] : devices[1] ? devices[1] : devices[2];
    tess_tensor samples = tess_tensor_2d(dtype, 2, 9, 13, 4), values = tess_tensor_2d(TESS_F32, 2, 12, 16, 3);
    tess_op op = {.kind = import ? TESS_OP_IMPORT : TESS_OP_EXPORT, .inputs = 1, .outputs = 1};
    op.in[0] = import ? samples : values;
    op.out[0] = import ? values : samples;
    op.samples = (tess_op_samples){full_scale, import ? 1 : 0, import, 0.1f};
    if (!import)
        op.pad_before[TESS_HEIGHT] = 2, op.pad_before[TESS_WIDTH] = 1;
    field in = {NULL, 0};
    if (dtype == TESS_F32 || !import) {
        in = random_field(&op.in[0], 1);
    } else { /* whole range of the type: bytes of any kind */
        CHECK(tess_tensor_bytes(&op.in[0], &in.bytes));
        in.data = malloc(in.bytes);
        for (size_t i = 0; i < in.bytes; i++)
            ((unsigned char *)in.data)[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    if (!import)
        ((float *)in.data)[60] = NAN, ((float *)in.data)[61] = 1e30f, ((float *)in.data)[62] = -1e30f;
    size_t bytes = 0;
    CHECK(tess_tensor_bytes(&op.out[0], &bytes));
    unsigned char *want = calloc(1, bytes), *got = calloc(1, bytes);
    tess_device *both[2] = {cpu, cuda};
    unsigned char *results[2] = {want, got};
    for (int i = 0; i < 2; i++) {
        tess_device *device = both[i];
        tess_error error = {{0}};
        tess_prepared *prepared = NULL;
        tess_op_needs needs;
        CHECK_MSG(device->ops->query(device, &op, &needs, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(device->ops->prepare(device, &op, &prepared, &error) == TESS_OK, "%s", error.text);
        tess_block from = upload(device, in.data, in.bytes), to = upload(device, results[i], bytes);
        tess_op_buffers buffers = {.in = {from.data}, .out = {to.data}};
        device->ops->run(device, prepared, &buffers, NULL);
        device->memory->copy(device, results[i], to.data, bytes, NULL);
        CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
        device->ops->release(device, prepared);
        device->memory->free(device, &from);
        device->memory->free(device, &to);
    }
    CHECK_MSG(memcmp(want, got, bytes) == 0, "%s of %s differs", import ? "import" : "export",
              tess_dtype_name(dtype));
    free(in.data), free(want), free(got);
}

int main(void)
{
    const char *one =
        getenv("TESSERA_TEST_FAMILY"); /* e.g. for a sanitizer that knows nothing of bulk copies */
    for (int f = 0; f < FAMILIES; f++) {
        int status;
        if (one && strcmp(one, families[f]) != 0)
            continue;
        CHECK(setenv("TESSERA_CUDA_ENGINE", families[f], 1) == 0);
        devices[f] = gpu_open(&status);
        if (!devices[f])
            return status;
    }
    tess_pool *pool = NULL;
    CHECK(tess_pool_create(0, &pool, NULL) == TESS_OK);
    check_table(pool, cases, sizeof cases / sizeof cases[0]);
    check_table(pool, wide_cases, sizeof wide_cases / sizeof wide_cases[0]);
    tess_pool_destroy(pool);
    static const struct {
        tess_dtype dtype;
        double full_scale;
    } kinds[] = {{TESS_U8, 255},           {TESS_U16, 65535},      {TESS_I16, 32767},
                 {TESS_U32, 4294967295.0}, {TESS_I32, 2147483647}, {TESS_F32, 1}};
    const tess_device_options options = {.memory = &test_counter, .threads = 1};
    tess_device *cpu = NULL;
    CHECK(tess_registry_open("cpu", &options, &cpu, NULL) == TESS_OK);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        check_samples(cpu, true, kinds[k].dtype, kinds[k].full_scale);
        check_samples(cpu, false, kinds[k].dtype, kinds[k].full_scale);
    }
    tess_registry_close(cpu);
    for (int f = 0; f < FAMILIES; f++) {
        if (!devices[f])
            continue;
        printf("%-8s %3d ops; worst of the largest value:", families[f], done[f]);
        for (size_t p = 0; p < sizeof precisions / sizeof precisions[0]; p++)
            printf(" %s %.1e", precisions[p].name, worst[f][p]);
        printf("\n");
        tess_registry_close(devices[f]);
    }
    return check_end();
}
