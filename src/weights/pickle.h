/* pickle.h: the small part of Python's pickle that torch.save uses to write a state dict.
 *
 * Nothing is ever called or imported. A pickle is converted to a tree of plain nodes, and the few names that it
 * may contain are a fixed list, to which this program gives its own meaning (pth_object.c). Nodes refer to each
 * other and to the pickle's bytes by index, so that both arrays may grow during reading; containers are linked
 * lists of cells. Trees may be cyclic (a dict can contain itself): code that walks one must limit depth and
 * steps. */
#ifndef TESS_WEIGHTS_PICKLE_H
#define TESS_WEIGHTS_PICKLE_H

#include "weights/weights_format.h"

typedef enum tess_pickle_kind {
    TESS_PICKLE_NONE,
    TESS_PICKLE_BOOL,    /* integer */
    TESS_PICKLE_INT,     /* integer */
    TESS_PICKLE_FLOAT,   /* its value is not needed */
    TESS_PICKLE_LONG,    /* text: an integer of more than 64 bits, as little-endian bytes */
    TESS_PICKLE_STRING,  /* text */
    TESS_PICKLE_BYTES,   /* text */
    TESS_PICKLE_TUPLE,   /* chain */
    TESS_PICKLE_LIST,    /* chain */
    TESS_PICKLE_DICT,    /* chain of key, value, key, value... */
    TESS_PICKLE_NAME,    /* integer: index in the list of names in pth_object.c */
    TESS_PICKLE_STORAGE, /* integer: index in storages */
    TESS_PICKLE_TENSOR   /* integer: index in tensors */
} tess_pickle_kind;

typedef struct tess_pickle_node {
    tess_pickle_kind kind;
    union {
        int64_t integer;
        struct {
            uint32_t at, length; /* position in the pickle's bytes */
        } text;
        struct {
            int32_t first, last, count; /* cells; -1 when empty */
        } chain;
    };
} tess_pickle_node;

typedef struct tess_pickle_cell {
    int32_t node, next; /* -1 ends the chain */
} tess_pickle_cell;

/* One reference to a storage. References with the same key must agree; `offset` is set after the pickle is
 * read. */
typedef struct tess_pickle_storage {
    uint32_t key_at, key_length;
    tess_dtype dtype;
    int64_t count;       /* elements in the file */
    int64_t view, shown; /* the part that this reference covers: everything, except in very old files */
    uint64_t offset;     /* of element 0, in the file */
} tess_pickle_storage;

typedef struct tess_pickle_tensor {
    int32_t storage;
    tess_weight weight; /* without a name; its offset is in bytes from the start of the storage */
} tess_pickle_tensor;

typedef struct tess_pickle_array {
    void *items;
    int32_t count, capacity;
} tess_pickle_array;

typedef struct tess_pickle {
    const tess_weights *weights;
    uint64_t begin; /* start of the pickle in the file */
    uint64_t limit; /* most bytes that it may have */
    unsigned char *bytes;
    size_t loaded, capacity, at; /* at: the next byte to run; after STOP, the pickle's length */
    tess_pickle_array nodes, cells, stack, marks, memo, storages, tensors;
    tess_error *error;
} tess_pickle;

/* Runs the pickle at offset `begin` of the file, of at most `limit` bytes. `top` is the resulting node. Call
 * tess_pickle_free in any case. */
tess_status tess_pickle_run(tess_pickle *pickle, const tess_weights *weights, uint64_t begin, uint64_t limit,
                            int32_t *top, tess_error *error) TESS_MUST_CHECK;
void tess_pickle_free(tess_pickle *pickle);

static inline tess_pickle_node *tess_pickle_at(const tess_pickle *pickle, int32_t node)
{
    return (tess_pickle_node *)pickle->nodes.items + node;
}

static inline const tess_pickle_cell *tess_pickle_cell_at(const tess_pickle *pickle, int32_t cell)
{
    return (const tess_pickle_cell *)pickle->cells.items + cell;
}

static inline tess_pickle_storage *tess_pickle_storage_at(const tess_pickle *pickle, int32_t storage)
{
    return (tess_pickle_storage *)pickle->storages.items + storage;
}

static inline const char *tess_pickle_text(const tess_pickle *pickle, uint32_t at)
{
    return (const char *)pickle->bytes + at;
}

/* Add a node to the arena; append a node to a chain. */
tess_status tess_pickle_add(tess_pickle *pickle, tess_pickle_node node, int32_t *out) TESS_MUST_CHECK;
tess_status tess_pickle_append(tess_pickle *pickle, int32_t container, int32_t node) TESS_MUST_CHECK;
/* Makes room for one more item of `size` bytes, up to `limit` items; `what` names them in the message. */
tess_status tess_pickle_grow(tess_pickle *pickle, tess_pickle_array *array, size_t size, int32_t limit,
                             const char *what) TESS_MUST_CHECK;

/* pickle_stack.c: the state of the machine, for pickle.c. */
tess_status tess_pickle_damaged(tess_pickle *pickle, const char *what) TESS_MUST_CHECK;
/* Makes the next `count` bytes readable at bytes + at. */
tess_status tess_pickle_need(tess_pickle *pickle, uint64_t count) TESS_MUST_CHECK;
/* A little-endian number of `count` bytes. */
tess_status tess_pickle_take(tess_pickle *pickle, int count, uint64_t *value) TESS_MUST_CHECK;
tess_status tess_pickle_push(tess_pickle *pickle, int32_t node) TESS_MUST_CHECK;
tess_status tess_pickle_pop(tess_pickle *pickle, int32_t *node) TESS_MUST_CHECK;
/* Number of values above the last mark. */
int32_t tess_pickle_reachable(const tess_pickle *pickle);
tess_status tess_pickle_mark(tess_pickle *pickle) TESS_MUST_CHECK;
/* Removes the last mark; `count` is the number of values above it. */
tess_status tess_pickle_pop_mark(tess_pickle *pickle, int32_t *count) TESS_MUST_CHECK;
tess_status tess_pickle_remember(tess_pickle *pickle, uint64_t slot) TESS_MUST_CHECK;
tess_status tess_pickle_recall(tess_pickle *pickle, uint64_t slot) TESS_MUST_CHECK;

bool tess_pickle_is(const tess_pickle *pickle, int32_t node, tess_pickle_kind kind);
bool tess_pickle_is_text(const tess_pickle *pickle, int32_t node, const char *text);
/* Copies the first `most` nodes of a tuple or list to `items`. Returns its length, or -1 when it is neither. */
int32_t tess_pickle_items(const tess_pickle *pickle, int32_t node, int32_t *items, int32_t most);
/* Returns the value of a string key of a dict; -1 when there is none. */
int32_t tess_pickle_lookup(const tess_pickle *pickle, int32_t dict, const char *key);

/* pth_object.c: the meaning of names. */
tess_status tess_pickle_name(tess_pickle *pickle, const char *module, const char *name,
                             int32_t *out) TESS_MUST_CHECK;
tess_status tess_pickle_call(tess_pickle *pickle, int32_t callable, int32_t arguments,
                             int32_t *out) TESS_MUST_CHECK;
tess_status tess_pickle_persistent(tess_pickle *pickle, int32_t id, int32_t *out) TESS_MUST_CHECK;

/* pth.c: adds the tensors of the state dict at or below `top` to the list. Every storage must have its offset. */
tess_status tess_pth_collect(tess_weights *weights, const tess_pickle *pickle, int32_t top,
                             tess_error *error) TESS_MUST_CHECK;

#endif
