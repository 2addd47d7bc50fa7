/* diffuse_cases.h: SELECT and DIFFUSE on any device against their formulas, with gaps between values, windows anywhere in a
 * map, masks of zeros, ones and values between. */
#ifndef TESS_TESTS_DIFFUSE_CASES_H
#define TESS_TESTS_DIFFUSE_CASES_H

#include "op_outputs.h"

typedef struct diffuse_case {
    const char *name;
    int64_t size[4]; /* n, d, h, w */
    int gap;         /* channels of the network's input beside y */
    bool broken;     /* what has factor zero holds NaN */
    double control[TESS_DIFFUSE_CONTROLS];
} diffuse_case;

static const diffuse_case diffuse_cases[] = {
    /* Y, E, LOW, HIGH, CLEAN, KEEP, PREVIOUS, NOISE, STEP, OPEN */
    {"one pixel", {1, 1, 1, 1}, 0, false, {1.5, -0.7, -1, 1, 0.3, 0.6, 0, 0.2, 3, 0}},
    {"ddpm", {3, 1, 5, 27}, 1, false, {1.1, -0.4, -1, 1, 0.04, 0.95, 0, 0.1, 50, 0}},
    {"large factors", {2, 1, 16, 16}, 2, false, {1.2e10, -1.2e10, -1, 1, 1e-10, 0.95, 0, 0.3, 999, 0}},
    {"two steps", {5, 1, 7, 66}, 3, false, {2, -1.7, -1, 1, 0.9, 0.3, -0.2, 0, 8, 0}},
    {"a start from noise", {2, 1, 9, 13}, 1, true, {0, 0, -1, 1, 0, 0, 0, 1, 0, 1}},
    {"a start from a guess", {2, 1, 4, 130}, 1, true, {1, 0, -9, 9, 0.8, 0, 0, 0.6, 0, 0}},
    {"many lines", {9, 1, 70, 5}, 0, false, {1.1, -0.4, -1, 1, 0.04, 0.95, 0, 0.1, 4294967295.0, 0}},
};

/* Sample, row, column, width, sign: every place within a block of four random numbers, and maps past 2^32 pixels. */
static const int64_t diffuse_items[9][TESS_DIFFUSE_ITEMS] = {
    {0, 0, 0, 130, 0},         {1, 3, 1, 501, 1},          {2, 5, 2, 777, 0},
    {3, 100000, 3, 200000, 1}, {4294967295, 7, 4, 300, 0}, {0, 299999, 5, 300001, 1},
    {1, 0, 70, 200, 0},        {1, 0, 71, 201, 1},         {7, 1, 2, 999, 0}};

/* The formula, in the order that the op promises. */
static inline void diffuse_want(const train_call *call, operand want[TESS_OP_OUTPUTS])
{
    const double *k = (const double *)call->in[2].f.data;
    train_want(call, want);
    EACH(call->op.out[0], n, z, y, x, c)
    {
        const int64_t *item = diffuse_items[n];
        float normal;
        tess_rng_normal((tess_rng_key){call->op.diffuse.seed, (uint32_t)item[0], (uint32_t)k[8]},
                        (item[1] + y) * item[3] + item[2] + x, 1, &normal);
        const double before = k[0] != 0 || k[5] != 0 ? get(&call->out[0], n, z, y, x, c) : 0,
                     e = k[1] != 0 ? get(&call->in[0], n, z, y, x, c) : 0,
                     previous = k[6] != 0 ? get(&call->out[1], n, z, y, x, c) : 0,
                     m = get(&call->in[1], n, z, y, x, 1);
        const float x0 = (float)fmin(fmax(k[0] * before + k[1] * e, k[2]), k[3]);
        const float next = (float)(k[4] * (double)x0 + k[5] * before + k[6] * previous +
                                   k[7] * (double)(item[4] ? -normal : normal));
        const double known = m < 1 ? get(&call->in[1], n, z, y, x, 0) : 0;
        put(&want[0], n, z, y, x, c, k[9] != 0 ? next : known * (1 - m) + m * (double)next);
        put(&want[1], n, z, y, x, c, x0);
    }
    ++*(int64_t *)want[2].f.data;
}

static inline void spoil(operand *o)
{
    EACH(o->t, n, z, y, x, c)
    put(o, n, z, y, x, c, NAN);
}

static inline train_call diffuse_call(const diffuse_case *c)
{
    const int64_t index = 41;
    train_call call = {
        .op = {.kind = TESS_OP_DIFFUSE, .inputs = 4, .outputs = 3, .diffuse = {.seed = 0x123456789abcull}},
        .in = {operand_view(TESS_F32, c->size, 1, c->gap / 2, (size_t)c->gap / 2, 1),
               operand_view(TESS_F32, c->size, 2, 0, 0, 2),
               operand_table(TESS_F64, 1, TESS_DIFFUSE_CONTROLS, c->control),
               operand_table(TESS_I64, c->size[0], TESS_DIFFUSE_ITEMS, diffuse_items)},
        .out = {operand_view(TESS_F32, c->size, 1, c->gap, (size_t)c->gap, 4),
                operand_view(TESS_F32, c->size, 1, 0, 0, 5), operand_table(TESS_I64, 1, 1, &index)}};
    EACH(call.in[1].t, n, z, y, x, ch)
    {
        if (ch == 0)
            continue;
        const int64_t kind = (n + 3 * y + x) % 5;
        put(&call.in[1], n, z, y, x, 1, kind < 2 ? 1 : kind < 4 ? 0 : 0.3);
        if (kind < 2 && c->broken) /* a known value under the void is not read */
            put(&call.in[1], n, z, y, x, 0, NAN);
    }
    if (c->broken && c->control[TESS_DIFFUSE_E] == 0)
        spoil(&call.in[0]);
    if (c->broken && c->control[TESS_DIFFUSE_Y] == 0 && c->control[TESS_DIFFUSE_KEEP] == 0)
        spoil(&call.out[0]);
    if (c->broken && c->control[TESS_DIFFUSE_PREVIOUS] == 0)
        spoil(&call.out[1]);
    return call;
}

/* `bound` is that of the random numbers, which devices compute with their own logarithm and cosine. */
static inline void check_diffuse(tess_device *device, const diffuse_case *c, double bound)
{
    train_call call = diffuse_call(c);
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    if (train_run(device, &call, got, c->name)) {
        diffuse_want(&call, want);
        CHECK(*(int64_t *)got[2].f.data == 42);
        const double random = c->control[TESS_DIFFUSE_NOISE] != 0 ? bound : 0;
        train_compare(&call, got, want, (double[]){random, 0, 0}, c->name);
    }
    train_free(&call);
}

/* A value that is not finite is not hidden by the clamp where it counts, and not seen where it does not. */
static inline void check_diffuse_broken(tess_device *device, float value)
{
    const diffuse_case c = {"broken", {1, 1, 3, 10}, 1, false, {1, -1, -1, 1, 1, 0, 0, 0, 0, 0}};
    train_call call = diffuse_call(&c);
    operand got[TESS_OP_OUTPUTS];
    EACH(call.in[0].t, n, z, y, x, ch)
    put(&call.in[0], n, z, y, x, ch, value);
    if (train_run(device, &call, got, c.name)) {
        EACH(call.op.out[0], n, z, y, x, ch)
        {
            const bool known = get(&call.in[1], n, z, y, x, 1) <= 0;
            const double y1 = get(&got[0], n, z, y, x, ch);
            CHECK(known ? y1 == get(&call.in[1], n, z, y, x, 0) : isnan(y1));
        }
        for (int i = 0; i < 3; i++)
            free(got[i].f.data);
    }
    train_free(&call);
}

static inline void check_select(tess_device *device, tess_dtype dtype, int64_t rows, int64_t c, int64_t n,
                                int64_t index)
{
    const size_t value = tess_dtype_size(dtype);
    const tess_tensor table = tess_tensor_2d(dtype, rows, 1, 1, c);
    train_call call = {.op = {.kind = TESS_OP_SELECT, .inputs = 2, .outputs = 1},
                       .in = {operand_random(table, 0, 1), operand_table(TESS_I64, 1, 1, &index)},
                       .out = {operand_random(tess_tensor_2d(dtype, n, 1, 1, c), 0, 2)}};
    const size_t row = (size_t)(index < 0 ? 0 : index < rows ? index : rows - 1);
    operand got[TESS_OP_OUTPUTS];
    if (train_run(device, &call, got, "select")) {
        for (int64_t i = 0; i < n; i++)
            CHECK(memcmp((char *)got[0].f.data + (size_t)(i * c) * value,
                         (char *)call.in[0].f.data + row * (size_t)c * value, (size_t)c * value) == 0);
        CHECK(memcmp((char *)got[0].f.data + (size_t)(n * c) * value,
                     (char *)call.out[0].f.data + (size_t)(n * c) * value, 64) == 0);
        free(got[0].f.data);
    }
    train_free(&call);
}

static inline void check_diffusion_ops(tess_device *device, double bound)
{
    for (size_t i = 0; i < sizeof diffuse_cases / sizeof diffuse_cases[0]; i++)
        check_diffuse(device, &diffuse_cases[i], bound);
    check_diffuse_broken(device, NAN);
    check_diffuse_broken(device, INFINITY);
    check_diffuse_broken(device, -INFINITY);
    for (int64_t index = -1; index <= 5; index++) {
        check_select(device, TESS_F32, 5, 1000, 3, index);
        check_select(device, TESS_F64, 5, TESS_DIFFUSE_CONTROLS, 1, index);
    }
    check_select(device, TESS_F32, 1, 1, 1, 0);
    check_select(device, TESS_F32, 1000, 12345, 2, 777);
}

#endif
