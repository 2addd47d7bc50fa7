#include "solve/settle.h"

#include "solve/cg.h"
#include "solve/power.h"

enum { SEED = 1 };

/* z is overwritten; an exact term has no other vector, so the random image is drawn twice. */
static tess_status traces_of_exact(const tess_data_term *term, void *z, tess_settle_facts *facts,
                                   tess_error *error)
{
    const tess_vectors *v = &term->images;
    double one, sum;
    TESS_TRY(tess_power_start(term, SEED, z, error));
    TESS_TRY(tess_vectors_dot(v, z, z, &one, error));
    tess_data_term_step(term, (tess_normal_step){0, 1, 0, 1, 0}, z, z);
    TESS_TRY(tess_vectors_dot(v, z, z, &facts->squared, error));
    TESS_TRY(tess_power_start(term, SEED, z, error));
    tess_data_term_step(term, (tess_normal_step){1, 1, 0, 1, 0}, z, z);
    TESS_TRY(tess_vectors_dot(v, z, z, &sum, error));
    facts->trace = 0.5 * (sum - one - facts->squared);
    return TESS_OK;
}

static tess_status traces_of(const tess_data_term *term, void *z, void *more, tess_settle_facts *facts,
                             tess_error *error)
{
    const tess_vectors *v = &term->images;
    TESS_TRY(tess_power_start(term, SEED, z, error));
    tess_data_term_normal(term, z, more);
    TESS_TRY(tess_vectors_dot(v, z, more, &facts->trace, error));
    return tess_vectors_dot(v, more, more, &facts->squared, error);
}

tess_status tess_settle_look(const tess_data_term *term, void *const *vectors, tess_settle_facts *facts,
                             tess_error *error)
{
    void *x = vectors[0], *z = vectors[1];
    TESS_TRY(tess_data_term_exact(term->op) ? traces_of_exact(term, z, facts, error)
                                            : traces_of(term, z, vectors[2], facts, error));
    TESS_TRY(tess_data_term_gradient(term, x, z, error));
    return tess_vectors_dot(&term->images, z, z, &facts->square, error);
}

/* z = the minimum. */
static tess_status minimise(const tess_data_term *term, const tess_settle_settings *s, void *const *vectors,
                            tess_error *error)
{
    void *x = vectors[0], *z = vectors[1];
    if (tess_data_term_exact(term->op)) {
        tess_data_term_step(term, (tess_normal_step){s->weight, 0, 1, s->weight, 1}, x, z);
        return TESS_OK;
    }
    const tess_sum same = {.a = 1, .x = x};
    const tess_cg_settings settings = {
        .iterations = s->inner, .tolerance = 1e-4, .shift = s->weight, .warm = true};
    void *const more[TESS_CG_VECTORS] = {x, vectors[2], vectors[3]};
    tess_cg_result result;
    TESS_TRY(tess_vectors_sum(&term->images, &same, z, error));
    return tess_cg(term, &settings, more, z, &result, error);
}

tess_status tess_settle(const tess_data_term *term, const tess_settle_settings *s, void *const *vectors,
                        tess_error *error)
{
    const tess_sum next = {.a = 1, .x = vectors[1], .low = s->low, .high = s->high};
    TESS_TRY(minimise(term, s, vectors, error));
    TESS_TRY(tess_vectors_sum(&term->images, &next, vectors[0], error));
    return term->op->device->streams->sync(term->op->device, NULL, error);
}
