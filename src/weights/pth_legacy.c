/* pth_legacy.c: the directory of PyTorch's legacy stream (before 1.6, and on request since).
 *
 * Five pickles follow each other: a magic number, the stream's version 1001, a dict about the system that wrote
 * it, the object, and the list of storage keys. After them, in the order of that list, comes each storage as an
 * int64 element count and its values. The element size of a storage is known only from references in the
 * object, so a key that is listed but never referenced is an error. The count must equal the one in the
 * references. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "weights/pickle.h"

static const unsigned char magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
enum { STREAM_VERSION = 1001 };

static bool is_magic(const tess_pickle *p, int32_t top)
{
    const tess_pickle_node *node = tess_pickle_at(p, top);
    return node->kind == TESS_PICKLE_LONG && node->text.length == sizeof magic &&
           memcmp(p->bytes + node->text.at, magic, sizeof magic) == 0;
}

static bool is_version(const tess_pickle *p, int32_t top)
{
    return tess_pickle_is(p, top, TESS_PICKLE_INT) && tess_pickle_at(p, top)->integer == STREAM_VERSION;
}

static bool is_little_endian(const tess_pickle *p, int32_t top)
{
    int32_t flag = tess_pickle_lookup(p, top, "little_endian");
    return tess_pickle_is(p, flag, TESS_PICKLE_BOOL) && tess_pickle_at(p, flag)->integer;
}

/* Reads one of the small pickles at the beginning, which must pass `right`, and moves `at` past it. */
static tess_status expect(const tess_weights *weights, uint64_t *at,
                          bool (*right)(const tess_pickle *, int32_t), const char *wrong, tess_error *error)
{
    tess_pickle pickle;
    int32_t top;
    tess_status status = tess_pickle_run(&pickle, weights, *at, weights->bytes - *at, &top, error);
    if (status == TESS_OK && !right(&pickle, top))
        status = tess_fail(error, TESS_BAD_INPUT, "%s", wrong);
    *at += pickle.at;
    tess_pickle_free(&pickle);
    return status;
}

/* References to storages, sorted by key. Each has the pickle's bytes, because qsort passes no context. */
typedef struct mention {
    const char *key;
    size_t length;
    tess_pickle_storage *storage;
} mention;

static int compare_keys(const void *a, const void *b)
{
    const mention *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Locates the values of one listed storage: checks the count at `at`, sets the offset of every reference, and
 * moves `at` past the values. */
static tess_status place(const tess_weights *weights, mention *found, const mention *end, uint64_t *at,
                         tess_error *error)
{
    unsigned char head[8];
    TESS_TRY(tess_weights_bytes(weights, *at, head, sizeof head, error));
    const tess_pickle_storage *first = found->storage;
    uint64_t bytes =
        (uint64_t)first->count * tess_dtype_size(first->dtype); /* checked when the reference was read */
    if (first->offset || tess_le(head, 8) != (uint64_t)first->count)
        return tess_fail(error, TESS_BAD_INPUT,
                         "storage '%.*s' has %lld elements by the pickle and %llu in the stream",
                         (int)tess_min_i64((int64_t)found->length, 64), found->key, (long long)first->count,
                         (unsigned long long)tess_le(head, 8));
    *at += sizeof head;
    if (bytes > weights->bytes - *at)
        return tess_fail(error, TESS_BAD_INPUT, "ends within storage '%.*s'; it is cut short",
                         (int)tess_min_i64((int64_t)found->length, 64), found->key);
    for (mention *m = found; m < end && compare_keys(m, found) == 0; m++) {
        if (m->storage->count != first->count || m->storage->dtype != first->dtype)
            return tess_fail(error, TESS_BAD_INPUT, "storage '%.*s' is mentioned with two sizes or types",
                             (int)tess_min_i64((int64_t)found->length, 64), found->key);
        m->storage->offset = *at;
    }
    *at += bytes;
    return TESS_OK;
}

/* Walks the key list and the storages after it in parallel. */
static tess_status place_all(const tess_weights *weights, mention *mentions, int32_t count,
                             const tess_pickle *keys, int32_t list, uint64_t at, tess_error *error)
{
    if (!tess_pickle_is(keys, list, TESS_PICKLE_LIST))
        return tess_fail(error, TESS_BAD_INPUT, "is damaged: no list of storages follows its state dict");
    for (int32_t cell = tess_pickle_at(keys, list)->chain.first; cell >= 0;
         cell = tess_pickle_cell_at(keys, cell)->next) {
        const tess_pickle_node *key = tess_pickle_at(keys, tess_pickle_cell_at(keys, cell)->node);
        if (key->kind != TESS_PICKLE_STRING)
            return tess_fail(error, TESS_BAD_INPUT, "is damaged: a storage key is no string");
        mention wanted = {.key = tess_pickle_text(keys, key->text.at), .length = key->text.length};
        mention *found =
            count ? bsearch(&wanted, mentions, (size_t)count, sizeof wanted, compare_keys) : NULL;
        if (!found)
            return tess_fail(error, TESS_BAD_INPUT, "lists storage '%.*s', which no tensor uses",
                             (int)tess_min_i64((int64_t)wanted.length, 64), wanted.key);
        while (found > mentions && compare_keys(found - 1, found) == 0)
            found--;
        TESS_TRY(place(weights, found, mentions + count, &at, error));
    }
    for (int32_t i = 0; i < count; i++)
        if (!mentions[i].storage->offset)
            return tess_fail(error, TESS_BAD_INPUT, "has no values for storage '%.*s', which a tensor uses",
                             (int)tess_min_i64((int64_t)mentions[i].length, 64), mentions[i].key);
    return TESS_OK;
}

static tess_status locate(const tess_weights *weights, const tess_pickle *object, uint64_t at,
                          tess_error *error)
{
    int32_t count = object->storages.count, list;
    mention *mentions = tess_small_alloc((size_t)count, sizeof *mentions);
    if (!mentions)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of %d storages", count);
    for (int32_t i = 0; i < count; i++) {
        tess_pickle_storage *storage = tess_pickle_storage_at(object, i);
        mentions[i] = (mention){tess_pickle_text(object, storage->key_at), storage->key_length, storage};
    }
    qsort(mentions, (size_t)count, sizeof *mentions, compare_keys);
    tess_pickle keys;
    tess_status status = tess_pickle_run(&keys, weights, at, weights->bytes - at, &list, error);
    if (status == TESS_OK)
        status = place_all(weights, mentions, count, &keys, list, at + keys.at, error);
    tess_pickle_free(&keys);
    tess_small_free(mentions);
    return status;
}

tess_status tess_pth_legacy_directory(tess_weights *weights, tess_error *error)
{
    uint64_t at = 0;
    TESS_TRY(expect(weights, &at, is_magic,
                    "is a pickle, but not one that torch.save wrote; expected safetensors, or a .pth",
                    error));
    TESS_TRY(expect(weights, &at, is_version,
                    "is a torch.save stream of a version other than 1001; save it again", error));
    TESS_TRY(expect(weights, &at, is_little_endian,
                    "was written on a big-endian machine; save it again on a little-endian one", error));
    tess_pickle object;
    int32_t top;
    tess_status status = tess_pickle_run(&object, weights, at, weights->bytes - at, &top, error);
    if (status == TESS_OK)
        status = locate(weights, &object, at + object.at, error);
    if (status == TESS_OK)
        status = tess_pth_collect(weights, &object, top, error);
    tess_pickle_free(&object);
    return status;
}
