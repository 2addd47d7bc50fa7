/* Ops of training that are no convolutions, norms or attention, on the card, against plain sums in fp64 on the host. */
#include "gpu.h"
#include "op_outputs.h"

typedef struct size_case {
    const char *name;
    int64_t size[4], c; /* n, d, h, w */
    int gap;
    size_t skip;
} size_case;

static const size_case sizes[] = {{"even", {2, 1, 8, 12}, 16, 0, 0},     {"odd", {3, 1, 7, 5}, 13, 0, 0},
                                  {"view", {2, 1, 6, 9}, 16, 16, 16},    {"odd-view", {2, 1, 5, 8}, 6, 5, 3},
                                  {"volume", {2, 3, 6, 4}, 8, 0, 0},     {"one", {1, 1, 1, 1}, 1, 0, 0},
                                  {"wide", {1, 1, 3, 700}, 32, 0, 0},    {"unaligned", {2, 1, 6, 6}, 8, 0, 1},
                                  {"many-rows", {3, 1, 300, 2}, 4, 0, 0}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static operand like(const size_case *s, tess_dtype dtype, uint32_t item)
{
    return operand_view(dtype, s->size, s->c, s->gap, s->skip, item);
}

/* The same for a tensor whose height and width (and depth) are divided by these. */
static operand smaller(const size_case *s, tess_dtype dtype, uint32_t item, const int32_t by[3])
{
    const int64_t size[4] = {s->size[0], s->size[1] / by[0], s->size[2] / by[1], s->size[3] / by[2]};
    return operand_view(dtype, size, s->c, s->gap, s->skip, item);
}

static double slope(tess_activation activation, double v)
{
    const double s = 1 / (1 + exp(-v));
    return activation == TESS_SILU ? s * (1 + v * (1 - s)) : activation == TESS_RELU ? v > 0 : 1;
}

static void check_activate(tess_device *device, const size_case *s, tess_dtype dtype,
                           tess_activation activation, bool over)
{
    train_call call = {
        .op = {.kind = TESS_OP_ACTIVATE_GRAD, .inputs = 2, .outputs = 1, .activation = activation},
        .in = {like(s, dtype, 1), like(s, dtype, 2)},
        .out = {like(s, dtype, 3)},
        .over = over};
    operand got[3], want[3];
    if (train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        EACH(call.op.out[0], n, z, y, x, c)
        {
            const double v = get(&call.in[1], n, z, y, x, c);
            put(&want[0], n, z, y, x, c, get(&call.in[0], n, z, y, x, c) * slope(activation, v));
        }
        train_compare(&call, got, want, (double[]){train_bound(dtype, 2e-6)}, s->name);
    }
    train_free(&call);
}

/* The place of the first largest value of the window of pixel (z, y, x), counted in the order of memory. */
static bool is_first_largest(const operand *in, const int32_t w[3], int64_t n, int64_t z, int64_t y,
                             int64_t x, int64_t c)
{
    const int64_t z0 = z / w[0] * w[0], y0 = y / w[1] * w[1], x0 = x / w[2] * w[2];
    int64_t bz = z0, by = y0, bx = x0;
    for (int64_t i = z0; i < z0 + w[0]; i++)
        for (int64_t j = y0; j < y0 + w[1]; j++)
            for (int64_t k = x0; k < x0 + w[2]; k++)
                if (get(in, n, i, j, k, c) > get(in, n, bz, by, bx, c))
                    bz = i, by = j, bx = k;
    return bz == z && by == y && bx == x;
}

static void check_pool(tess_device *device, const size_case *s, tess_dtype dtype, const int32_t w[3],
                       bool more)
{
    train_call call = {.op = {.kind = TESS_OP_POOL_GRAD,
                              .inputs = more ? 3 : 2,
                              .outputs = 1,
                              .kernel = {w[0], w[1], w[2]},
                              .stride = {w[0], w[1], w[2]}},
                       .in = {smaller(s, dtype, 1, w), like(s, dtype, 2), like(s, dtype, 3)},
                       .out = {like(s, dtype, 4)},
                       .over = more ? 3 : 0};
    /* Equal values in a window: the first gets the gradient. */
    EACH(call.in[1].t, n, z, y, x, c)
    put(&call.in[1], n, z, y, x, c, round(get(&call.in[1], n, z, y, x, c)));
    operand got[3], want[3];
    const tess_tensor *pooled = &call.in[0].t;
    if (pooled->d > 0 && pooled->h > 0 && pooled->w > 0 && train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        EACH(call.op.out[0], n, z, y, x, c)
        {
            double value = more ? get(&call.in[2], n, z, y, x, c) : 0;
            if (z / w[0] < pooled->d && y / w[1] < pooled->h && x / w[2] < pooled->w &&
                is_first_largest(&call.in[1], w, n, z, y, x, c))
                value += get(&call.in[0], n, z / w[0], y / w[1], x / w[2], c);
            put(&want[0], n, z, y, x, c, value);
        }
        train_compare(&call, got, want, (double[]){train_bound(dtype, 1e-6)}, s->name);
    }
    train_free(&call);
}

/* UPSAMPLE_GRAD or AVERAGE_POOL: the sum or the mean of each window. */
static void check_sums(tess_device *device, const size_case *s, tess_dtype dtype, tess_op_kind kind,
                       const int32_t w[3], bool more)
{
    train_call call = {.op = {.kind = kind,
                              .inputs = more ? 2 : 1,
                              .outputs = 1,
                              .kernel = {w[0], w[1], w[2]},
                              .stride = {w[0], w[1], w[2]}},
                       .in = {like(s, dtype, 1), smaller(s, dtype, 2, w)},
                       .out = {smaller(s, dtype, 3, w)},
                       .over = more ? 2 : 0};
    operand got[3], want[3];
    const tess_tensor *out = &call.out[0].t;
    const double factor = kind == TESS_OP_AVERAGE_POOL ? 1.0 / (w[0] * w[1] * w[2]) : 1;
    if (out->d > 0 && out->h > 0 && out->w > 0 && train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        EACH(*out, n, z, y, x, c)
        {
            double sum = more ? get(&call.in[1], n, z, y, x, c) : 0;
            for (int64_t i = 0; i < w[0]; i++)
                for (int64_t j = 0; j < w[1]; j++)
                    for (int64_t k = 0; k < w[2]; k++)
                        sum += factor * get(&call.in[0], n, z * w[0] + i, y * w[1] + j, x * w[2] + k, c);
            put(&want[0], n, z, y, x, c, sum);
        }
        train_compare(&call, got, want, (double[]){train_bound(dtype, 1e-6)}, s->name);
    }
    train_free(&call);
}

static void check_average_grad(tess_device *device, const size_case *s, tess_dtype dtype, const int32_t w[3],
                               bool more)
{
    train_call call = {.op = {.kind = TESS_OP_AVERAGE_POOL_GRAD,
                              .inputs = more ? 2 : 1,
                              .outputs = 1,
                              .kernel = {w[0], w[1], w[2]},
                              .stride = {w[0], w[1], w[2]}},
                       .in = {smaller(s, dtype, 1, w), like(s, dtype, 2)},
                       .out = {like(s, dtype, 3)},
                       .over = more ? 2 : 0};
    operand got[3], want[3];
    const tess_tensor *pooled = &call.in[0].t;
    if (pooled->d > 0 && pooled->h > 0 && pooled->w > 0 && train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        EACH(call.op.out[0], n, z, y, x, c)
        {
            double value = more ? get(&call.in[1], n, z, y, x, c) : 0;
            if (z / w[0] < pooled->d && y / w[1] < pooled->h && x / w[2] < pooled->w)
                value += get(&call.in[0], n, z / w[0], y / w[1], x / w[2], c) / (w[0] * w[1] * w[2]);
            put(&want[0], n, z, y, x, c, value);
        }
        train_compare(&call, got, want, (double[]){train_bound(dtype, 1e-6)}, s->name);
    }
    train_free(&call);
}

static int64_t element_of(const tess_tensor *t, int64_t z, int64_t y, int64_t x, int64_t c)
{
    return ((z * t->h + y) * t->w + x) * t->c + c;
}

static void check_dropout(tess_device *device, const size_case *s, tess_dtype dtype, double rate, bool over)
{
    const int64_t keys[] = {7, 1, 8, 1, 1234567890, 70000};
    train_call call = {.op = {.kind = TESS_OP_DROPOUT,
                              .inputs = 2,
                              .outputs = 1,
                              .random = {.seed = 0x123456789abcdefull, .rate = rate}},
                       .in = {like(s, dtype, 1), operand_table(TESS_I64, s->size[0], 2, keys)},
                       .out = {like(s, dtype, 3)},
                       .over = over};
    operand got[3], want[3];
    if (train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        EACH(call.op.out[0], n, z, y, x, c)
        {
            float u;
            tess_rng_uniform(
                (tess_rng_key){call.op.random.seed, (uint32_t)keys[2 * n], (uint32_t)keys[2 * n + 1]},
                element_of(&call.op.in[0], z, y, x, c), 1, &u);
            put(&want[0], n, z, y, x, c, u < rate ? 0 : get(&call.in[0], n, z, y, x, c) / (1 - rate));
        }
        train_compare(&call, got, want, (double[]){train_bound(dtype, 1e-6)}, s->name);
    }
    train_free(&call);
}

static void check_noise(tess_device *device, const size_case *s, tess_dtype dtype, bool level)
{
    const double keys[] = {1, 0.1, 3, 9, 0.5, 2, 4, 1e6, 0, 1, 4e9, 1};
    train_call call = {.op = {.kind = TESS_OP_NOISE, .inputs = 2, .outputs = 1, .random = {.seed = 99}},
                       .in = {like(s, TESS_F32, 1), operand_table(TESS_F64, s->size[0], 4, keys)},
                       .out = {operand_view(dtype, s->size, s->c + level, s->gap, s->skip, 3)}};
    operand got[3], want[3];
    if (train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        EACH(call.op.in[0], n, z, y, x, c)
        {
            const double *k = keys + 4 * n;
            float normal;
            tess_rng_normal((tess_rng_key){99, (uint32_t)k[2], (uint32_t)k[3]},
                            element_of(&call.op.in[0], z, y, x, c), 1, &normal);
            put(&want[0], n, z, y, x, c, k[0] * get(&call.in[0], n, z, y, x, c) + k[1] * normal);
            if (level)
                put(&want[0], n, z, y, x, s->c, k[1]);
        }
        train_compare(&call, got, want, (double[]){train_bound(dtype, 2e-6)}, s->name);
    }
    train_free(&call);
}

static void check_sizes(tess_device *device, tess_dtype dtype)
{
    const int32_t windows[][3] = {{1, 2, 2}, {1, 3, 2}, {2, 2, 2}};
    for (int i = 0; i < SIZES; i++) {
        const size_case *s = &sizes[i];
        check_activate(device, s, dtype, TESS_RELU, i % 2);
        check_activate(device, s, dtype, TESS_SILU, i % 2 == 0);
        check_activate(device, s, dtype, TESS_LINEAR, false);
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
            check_pool(device, s, dtype, windows[w], false);
            check_pool(device, s, dtype, windows[w], true);
            check_sums(device, s, dtype, TESS_OP_UPSAMPLE_GRAD, windows[w], false);
            check_sums(device, s, dtype, TESS_OP_UPSAMPLE_GRAD, windows[w], true);
            check_sums(device, s, dtype, TESS_OP_AVERAGE_POOL, windows[w], false);
            check_average_grad(device, s, dtype, windows[w], false);
            check_average_grad(device, s, dtype, windows[w], true);
        }
        check_dropout(device, s, dtype, 0.3, i % 2);
        check_dropout(device, s, dtype, 0, false);
        check_noise(device, s, dtype, false);
        check_noise(device, s, dtype, true);
    }
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_sizes(device, TESS_F32);
    check_sizes(device, TESS_F16);
    check_sizes(device, TESS_BF16);
    tess_registry_close(device);
    return check_end();
}
