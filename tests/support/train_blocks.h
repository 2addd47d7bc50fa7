/* train_blocks.h: a small made-up list of parameters and its blocks in memory, for tests of what training keeps. */
#ifndef TESS_TESTS_TRAIN_BLOCKS_H
#define TESS_TESTS_TRAIN_BLOCKS_H

#include "check.h"
#include "train/checkpoint.h"

enum { TRAIN_PARAMETERS = 16 };

typedef struct train_list {
    tess_parameter list[TRAIN_PARAMETERS];
    tess_parameters parameters;
} train_list;

/* Dims end at the first 0. */
static inline void train_add(train_list *l, const char *name, int layer, bool running, float factor,
                             const int64_t *dims)
{
    tess_parameter *p = &l->list[l->parameters.count++];
    int64_t *block = running ? &l->parameters.running : &l->parameters.trained;
    *p = (tess_parameter){
        .layer = layer, .running = running, .factor = factor, .elements = 1, .offset = *block};
    snprintf(p->name, sizeof p->name, "%s", name);
    for (; dims[p->rank]; p->rank++)
        p->elements *= p->dims[p->rank] = dims[p->rank];
    *block += p->elements;
    l->parameters.list = l->list;
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, 0})

/* Blocks in memory, with a count of the largest piece that was asked for. */
typedef struct train_memory {
    float *blocks[TESS_STATES];
    int64_t sizes[TESS_STATES], largest;
} train_memory;

static inline tess_status train_get(void *user, tess_training_state state, int64_t first, int64_t count,
                                    float *values, tess_error *error)
{
    (void)error;
    train_memory *m = user;
    CHECK(first >= 0 && first + count <= m->sizes[state]);
    memcpy(values, m->blocks[state] + first, (size_t)count * sizeof *values);
    m->largest = count > m->largest ? count : m->largest;
    return TESS_OK;
}

static inline tess_status train_set(void *user, tess_training_state state, int64_t first, int64_t count,
                                    const float *values, tess_error *error)
{
    (void)error;
    train_memory *m = user;
    CHECK(first >= 0 && first + count <= m->sizes[state]);
    memcpy(m->blocks[state] + first, values, (size_t)count * sizeof *values);
    m->largest = count > m->largest ? count : m->largest;
    return TESS_OK;
}

static inline tess_checkpoint_blocks train_blocks(train_memory *m)
{
    tess_checkpoint_blocks blocks = {.user = m, .get = train_get, .set = train_set};
    memcpy(blocks.sizes, m->sizes, sizeof blocks.sizes);
    return blocks;
}

/* All blocks that Adam with an average has, filled with numbers that depend on `seed`. */
static inline void train_fill(train_memory *m, const tess_parameters *parameters, uint32_t seed)
{
    *m = (train_memory){0};
    for (int i = 0; i < TESS_STATES; i++) {
        m->sizes[i] = i == TESS_STATE_RUNNING ? parameters->running : parameters->trained;
        m->blocks[i] = calloc((size_t)m->sizes[i] + 1, sizeof(float));
        for (int64_t k = 0; m->blocks[i] && k < m->sizes[i]; k++)
            m->blocks[i][k] = (float)((seed * 2654435761u + (uint32_t)(31 * k + i)) % 10007) / 10007 - 0.5f;
    }
}

static inline void train_clear(train_memory *m)
{
    for (int i = 0; i < TESS_STATES; i++)
        free(m->blocks[i]);
}

static inline bool train_same(const train_memory *a, const train_memory *b)
{
    for (int i = 0; i < TESS_STATES; i++)
        if (a->sizes[i] != b->sizes[i] ||
            memcmp(a->blocks[i], b->blocks[i], (size_t)a->sizes[i] * sizeof(float)) != 0)
            return false;
    return true;
}

/* A convolution with bias, one with a batch norm, and one whose parameters are negated. */
static inline void train_small(train_list *l)
{
    *l = (train_list){0};
    train_add(l, "first.weight", 0, false, 1, DIMS(6, 3, 3, 3));
    train_add(l, "first.bias", 0, false, 1, DIMS(6));
    train_add(l, "second.weight", 1, false, 1, DIMS(6, 6, 3, 3));
    train_add(l, "norm.weight", 2, false, 1, DIMS(6));
    train_add(l, "norm.bias", 2, false, 1, DIMS(6));
    train_add(l, "norm.running_mean", 2, true, 1, DIMS(6));
    train_add(l, "norm.running_var", 2, true, 1, DIMS(6));
    train_add(l, "last.weight", 3, false, -1, DIMS(3, 6, 3, 3));
}

#endif
