/* attention_cases.h: attention that every device is held against the plain reference kernel with, and against PyTorch's. */
#ifndef TESS_TESTS_ATTENTION_CASES_H
#define TESS_TESTS_ATTENTION_CASES_H

#include "cpu/reference/reference.h"
#include "op_dumps.h"
#include "op_run.h"

typedef struct attention_case {
    const char *name;
    int64_t n, d, h, w;
    int heads, head;
    bool by_head;
    int gap;     /* channels between pixels that belong to somebody else */
    int ends;    /* 1: the input is fp32 in every precision, 2: the output is */
    float sharp; /* what values are multiplied by; large: one key has nearly all the weight */
} attention_case;

static const attention_case attention_cases[] = {
    {"heads-of-8", 2, 1, 8, 8, 4, 8, true, 0, 0, 1},
    {"heads-of-8-late", 1, 1, 13, 11, 3, 8, false, 0, 0, 1},
    {"heads-of-32", 1, 1, 9, 7, 2, 32, true, 0, 0, 1},
    {"heads-of-40", 2, 1, 6, 7, 2, 40, false, 0, 0, 1},
    {"heads-of-64", 1, 1, 12, 12, 1, 64, true, 0, 0, 1},
    {"heads-of-7", 1, 1, 5, 9, 3, 7, true, 5, 0, 1},
    {"heads-of-1", 1, 1, 5, 9, 5, 1, false, 0, 0, 1},
    {"one-large-head", 1, 1, 5, 5, 1, 200, true, 0, 0, 1},
    {"gap", 2, 1, 5, 13, 2, 16, true, 32, 0, 1},
    {"one-pixel", 1, 1, 1, 1, 2, 8, true, 0, 0, 1},
    {"row", 1, 1, 1, 150, 2, 8, true, 0, 0, 1},
    {"large", 1, 1, 24, 22, 2, 8, true, 0, 0, 1},
    {"volume", 1, 3, 4, 5, 2, 8, false, 0, 0, 1},
    {"sharp", 1, 1, 12, 13, 2, 8, true, 0, 0, 6},
    {"image-in", 1, 1, 5, 7, 2, 8, true, 0, 1, 1},
    {"image-out", 1, 1, 5, 7, 2, 8, false, 0, 2, 1},
};

static inline tess_op attention_op(int heads, bool by_head)
{
    return (tess_op){.kind = TESS_OP_ATTENTION,
                     .inputs = 1,
                     .outputs = 1,
                     .kernel = {1, 1, 1},
                     .stride = {1, 1, 1},
                     .attention = {heads, by_head}};
}

static inline op_call attention_call(const attention_case *c, tess_dtype dtype)
{
    op_call call = {.op = attention_op(c->heads, c->by_head)};
    const int64_t channels = (int64_t)c->heads * c->head;
    call.op.in[0] = tess_tensor_channels(
        tess_tensor_3d(c->ends == 1 ? TESS_F32 : dtype, c->n, c->d, c->h, c->w, 3 * channels + c->gap),
        3 * channels);
    call.op.out[0] = tess_tensor_channels(
        tess_tensor_3d(c->ends == 2 ? TESS_F32 : dtype, c->n, c->d, c->h, c->w, channels + c->gap), channels);
    call.in[0] = random_field(&call.op.in[0], 1);
    call.out = random_field(&call.op.out[0], 2);
    const size_t values = call.in[0].bytes / tess_dtype_size(call.op.in[0].dtype);
    for (size_t i = 0; i < values; i++)
        put_value(call.op.in[0].dtype, call.in[0].data, i,
                  c->sharp * value_in(call.op.in[0].dtype, call.in[0].data, i));
    return call;
}

static inline void check_attention(tess_device *device, const attention_case *c, tess_dtype dtype,
                                   double bound)
{
    op_call call = attention_call(c, dtype);
    field got = op_run(device, &call, c->name), want = {malloc(call.out.bytes), call.out.bytes};
    memcpy(want.data, call.out.data, want.bytes);
    const tess_op_buffers truth = {.in = {call.in[0].data}, .out = {want.data}};
    tess_reference_attention(&call.op, &truth);
    op_compare(&call, &got, &want, bound, c->name);
    free(call.in[0].data), free(call.out.data), free(got.data), free(want.data);
}

/* Large values have large scores, whose rounding in fp32 the exponential makes relative: the order of a sum decides. */
static inline void check_attentions(tess_device *device, tess_dtype dtype, double bound)
{
    for (size_t i = 0; i < sizeof attention_cases / sizeof attention_cases[0]; i++)
        check_attention(device, &attention_cases[i], dtype, bound * attention_cases[i].sharp);
}

/* What PyTorch computed in fp32: case.settings = [heads, by head]. */
static inline void check_attention_dumps(tess_device *device, tess_dtype dtype, double bound)
{
    op_dumps dumps;
    if (!dumps_open("attention.safetensors", &dumps))
        return;
    for (int i = 0; i < dumps_count(&dumps); i++) {
        float *settings = dumps_values(&dumps, i, "settings", NULL);
        op_call call = {.op = attention_op((int)settings[0], settings[1] > 0)};
        call.in[0] = dumps_field(&dumps, i, "in", dtype, &call.op.in[0]);
        field want = dumps_field(&dumps, i, "out", dtype, &call.op.out[0]);
        call.out = (field){calloc(1, want.bytes), want.bytes};
        field got = op_run(device, &call, dumps_name(&dumps, i));
        op_compare(&call, &got, &want, bound, dumps_name(&dumps, i));
        free(settings), free(call.in[0].data), free(call.out.data), free(want.data), free(got.data);
    }
    dumps_close(&dumps);
}

#endif
