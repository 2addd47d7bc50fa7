#include "solve/cg.h"

#include <math.h>

/* Computes the vector for the next direction: r, or the preconditioned r in q. `square` is its product with r. */
static tess_status direction_of(const tess_data_term *term, double shift,
                                void *const vectors[TESS_CG_VECTORS], void **from, double *square,
                                tess_error *error)
{
    tess_operator *op = term->op;
    void *r = vectors[0], *q = vectors[2];
    *from = op->table->precondition ? q : r;
    if (op->table->precondition)
        op->table->precondition(op, shift, r, q, term->scratch, NULL);
    return tess_vectors_dot(&term->images, r, *from, square, error);
}

/* Sets r = -gradient at x, and p to the first direction. */
static tess_status begin(const tess_data_term *term, const tess_cg_settings *settings,
                         void *const vectors[TESS_CG_VECTORS], void *x, double *square, tess_error *error)
{
    void *r = vectors[0], *p = vectors[1], *from = r;
    const tess_vectors *v = &term->images;
    const tess_sum nothing = {.a = 0, .x = x}, negative = {.a = -1, .x = r};
    if (!settings->warm)
        TESS_TRY(tess_vectors_sum(v, &nothing, x, error));
    TESS_TRY(tess_data_term_gradient(term, x, r, error));
    TESS_TRY(tess_vectors_sum(v, &negative, r, error));
    TESS_TRY(tess_data_term_square(term, r, square, error));
    if (term->op->table->precondition)
        TESS_TRY(direction_of(term, settings->shift, vectors, &from, square, error));
    const tess_sum same = {.a = 1, .x = from};
    return tess_vectors_sum(v, &same, p, error);
}

tess_status tess_cg(const tess_data_term *term, const tess_cg_settings *settings,
                    void *const vectors[TESS_CG_VECTORS], void *x, tess_cg_result *result, tess_error *error)
{
    void *r = vectors[0], *p = vectors[1], *q = vectors[2], *from;
    const tess_vectors *v = &term->images;
    double square, first;
    TESS_TRY(begin(term, settings, vectors, x, &square, error));
    first = square;
    *result = (tess_cg_result){.residual = first > 0 ? 1 : 0};
    while (result->iterations < settings->iterations && result->residual > settings->tolerance) {
        double curvature, next;
        TESS_TRY(tess_data_term_ask(term, &settings->tick, error));
        tess_data_term_normal(term, p, q);
        const tess_sum shifted = {.a = 1, .x = q, .b = settings->shift, .y = p};
        if (settings->shift > 0)
            TESS_TRY(tess_vectors_sum(v, &shifted, q, error));
        TESS_TRY(tess_vectors_dot(v, p, q, &curvature, error));
        if (!(curvature > 0)) /* further steps would only follow rounding errors */
            break;
        const double step = square / curvature;
        const tess_sum forward = {.a = 1, .x = x, .b = step, .y = p},
                       less = {.a = 1, .x = r, .b = -step, .y = q};
        TESS_TRY(tess_vectors_sum(v, &forward, x, error));
        TESS_TRY(tess_vectors_sum(v, &less, r, error));
        TESS_TRY(direction_of(term, settings->shift, vectors, &from, &next, error));
        const tess_sum direction = {.a = next / square, .x = p, .b = 1, .y = from};
        TESS_TRY(tess_vectors_sum(v, &direction, p, error));
        square = next;
        result->iterations++;
        result->residual = sqrt(square / first);
    }
    return TESS_OK;
}
