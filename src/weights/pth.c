/* pth.c: which tensors of a .pth are the weights, and their names.
 *
 * Training scripts save the state dict itself, or a dict that holds it beside the epoch and the optimizer under
 * one of a few usual keys. Averaged weights (params_ema) are preferred when both exist, as in the scripts that
 * write them. The keys of nested dicts are joined with dots; values that are not tensors are skipped. A pickle
 * may be cyclic, or contain one dict a million times, so the walk is limited in depth and in steps (to those
 * that a tree without sharing takes). */
#include <stdio.h>
#include <string.h>

#include "weights/pickle.h"

enum { DEPTH_MAX = 16, WRAPPERS_MAX = 2 };

typedef struct walk {
    tess_weights *weights;
    const tess_pickle *pickle;
    int64_t steps_left;
    char name[TESS_WEIGHT_NAME_MAX + 1];
    tess_error *error;
} walk;

/* Reads the key and value at `cell`. Returns the cell of the next entry, -1 at the end. */
static int32_t entry_at(const tess_pickle *p, int32_t cell, int32_t *key, int32_t *value)
{
    const tess_pickle_cell *first = tess_pickle_cell_at(p, cell),
                           *second = tess_pickle_cell_at(p, first->next);
    *key = first->node;
    *value = second->node;
    return second->next;
}

static bool holds_tensor(const tess_pickle *p, int32_t dict)
{
    int32_t key, value;
    for (int32_t cell = tess_pickle_at(p, dict)->chain.first; cell >= 0;) {
        cell = entry_at(p, cell, &key, &value);
        if (tess_pickle_is(p, value, TESS_PICKLE_TENSOR))
            return true;
    }
    return false;
}

/* Finds the state dict at `node` or under its usual keys; -1 when there is none. */
static int32_t choose(const tess_pickle *p, int32_t node, int depth)
{
    static const char *const keys[] = {"params_ema",       "params", "state_dict",
                                       "model_state_dict", "model",  "net"};
    if (!tess_pickle_is(p, node, TESS_PICKLE_DICT) || depth > WRAPPERS_MAX)
        return -1;
    if (holds_tensor(p, node))
        return node;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int32_t below = choose(p, tess_pickle_lookup(p, node, keys[i]), depth + 1);
        if (below >= 0)
            return below;
    }
    return -1;
}

static tess_status add_tensor(walk *w, int32_t node, size_t length)
{
    const tess_pickle *p = w->pickle;
    const tess_pickle_tensor *tensor =
        (const tess_pickle_tensor *)p->tensors.items + tess_pickle_at(p, node)->integer;
    tess_weight weight = tensor->weight;
    weight.offset += tess_pickle_storage_at(p, tensor->storage)->offset;
    return tess_weights_add(w->weights, w->name, length, &weight, w->error);
}

/* Appends the key to the first `length` bytes of the name; -1 when it is not a string or too long. */
static int join(walk *w, size_t length, int32_t key)
{
    const tess_pickle *p = w->pickle;
    size_t room = sizeof w->name - length;
    const char *dot = length ? "." : "";
    int put = -1;
    if (tess_pickle_is(p, key, TESS_PICKLE_STRING)) {
        int bytes =
            tess_pickle_at(p, key)->text.length < room ? (int)tess_pickle_at(p, key)->text.length : -1;
        if (bytes < 0 || (size_t)bytes + strlen(dot) >= room)
            return -1;
        memcpy(w->name + length, dot, strlen(dot));
        memcpy(w->name + length + strlen(dot), tess_pickle_text(p, tess_pickle_at(p, key)->text.at),
               (size_t)bytes);
        put = bytes + (int)strlen(dot);
    } else if (tess_pickle_is(p, key, TESS_PICKLE_INT)) {
        put = snprintf(w->name + length, room, "%s%lld", dot, (long long)tess_pickle_at(p, key)->integer);
    }
    return put < 0 || (size_t)put >= room ? -1 : (int)length + put;
}

static tess_status flatten(walk *w, int32_t dict, size_t length, int depth)
{
    if (depth > DEPTH_MAX)
        return tess_fail(w->error, TESS_BAD_INPUT,
                         "nests dicts deeper than %d, or a dict in itself; save a plain state "
                         "dict",
                         DEPTH_MAX);
    int32_t key, value;
    for (int32_t cell = tess_pickle_at(w->pickle, dict)->chain.first; cell >= 0;) {
        cell = entry_at(w->pickle, cell, &key, &value);
        if (w->steps_left-- <= 0)
            return tess_fail(w->error, TESS_BAD_INPUT,
                             "mentions the same dicts over and over; save a plain state dict");
        bool tensor = tess_pickle_is(w->pickle, value, TESS_PICKLE_TENSOR);
        if (!tensor && !tess_pickle_is(w->pickle, value, TESS_PICKLE_DICT))
            continue;
        int joined = join(w, length, key);
        if (joined < 0 && tensor)
            return tess_fail(w->error, TESS_BAD_INPUT,
                             "has a tensor whose key is no string of at most %d bytes", TESS_WEIGHT_NAME_MAX);
        if (tensor)
            TESS_TRY(add_tensor(w, value, (size_t)joined));
        else if (joined >= 0)
            TESS_TRY(flatten(w, value, (size_t)joined, depth + 1));
    }
    return TESS_OK;
}

tess_status tess_pth_collect(tess_weights *weights, const tess_pickle *pickle, int32_t top, tess_error *error)
{
    if (!tess_pickle_is(pickle, top, TESS_PICKLE_DICT))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "holds no dict but a single %s; save a plain state dict: torch.save(model.state_dict(), ...)",
            tess_pickle_is(pickle, top, TESS_PICKLE_TENSOR) ? "tensor" : "value or list");
    int32_t chosen = weights->nested ? -1 : choose(pickle, top, 0);
    walk w = {.weights = weights, .pickle = pickle, .steps_left = pickle->cells.count + 1024, .error = error};
    TESS_TRY(flatten(&w, chosen >= 0 ? chosen : top, 0, 0));
    if (weights->count == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "holds no tensors; save a state dict: torch.save(model.state_dict(), ...)");
    return TESS_OK;
}
