/* Weights without a file, for benchmarks, where only the shapes and a reasonable range of values matter. Values
 * come from Philox with (tensor, element) as counter, so any piece can be read at any time and is always the
 * same. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "weights/weights_format.h"

tess_status tess_weights_synthetic(const char *path, uint64_t seed, tess_weights **out, tess_error *error)
{
    TESS_TRY(tess_weights_begin(path, out, error));
    (*out)->format = "random";
    (*out)->seed = seed;
    return TESS_OK;
}

tess_status tess_weights_draw(tess_weights *weights, const char *name, int rank, const int64_t *dims,
                              tess_weight_draw draw, tess_error *error)
{
    tess_weight weight = {.dtype = TESS_F32, .rank = rank, .offset = (uint64_t)weights->count};
    for (int i = 0; i < rank; i++)
        weight.dims[i] = dims[i];
    if (!tess_weight_row_major(&weight))
        return tess_fail(error, TESS_INTERNAL, "%s: %s is too large", weights->path, name);
    tess_weight_draw *grown =
        tess_small_realloc(weights->draws, (size_t)weights->count + 1, sizeof *weights->draws);
    if (!grown)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for its tensors", weights->path);
    weights->draws = grown;
    weights->draws[weights->count] = draw;
    return tess_weights_add(weights, name, strlen(name), &weight, error);
}

tess_status tess_weights_drawn(tess_weights *weights, tess_error *error)
{
    return tess_weights_sort(weights, error);
}

void tess_weights_draw_values(const tess_weights *weights, const tess_weight *weight, int64_t first,
                              int64_t count, float *values)
{
    const tess_weight_draw *draw = &weights->draws[weight->offset];
    tess_rng_normal((tess_rng_key){weights->seed, (uint32_t)weight->offset, 0}, first, count, values);
    for (int64_t i = 0; i < count; i++) {
        float normal = draw->positive ? fabsf(values[i]) : values[i];
        values[i] = draw->mean + draw->deviation * normal;
    }
}
