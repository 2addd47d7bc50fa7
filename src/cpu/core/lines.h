/* lines.h: the unit of work of ops on whole tensors. A line is one row of one slice of one image, with all its
 * channels. Its values are visited as runs: the whole line if all tensors are dense, else pixel by pixel. */
#ifndef TESS_CPU_LINES_H
#define TESS_CPU_LINES_H

#include "tensor/tensor.h"

static inline int64_t tess_cpu_lines(const tess_tensor *t)
{
    return t->n * t->d * t->h;
}

/* The offset of the first value of a line. */
static inline int64_t tess_cpu_line(const tess_tensor *t, int64_t line)
{
    const int64_t slice = line / t->h;
    return slice / t->d * t->stride_n + slice % t->d * t->stride_d + line % t->h * t->stride_h;
}

static inline int64_t tess_cpu_values(const tess_tensor *t)
{
    return tess_cpu_lines(t) * t->w * t->c;
}

static inline bool tess_cpu_same_sizes(const tess_tensor *a, const tess_tensor *b)
{
    return a->n == b->n && a->d == b->d && a->h == b->h && a->w == b->w && a->c == b->c;
}

/* A type of activations. */
static inline bool tess_cpu_is_value(const tess_tensor *t)
{
    return t->dtype == TESS_F32 || t->dtype == TESS_BF16;
}

/* `count` values of a type, one after the other. */
static inline bool tess_cpu_is_vector(const tess_tensor *t, tess_dtype dtype, int64_t count)
{
    const tess_tensor dense = tess_tensor_3d(dtype, t->n, t->d, t->h, t->w, t->c);
    return tess_tensor_same(t, &dense) && tess_cpu_values(t) == count;
}

typedef struct tess_cpu_runs {
    int64_t runs, length;
} tess_cpu_runs;

/* The runs of a line of the first tensor; the others have the same sizes. */
static inline tess_cpu_runs tess_cpu_runs_of(const tess_tensor *tensors, const tess_tensor *more, int count)
{
    bool dense = more->stride_w == more->c;
    for (int i = 0; i < count; i++)
        dense = dense && tensors[i].stride_w == more->c;
    return dense ? (tess_cpu_runs){1, more->w * more->c} : (tess_cpu_runs){more->w, more->c};
}

#endif
