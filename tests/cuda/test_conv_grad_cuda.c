/* The gradients of a convolution's parameters on the card: every family of kernels against sums in fp64 on the host;
 * each runs twice and must give the same bits. TESSERA_TEST_CASE selects cases by a part of their name. */
#define _GNU_SOURCE
#include "device/kernel.h"
#include "fields.h"
#include "gpu.h"

enum { FAMILIES = 3, CUDNN = 2 };
static const char *const families[FAMILIES] = {"generic", "hopper", "cudnn"};
static tess_device *devices[FAMILIES];
static int done[FAMILIES];
static double worst[FAMILIES];

typedef struct grad_case {
    const char *name;
    int64_t n, h, w, cin, cout;
    int kernel, stride, pad;
    int in_gap, out_gap; /* channels between the pixels of the inputs */
    bool bias, accumulate;
    int images; /* 1: the input is an fp32 image, 2: the gradient is; not for fp32 */
} grad_case;

static const grad_case cases[] = {
    {"one tile", 1, 16, 8, 64, 64, 3, 1, 1, 0, 0, false, false, 0},
    {"some tiles", 2, 32, 24, 64, 64, 3, 1, 1, 0, 0, true, false, 0},
    {"cut tiles", 3, 21, 13, 64, 64, 3, 1, 1, 0, 0, true, true, 0},
    {"smaller than a tile", 2, 3, 5, 16, 24, 3, 1, 1, 0, 0, true, false, 0},
    {"more channels", 2, 18, 20, 128, 192, 3, 1, 1, 0, 0, true, false, 0},
    {"channels not of 64", 2, 17, 30, 72, 40, 3, 1, 1, 0, 0, true, true, 0},
    {"parts of other tensors", 2, 20, 19, 64, 32, 3, 1, 1, 64, 8, true, false, 0},
    {"no padding", 1, 19, 34, 32, 64, 3, 1, 0, 0, 0, false, false, 0},
    {"many images", 40, 16, 16, 64, 64, 3, 1, 1, 0, 0, true, false, 0},
    {"many tiles", 2, 128, 128, 64, 64, 3, 1, 1, 0, 0, true, false, 0},
    {"narrow", 2, 33, 1, 64, 64, 3, 1, 1, 0, 0, false, false, 0},
    {"down", 2, 20, 36, 64, 128, 2, 2, 0, 0, 0, true, false, 0},
    {"down, cut", 3, 22, 26, 24, 200, 2, 2, 0, 0, 0, true, true, 0},
    {"down from a part", 2, 16, 16, 64, 64, 2, 2, 0, 64, 64, false, false, 0},
    {"1x1", 2, 19, 23, 64, 64, 1, 1, 0, 0, 0, true, false, 0},
    {"1x1, more channels", 2, 9, 17, 328, 136, 1, 1, 0, 0, 0, true, true, 0},
    {"linear", 33, 1, 1, 256, 512, 1, 1, 0, 0, 0, true, false, 0},
    {"odd channels", 2, 13, 11, 5, 7, 3, 1, 1, 3, 1, true, true, 0},
    {"5x5", 2, 13, 17, 16, 24, 5, 1, 2, 0, 0, true, false, 0},
    {"3x3 with stride 2", 2, 17, 22, 32, 64, 3, 2, 1, 0, 0, true, false, 0},
    {"first layer, 4", 2, 40, 24, 4, 64, 3, 1, 1, 0, 0, true, false, 1},
    {"first layer, 3", 2, 21, 37, 3, 64, 3, 1, 1, 1, 0, false, true, 1},
    {"first layer, 1", 3, 16, 16, 1, 48, 3, 1, 1, 0, 0, true, false, 1},
    {"first layer, 1x1", 2, 16, 16, 3, 64, 1, 1, 0, 0, 0, true, false, 1},
    {"last layer, 3", 2, 40, 24, 64, 3, 3, 1, 1, 0, 0, true, false, 2},
    {"last layer, 1", 2, 21, 37, 64, 1, 3, 1, 1, 0, 0, false, true, 2},
    {"last layer, 1x1", 2, 18, 16, 32, 2, 1, 1, 0, 0, 1, true, false, 2},
};

static tess_tensor flat(int64_t count)
{
    return tess_tensor_2d(TESS_F32, 1, 1, 1, count);
}

static tess_op op_of(const grad_case *c, tess_dtype dtype)
{
    const int64_t h = (c->h + 2 * c->pad - c->kernel) / c->stride + 1,
                  w = (c->w + 2 * c->pad - c->kernel) / c->stride + 1;
    tess_op op = {.kind = TESS_OP_CONV_GRAD, .inputs = 2, .outputs = c->bias ? 2 : 1};
    op.in[0] = strided(c->images == 1 ? TESS_F32 : dtype, c->n, c->h, c->w, c->cin, c->in_gap);
    op.in[1] = strided(c->images == 2 ? TESS_F32 : dtype, c->n, h, w, c->cout, c->out_gap);
    op.out[0] = flat(c->cin * c->cout * c->kernel * c->kernel);
    op.out[1] = flat(c->cout);
    for (int s = 0; s < TESS_SPATIAL; s++)
        op.kernel[s] = op.stride[s] = 1;
    for (int s = TESS_HEIGHT; s <= TESS_WIDTH; s++) {
        op.kernel[s] = c->kernel;
        op.stride[s] = c->stride;
        op.pad_before[s] = op.pad_after[s] = c->pad;
    }
    op.grad.accumulate = c->accumulate;
    return op;
}

/* A tensor as doubles, dense, [pixel][channel]. */
static double *as_doubles(const tess_tensor *t, const void *data)
{
    double *values = malloc((size_t)(t->n * t->h * t->w * t->c) * sizeof *values), *to = values;
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t y = 0; y < t->h; y++)
            for (int64_t x = 0; x < t->w; x++)
                for (int64_t c = 0; c < t->c; c++)
                    *to++ = (double)value_in(
                        t->dtype, data, (size_t)(n * t->stride_n + y * t->stride_h + x * t->stride_w + c));
    return values;
}

static void add_pixel(const tess_op *op, const double *x, const double *dy, int64_t n, int64_t oy, int64_t ox,
                      double *sums)
{
    const tess_tensor *in = &op->in[0], *out = &op->in[1];
    const int64_t taps = tess_op_taps(op), kw = op->kernel[TESS_WIDTH];
    const double *d = dy + ((n * out->h + oy) * out->w + ox) * out->c;
    for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t y = oy * op->stride[TESS_HEIGHT] - op->pad_before[TESS_HEIGHT] + tap / kw,
                      at = ox * op->stride[TESS_WIDTH] - op->pad_before[TESS_WIDTH] + tap % kw;
        if (y < 0 || y >= in->h || at < 0 || at >= in->w)
            continue;
        const double *v = x + ((n * in->h + y) * in->w + at) * in->c;
        for (int64_t o = 0; o < out->c; o++)
            for (int64_t c = 0; c < in->c; c++)
                sums[(tap * out->c + o) * in->c + c] += d[o] * v[c];
    }
}

/* `kernel` and `bias` hold what was there before, and get the gradients. */
static void reference(const tess_op *op, const void *x_data, const void *dy_data, float *kernel, float *bias)
{
    const tess_tensor *in = &op->in[0], *out = &op->in[1];
    const int64_t taps = tess_op_taps(op), pixels = out->n * out->h * out->w;
    double *x = as_doubles(in, x_data), *dy = as_doubles(out, dy_data);
    double *sums = calloc((size_t)(taps * in->c * out->c), sizeof *sums);
    for (int64_t n = 0; n < out->n; n++)
        for (int64_t oy = 0; oy < out->h; oy++)
            for (int64_t ox = 0; ox < out->w; ox++)
                add_pixel(op, x, dy, n, oy, ox, sums);
    for (int64_t o = 0; o < out->c; o++)
        for (int64_t c = 0; c < in->c; c++)
            for (int64_t tap = 0; tap < taps; tap++) {
                float *to = &kernel[(o * in->c + c) * taps + tap];
                const double before = op->grad.accumulate ? (double)*to : 0;
                *to = (float)(before + sums[(tap * out->c + o) * in->c + c]);
            }
    for (int64_t o = 0; o < out->c && op->outputs > 1; o++) {
        double sum = op->grad.accumulate ? (double)bias[o] : 0;
        for (int64_t p = 0; p < pixels; p++)
            sum += dy[p * out->c + o];
        bias[o] = (float)sum;
    }
    free(x), free(dy), free(sums);
}

static tess_block upload(tess_device *device, const void *data, size_t bytes)
{
    tess_block block;
    tess_error error = {{0}};
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, bytes ? bytes : 1, &error) == TESS_OK, "%s",
              error.text);
    if (data)
        device->memory->copy(device, block.data, data, bytes, NULL);
    return block;
}

/* The inputs, what was in the outputs before, and what should come out. */
typedef struct grad_data {
    tess_op op;
    field in[2], before[2], want[2];
} grad_data;

static grad_data make_data(const grad_case *c, tess_dtype dtype, uint32_t seed)
{
    grad_data d = {.op = op_of(c, dtype)};
    for (int i = 0; i < 2; i++) {
        d.in[i] = random_field(&d.op.in[i], seed + 1 + (uint32_t)i);
        d.before[i] = random_field(&d.op.out[i], seed + 3 + (uint32_t)i);
        d.want[i] = random_field(&d.op.out[i], seed + 3 + (uint32_t)i);
    }
    reference(&d.op, d.in[0].data, d.in[1].data, d.want[0].data, d.want[1].data);
    return d;
}

static void free_data(grad_data *d)
{
    for (int i = 0; i < 2; i++)
        free(d->in[i].data), free(d->before[i].data), free(d->want[i].data);
}

static void run_once(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                     const grad_data *d, field got[2])
{
    tess_error error = {{0}};
    for (int i = 0; i < d->op.outputs; i++)
        device->memory->copy(device, buffers->out[i], d->before[i].data, d->before[i].bytes, NULL);
    device->ops->run(device, prepared, buffers, NULL);
    for (int i = 0; i < d->op.outputs; i++)
        device->memory->copy(device, got[i].data, buffers->out[i], got[i].bytes, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
}

static void compare(int family, const grad_case *c, tess_dtype dtype, const grad_data *d, const field got[2],
                    const field again[2])
{
    /* cuDNN may round its result to the type of the inputs, and adds long sums in its own order. */
    const double bound = dtype == TESS_F32 ? (family == CUDNN ? 5e-5 : 1e-5) : family == CUDNN ? 5e-3 : 5e-5;
    for (int i = 0; i < d->op.outputs; i++) {
        double largest = 0;
        const double most = difference(&d->op.out[i], &got[i], &d->want[i], &largest);
        worst[family] = most / largest > worst[family] ? most / largest : worst[family];
        CHECK_MSG(most <= bound * largest, "%s %s %s, output %d: |a-b| %.3g of %.3g", families[family],
                  tess_dtype_name(dtype), c->name, i, most, largest);
        CHECK_MSG(memcmp(got[i].data, again[i].data, got[i].bytes) == 0, "%s %s %s: two runs differ",
                  families[family], tess_dtype_name(dtype), c->name);
    }
}

static void check_case(int family, const grad_case *c, tess_dtype dtype, const grad_data *d)
{
    tess_device *device = devices[family];
    tess_error error = {{0}};
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    CHECK_MSG(device->ops->query(device, &d->op, &needs, &error) == TESS_OK, "%s: %s", c->name, error.text);
    if (device->ops->prepare(device, &d->op, &prepared, &error) != TESS_OK) {
        CHECK_MSG(false, "%s %s: %s", families[family], c->name, error.text);
        return;
    }
    if (strcmp(tess_prepared_kernel(prepared)->name, families[family]) != 0) { /* this family refused */
        device->ops->release(device, prepared);
        return;
    }
    done[family]++;
    tess_block in[2], out[2], workspace = upload(device, NULL, needs.workspace);
    tess_op_buffers buffers = {.workspace = workspace.data};
    field got[2], again[2];
    for (int i = 0; i < 2; i++) {
        in[i] = upload(device, d->in[i].data, d->in[i].bytes);
        out[i] = upload(device, NULL, d->before[i].bytes);
        buffers.in[i] = in[i].data;
        buffers.out[i] = out[i].data;
        got[i] = (field){malloc(d->before[i].bytes), d->before[i].bytes};
        again[i] = (field){malloc(d->before[i].bytes), d->before[i].bytes};
    }
    run_once(device, prepared, &buffers, d, got);
    run_once(device, prepared, &buffers, d, again);
    compare(family, c, dtype, d, got, again);
    device->ops->release(device, prepared);
    device->memory->free(device, &workspace);
    for (int i = 0; i < 2; i++) {
        device->memory->free(device, &in[i]);
        device->memory->free(device, &out[i]);
        free(got[i].data), free(again[i].data);
    }
}

/* ---- pairs: two convolutions in one op ---- */

static const grad_case pairs[] = {
    {"one tile", 1, 16, 8, 64, 64, 3, 1, 1, 0, 0, false, false, 0},
    {"one part, added", 1, 16, 8, 128, 192, 3, 1, 1, 0, 0, false, true, 0},
    {"one part, many channels", 1, 16, 16, 256, 640, 3, 1, 1, 0, 0, false, false, 0},
    {"some parts", 2, 32, 24, 64, 64, 3, 1, 1, 0, 0, false, false, 0},
    {"some parts, added", 3, 32, 32, 128, 64, 3, 1, 1, 0, 0, false, true, 0},
    {"cut tiles", 3, 21, 13, 64, 64, 3, 1, 1, 0, 0, false, true, 0},
    {"smaller than a tile", 2, 3, 5, 16, 24, 3, 1, 1, 0, 0, false, false, 0},
    {"channels not of 64", 2, 17, 30, 72, 40, 3, 1, 1, 0, 0, false, true, 0},
    {"parts of other tensors", 2, 20, 19, 64, 32, 3, 1, 1, 64, 8, false, false, 0},
    {"no padding", 1, 19, 34, 32, 64, 3, 1, 0, 0, 0, false, false, 0},
    {"many tiles", 2, 128, 128, 64, 64, 3, 1, 1, 0, 0, false, false, 0},
};

/* Runs a pair twice; `got` and `again`: its two outputs. */
static void run_pair(tess_device *device, const tess_op *op, const grad_data d[2], field got[2],
                     field again[2])
{
    tess_error error = {{0}};
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_block in[4], out[2];
    CHECK_MSG(device->ops->query(device, op, &needs, &error) == TESS_OK, "%s", error.text);
    tess_op_buffers buffers = {0};
    for (int i = 0; i < 4; i++) {
        in[i] = upload(device, d[i / 2].in[i % 2].data, d[i / 2].in[i % 2].bytes);
        buffers.in[i] = in[i].data;
    }
    tess_block workspace = upload(device, NULL, needs.workspace);
    buffers.workspace = workspace.data;
    CHECK_MSG(device->ops->prepare(device, op, &prepared, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < 2; i++) {
        out[i] = upload(device, NULL, d[i].before[0].bytes);
        buffers.out[i] = out[i].data;
    }
    for (int run = 0; run < 2 && prepared; run++) {
        for (int i = 0; i < 2; i++)
            device->memory->copy(device, out[i].data, d[i].before[0].data, d[i].before[0].bytes, NULL);
        device->ops->run(device, prepared, &buffers, NULL);
        for (int i = 0; i < 2; i++)
            device->memory->copy(device, (run ? again : got)[i].data, out[i].data, d[i].before[0].bytes,
                                 NULL);
        CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
    }
    if (prepared)
        device->ops->release(device, prepared);
    device->memory->free(device, &workspace);
    for (int i = 0; i < 4; i++)
        device->memory->free(device, &in[i]);
    for (int i = 0; i < 2; i++)
        device->memory->free(device, &out[i]);
}

/* False if the card takes no pairs. */
static bool check_pair(tess_device *device, const grad_case *c, tess_dtype dtype)
{
    tess_op op = op_of(c, dtype);
    tess_op_needs needs;
    op.inputs = 4;
    op.outputs = 2;
    op.in[2] = op.in[0];
    op.in[3] = op.in[1];
    op.out[1] = op.out[0];
    if (device->ops->query(device, &op, &needs, NULL) != TESS_OK)
        return false;
    grad_data d[2] = {make_data(c, dtype, 0), make_data(c, dtype, 10)};
    field got[2], again[2];
    for (int i = 0; i < 2; i++) {
        got[i] = (field){calloc(1, d[i].before[0].bytes), d[i].before[0].bytes};
        again[i] = (field){calloc(1, d[i].before[0].bytes), d[i].before[0].bytes};
    }
    run_pair(device, &op, d, got, again);
    for (int i = 0; i < 2; i++) {
        double largest = 0;
        const double most = difference(&op.out[0], &got[i], &d[i].want[0], &largest);
        CHECK_MSG(most <= 5e-5 * largest, "pair, %s %s, layer %d: |a-b| %.3g of %.3g", tess_dtype_name(dtype),
                  c->name, i, most, largest);
        CHECK_MSG(memcmp(got[i].data, again[i].data, got[i].bytes) == 0, "pair, %s %s: two runs differ",
                  tess_dtype_name(dtype), c->name);
        free(got[i].data), free(again[i].data);
        free_data(&d[i]);
    }
    return true;
}

static void check_pairs(tess_device *device)
{
    int count = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        count += check_pair(device, &pairs[i], TESS_F16) + check_pair(device, &pairs[i], TESS_BF16);
    printf("hopper   %3d pairs\n", count);
    CHECK(count == 0 || count == 2 * (int)(sizeof pairs / sizeof pairs[0]));
    CHECK(!check_pair(device, &pairs[0], TESS_F32));
}

int main(void)
{
    static const tess_dtype types[] = {TESS_F32, TESS_F16, TESS_BF16};
    const char *picked = getenv("TESSERA_TEST_CASE");
    for (int f = 0; f < FAMILIES; f++) {
        int status;
        CHECK(setenv("TESSERA_CUDA_ENGINE", families[f], 1) == 0);
        devices[f] = gpu_open(&status);
        if (!devices[f])
            return status;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int t = 0; t < 3; t++) {
            if ((picked && !strstr(cases[i].name, picked)) || (cases[i].images && types[t] == TESS_F32))
                continue;
            grad_data d = make_data(&cases[i], types[t], 0);
            for (int f = 0; f < FAMILIES; f++)
                check_case(f, &cases[i], types[t], &d);
            free_data(&d);
        }
    check_pairs(devices[1]);
    for (int f = 0; f < FAMILIES; f++) {
        printf("%-8s %3d gradients; worst %.1e of the largest value\n", families[f], done[f], worst[f]);
        tess_registry_close(devices[f]);
    }
    return check_end();
}
