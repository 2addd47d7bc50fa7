#include "solve/data_term.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { ALIGN = 256 };

bool tess_data_term_absorbed(const tess_operator *op)
{
    return op->table->absorb && (op->table->step || op->table->normal);
}

bool tess_data_term_exact(const tess_operator *op)
{
    return op->table->absorb && op->table->step;
}

/* In the order of their memory. */
typedef struct parts {
    size_t images, measurements, scratch;
} parts;

static tess_status parts_of(const tess_operator *op, parts *p, tess_error *error)
{
    memset(p, 0, sizeof *p);
    TESS_TRY(tess_vectors_scratch(op->device, &op->image, &p->images, error));
    p->scratch = tess_align_size(op->scratch_bytes, ALIGN);
    if (tess_data_term_absorbed(op)) {
        p->scratch = tess_align_size(op->step_scratch_bytes, ALIGN);
        return TESS_OK;
    }
    return tess_vectors_scratch(op->device, &op->measurement, &p->measurements, error);
}

tess_status tess_data_term_bytes(const tess_operator *op, size_t *bytes, size_t *residual, tess_error *error)
{
    parts p;
    TESS_TRY(parts_of(op, &p, error));
    *bytes = p.images + p.measurements + p.scratch;
    *residual = tess_data_term_absorbed(op) ? 0 : tess_vector_bytes(&op->measurement);
    return TESS_OK;
}

tess_status tess_data_term_open(tess_data_term *term, tess_operator *op, const void *measurement,
                                void *residual, void *memory, tess_error *error)
{
    parts p;
    char *at = memory;
    *term = (tess_data_term){.op = op, .measurement = measurement, .residual = residual};
    TESS_TRY(parts_of(op, &p, error));
    TESS_TRY(tess_vectors_open(&term->images, op->device, &op->image, op->share, at, error));
    at += p.images;
    if (!tess_data_term_absorbed(op))
        TESS_TRY(tess_vectors_open(&term->measurements, op->device, &op->measurement, op->share, at, error));
    term->scratch = at + p.measurements;
    return TESS_OK;
}

void tess_data_term_close(tess_data_term *term)
{
    tess_vectors_close(&term->images);
    tess_vectors_close(&term->measurements);
}

tess_status tess_data_term_ask(const tess_data_term *term, const tess_tick *tick, tess_error *error)
{
    return tick->ask ? tess_share_agree(term->op->share, tick->ask(tick->user, error), error) : TESS_OK;
}

void tess_data_term_step(const tess_data_term *term, tess_normal_step step, const void *x, void *out)
{
    term->op->table->step(term->op, &step, x, out, term->scratch, NULL);
}

tess_status tess_data_term_gradient(const tess_data_term *term, const void *x, void *out, tess_error *error)
{
    tess_operator *op = term->op;
    if (tess_data_term_exact(op)) {
        tess_data_term_step(term, (tess_normal_step){0, 1, -1, 1, 0}, x, out);
        return TESS_OK;
    }
    if (tess_data_term_absorbed(op)) {
        op->table->normal(op, true, x, out, term->scratch, NULL);
        return TESS_OK;
    }
    op->table->forward(op, x, term->residual, term->scratch, NULL);
    const tess_sum difference = {.a = 1, .x = term->residual, .b = -1, .y = term->measurement};
    TESS_TRY(tess_vectors_sum(&term->measurements, &difference, term->residual, error));
    op->table->adjoint(op, term->residual, out, term->scratch, NULL);
    return TESS_OK;
}

void tess_data_term_normal(const tess_data_term *term, const void *x, void *out)
{
    tess_operator *op = term->op;
    if (tess_data_term_exact(op)) {
        tess_data_term_step(term, (tess_normal_step){0, 1, 0, 1, 0}, x, out);
        return;
    }
    if (tess_data_term_absorbed(op)) {
        op->table->normal(op, false, x, out, term->scratch, NULL);
        return;
    }
    op->table->forward(op, x, term->residual, term->scratch, NULL);
    op->table->adjoint(op, term->residual, out, term->scratch, NULL);
}

tess_status tess_data_term_energy(const tess_data_term *term, const void *x, double *energy,
                                  tess_error *error)
{
    term->op->table->forward(term->op, x, term->residual, term->scratch, NULL);
    return tess_vectors_dot(&term->measurements, term->residual, term->residual, energy, error);
}

tess_status tess_data_term_square(const tess_data_term *term, const void *image, double *square,
                                  tess_error *error)
{
    TESS_TRY(tess_vectors_dot(&term->images, image, image, square, error));
    if (isfinite(*square))
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "a step towards the measurements is not finite: they are too large for 32-bit floats; "
                     "scale them, \"range\" and \"noise\" down alike");
}
