/* Turns the weights of a 2-D network into those of a 3-D one: every k x k kernel becomes k x k x k. For odd k
 * the middle slice is the 2-D kernel and all other taps are 1e-8. For even k each slice is half the 2-D kernel,
 * so that the two slices of a stride of two together count as one; transposed kernels, where each slice sees
 * only one tap, may keep the whole. Values are computed when they are read: nothing is stored twice. */
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "weights/weights_format.h"

static const float SIDE = 1e-8f;

static bool is_kernel(const tess_weight *weight)
{
    return weight->rank == 4 && weight->dims[2] == weight->dims[3] && weight->dims[2] > 0;
}

static tess_status add(tess_weights *weights, const tess_weight *flat, int64_t index, tess_error *error)
{
    tess_weight weight = {.dtype = TESS_F32, .rank = flat->rank, .offset = (uint64_t)index};
    memcpy(weight.dims, flat->dims, sizeof weight.dims);
    if (is_kernel(flat))
        weight.dims[weight.rank++] = flat->dims[2];
    if (!tess_weight_row_major(&weight))
        return tess_fail(error, TESS_BAD_INPUT, "%s is too large for a 3-D network", flat->name);
    return tess_weights_add(weights, flat->name, strlen(flat->name), &weight, error);
}

tess_status tess_weights_inflate(tess_weights *flat, bool (*whole)(const char *name), tess_weights **out,
                                 tess_error *error)
{
    *out = NULL;
    tess_weights *weights;
    tess_status status = tess_weights_begin(flat->path, &weights, error);
    if (status != TESS_OK) {
        tess_weights_close(flat);
        return status;
    }
    weights->format = flat->format;
    weights->flat = flat;
    weights->whole = whole;
    for (int64_t i = 0; i < flat->count && status == TESS_OK; i++)
        status = add(weights, &flat->list[i], i, error);
    if (status == TESS_OK)
        status = tess_weights_sort(weights, error);
    if (status != TESS_OK) {
        status = tess_fail_prefix(error, status, weights->path);
        tess_weights_close(weights);
        return status;
    }
    *out = weights;
    return TESS_OK;
}

tess_weights *tess_weights_flat(tess_weights *weights)
{
    return weights->flat;
}

bool tess_weights_inflated_side(const tess_weights *weights, const tess_weight *weight, float *side)
{
    *side = SIDE;
    return weights->flat && weight->rank == 5 && weight->dims[4] % 2 == 1;
}

tess_status tess_weights_inflate_values(tess_weights *weights, const tess_weight *weight, int64_t first,
                                        int64_t count, float *values, tess_error *error)
{
    const tess_weight *from = &weights->flat->list[weight->offset];
    if (!is_kernel(from))
        return tess_weights_read(weights->flat, from, first, count, values, error);
    const int64_t side = from->dims[2], area = side * side;
    const float factor = side % 2 || (weights->whole && weights->whole(weight->name)) ? 1.0f : 0.5f;
    float *piece = (float *)weights->piece;
    const int64_t most = (int64_t)(sizeof weights->piece / sizeof *piece);
    for (int64_t done = 0; done < count;) {
        /* The longest run within one slice of one kernel. */
        const int64_t at = first + done, tap = at % area, slice = at / area % side, kernel = at / area / side;
        const int64_t run = tess_min_i64(tess_min_i64(area - tap, count - done), most);
        const bool kept = side % 2 == 0 || slice == side / 2;
        if (kept)
            TESS_TRY(tess_weights_read(weights->flat, from, kernel * area + tap, run, piece, error));
        for (int64_t i = 0; i < run; i++)
            values[done + i] = kept ? piece[i] * factor : SIDE;
        done += run;
    }
    return TESS_OK;
}
