/* statistics_cases.h: moments, scores and local scores of any device against the plain reference in fp64 on the host. */
#ifndef TESS_TESTS_STATISTICS_CASES_H
#define TESS_TESTS_STATISTICS_CASES_H

#include "cpu/reference/reference.h"
#include "op_outputs.h"
#include "tensor/moments.h"

typedef struct pixels_case {
    const char *name;
    int64_t size[4], c; /* n, d, h, w */
    int gap;            /* channels between pixels that are not read */
    size_t skip;
    double level; /* of all values, in their deviations */
    int mask;     /* 0: none, 1: U8, 2: F32 */
    int bad;      /* every so many pixels one value is NaN or infinite; 0: none */
} pixels_case;

static const pixels_case pixels_cases[] = {
    {"one", {1, 1, 1, 1}, 1, 0, 0, 0, 0, 0},         {"few", {1, 1, 2, 3}, 5, 0, 0, 3, 0, 0},
    {"blocks", {1, 1, 30, 40}, 16, 0, 0, 10, 0, 0},  {"odd", {2, 1, 17, 41}, 31, 0, 0, 100, 1, 0},
    {"view", {2, 3, 9, 21}, 13, 6, 5, 10, 2, 7},     {"bands", {1, 1, 41, 37}, 100, 0, 0, 1000, 0, 11},
    {"many", {1, 1, 25, 31}, 205, 0, 0, 30, 1, 50},  {"row", {1, 1, 1, 5000}, 64, 0, 0, 10, 0, 0},
    {"wide", {1, 1, 3, 200}, 300, 1, 1, 10, 0, 100}, {"none", {1, 1, 3, 4}, 9, 0, 0, 1, 0, 1}};
enum { PIXELS_CASES = sizeof pixels_cases / sizeof pixels_cases[0] };

static const pixels_case local_cases[] = {
    {"local", {1, 1, 12, 19}, 7, 0, 0, 100, 0, 0},       {"local-8", {2, 1, 7, 9}, 8, 3, 1, 10, 1, 9},
    {"local-long", {1, 1, 3, 300}, 16, 0, 0, 10, 2, 13}, {"local-bands", {1, 1, 9, 11}, 37, 0, 0, 3, 0, 0},
    {"local-one", {1, 1, 1, 1}, 3, 0, 0, 1, 0, 0},       {"local-two", {1, 2, 2, 3}, 1, 0, 0, 1, 0, 0}};
enum { LOCAL_CASES = sizeof local_cases / sizeof local_cases[0] };

static inline int64_t case_pixels(const pixels_case *k)
{
    return k->size[0] * k->size[1] * k->size[2] * k->size[3];
}

/* Neighbouring channels are correlated, as bands are. */
static inline operand case_operand(const pixels_case *k)
{
    operand o = operand_view(TESS_F32, k->size, k->c, k->gap, k->skip, 21);
    int64_t pixel = 0;
    EACH(o.t, n, z, y, x, c)
    {
        const double before = c ? get(&o, n, z, y, x, c - 1) - k->level : 0;
        put(&o, n, z, y, x, c, k->level + get(&o, n, z, y, x, c) + 0.5 * before);
    }
    for (int64_t n = 0; n < o.t.n; n++)
        for (int64_t z = 0; z < o.t.d; z++)
            for (int64_t y = 0; y < o.t.h; y++)
                for (int64_t x = 0; x < o.t.w; x++, pixel++)
                    if (k->bad && pixel % k->bad == k->bad - 1)
                        put(&o, n, z, y, x, pixel % o.t.c, pixel % 2 ? NAN : -INFINITY);
    return o;
}

static inline operand case_mask(const pixels_case *k)
{
    const tess_dtype dtype = k->mask == 1 ? TESS_U8 : TESS_F32;
    operand o = {tess_tensor_3d(dtype, k->size[0], k->size[1], k->size[2], k->size[3], 1), {0}, 0};
    o.f.bytes = (size_t)case_pixels(k) * tess_dtype_size(dtype);
    o.f.data = malloc(o.f.bytes);
    for (int64_t i = 0; i < case_pixels(k); i++) {
        const int value = i % 5 == 2 ? 0 : 1 + (int)(i % 3);
        if (k->mask == 1)
            ((uint8_t *)o.f.data)[i] = (uint8_t)value;
        else
            ((float *)o.f.data)[i] = -0.25f * (float)value;
    }
    return o;
}

/* An F64 vector of zeros. */
static inline operand case_vector(size_t count)
{
    operand o = {tess_tensor_2d(TESS_F64, 1, 1, 1, (int64_t)count), {calloc(count, 8), count * 8}, 0};
    return o;
}

/* Runs the reference on the call's operands; the result is in want[0]. */
static inline void case_reference(const train_call *call, operand *want)
{
    tess_op_buffers b = {.workspace = malloc(tess_reference_statistics_workspace(&call->op) + 8)};
    train_want(call, want);
    for (int i = 0; i < call->op.inputs; i++)
        b.in[i] = (const char *)call->in[i].f.data + call->in[i].skip * tess_dtype_size(call->in[i].t.dtype);
    b.out[0] = (char *)want[0].f.data + want[0].skip * tess_dtype_size(want[0].t.dtype);
    tess_reference_statistics(&call->op, &b);
    free(b.workspace);
}

/* Count and extremes are equal, means and second moments within `bound` of the largest. */
static inline void compare_moments(const double *got, const double *want, int c, bool covariance,
                                   double bound, const char *name)
{
    double most[2] = {0}, off[2] = {0};
    for (int i = 0; i < TESS_MOMENTS_MEAN; i++)
        CHECK_MSG(got[i] == want[i], "%s: value %d of moments is %.9g, not %.9g", name, i, got[i], want[i]);
    for (size_t i = TESS_MOMENTS_MEAN; i < tess_moments_values(c, covariance); i++) {
        const int part = i >= tess_moments_second(c);
        most[part] = fmax(most[part], fabs(want[i]));
        if (!(fabs(got[i] - want[i]) <= off[part]))
            off[part] = fabs(got[i] - want[i]);
    }
    for (int part = 0; part < 2; part++)
        CHECK_MSG(off[part] <= bound * most[part], "%s: %s off by %.3g of %.3g", name,
                  part ? "second moments" : "means", off[part], most[part]);
    for (int i = 0; covariance && i < c; i++)
        for (int j = 0; j < i; j++)
            if (got[tess_moments_second(c) + (size_t)(i * c + j)] !=
                got[tess_moments_second(c) + (size_t)(j * c + i)])
                CHECK_MSG(false, "%s: second moments are not symmetric at (%d, %d)", name, i, j);
}

static inline void check_moments(tess_device *device, const pixels_case *k, bool covariance, bool before)
{
    train_call call = {
        .op = {.kind = TESS_OP_MOMENTS, .inputs = k->mask ? 2 : 1, .outputs = 1, .moments = {covariance}},
        .in = {case_operand(k)},
        .out = {case_vector(tess_moments_values((int)k->c, covariance))}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    double *start = call.out[0].f.data;
    if (k->mask)
        call.in[1] = case_mask(k);
    tess_moments_clear(start, (int)k->c, covariance);
    if (before) { /* 1000 pixels are there, with means beside the level */
        start[TESS_MOMENTS_COUNT] = 1000;
        start[TESS_MOMENTS_LEAST] = k->level - 2;
        start[TESS_MOMENTS_LARGEST] = k->level + 100;
        for (int64_t i = 0; i < k->c; i++) {
            start[TESS_MOMENTS_MEAN + i] = k->level + 0.1 * (double)i;
            if (covariance)
                start[tess_moments_second((int)k->c) + (size_t)(i * k->c + i)] = 1000;
        }
    }
    if (train_run(device, &call, got, k->name)) {
        case_reference(&call, want);
        compare_moments(got[0].f.data, want[0].f.data, (int)k->c, covariance, 1e-12, k->name);
        free(got[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

/* A vector for each image; some have pixels already. */
static inline void check_each(tess_device *device, const pixels_case *k, bool covariance)
{
    const size_t values = tess_moments_values((int)k->c, covariance);
    train_call call = {.op = {.kind = TESS_OP_MOMENTS,
                              .inputs = k->mask ? 2 : 1,
                              .outputs = 1,
                              .moments = {covariance, true}},
                       .in = {case_operand(k)},
                       .out = {case_vector((size_t)k->size[0] * values)}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    if (k->mask)
        call.in[1] = case_mask(k);
    for (int64_t n = 0; n < k->size[0]; n++) {
        double *start = (double *)call.out[0].f.data + (size_t)n * values;
        tess_moments_clear(start, (int)k->c, covariance);
        start[TESS_MOMENTS_COUNT] = n % 3 == 2 ? 100 : 0;
        start[TESS_MOMENTS_MEAN] = n % 3 == 2 ? k->level + (double)n : 0;
    }
    if (train_run(device, &call, got, k->name)) {
        case_reference(&call, want);
        for (int64_t n = 0; n < k->size[0]; n++) {
            char name[64];
            snprintf(name, sizeof name, "%s, image %d", k->name, (int)n);
            compare_moments((double *)got[0].f.data + (size_t)n * values,
                            (double *)want[0].f.data + (size_t)n * values, (int)k->c, covariance, 1e-12,
                            name);
        }
        free(got[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

/* Few and many images, of pixels that divide by the steps of kernels and that do not, with masks, gaps and missing values. */
static inline void check_each_image(tess_device *device)
{
    static const pixels_case cases[] = {{"each-one", {1, 1, 9, 11}, 7, 0, 0, 3, 0, 0},
                                        {"each-small", {5, 1, 2, 3}, 50, 0, 0, 10, 0, 0},
                                        {"each-odd", {3, 1, 17, 13}, 31, 0, 0, 50, 1, 7},
                                        {"each-view", {4, 2, 5, 7}, 13, 3, 1, 10, 2, 5},
                                        {"each-dense", {7, 1, 16, 24}, 50, 0, 0, 20, 0, 0},
                                        {"each-bad", {6, 1, 12, 12}, 100, 0, 0, 20, 0, 11},
                                        {"each-wide", {2, 1, 9, 10}, 205, 0, 0, 10, 0, 0},
                                        {"each-many", {300, 1, 4, 20}, 32, 0, 0, 5, 0, 33},
                                        {"each-none", {3, 1, 3, 4}, 9, 0, 0, 1, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_each(device, &cases[i], true);
        check_each(device, &cases[i], false);
    }
}

/* NaN must meet NaN; others within `bound` of the value itself, or of 1. */
static inline void compare_scores(const operand *got, const operand *want, double bound, const char *name)
{
    double most = 0;
    EACH(got->t, n, z, y, x, c)
    {
        const size_t at = operand_at(got, n, z, y, x, c);
        const bool wide = got->t.dtype == TESS_F64;
        const double a = wide ? ((double *)got->f.data)[at] : (double)((float *)got->f.data)[at],
                     b = wide ? ((double *)want->f.data)[at] : (double)((float *)want->f.data)[at];
        CHECK_MSG(isnan(a) == isnan(b), "%s: score (%d, %d) is %g, not %g", name, (int)y, (int)x, a, b);
        if (!isnan(b))
            most = fmax(most, fabs(a - b) / fmax(1, fabs(b)));
    }
    CHECK_MSG(most <= bound, "%s: scores off by %.3g", name, most);
}

static inline void check_score(tess_device *device, const pixels_case *k, int64_t rows, double bound)
{
    train_call call = {.op = {.kind = TESS_OP_SCORE, .inputs = 3, .outputs = 1},
                       .in = {case_operand(k), operand_random(tess_tensor_2d(TESS_F32, 1, 1, 1, k->c), 0, 5),
                              operand_random(tess_tensor_2d(TESS_F32, 1, 1, rows, k->c), 0, 6)},
                       .out = {operand_view(TESS_F32, k->size, 1, k->gap, k->skip, 7)}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    for (int64_t i = 0; i < k->c; i++)
        put(&call.in[1], 0, 0, 0, 0, i, k->level + 0.1 * get(&call.in[1], 0, 0, 0, 0, i));
    if (train_run(device, &call, got, k->name)) {
        case_reference(&call, want);
        compare_scores(&got[0], &want[0], bound, k->name);
        free(got[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

static inline void check_local(tess_device *device, const pixels_case *k, int outer, int inner,
                               tess_dtype dtype)
{
    train_call call = {.op = {.kind = TESS_OP_LOCAL_RX,
                              .inputs = k->mask ? 2 : 1,
                              .outputs = 1,
                              .kernel = {1, outer, outer},
                              .stride = {1, 1, 1},
                              .pad_before = {0, outer / 2, outer / 2},
                              .pad_after = {0, outer / 2, outer / 2},
                              .local_rx = {inner, 0.01}},
                       .in = {case_operand(k)}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    if (k->mask)
        call.in[1] = case_mask(k);
    call.out[0].t = tess_tensor_3d(dtype, k->size[0], k->size[1], k->size[2], k->size[3], 1);
    call.out[0].f.bytes = (size_t)case_pixels(k) * tess_dtype_size(dtype);
    call.out[0].f.data = calloc(1, call.out[0].f.bytes);
    if (train_run(device, &call, got, k->name)) {
        case_reference(&call, want);
        compare_scores(&got[0], &want[0], dtype == TESS_F64 ? 1e-9 : 2e-7, k->name);
        free(got[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

#endif
