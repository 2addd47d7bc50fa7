/* adjoint.h: that an operator's adjoint is the transpose of its forward: entry by entry at a tiny size, and by inner
 * products at real ones. On devices whose memory is the host's. */
#ifndef TESS_TESTS_ADJOINT_H
#define TESS_TESTS_ADJOINT_H

#include "base/rng.h"
#include "check.h"
#include "physics/operator.h"

static inline int64_t adjoint_count(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

/* Zeroed; the tests have memory, or end. */
static inline void *adjoint_floats(int64_t count)
{
    float *values = calloc((size_t)(count ? count : 1), sizeof *values);
    if (!values)
        exit(1);
    return values;
}

/* (a): A and its transpose written out agree to 1e-6 of the largest entry. */
static inline void check_adjoint_matrices(tess_operator *op)
{
    const int64_t columns = adjoint_count(&op->image), rows = adjoint_count(&op->measurement);
    float *forward = adjoint_floats(rows * columns), *adjoint = adjoint_floats(rows * columns);
    float *unit = adjoint_floats(rows > columns ? rows : columns);
    void *scratch = adjoint_floats((int64_t)(op->scratch_bytes / sizeof(float)) + 1);
    for (int64_t i = 0; i < columns; i++) { /* row i is A's column i */
        unit[i] = 1;
        op->table->forward(op, unit, forward + i * rows, scratch, NULL);
        unit[i] = 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        unit[i] = 1;
        op->table->adjoint(op, unit, adjoint + i * columns, scratch, NULL);
        unit[i] = 0;
    }
    double largest = 0, difference = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            largest = fmax(largest, fabs(forward[c * rows + r]));
            difference = fmax(difference, fabs((double)forward[c * rows + r] - adjoint[r * columns + c]));
        }
    CHECK_MSG(largest > 0 && difference <= 1e-6 * largest, "%s: entries differ by %g of %g", op->name,
              difference, largest);
    free(forward), free(adjoint), free(unit), free(scratch);
}

static inline double adjoint_dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

/* (b): |<Ax,y> - <x,A'y>| <= 1e-6 |<Ax,y>|, x and y uniform in [0,1], five draws. */
static inline void check_adjoint_draws(tess_operator *op)
{
    const int64_t columns = adjoint_count(&op->image), rows = adjoint_count(&op->measurement);
    float *x = adjoint_floats(columns), *back = adjoint_floats(columns);
    float *y = adjoint_floats(rows), *seen = adjoint_floats(rows);
    void *scratch = adjoint_floats((int64_t)(op->scratch_bytes / sizeof(float)) + 1);
    for (uint32_t draw = 0; draw < 5; draw++) {
        tess_rng_uniform((tess_rng_key){.seed = 7, .item = draw}, 0, columns, x);
        tess_rng_uniform((tess_rng_key){.seed = 8, .item = draw}, 0, rows, y);
        op->table->forward(op, x, seen, scratch, NULL);
        op->table->adjoint(op, y, back, scratch, NULL);
        const double forward = adjoint_dot(seen, y, rows), adjoint = adjoint_dot(x, back, columns);
        CHECK_MSG(forward != 0 && fabs(forward - adjoint) <= 1e-6 * fabs(forward),
                  "%s, draw %u: <Ax,y> %.9g, <x,A'y> %.9g, relative %.2g", op->name, draw, forward, adjoint,
                  fabs(forward - adjoint) / fabs(forward));
    }
    free(x), free(back), free(y), free(seen), free(scratch);
}

#endif
