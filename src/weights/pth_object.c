/* pth_object.c: the only names that a pickle may contain, and their meaning here.
 *
 * This allow-list makes a .pth harmless. Any other name is an error, which says which class the file holds and
 * how to save without it. Tensors are checked here, where they are made: sizes, strides and offset against the
 * number of elements of their storage, all in checked arithmetic, so that later code cannot overflow. */
#include <string.h>

#include "base/checked.h"
#include "weights/pickle.h"

enum { STORAGES_MAX = 1 << 20, TENSORS_MAX = 1 << 18 };

typedef enum meaning { ORDERED_DICT, TENSOR, TENSOR_OF_TYPE, PARAMETER, SIZE, STORAGE, TYPE } meaning;

static const struct {
    const char *module, *name;
    meaning meaning;
    tess_dtype dtype; /* for STORAGE and TYPE */
} names[] = {
    {"collections", "OrderedDict", ORDERED_DICT, TESS_F32},
    {"torch._utils", "_rebuild_tensor", TENSOR, TESS_F32},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR, TESS_F32},
    {"torch._utils", "_rebuild_tensor_v3", TENSOR_OF_TYPE, TESS_F32},
    {"torch._utils", "_rebuild_parameter", PARAMETER, TESS_F32},
    {"torch._utils", "_rebuild_parameter_with_state", PARAMETER, TESS_F32},
    {"torch", "Size", SIZE, TESS_F32},
    {"torch", "FloatStorage", STORAGE, TESS_F32},
    {"torch", "DoubleStorage", STORAGE, TESS_F64},
    {"torch", "HalfStorage", STORAGE, TESS_F16},
    {"torch", "BFloat16Storage", STORAGE, TESS_BF16},
    {"torch", "LongStorage", STORAGE, TESS_I64},
    {"torch", "IntStorage", STORAGE, TESS_I32},
    {"torch", "ShortStorage", STORAGE, TESS_I16},
    {"torch", "CharStorage", STORAGE, TESS_I8},
    {"torch", "ByteStorage", STORAGE, TESS_U8},
    {"torch", "BoolStorage", STORAGE, TESS_BOOL},
    {"torch.storage", "UntypedStorage", STORAGE, TESS_U8},
    {"torch", "UntypedStorage", STORAGE, TESS_U8},
    {"torch", "float32", TYPE, TESS_F32},
    {"torch", "float64", TYPE, TESS_F64},
    {"torch", "float16", TYPE, TESS_F16},
    {"torch", "bfloat16", TYPE, TESS_BF16},
    {"torch", "int64", TYPE, TESS_I64},
    {"torch", "int32", TYPE, TESS_I32},
    {"torch", "uint32", TYPE, TESS_U32},
    {"torch", "int16", TYPE, TESS_I16},
    {"torch", "uint16", TYPE, TESS_U16},
    {"torch", "int8", TYPE, TESS_I8},
    {"torch", "uint8", TYPE, TESS_U8},
    {"torch", "bool", TYPE, TESS_BOOL},
};

tess_status tess_pickle_name(tess_pickle *p, const char *module, const char *name, int32_t *out)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(module, names[i].module) == 0 && strcmp(name, names[i].name) == 0)
            return tess_pickle_add(p, (tess_pickle_node){.kind = TESS_PICKLE_NAME, .integer = (int64_t)i},
                                   out);
    return tess_fail(
        p->error, TESS_BAD_INPUT,
        "contains an object of class %s.%s; save a plain state dict: torch.save(model.state_dict(), ...)",
        module, name);
}

static bool means(const tess_pickle *p, int32_t node, meaning wanted, tess_dtype *dtype)
{
    if (!tess_pickle_is(p, node, TESS_PICKLE_NAME) ||
        names[tess_pickle_at(p, node)->integer].meaning != wanted)
        return false;
    *dtype = names[tess_pickle_at(p, node)->integer].dtype;
    return true;
}

static int64_t integer_of(const tess_pickle *p, int32_t node)
{
    return tess_pickle_is(p, node, TESS_PICKLE_INT) ? tess_pickle_at(p, node)->integer : -1;
}

/* ('storage', type, key, location, count), in the legacy stream followed by None or (view key, first, count). */
tess_status tess_pickle_persistent(tess_pickle *p, int32_t id, int32_t *out)
{
    int32_t item[6], view[3];
    int32_t count = tess_pickle_items(p, id, item, 6);
    tess_pickle_storage storage = {0};
    int64_t bytes;
    if (count < 5 || count > 6 || !tess_pickle_is_text(p, item[0], "storage") ||
        !means(p, item[1], STORAGE, &storage.dtype) || !tess_pickle_is(p, item[2], TESS_PICKLE_STRING) ||
        (storage.count = integer_of(p, item[4])) < 0 ||
        !tess_mul_i64(storage.count, (int64_t)tess_dtype_size(storage.dtype), &bytes))
        return tess_pickle_damaged(p, "a storage is not described as torch.save does");
    storage.shown = storage.count;
    if (count == 6 && !tess_pickle_is(p, item[5], TESS_PICKLE_NONE)) {
        int64_t end;
        if (tess_pickle_items(p, item[5], view, 3) != 3 || (storage.view = integer_of(p, view[1])) < 0 ||
            (storage.shown = integer_of(p, view[2])) < 0 ||
            !tess_add_i64(storage.view, storage.shown, &end) || end > storage.count)
            return tess_pickle_damaged(p, "a view of a storage reaches outside it");
    }
    storage.key_at = tess_pickle_at(p, item[2])->text.at;
    storage.key_length = tess_pickle_at(p, item[2])->text.length;
    TESS_TRY(tess_pickle_grow(p, &p->storages, sizeof storage, STORAGES_MAX, "storages"));
    *tess_pickle_storage_at(p, p->storages.count) = storage;
    tess_pickle_node node = {.kind = TESS_PICKLE_STORAGE, .integer = p->storages.count++};
    return tess_pickle_add(p, node, out);
}

/* Reads sizes and strides from two tuples; false when no tensor can have them. */
static bool read_layout(const tess_pickle *p, int32_t sizes, int32_t strides, tess_weight *weight)
{
    int32_t size[TESS_WEIGHT_RANK], stride[TESS_WEIGHT_RANK];
    weight->rank = tess_pickle_items(p, sizes, size, TESS_WEIGHT_RANK);
    if (weight->rank < 0 || weight->rank > TESS_WEIGHT_RANK ||
        tess_pickle_items(p, strides, stride, TESS_WEIGHT_RANK) != weight->rank)
        return false;
    for (int i = 0; i < weight->rank; i++)
        weight->dims[i] = integer_of(p, size[i]);
    if (!tess_weight_row_major(weight))
        return false;
    for (int i = 0; i < weight->rank; i++) {
        int64_t step = integer_of(p, stride[i]);
        if (step < 0)
            return false;
        if (weight->elements > 0 &&
            weight->dims[i] > 1) /* otherwise the stride is never used, so row-major will do */
            weight->strides[i] = step;
    }
    return true;
}

/* True when the tensor's first and last element lie within `capacity` elements; it starts at element `first`. */
static bool fits(const tess_weight *weight, int64_t first, int64_t capacity)
{
    int64_t last = first;
    if (first < 0 || first > capacity || weight->elements > capacity)
        return false;
    for (int i = 0; i < weight->rank && weight->elements > 0; i++) {
        int64_t reach;
        if (!tess_mul_i64(weight->dims[i] - 1, weight->strides[i], &reach) ||
            !tess_add_i64(last, reach, &last))
            return false;
    }
    return weight->elements == 0 || last < capacity;
}

/* (storage, offset, sizes, strides, ...); in version 3 the seventh item is the element type. */
static tess_status make_tensor(tess_pickle *p, const int32_t *item, int32_t count, bool typed, int32_t *out)
{
    tess_pickle_tensor tensor = {0};
    if (count < (typed ? 7 : 4) || !tess_pickle_is(p, item[0], TESS_PICKLE_STORAGE) ||
        (typed && !means(p, item[6], TYPE, &tensor.weight.dtype)))
        return tess_pickle_damaged(p, "a tensor is not described as torch.save does");
    tensor.storage = (int32_t)tess_pickle_at(p, item[0])->integer;
    const tess_pickle_storage *storage = tess_pickle_storage_at(p, tensor.storage);
    if (!typed)
        tensor.weight.dtype = storage->dtype;
    if (!read_layout(p, item[2], item[3], &tensor.weight))
        return tess_pickle_damaged(
            p, "a tensor has sizes or strides that are impossible, or more than 8 of them");
    int64_t unit = (int64_t)tess_dtype_size(storage->dtype),
            size = (int64_t)tess_dtype_size(tensor.weight.dtype);
    int64_t capacity = storage->shown * unit / size, first = integer_of(p, item[1]);
    if (tensor.weight.elements > capacity && capacity > 0 && fits(&(tess_weight){0}, first, capacity))
        return tess_fail(
            p->error, TESS_BAD_INPUT,
            "a tensor has %lld elements but its storage only %lld (an expanded view, or damage); save "
            "tensor.contiguous()",
            (long long)tensor.weight.elements, (long long)capacity);
    if (!fits(&tensor.weight, first, capacity))
        return tess_pickle_damaged(p, "a tensor reaches outside its storage");
    tensor.weight.offset = (uint64_t)(storage->view * unit) + (uint64_t)(first * size);
    TESS_TRY(tess_pickle_grow(p, &p->tensors, sizeof tensor, TENSORS_MAX, "tensors"));
    ((tess_pickle_tensor *)p->tensors.items)[p->tensors.count] = tensor;
    tess_pickle_node node = {.kind = TESS_PICKLE_TENSOR, .integer = p->tensors.count++};
    return tess_pickle_add(p, node, out);
}

/* OrderedDict(), or OrderedDict([[key, value], ...]) as Python 2 wrote it. */
static tess_status make_dict(tess_pickle *p, const int32_t *item, int32_t count, int32_t *out)
{
    tess_pickle_node empty = {.kind = TESS_PICKLE_DICT, .chain = {.first = -1, .last = -1}};
    TESS_TRY(tess_pickle_add(p, empty, out));
    if (count == 0)
        return TESS_OK;
    if (tess_pickle_items(p, item[0], NULL, 0) < 0)
        return tess_pickle_damaged(p, "an OrderedDict is made from what is no list");
    int32_t pair[2];
    for (int32_t cell = tess_pickle_at(p, item[0])->chain.first; cell >= 0;
         cell = tess_pickle_cell_at(p, cell)->next) {
        if (tess_pickle_items(p, tess_pickle_cell_at(p, cell)->node, pair, 2) != 2)
            return tess_pickle_damaged(p, "an OrderedDict has an entry that is no pair");
        TESS_TRY(tess_pickle_append(p, *out, pair[0]));
        TESS_TRY(tess_pickle_append(p, *out, pair[1]));
    }
    return TESS_OK;
}

tess_status tess_pickle_call(tess_pickle *p, int32_t callable, int32_t arguments, int32_t *out)
{
    int32_t item[7];
    int32_t count = tess_pickle_items(p, arguments, item, 7);
    if (count < 0 || !tess_pickle_is(p, callable, TESS_PICKLE_NAME))
        return tess_pickle_damaged(p, "it calls what is no function of torch");
    switch (names[tess_pickle_at(p, callable)->integer].meaning) {
    case ORDERED_DICT:
        return make_dict(p, item, count, out);
    case TENSOR:
        return make_tensor(p, item, count, false, out);
    case TENSOR_OF_TYPE:
        return make_tensor(p, item, count, true, out);
    case PARAMETER: /* (tensor, requires_grad, hooks): the tensor itself */
        if (count < 1 || !tess_pickle_is(p, item[0], TESS_PICKLE_TENSOR))
            return tess_pickle_damaged(p, "a parameter is made from what is no tensor");
        *out = item[0];
        return TESS_OK;
    case SIZE: /* a subclass of tuple */
        if (count != 1 || tess_pickle_items(p, item[0], NULL, 0) < 0)
            return tess_pickle_damaged(p, "a torch.Size is made from what is no tuple");
        *out = item[0];
        return TESS_OK;
    case STORAGE:
    case TYPE:
        break;
    }
    return tess_pickle_damaged(p, "it calls what is no function of torch");
}
