#include "solve/pnp.h"

#include <math.h>

#include "base/clock.h"
#include "solve/cg.h"

enum { MOST_HALVINGS = 200 };
/* avoids a division by zero at frequencies that the data do not determine */
static const double LEAST_WEIGHT = 1e-6;

int tess_pnp_vectors(const tess_operator *op, int64_t inner, double tolerance)
{
    return 2 + (inner > 0 && !tess_data_term_exact(op) ? TESS_CG_VECTORS - 1 : 0) + (tolerance > 0 ? 1 : 0);
}

typedef struct loop {
    const tess_data_term *term;
    const tess_pnp_settings *settings;
    tess_pnp_result *result;
    void *x, *z, *d;        /* d is x itself, unless x is still needed when the denoiser writes d */
    void *const *more;      /* two or three more images, for conjugate gradients */
    double gradient_square; /* |g|^2 of the previous iteration */
} loop;

/* Returns the peak since the last call, and keeps it for the whole loop. */
static uint64_t take_peak(loop *l)
{
    tess_memory *memory = l->term->op->device->counter;
    tess_mem_usage peak;
    tess_memory_peak(memory, l->settings->scope, &peak);
    tess_mem_usage_raise(&l->result->peak, &peak);
    tess_memory_reset_peak(memory);
    return peak.total;
}

static tess_status halve(loop *l, tess_error *error)
{
    l->result->step /= 2;
    if (++l->result->halvings > MOST_HALVINGS)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`step` %g: the data term grows at every step, however short; use `step` auto",
                         l->settings->step);
    return TESS_OK;
}

/* z holds the gradient at x. */
static tess_status check_step(loop *l, int64_t iteration, tess_error *error)
{
    double square, energy;
    if (l->settings->norm_squared > 0) {
        while (!(l->result->step * l->settings->norm_squared <= 2))
            TESS_TRY(halve(l, error));
        return TESS_OK;
    }
    if (tess_data_term_absorbed(l->term->op))
        return TESS_OK;
    TESS_TRY(tess_data_term_square(l->term, l->z, &square, error));
    if (iteration == 0 || square > l->gradient_square) {
        TESS_TRY(tess_data_term_energy(l->term, l->z, &energy, error));
        while (!(l->result->step * energy <= 2 * square))
            TESS_TRY(halve(l, error));
    }
    l->gradient_square = square;
    return TESS_OK;
}

/* z = x - step * gradient. */
static tess_status descend(loop *l, int64_t iteration, tess_error *error)
{
    tess_device *device = l->term->op->device;
    if (tess_data_term_exact(l->term->op)) {
        TESS_TRY(check_step(l, iteration, error));
        const double step = l->result->step;
        tess_data_term_step(l->term, (tess_normal_step){1, -step, step, 1, 0}, l->x, l->z);
        return device->streams->sync(device, NULL, error);
    }
    TESS_TRY(tess_data_term_gradient(l->term, l->x, l->z, error));
    TESS_TRY(check_step(l, iteration, error));
    const tess_sum step = {.a = -l->result->step, .x = l->z, .b = 1, .y = l->x};
    TESS_TRY(tess_vectors_sum(&l->term->images, &step, l->z, error));
    return device->streams->sync(device, NULL, error);
}

/* z = the minimum of data and distance from x, or some steps of conjugate gradients towards it. */
static tess_status descend_far(loop *l, double sigma, tess_error *error)
{
    tess_device *device = l->term->op->device;
    const double weight = sigma > 0 ? l->settings->weight / (sigma * sigma) : 0;
    if (tess_data_term_exact(l->term->op)) {
        const double held = weight > LEAST_WEIGHT ? weight : LEAST_WEIGHT;
        tess_data_term_step(l->term, (tess_normal_step){held, 0, 1, held, 1}, l->x, l->z);
        return device->streams->sync(device, NULL, error);
    }
    const tess_sum same = {.a = 1, .x = l->x};
    const tess_cg_settings settings = {
        .iterations = l->settings->inner, .tolerance = 1e-4, .shift = weight, .warm = true};
    void *const vectors[TESS_CG_VECTORS] = {l->d, l->more[0], l->more[1]};
    tess_cg_result result;
    TESS_TRY(tess_vectors_sum(&l->term->images, &same, l->z, error));
    TESS_TRY(tess_cg(l->term, &settings, vectors, l->z, &result, error));
    return device->streams->sync(device, NULL, error);
}

/* d becomes the next x; x keeps its old value only if the change is requested. */
static tess_status restore(loop *l, double sigma, tess_error *error)
{
    const tess_pnp_settings *s = l->settings;
    TESS_TRY(s->denoise(s->denoise_user, l->z, l->d, sigma, error));
    const double pull = l->result->step * s->relax, a = s->relax > 0 ? pull / (1 + pull) : 1;
    tess_sum next = {.a = a, .x = l->d, .low = s->low, .high = s->high};
    if (a < 1) {
        next.b = 1 - a;
        next.y = l->z;
    }
    TESS_TRY(tess_vectors_sum(&l->term->images, &next, l->d, error));
    return l->term->op->device->streams->sync(l->term->op->device, NULL, error);
}

static tess_status change_of(loop *l, double *change, tess_error *error)
{
    double moved, size;
    const tess_sum difference = {.a = 1, .x = l->d, .b = -1, .y = l->x};
    TESS_TRY(tess_vectors_sum(&l->term->images, &difference, l->x, error));
    TESS_TRY(tess_vectors_dot(&l->term->images, l->x, l->x, &moved, error));
    TESS_TRY(tess_vectors_dot(&l->term->images, l->d, l->d, &size, error));
    *change = size > 0 ? sqrt(moved / size) : INFINITY;
    return TESS_OK;
}

static double sigma_of(const tess_pnp_settings *s, int64_t iteration)
{
    if (s->iterations < 2 || s->last_sigma == s->sigma || !(s->sigma > 0))
        return s->sigma;
    return s->sigma * pow(s->last_sigma / s->sigma, (double)iteration / (double)(s->iterations - 1));
}

/* Bytes that this rank has sent so far. */
static uint64_t sent_by(const tess_share *share)
{
    return tess_share_many(share) ? share->dist->sent : 0;
}

static tess_status iterate(loop *l, int64_t iteration, tess_pnp_facts *facts, tess_error *error)
{
    const tess_pnp_settings *s = l->settings;
    *facts = (tess_pnp_facts){.iteration = iteration, .change = NAN, .sigma = sigma_of(s, iteration)};
    (void)take_peak(l);
    const double start = tess_clock();
    tess_share *share = l->term->op->share;
    const uint64_t sent = sent_by(share);
    TESS_TRY(tess_share_agree(
        share, s->inner > 0 ? descend_far(l, facts->sigma, error) : descend(l, iteration, error), error));
    double square;
    if (iteration == 0) /* an overflow occurs in the first iteration */
        TESS_TRY(tess_data_term_square(l->term, l->z, &square, error));
    const double middle = tess_clock();
    facts->gradient_seconds = middle - start;
    facts->gradient_peak_bytes = take_peak(l);
    l->result->sent += sent_by(share) - sent;
    TESS_TRY(tess_share_agree(share, restore(l, facts->sigma, error), error));
    facts->denoise_seconds = tess_clock() - middle;
    facts->denoise_peak_bytes = take_peak(l);
    if (s->tolerance > 0)
        TESS_TRY(change_of(l, &facts->change, error));
    void *swap = l->x;
    l->x = l->d;
    l->d = swap;
    facts->x = l->x;
    facts->step = l->result->step;
    l->result->iterations = iteration + 1;
    return TESS_OK;
}

/* Ranks have one clock: that of the slowest. */
static tess_status too_late(const loop *l, double start, bool *late, tess_error *error)
{
    const double most = l->settings->max_seconds;
    double seconds = tess_clock() - start;
    if (most > 0)
        TESS_TRY(tess_share_add(l->term->op->share, TESS_SHARE_MOST, &seconds, error));
    *late = most > 0 && seconds >= most;
    return TESS_OK;
}

tess_status tess_pnp(const tess_data_term *term, const tess_pnp_settings *s, void *const *vectors,
                     tess_pnp_result *result, tess_error *error)
{
    const bool keep = s->tolerance > 0;
    loop l = {
        term,    s, result, vectors[0], vectors[1], keep ? vectors[2] : vectors[0], vectors + (keep ? 3 : 2),
        INFINITY};
    const double start = tess_clock();
    *result = (tess_pnp_result){.step = s->step};
    for (int64_t i = 0; i < s->iterations && result->end == TESS_PNP_ITERATIONS; i++) {
        tess_pnp_facts facts;
        TESS_TRY(iterate(&l, i, &facts, error));
        if (s->monitor)
            TESS_TRY(tess_share_agree(term->op->share, s->monitor(s->monitor_user, &facts, error), error));
        bool late;
        TESS_TRY(too_late(&l, start, &late, error));
        if (s->enough && *s->enough)
            result->end = TESS_PNP_ENOUGH;
        else if (facts.change < s->tolerance)
            result->end = TESS_PNP_TOLERANCE;
        else if (late && i + 1 < s->iterations)
            result->end = TESS_PNP_SECONDS;
    }
    (void)take_peak(&l);
    result->seconds = tess_clock() - start;
    if (l.x == vectors[0])
        return TESS_OK;
    const tess_sum same = {.a = 1, .x = l.x};
    return tess_vectors_sum(&term->images, &same, vectors[0], error);
}
