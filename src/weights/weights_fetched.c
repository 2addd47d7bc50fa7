/* Weights that are held elsewhere: a network that is being trained is written to a file, or loaded for validation, through
 * the same functions as a weight file. */
#include <string.h>

#include "base/checked.h"
#include "weights/weights_format.h"

tess_status tess_weights_fetched(const char *path, tess_weights_fetch fetch, void *user, tess_weights **out,
                                 tess_error *error)
{
    TESS_TRY(tess_weights_begin(path, out, error));
    (*out)->format = "memory";
    (*out)->fetch = fetch;
    (*out)->fetch_user = user;
    return TESS_OK;
}

tess_status tess_weights_add_fetched(tess_weights *weights, const char *name, int rank, const int64_t *dims,
                                     tess_dtype dtype, tess_error *error)
{
    tess_weight weight = {.dtype = dtype, .rank = rank, .offset = (uint64_t)weights->count};
    if (rank > TESS_WEIGHT_RANK || (dtype != TESS_F32 && dtype != TESS_F16 && dtype != TESS_F64))
        return tess_fail(error, TESS_INTERNAL, "%s: %s cannot be held", weights->path, name);
    for (int i = 0; i < rank; i++)
        weight.dims[i] = dims[i];
    if (!tess_weight_row_major(&weight))
        return tess_fail(error, TESS_INTERNAL, "%s: %s is too large", weights->path, name);
    return tess_weights_add(weights, name, strlen(name), &weight, error);
}

tess_status tess_weights_fetch_values(const tess_weights *weights, const tess_weight *weight, int64_t first,
                                      int64_t count, void *stored, tess_error *error)
{
    const int64_t tensor = (int64_t)weight->offset;
    if (weight->dtype != TESS_F16)
        return weights->fetch(weights->fetch_user, tensor, first, count, stored, error);
    float piece[2048];
    uint16_t *halves = stored;
    for (int64_t done = 0, step; done < count; done += step) {
        step = tess_min_i64(count - done, (int64_t)(sizeof piece / sizeof *piece));
        TESS_TRY(weights->fetch(weights->fetch_user, tensor, first + done, step, piece, error));
        for (int64_t i = 0; i < step; i++)
            halves[done + i] = tess_float_to_half(piece[i]);
    }
    return TESS_OK;
}

const char *tess_weights_metadata(const tess_weights *weights, const char *key)
{
    return tess_json_get_string(weights->flat ? weights->flat->metadata : weights->metadata, key, NULL);
}

tess_status tess_weights_set_metadata(tess_weights *weights, const char *key, const char *text,
                                      tess_error *error)
{
    if (!weights->metadata)
        weights->metadata = tess_json_object();
    tess_json_set_string(&weights->metadata, key, text);
    return weights->metadata ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the metadata");
}
