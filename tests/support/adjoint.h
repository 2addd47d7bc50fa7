/* adjoint.h: checks that an operator's adjoint is the transpose of its forward: entry by entry at a tiny size, and by
 * inner products at real sizes, on any device. */
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

/* What an operator reads and writes. */
typedef struct adjoint_ends {
    tess_operator *op;
    tess_block image, measurement, scratch;
} adjoint_ends;

static inline tess_block adjoint_block(tess_device *device, size_t bytes)
{
    tess_block block = {0};
    tess_error error = {{0}};
    if (device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, bytes ? bytes : 1, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return block;
}

static inline adjoint_ends adjoint_open(tess_operator *op)
{
    return (adjoint_ends){op, adjoint_block(op->device, (size_t)adjoint_count(&op->image) * sizeof(float)),
                          adjoint_block(op->device, (size_t)adjoint_count(&op->measurement) * sizeof(float)),
                          adjoint_block(op->device, op->scratch_bytes)};
}

static inline void adjoint_close(adjoint_ends *ends)
{
    tess_device *device = ends->op->device;
    device->memory->free(device, &ends->image), device->memory->free(device, &ends->measurement);
    device->memory->free(device, &ends->scratch);
}

/* Forward, or the adjoint with `back`, of values on the host. */
static inline void adjoint_run(adjoint_ends *ends, bool back, const float *from, float *to)
{
    tess_device *device = ends->op->device;
    const tess_operator_table *table = ends->op->table;
    tess_block *in = back ? &ends->measurement : &ends->image,
               *out = back ? &ends->image : &ends->measurement;
    const tess_tensor *in_shape = back ? &ends->op->measurement : &ends->op->image,
                      *out_shape = back ? &ends->op->image : &ends->op->measurement;
    tess_error error = {{0}};
    device->memory->copy(device, in->data, from, (size_t)adjoint_count(in_shape) * sizeof(float), NULL);
    (back ? table->adjoint : table->forward)(ends->op, in->data, out->data, ends->scratch.data, NULL);
    device->memory->copy(device, to, out->data, (size_t)adjoint_count(out_shape) * sizeof(float), NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
}

/* (a): A and its transpose written out agree to 1e-6 of the largest entry. */
static inline void check_adjoint_matrices(tess_operator *op)
{
    const int64_t columns = adjoint_count(&op->image), rows = adjoint_count(&op->measurement);
    float *forward = adjoint_floats(rows * columns), *adjoint = adjoint_floats(rows * columns);
    float *unit = adjoint_floats(rows > columns ? rows : columns);
    adjoint_ends ends = adjoint_open(op);
    for (int64_t i = 0; i < columns; i++) { /* row i is A's column i */
        unit[i] = 1;
        adjoint_run(&ends, false, unit, forward + i * rows);
        unit[i] = 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        unit[i] = 1;
        adjoint_run(&ends, true, unit, adjoint + i * columns);
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
    adjoint_close(&ends);
    free(forward), free(adjoint), free(unit);
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
    adjoint_ends ends = adjoint_open(op);
    for (uint32_t draw = 0; draw < 5; draw++) {
        tess_rng_uniform((tess_rng_key){.seed = 7, .item = draw}, 0, columns, x);
        tess_rng_uniform((tess_rng_key){.seed = 8, .item = draw}, 0, rows, y);
        adjoint_run(&ends, false, x, seen);
        adjoint_run(&ends, true, y, back);
        const double forward = adjoint_dot(seen, y, rows), adjoint = adjoint_dot(x, back, columns);
        CHECK_MSG(forward != 0 && fabs(forward - adjoint) <= 1e-6 * fabs(forward),
                  "%s, draw %u: <Ax,y> %.9g, <x,A'y> %.9g, relative %.2g", op->name, draw, forward, adjoint,
                  fabs(forward - adjoint) / fabs(forward));
    }
    adjoint_close(&ends);
    free(x), free(back), free(y), free(seen);
}

#endif
