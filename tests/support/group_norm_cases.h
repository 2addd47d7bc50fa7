/* group_norm_cases.h: group norms that every device is held against the plain reference kernel with, and against PyTorch's. */
#ifndef TESS_TESTS_GROUP_NORM_CASES_H
#define TESS_TESTS_GROUP_NORM_CASES_H

#include "cpu/reference/reference.h"
#include "op_dumps.h"
#include "op_run.h"

typedef struct norm_case {
    const char *name;
    int64_t n, d, h, w, c;
    int groups, gap; /* gap: channels between pixels that belong to somebody else */
    bool scale_shift;
    tess_activation activation;
    bool over;
    int ends;    /* 1: the input is fp32 in every precision, 2: the output is */
    float above; /* added to the values, and 50 times as much to the first: sums must not cancel */
    bool shared; /* one vector of scales and shifts for all images */
} norm_case;

static const norm_case norm_cases[] = {
    {"plain", 1, 1, 16, 16, 32, 32, 0, false, TESS_LINEAR, false, 0, 0},
    {"silu", 2, 1, 9, 13, 64, 32, 0, false, TESS_SILU, false, 0, 0},
    {"scale-shift", 2, 1, 9, 13, 64, 32, 0, true, TESS_SILU, false, 0, 0},
    {"one-group", 1, 1, 21, 19, 48, 1, 0, true, TESS_RELU, false, 0, 0},
    {"three-a-group", 1, 1, 16, 18, 96, 32, 0, true, TESS_SILU, false, 0, 0},
    {"odd", 3, 1, 7, 5, 15, 5, 0, true, TESS_SILU, false, 0, 0},
    {"odd-gap", 2, 1, 7, 5, 13, 13, 3, false, TESS_LINEAR, false, 0, 0},
    {"gap", 2, 1, 11, 40, 64, 32, 64, true, TESS_SILU, false, 0, 0},
    {"in-place", 2, 1, 9, 13, 64, 16, 0, true, TESS_SILU, true, 0, 0},
    {"one-pixel", 1, 1, 1, 1, 64, 32, 0, false, TESS_LINEAR, false, 0, 0},
    {"one-row", 1, 1, 1, 300, 8, 2, 0, false, TESS_LINEAR, false, 0, 0},
    {"large", 1, 1, 150, 131, 32, 32, 0, true, TESS_SILU, false, 0, 0},
    {"deep", 1, 1, 8, 8, 1024, 32, 0, true, TESS_SILU, false, 0, 0},
    {"wide-pixels", 1, 1, 6, 5, 2600, 8, 0, true, TESS_SILU, false, 0, 0},
    {"volume", 2, 5, 6, 7, 32, 8, 0, true, TESS_SILU, false, 0, 0},
    {"far-from-zero", 1, 1, 40, 40, 32, 8, 0, false, TESS_LINEAR, false, 0, 300},
    {"image-in", 1, 1, 12, 9, 16, 4, 0, false, TESS_SILU, false, 1, 0},
    {"image-out", 1, 1, 12, 9, 16, 4, 0, true, TESS_LINEAR, false, 2, 0},
    {"shared", 3, 1, 9, 13, 64, 32, 0, true, TESS_SILU, false, 0, 0, true},
    {"shared-gap", 2, 2, 7, 5, 24, 8, 8, true, TESS_LINEAR, false, 0, 0, true},
};

static inline op_call norm_call(const norm_case *c, tess_dtype dtype)
{
    op_call call = {.op = {.kind = TESS_OP_GROUP_NORM,
                           .inputs = c->scale_shift ? 2 : 1,
                           .outputs = 1,
                           .kernel = {1, 1, 1},
                           .stride = {1, 1, 1},
                           .activation = c->activation,
                           .group_norm = {c->groups, 1e-5}},
                    .over = c->over};
    const tess_tensor whole = tess_tensor_3d(dtype, c->n, c->d, c->h, c->w, c->c + c->gap);
    call.op.in[0] = call.op.out[0] = tess_tensor_channels(whole, c->c);
    if (c->ends)
        (c->ends == 1 ? call.op.in : call.op.out)[0].dtype = TESS_F32;
    call.op.in[1] = tess_tensor_2d(TESS_F32, c->shared ? 1 : c->n, 1, 1, 2 * c->c);
    call.in[0] = random_field(&call.op.in[0], 1);
    call.in[1] = random_field(&call.op.in[1], 2);
    call.out = random_field(&call.op.out[0], 3);
    for (int64_t i = 0; c->above > 0 && i < c->h * c->w * c->c; i++) {
        const float value = value_in(call.op.in[0].dtype, call.in[0].data, (size_t)i);
        put_value(call.op.in[0].dtype, call.in[0].data, (size_t)i,
                  value + (i < c->c ? 1.2f * c->above : c->above));
    }
    return call;
}

static inline void check_norm(tess_device *device, const norm_case *c, tess_dtype dtype, double bound)
{
    op_call call = norm_call(c, dtype);
    float *weight = malloc((size_t)c->c * sizeof *weight), *bias = malloc((size_t)c->c * sizeof *bias);
    tess_rng_normal((tess_rng_key){7, 5, 0}, 0, c->c, weight);
    tess_rng_normal((tess_rng_key){7, 6, 0}, 0, c->c, bias);
    call.param[0] = weight;
    call.param[1] = bias;
    field got = op_run(device, &call, c->name), want = {malloc(call.out.bytes), call.out.bytes};
    memcpy(want.data, c->over ? call.in[0].data : call.out.data, want.bytes);
    const tess_op_buffers truth = {.in = {call.in[0].data, call.in[1].data}, .out = {want.data}};
    tess_reference_group_norm(&call.op, &truth, weight, bias);
    op_compare(&call, &got, &want, bound, c->name);
    free(call.in[0].data), free(call.in[1].data), free(call.out.data);
    free(weight), free(bias), free(got.data), free(want.data);
}

static inline void check_norms(tess_device *device, tess_dtype dtype, double bound)
{
    for (size_t i = 0; i < sizeof norm_cases / sizeof norm_cases[0]; i++)
        check_norm(device, &norm_cases[i], dtype, norm_cases[i].ends == 2 ? 1e-5 : bound);
}

/* What PyTorch computed in fp32: case.settings = [groups, epsilon, SiLU]. */
static inline void check_norm_dumps(tess_device *device, tess_dtype dtype, double bound)
{
    op_dumps dumps;
    if (!dumps_open("group_norm.safetensors", &dumps))
        return;
    for (int i = 0; i < dumps_count(&dumps); i++) {
        float *settings = dumps_values(&dumps, i, "settings", NULL);
        op_call call = {.op = {.kind = TESS_OP_GROUP_NORM,
                               .inputs = dumps_has(&dumps, i, "scale_shift") ? 2 : 1,
                               .outputs = 1,
                               .kernel = {1, 1, 1},
                               .stride = {1, 1, 1},
                               .activation = settings[2] > 0 ? TESS_SILU : TESS_LINEAR,
                               .group_norm = {(int32_t)settings[0], settings[1]}}};
        call.in[0] = dumps_field(&dumps, i, "in", dtype, &call.op.in[0]);
        if (call.op.inputs > 1)
            call.in[1] = dumps_field(&dumps, i, "scale_shift", TESS_F32, &call.op.in[1]);
        field want = dumps_field(&dumps, i, "out", dtype, &call.op.out[0]);
        float *weight = dumps_values(&dumps, i, "weight", NULL),
              *bias = dumps_values(&dumps, i, "bias", NULL);
        call.param[0] = weight;
        call.param[1] = bias;
        call.out = (field){calloc(1, want.bytes), want.bytes};
        field got = op_run(device, &call, dumps_name(&dumps, i));
        op_compare(&call, &got, &want, bound, dumps_name(&dumps, i));
        free(settings), free(call.in[0].data), free(call.in[1].data), free(call.out.data);
        free(want.data), free(got.data), free(weight), free(bias);
    }
    dumps_close(&dumps);
}

#endif
