/* weights_read.c: reads the values of a tensor in pieces, as stored or as fp32.
 *
 * Row-major tensors are read sequentially. A strided one (a transposed or channels-last view that torch.save
 * kept) is gathered element by element from a window of the file. The strides of real files stay within the
 * window, so there is about one read per window, and no extra memory. Offsets were checked when the directory
 * was read; tess_weights_bytes checks them against the file again, so that a bug in a format cannot cause a
 * wrong read. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "base/checked.h"
#include "weights/weights_format.h"

static bool is_row_major(const tess_weight *weight)
{
    int64_t step = 1;
    for (int i = weight->rank - 1; i >= 0; i--) {
        if (weight->dims[i] > 1 && weight->strides[i] != step)
            return false;
        step *= weight->dims[i]; /* no overflow: the product is the element count */
    }
    return true;
}

/* Computes the position of row-major element `first`: its index in each dimension and its distance from the
 * first element. */
static int64_t start_at(const tess_weight *weight, int64_t first, int64_t index[TESS_WEIGHT_RANK])
{
    int64_t at = 0;
    for (int i = weight->rank - 1; i >= 0; i--) {
        index[i] = first % weight->dims[i];
        first /= weight->dims[i];
        at += index[i] * weight->strides[i];
    }
    return at;
}

static int64_t step_on(const tess_weight *weight, int64_t at, int64_t index[TESS_WEIGHT_RANK])
{
    for (int i = weight->rank - 1; i >= 0; i--) {
        at += weight->strides[i];
        if (++index[i] < weight->dims[i])
            return at;
        at -= index[i] * weight->strides[i];
        index[i] = 0;
    }
    return at;
}

static tess_status gather(tess_weights *weights, const tess_weight *weight, int64_t first, int64_t count,
                          unsigned char *stored, tess_error *error)
{
    size_t size = tess_dtype_size(weight->dtype);
    int64_t index[TESS_WEIGHT_RANK];
    int64_t at = start_at(weight, first, index);
    uint64_t window = 0, window_end = 0;
    for (int64_t i = 0; i < count; i++, at = step_on(weight, at, index)) {
        uint64_t offset = weight->offset + (uint64_t)at * size;
        if (offset < window || offset + size > window_end) {
            uint64_t left = offset < weights->bytes ? weights->bytes - offset : 0;
            size_t bytes = left < TESS_WEIGHTS_PIECE ? (size_t)left : TESS_WEIGHTS_PIECE;
            TESS_TRY(tess_weights_bytes(weights, offset, weights->piece, bytes < size ? size : bytes, error));
            window = offset;
            window_end = offset + bytes;
        }
        memcpy(stored + (size_t)i * size, weights->piece + (offset - window), size);
    }
    return TESS_OK;
}

tess_status tess_weights_read_stored(tess_weights *weights, const tess_weight *weight, int64_t first,
                                     int64_t count, void *stored, tess_error *error)
{
    if (first < 0 || count < 0 || first > weight->elements || count > weight->elements - first)
        return tess_fail(error, TESS_INTERNAL, "elements %lld+%lld asked of tensor '%s', which has %lld",
                         (long long)first, (long long)count, weight->name, (long long)weight->elements);
    if (count == 0)
        return TESS_OK;
    if (weights->draws) {
        tess_weights_draw_values(weights, weight, first, count, stored);
        return TESS_OK;
    }
    if (weights->fetch)
        return tess_weights_fetch_values(weights, weight, first, count, stored, error);
    if (weights->flat)
        return tess_weights_inflate_values(weights, weight, first, count, stored, error);
    size_t size = tess_dtype_size(weight->dtype);
    if (!is_row_major(weight))
        return gather(weights, weight, first, count, stored, error);
    return tess_weights_bytes(weights, weight->offset + (uint64_t)first * size, stored, (size_t)count * size,
                              error);
}

#define CONVERT(type, expression)                                                                            \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        type x;                                                                                              \
        memcpy(&x, from + (size_t)i * sizeof x, sizeof x);                                                   \
        to[i] = (expression);                                                                                \
    }                                                                                                        \
    return

static void convert(tess_dtype dtype, const unsigned char *from, int64_t count, float *to)
{
    switch (dtype) {
    case TESS_F32:
        CONVERT(float, x);
    case TESS_F16:
        CONVERT(uint16_t, tess_half_to_float(x));
    case TESS_BF16:
        CONVERT(uint16_t, tess_bf16_to_float(x));
    case TESS_F64:
        CONVERT(double, (float)x);
    case TESS_U8:
        CONVERT(uint8_t, (float)x);
    case TESS_I8:
        CONVERT(int8_t, (float)x);
    case TESS_U16:
        CONVERT(uint16_t, (float)x);
    case TESS_I16:
        CONVERT(int16_t, (float)x);
    case TESS_U32:
        CONVERT(uint32_t, (float)x);
    case TESS_I32:
        CONVERT(int32_t, (float)x);
    case TESS_I64:
        CONVERT(int64_t, (float)x);
    case TESS_BOOL:
        CONVERT(uint8_t, x ? 1.0f : 0.0f);
    }
}

tess_status tess_weights_read(tess_weights *weights, const tess_weight *weight, int64_t first, int64_t count,
                              float *values, tess_error *error)
{
    tess_status status = TESS_OK;
    /* Strided tensors are gathered through weights->piece, so the stored values need another buffer. */
    unsigned char stored[8 << 10];
    int64_t most = (int64_t)(sizeof stored / tess_dtype_size(weight->dtype));
    if (weight->dtype == TESS_F32)
        status = tess_weights_read_stored(weights, weight, first, count, values, error);
    else
        for (int64_t done = 0, step; done < count && status == TESS_OK; done += step) {
            step = tess_min_i64(most, count - done);
            status = tess_weights_read_stored(weights, weight, first + done, step, stored, error);
            if (status == TESS_OK)
                convert(weight->dtype, stored, step, values + done);
        }
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, weights->path);
}

tess_status tess_weights_read_doubles(tess_weights *weights, const tess_weight *weight, int64_t first,
                                      int64_t count, double *values, tess_error *error)
{
    if (weight->dtype == TESS_F64) {
        const tess_status status = tess_weights_read_stored(weights, weight, first, count, values, error);
        return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, weights->path);
    }
    float piece[1024];
    for (int64_t done = 0, step; done < count; done += step) {
        step = tess_min_i64(sizeof piece / sizeof *piece, count - done);
        TESS_TRY(tess_weights_read(weights, weight, first + done, step, piece, error));
        for (int64_t i = 0; i < step; i++)
            values[done + i] = (double)piece[i];
    }
    return TESS_OK;
}
