/* support.h: what several test programs need: reproducible random numbers, weight files of random networks from a
 * list of names and shapes, and a network that is bound, loaded, planned and ready to run. */
#ifndef TESS_TESTS_SUPPORT_H
#define TESS_TESTS_SUPPORT_H

#include "base/checked.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "model/model.h"
#include "net/plan.h"
#include "weights_files.h"

typedef struct dice {
    uint64_t state;
} dice;

static inline uint64_t roll(dice *d) /* splitmix64 */
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Both ends included. */
static inline int64_t pick(dice *d, int64_t from, int64_t to)
{
    return from + (int64_t)(roll(d) % (uint64_t)(to - from + 1));
}

static inline void *room(size_t size)
{
    void *data = calloc(1, size ? size : 1);
    if (!data)
        abort();
    return data;
}

/* A safetensors file in the making. One tensor may be left out or given another shape, to break it. */
typedef struct tensor_list {
    bytes header, values;
    int64_t elements;
    uint32_t count;
    const char *without, *bent;
    int bent_rank;
    int64_t bent_dims[5];
    bool volume; /* kernels are as deep as they are wide */
    bool halved; /* m_up*.0 kernels are */
    float side;  /* not 0: what the side slices of odd 3-D kernels hold */
} tensor_list;

static inline void add_tensor(tensor_list *list, const char *name, int rank, const int64_t *dims)
{
    if (list->without && strcmp(list->without, name) == 0)
        return;
    if (list->bent && strcmp(list->bent, name) == 0) {
        rank = list->bent_rank;
        dims = list->bent_dims;
    }
    int64_t count = 1;
    char text[320];
    int used =
        snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", list->count ? "," : "{", name);
    for (int i = 0; i < rank; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, i ? ",%lld" : "%lld", (long long)dims[i]);
        count *= dims[i];
    }
    snprintf(text + used, sizeof text - (size_t)used, "],\"data_offsets\":[%zu,%zu]}", list->values.count,
             list->values.count + (size_t)count * sizeof(float));
    put_text(&list->header, text);
    float *values = room((size_t)count * sizeof *values);
    tess_rng_normal((tess_rng_key){11, list->count++, 0}, 0, count, values);
    const float scale = rank >= 4 ? sqrtf(1.5f / (float)(count / dims[0])) : 0.2f;
    const bool variance = strstr(name, "running_var") != NULL, gain = rank == 1 && strstr(name, ".weight");
    for (int64_t i = 0; i < count; i++)
        values[i] = variance ? 0.5f + fabsf(values[i]) : values[i] * scale + (gain ? 1.0f : 0.0f);
    if (list->side != 0 && rank == 5 && dims[2] % 2)
        for (int64_t i = 0; i < count; i++)
            if (i / (dims[3] * dims[4]) % dims[2] != dims[2] / 2)
                values[i] = list->side;
    if (list->halved && strstr(name, "m_up") && strstr(name, ".0.weight") && dims[rank - 1] == 2)
        for (int64_t i = 0; i < count; i++)
            values[i] /= 2;
    put(&list->values, values, (size_t)count * sizeof *values);
    list->elements += count;
    free(values);
}

static inline void add_conv(tensor_list *list, const char *layer, int64_t first, int64_t second, int64_t side,
                            bool bias)
{
    char name[160];
    snprintf(name, sizeof name, "%s.weight", layer);
    add_tensor(list, name, list->volume ? 5 : 4, (int64_t[]){first, second, side, side, side});
    snprintf(name, sizeof name, "%s.bias", layer);
    if (bias)
        add_tensor(list, name, 1, &first);
}

static inline void add_norm(tensor_list *list, const char *layer, int64_t channels)
{
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s.%s", layer, parts[i]);
        add_tensor(list, name, 1, &channels);
    }
}

/* Writes and empties the list; returns how many values it had. */
static inline int64_t save_tensors(tensor_list *list, const char *path)
{
    bytes file = {0};
    if (!list->count)
        put_text(&list->header, "{");
    put_text(&list->header, "}");
    while (list->header.count % 8)
        put_text(&list->header, " ");
    put_le(&file, list->header.count, 8);
    put_bytes(&file, &list->header);
    put_bytes(&file, &list->values);
    save(path, &file);
    int64_t elements = list->elements;
    drop(&file), drop(&list->header), drop(&list->values);
    *list = (tensor_list){0};
    return elements;
}

typedef struct drunet_shape {
    const char *prefix;
    int64_t channels, widths[4];
    int blocks;
    bool noise_map;
} drunet_shape;

static inline void add_residual_blocks(tensor_list *list, const char *stage, int first, int count,
                                       int64_t width)
{
    for (int i = first; i < first + count; i++)
        for (int half = 0; half <= 2; half += 2) {
            char layer[128];
            snprintf(layer, sizeof layer, "%s.%d.res.%d", stage, i, half);
            add_conv(list, layer, width, width, 3, false);
        }
}

static inline void add_drunet(tensor_list *list, const drunet_shape *s)
{
    char stage[64], layer[128];
    snprintf(layer, sizeof layer, "%sm_head", s->prefix);
    add_conv(list, layer, s->widths[0], s->channels + s->noise_map, 3, false);
    for (int k = 0; k < 3; k++) {
        snprintf(stage, sizeof stage, "%sm_down%d", s->prefix, k + 1);
        add_residual_blocks(list, stage, 0, s->blocks, s->widths[k]);
        snprintf(layer, sizeof layer, "%s.%d", stage, s->blocks);
        add_conv(list, layer, s->widths[k + 1], s->widths[k], 2, false);
    }
    snprintf(stage, sizeof stage, "%sm_body", s->prefix);
    add_residual_blocks(list, stage, 0, s->blocks, s->widths[3]);
    for (int k = 3; k >= 1; k--) {
        snprintf(stage, sizeof stage, "%sm_up%d", s->prefix, k);
        snprintf(layer, sizeof layer, "%s.0", stage);
        add_conv(list, layer, s->widths[k], s->widths[k - 1], 2, false);
        add_residual_blocks(list, stage, 1, s->blocks, s->widths[k - 1]);
    }
    snprintf(layer, sizeof layer, "%sm_tail", s->prefix);
    add_conv(list, layer, s->channels, s->widths[0], 3, false);
}

/* A network with its weights and a plan for one shape, and the memory that a run needs. */
typedef struct ready {
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block weights, arena, workspace;
} ready;

static inline tess_status ready_make(const tess_net *net, tess_device *device, tess_dtype dtype,
                                     tess_weights *weights, tess_plan_shape shape, ready *r,
                                     tess_error *error)
{
    memset(r, 0, sizeof *r);
    TESS_TRY(tess_bound_create(net, device, dtype, &r->bound, error));
    TESS_TRY(tess_net_plan_create(r->bound, shape, &r->plan, error));
    TESS_TRY(tess_net_plan_prepare(r->plan, error));
    TESS_TRY(device->memory->alloc(device, &r->weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(r->bound),
                                   error));
    TESS_TRY(device->memory->alloc(device, &r->arena, TESS_MEM_ACTIVATIONS,
                                   tess_net_plan_arena_bytes(r->plan), error));
    TESS_TRY(device->memory->alloc(device, &r->workspace, TESS_MEM_WORKSPACE,
                                   tess_net_plan_workspace_bytes(r->plan), error));
    return tess_bound_load(r->bound, weights, r->weights.data, error);
}

static inline void ready_clear(ready *r)
{
    tess_net_plan_destroy(r->plan);
    tess_bound_destroy(r->bound);
    tess_block_free(&r->weights), tess_block_free(&r->arena), tess_block_free(&r->workspace);
}

/* Input and output are dense fp32 images of the plan's shape. The arena is filled with NaN before: whatever
 * is read before it is written shows. */
static inline void ready_run(const ready *r, const float *in, float *out)
{
    size_t at, size = 0;
    memset(r->arena.data, 0xff, r->arena.bytes);
    if (r->workspace.data)
        memset(r->workspace.data, 0xff, r->workspace.bytes);
    tess_tensor tensor = tess_net_plan_input(r->plan, &at);
    CHECK(tess_tensor_bytes(&tensor, &size) && at + size <= tess_net_plan_arena_bytes(r->plan));
    void *data = (char *)r->arena.data + at;
    for (int64_t i = 0; i < tensor.n * tensor.stride_n; i++)
        if (tensor.dtype == TESS_BF16)
            ((uint16_t *)data)[i] = tess_float_to_bf16(in[i]);
        else
            ((float *)data)[i] = in[i];
    uint64_t calls = tess_mem_calls();
    tess_net_plan_run(r->plan, r->arena.data, r->workspace.data, r->weights.data, NULL);
    CHECK(tess_mem_calls() == calls); /* no allocation while running */
    tensor = tess_net_plan_output(r->plan, &at);
    CHECK(tess_tensor_bytes(&tensor, &size) && at + size <= tess_net_plan_arena_bytes(r->plan));
    data = (char *)r->arena.data + at;
    for (int64_t i = 0; i < tensor.n * tensor.stride_n; i++)
        out[i] = tensor.dtype == TESS_BF16 ? tess_bf16_to_float(((uint16_t *)data)[i]) : ((float *)data)[i];
}

#endif
