/* safetensors.c: the directory of a safetensors file.
 *
 * The format: 8 bytes little-endian N, N bytes of JSON
 * {"name":{"dtype","shape","data_offsets":[begin,end]},...}, then the values, row-major. Offsets count from the
 * end of the header. "__metadata__" is an object of free texts, which is kept. Each tensor must lie within the file and
 * have exactly the bytes that its shape and type need. The sum over all tensors may not exceed the file's size,
 * so that a small file cannot request large memory by pointing twice at its data. */
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/mem.h"
#include "weights/weights_format.h"

static bool dtype_from_name(const char *name, tess_dtype *dtype)
{
    for (int i = TESS_F32; name && i <= TESS_BOOL; i++)
        if (strcmp(name, tess_dtype_name((tess_dtype)i)) == 0) {
            *dtype = (tess_dtype)i;
            return true;
        }
    return false;
}

static tess_status read_shape(const char *name, const tess_json *shape, tess_weight *weight,
                              tess_error *error)
{
    int64_t rank = tess_json_length(shape);
    if (!tess_json_is_array(shape) || rank > TESS_WEIGHT_RANK)
        return tess_fail(error, TESS_BAD_INPUT, "tensor '%s' needs a shape of at most %d sizes", name,
                         TESS_WEIGHT_RANK);
    weight->rank = (int)rank;
    for (int i = 0; i < weight->rank; i++)
        weight->dims[i] = tess_json_as_int(tess_json_at(shape, i), -1);
    if (!tess_weight_row_major(weight))
        return tess_fail(error, TESS_BAD_INPUT, "tensor '%s' has an impossible shape", name);
    return TESS_OK;
}

/* `data` is the offset of the values in the file; `claimed` sums the bytes of the tensors. */
static tess_status read_entry(tess_weights *weights, const char *name, const tess_json *entry, uint64_t data,
                              uint64_t *claimed, tess_error *error)
{
    tess_weight weight = {0};
    const char *dtype = tess_json_get_string(entry, "dtype", NULL);
    if (!dtype_from_name(dtype, &weight.dtype))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "tensor '%s' has type %.32s; expected F64 F32 F16 BF16 U8 I8 U16 I16 U32 I32 I64 or BOOL", name,
            dtype ? dtype : "(none)");
    TESS_TRY(read_shape(name, tess_json_get(entry, "shape"), &weight, error));
    const tess_json *offsets = tess_json_get(entry, "data_offsets");
    int64_t begin = tess_json_as_int(tess_json_at(offsets, 0), -1),
            end = tess_json_as_int(tess_json_at(offsets, 1), -1);
    uint64_t available = weights->bytes - data;
    if (tess_json_length(offsets) != 2 || begin < 0 || end < begin || (uint64_t)end > available)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "tensor '%s' lies outside the file (data_offsets %lld..%lld of %llu bytes); it is cut short or "
            "damaged",
            name, (long long)begin, (long long)end, (unsigned long long)available);
    int64_t bytes;
    if (!tess_mul_i64(weight.elements, (int64_t)tess_dtype_size(weight.dtype), &bytes) ||
        bytes != end - begin)
        return tess_fail(error, TESS_BAD_INPUT,
                         "tensor '%s' has %lld bytes, which its shape and type do not give", name,
                         (long long)(end - begin));
    *claimed += (uint64_t)bytes;
    if (*claimed > available)
        return tess_fail(error, TESS_BAD_INPUT,
                         "tensors overlap; together they claim more bytes than the file has");
    weight.offset = data + (uint64_t)begin;
    return tess_weights_add(weights, name, strlen(name), &weight, error);
}

/* What is not text, which the format does not allow, is ignored. */
static tess_status read_metadata(tess_weights *weights, const tess_json *metadata, tess_error *error)
{
    for (const char *key = NULL; tess_json_is_object(metadata) && (key = tess_json_next_key(metadata, key));)
        if (tess_json_is_string(tess_json_get(metadata, key)))
            TESS_TRY(tess_weights_set_metadata(weights, key, tess_json_get_string(metadata, key, ""), error));
    return TESS_OK;
}

static tess_status read_entries(tess_weights *weights, const tess_json *header, uint64_t data,
                                tess_error *error)
{
    if (!tess_json_is_object(header))
        return tess_fail(error, TESS_BAD_INPUT, "the safetensors header is not a JSON object");
    uint64_t claimed = 0;
    for (const char *name = NULL; (name = tess_json_next_key(header, name));)
        if (strcmp(name, "__metadata__") == 0)
            TESS_TRY(read_metadata(weights, tess_json_get(header, name), error));
        else
            TESS_TRY(read_entry(weights, name, tess_json_get(header, name), data, &claimed, error));
    return TESS_OK;
}

tess_status tess_safetensors_directory(tess_weights *weights, tess_error *error)
{
    unsigned char head[8];
    TESS_TRY(tess_weights_bytes(weights, 0, head, sizeof head, error));
    uint64_t length = tess_le(head, 8);
    if (length > TESS_SAFETENSORS_MAX || length > weights->bytes - sizeof head)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "claims a header of %llu bytes in a file of %llu; it is cut short, or no safetensors file",
            (unsigned long long)length, (unsigned long long)weights->bytes);
    char *text = tess_small_alloc((size_t)length, 1);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a header of %llu bytes",
                         (unsigned long long)length);
    tess_json *header = NULL;
    tess_status status = tess_weights_bytes(weights, sizeof head, text, (size_t)length, error);
    if (status == TESS_OK) {
        status = tess_json_parse(text, (size_t)length, &header, error);
        if (status != TESS_OK)
            status = tess_fail_prefix(error, status, "safetensors header");
    }
    tess_small_free(text);
    if (status == TESS_OK)
        status = read_entries(weights, header, sizeof head + length, error);
    tess_json_free(header);
    return status;
}
