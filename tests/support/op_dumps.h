/* op_dumps.h: what bench/peers/make_op_dumps.py wrote: inputs, parameters and results of single ops as PyTorch computed them. Case i
 * of a file has the tensors i.NAME, channels last. */
#ifndef TESS_TESTS_OP_DUMPS_H
#define TESS_TESTS_OP_DUMPS_H

#include "fields.h"
#include "weights/weights.h"

typedef struct op_dumps {
    tess_weights *file;
    char name[96];
} op_dumps;

static inline bool dumps_open(const char *name, op_dumps *dumps)
{
    char path[1024];
    tess_error error = {{0}};
    snprintf(path, sizeof path, "%s/ops/%s", TESS_TEST_DATA, name);
    const bool opened = tess_weights_open(path, &dumps->file, &error) == TESS_OK;
    CHECK_MSG(opened, "%s", error.text);
    return opened;
}

static inline const tess_weight *dumps_find(const op_dumps *dumps, int index, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "%d.%s", index, part);
    return tess_weights_find(dumps->file, name);
}

static inline bool dumps_has(const op_dumps *dumps, int index, const char *part)
{
    return dumps_find(dumps, index, part) != NULL;
}

static inline int dumps_count(const op_dumps *dumps)
{
    int count = 0;
    while (dumps_has(dumps, count, "out"))
        count++;
    CHECK(count > 0);
    return count;
}

static inline const char *dumps_name(op_dumps *dumps, int index)
{
    snprintf(dumps->name, sizeof dumps->name, "PyTorch's case %d", index);
    return dumps->name;
}

/* To be freed by the caller. */
static inline float *dumps_values(const op_dumps *dumps, int index, const char *part,
                                  const tess_weight **found)
{
    const tess_weight *weight = dumps_find(dumps, index, part);
    tess_error error = {{0}};
    CHECK_MSG(weight, "case %d has no %s", index, part);
    if (!weight)
        abort();
    float *values = malloc((size_t)weight->elements * sizeof *values);
    CHECK(tess_weights_read(dumps->file, weight, 0, weight->elements, values, &error) == TESS_OK);
    if (found)
        *found = weight;
    return values;
}

/* A tensor of the file, [n, h, w, c] or [n, c], rounded to the type. */
static inline field dumps_field(const op_dumps *dumps, int index, const char *part, tess_dtype dtype,
                                tess_tensor *tensor)
{
    const tess_weight *weight;
    float *values = dumps_values(dumps, index, part, &weight);
    const bool image = weight->rank == 4;
    field f = {NULL, (size_t)weight->elements * tess_dtype_size(dtype)};
    *tensor = tess_tensor_2d(dtype, weight->dims[0], image ? weight->dims[1] : 1, image ? weight->dims[2] : 1,
                             weight->dims[image ? 3 : 1]);
    f.data = malloc(f.bytes);
    for (int64_t i = 0; i < weight->elements; i++)
        put_value(dtype, f.data, (size_t)i, values[i]);
    free(values);
    return f;
}

static inline void dumps_close(op_dumps *dumps)
{
    tess_weights_close(dumps->file);
}

#endif
