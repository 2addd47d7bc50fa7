/* simd.h: vectors for the sources that are compiled once per instruction set. The build defines TESS_ISA (a
 * suffix for names), TESS_VECTOR (floats in a register), TESS_BLOCK_VECTORS and TESS_BLOCK_ROWS (the register
 * block). */
#ifndef TESS_CPU_SIMD_H
#define TESS_CPU_SIMD_H

#include <stdint.h>

#define TESS_PASTE2(a, b)   a##_##b
#define TESS_PASTE(a, b)    TESS_PASTE2(a, b)
#define TESS_ISA_NAME(name) TESS_PASTE(name, TESS_ISA)
#define TESS_STRING2(a)     #a
#define TESS_STRING(a)      TESS_STRING2(a)

enum {
    VECTOR = TESS_VECTOR,
    BLOCK_VECTORS = TESS_BLOCK_VECTORS,
    ROWS = TESS_BLOCK_ROWS,
    BLOCK = VECTOR * BLOCK_VECTORS
};

typedef float vec __attribute__((vector_size(TESS_VECTOR * 4)));
/* Any alignment. */
typedef float loose __attribute__((vector_size(TESS_VECTOR * 4), aligned(4), may_alias));

typedef int32_t mask __attribute__((vector_size(TESS_VECTOR * 4)));

static inline vec load(const float *from)
{
    return *(const loose *)from;
}

static inline void store(float *to, vec value)
{
    *(loose *)to = value;
}

static inline vec relu(vec value)
{
    const vec zero = {0};
    return (vec)((mask)value & ~(mask)(value < zero)); /* NaN stays NaN */
}

/* The value where `by` is positive, else zero. */
static inline vec masked(vec value, vec by)
{
    const vec zero = {0};
    return (vec)((mask)value & (mask)(by > zero));
}

#endif
