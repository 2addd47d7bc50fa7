/* fields.h: tensors of random values of any type on the host, and how far two of them differ. */
#ifndef TESS_TESTS_FIELDS_H
#define TESS_TESTS_FIELDS_H

#include "base/rng.h"
#include "check.h"
#include "tensor/tensor.h"

static inline tess_tensor strided(tess_dtype dtype, int64_t n, int64_t h, int64_t w, int64_t c, int gap)
{
    return tess_tensor_channels(tess_tensor_2d(dtype, n, h, w, c + gap), c);
}

static inline float value_in(tess_dtype dtype, const void *data, size_t i)
{
    return dtype == TESS_BF16  ? tess_bf16_to_float(((const uint16_t *)data)[i])
           : dtype == TESS_F16 ? tess_half_to_float(((const uint16_t *)data)[i])
                               : ((const float *)data)[i];
}

static inline void put_value(tess_dtype dtype, void *data, size_t i, float value)
{
    if (dtype == TESS_BF16)
        ((uint16_t *)data)[i] = tess_float_to_bf16(value);
    else if (dtype == TESS_F16)
        ((uint16_t *)data)[i] = tess_float_to_half(value);
    else
        ((float *)data)[i] = value;
}

/* As a kernel of that type will see it. */
static inline float seen_as(tess_dtype dtype, float value)
{
    float seen;
    put_value(dtype, &seen, 0, value);
    return value_in(dtype, &seen, 0);
}

/* Random values in a buffer with a guard page's worth of pattern behind it. */
typedef struct field {
    void *data;
    size_t bytes;
} field;

static inline field random_field(const tess_tensor *t, uint32_t item)
{
    field f;
    size_t used = 0;
    CHECK(tess_tensor_bytes(t, &used));
    f.bytes = used + 256;
    f.data = malloc(f.bytes);
    size_t count = f.bytes / tess_dtype_size(t->dtype);
    float *values = malloc(count * sizeof *values);
    tess_rng_normal((tess_rng_key){7, item, 0}, 0, (int64_t)count, values);
    for (size_t i = 0; i < count; i++)
        put_value(t->dtype, f.data, i, values[i]);
    free(values);
    return f;
}

static inline double difference(const tess_tensor *t, const field *a, const field *b, double *largest)
{
    size_t count = a->bytes / tess_dtype_size(t->dtype);
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double x = value_in(t->dtype, a->data, i), y = value_in(t->dtype, b->data, i);
        double d = fabs(x - y);
        if (!(d <= most))
            most = d;
        if (fabs(y) > *largest)
            *largest = fabs(y);
    }
    return most;
}

#endif
