/* pth_zip.c: the directory of a .pth in PyTorch's zip form (1.6 and later).
 *
 * The zip archive has stored entries, never compressed ones: TOP/data.pkl is the object, TOP/data/KEY has the
 * values of a storage, TOP/byteorder says "little" (newer files). TOP is any folder name. The size of a storage
 * must be exactly that of its reference in the object. */
#include <stdio.h>
#include <string.h>

#include "weights/pickle.h"
#include "weights/zip.h"

enum { NAME_BYTES = 512 };

typedef struct archive {
    tess_zip zip;
    char top[NAME_BYTES]; /* with its slash */
    tess_error *error;
} archive;

/* Finds the entry TOP/folder/key; NULL when there is none. */
static const tess_zip_entry *find(const archive *a, const char *folder, const char *key, size_t key_length)
{
    char name[2 * NAME_BYTES];
    size_t prefix = strlen(a->top) + strlen(folder);
    if (key_length > NAME_BYTES || prefix + key_length > sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%s%s", a->top, folder);
    memcpy(name + prefix, key, key_length);
    return tess_zip_find(&a->zip, name, prefix + key_length);
}

/* TOP is the text before the slash of the first TOP/data.pkl. */
static tess_status find_top(archive *a)
{
    static const char object[] = "data.pkl";
    const size_t length = sizeof object - 1;
    for (size_t i = 0; i < a->zip.count; i++) {
        const tess_zip_entry *e = &a->zip.entries[i];
        size_t top = e->name_length - length;
        if (e->name_length <= length || top >= NAME_BYTES || memcmp(e->name + top, object, length) != 0 ||
            memchr(e->name, '/', top) != e->name + top - 1 || memchr(e->name, '\0', top))
            continue;
        memcpy(a->top, e->name, top);
        return TESS_OK;
    }
    return tess_fail(
        a->error, TESS_BAD_INPUT,
        "is a zip archive without a data.pkl, so torch.save did not write it; expected safetensors or .pth");
}

static tess_status check_kind(const archive *a)
{
    if (find(a, "", "constants.pkl", 13))
        return tess_fail(
            a->error, TESS_BAD_INPUT,
            "is a TorchScript archive; save the state dict: torch.save(module.state_dict(), ...)");
    const tess_zip_entry *order = find(a, "", "byteorder", 9);
    if (!order)
        return TESS_OK; /* absent before 2.0, when all machines were little-endian */
    char text[6] = {0};
    uint64_t offset;
    TESS_TRY(tess_zip_contents(&a->zip, order, &offset));
    TESS_TRY(tess_weights_bytes(a->zip.weights, offset, text, order->bytes < 6 ? (size_t)order->bytes : 6,
                                a->error));
    if (order->bytes != 6 || memcmp(text, "little", 6) != 0)
        return tess_fail(a->error, TESS_BAD_INPUT,
                         "was written on a big-endian machine; save it again on a little-endian one");
    return TESS_OK;
}

static tess_status locate_storages(const archive *a, const tess_pickle *pickle)
{
    for (int32_t i = 0; i < pickle->storages.count; i++) {
        tess_pickle_storage *storage = tess_pickle_storage_at(pickle, i);
        const char *key = tess_pickle_text(pickle, storage->key_at);
        int shown = storage->key_length < 64 ? (int)storage->key_length : 64;
        const tess_zip_entry *values = find(a, "data/", key, storage->key_length);
        if (!values)
            return tess_fail(a->error, TESS_BAD_INPUT,
                             "has no values for storage '%.*s', which a tensor uses", shown, key);
        uint64_t bytes =
            (uint64_t)storage->count * tess_dtype_size(storage->dtype); /* checked when it was read */
        if (values->bytes != bytes)
            return tess_fail(a->error, TESS_BAD_INPUT,
                             "storage '%.*s' has %llu bytes by the pickle and %llu in the file", shown, key,
                             (unsigned long long)bytes, (unsigned long long)values->bytes);
        TESS_TRY(tess_zip_contents(&a->zip, values, &storage->offset));
    }
    return TESS_OK;
}

static tess_status read_object(const archive *a, tess_weights *weights)
{
    uint64_t offset;
    const tess_zip_entry *object = find(a, "", "data.pkl", 8);
    TESS_TRY(tess_zip_contents(&a->zip, object, &offset));
    tess_pickle pickle;
    int32_t top;
    tess_status status = tess_pickle_run(&pickle, weights, offset, object->bytes, &top, a->error);
    if (status == TESS_OK)
        status = locate_storages(a, &pickle);
    if (status == TESS_OK)
        status = tess_pth_collect(weights, &pickle, top, a->error);
    tess_pickle_free(&pickle);
    return status;
}

tess_status tess_pth_zip_directory(tess_weights *weights, tess_error *error)
{
    archive a = {.error = error};
    tess_status status = tess_zip_read(&a.zip, weights, error);
    if (status == TESS_OK)
        status = find_top(&a);
    if (status == TESS_OK)
        status = check_kind(&a);
    if (status == TESS_OK)
        status = read_object(&a, weights);
    tess_zip_free(&a.zip);
    return status;
}
