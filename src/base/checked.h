/* checked.h: size arithmetic that cannot wrap. Every product of sizes that come from a file or a user uses
 * these functions. They return false on overflow, and the result must not be used then. */
#ifndef TESS_BASE_CHECKED_H
#define TESS_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tess_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool tess_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool tess_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline int64_t tess_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tess_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Unchecked: only for sizes that the code itself chose, far from overflow. */
static inline int64_t tess_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t tess_round_up(int64_t a, int64_t b)
{
    return tess_ceil_div(a, b) * b;
}

/* The least number from `least` on that has no divisor in common with `count`: every such sample of interleaved rows of
 * `count` samples meets all channels and all columns. */
static inline int64_t tess_stride_across(int64_t least, int64_t count)
{
    for (int64_t stride = tess_max_i64(least, 1);; stride++) {
        int64_t a = stride, b = count;
        while (b != 0) {
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return stride;
    }
}

static inline size_t tess_align_size(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

#endif
