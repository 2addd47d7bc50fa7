/* pickle_tree.c: the arena of nodes for a pickle, and queries on it.
 *
 * Every array here is bounded, and grows by doubling as items arrive, so that no number in a file can request
 * memory: each item costs at least one byte of the pickle, except for chains made from chains, which the bound
 * limits. */
#include <string.h>

#include "base/mem.h"
#include "weights/pickle.h"

enum { NODES_MAX = 1 << 22, CELLS_MAX = 1 << 22 };

tess_status tess_pickle_grow(tess_pickle *pickle, tess_pickle_array *array, size_t size, int32_t limit,
                             const char *what)
{
    if (array->count < array->capacity)
        return TESS_OK;
    if (array->count >= limit)
        return tess_fail(pickle->error, TESS_BAD_INPUT,
                         "its pickle has more than %d %s; save a plain state dict", limit, what);
    int32_t capacity = array->capacity ? 2 * array->capacity : 64;
    void *grown = tess_small_realloc(array->items, (size_t)capacity, size);
    if (!grown)
        return tess_fail(pickle->error, TESS_NO_MEMORY, "no memory for %d %s of its pickle", capacity, what);
    array->items = grown;
    array->capacity = capacity;
    return TESS_OK;
}

tess_status tess_pickle_add(tess_pickle *pickle, tess_pickle_node node, int32_t *out)
{
    TESS_TRY(tess_pickle_grow(pickle, &pickle->nodes, sizeof node, NODES_MAX, "values"));
    *out = pickle->nodes.count++;
    *tess_pickle_at(pickle, *out) = node;
    return TESS_OK;
}

tess_status tess_pickle_append(tess_pickle *pickle, int32_t container, int32_t node)
{
    TESS_TRY(tess_pickle_grow(pickle, &pickle->cells, sizeof(tess_pickle_cell), CELLS_MAX, "entries"));
    tess_pickle_cell *cells = pickle->cells.items;
    int32_t cell = pickle->cells.count++;
    cells[cell] = (tess_pickle_cell){.node = node, .next = -1};
    tess_pickle_node *into = tess_pickle_at(pickle, container);
    if (into->chain.count++ == 0)
        into->chain.first = cell;
    else
        cells[into->chain.last].next = cell;
    into->chain.last = cell;
    return TESS_OK;
}

void tess_pickle_free(tess_pickle *pickle)
{
    tess_pickle_array *arrays[] = {&pickle->nodes, &pickle->cells,    &pickle->stack,  &pickle->marks,
                                   &pickle->memo,  &pickle->storages, &pickle->tensors};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        tess_small_free(arrays[i]->items);
    tess_small_free(pickle->bytes);
    *pickle = (tess_pickle){0};
}

bool tess_pickle_is(const tess_pickle *pickle, int32_t node, tess_pickle_kind kind)
{
    return node >= 0 && tess_pickle_at(pickle, node)->kind == kind;
}

bool tess_pickle_is_text(const tess_pickle *pickle, int32_t node, const char *text)
{
    if (!tess_pickle_is(pickle, node, TESS_PICKLE_STRING))
        return false;
    const tess_pickle_node *string = tess_pickle_at(pickle, node);
    size_t length = strlen(text);
    return string->text.length == length && memcmp(pickle->bytes + string->text.at, text, length) == 0;
}

int32_t tess_pickle_items(const tess_pickle *pickle, int32_t node, int32_t *items, int32_t most)
{
    if (!tess_pickle_is(pickle, node, TESS_PICKLE_TUPLE) && !tess_pickle_is(pickle, node, TESS_PICKLE_LIST))
        return -1;
    const tess_pickle_node *from = tess_pickle_at(pickle, node);
    int32_t cell = from->chain.first;
    for (int32_t i = 0; i < most && i < from->chain.count; i++) {
        items[i] = tess_pickle_cell_at(pickle, cell)->node;
        cell = tess_pickle_cell_at(pickle, cell)->next;
    }
    return from->chain.count;
}

int32_t tess_pickle_lookup(const tess_pickle *pickle, int32_t dict, const char *key)
{
    if (!tess_pickle_is(pickle, dict, TESS_PICKLE_DICT))
        return -1;
    for (int32_t cell = tess_pickle_at(pickle, dict)->chain.first; cell >= 0;) {
        const tess_pickle_cell *name = tess_pickle_cell_at(pickle, cell);
        const tess_pickle_cell *value = tess_pickle_cell_at(pickle, name->next);
        if (tess_pickle_is_text(pickle, name->node, key))
            return value->node;
        cell = value->next;
    }
    return -1;
}
