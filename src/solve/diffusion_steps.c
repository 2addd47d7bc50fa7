#include "solve/diffusion_steps.h"

#include <math.h>

#include "base/mem.h"

static const double LEAST_VARIANCE = 1e-20;

const char *tess_sampler_name(tess_sampler_kind kind)
{
    static const char *const names[TESS_SAMPLER_KINDS] = {
        [TESS_SAMPLER_DDPM] = "ddpm", [TESS_SAMPLER_DDIM] = "ddim", [TESS_SAMPLER_DPMPP] = "dpmpp"};
    return names[kind];
}

static double lambda_of(double gamma)
{
    return 0.5 * log(gamma / (1 - gamma));
}

static double gamma_at(double lambda)
{
    return 1 / (1 + exp(-2 * lambda));
}

/* The last step of the schedule, counted from its clean end, whose gamma is not below `gamma`; -1: none. */
static int64_t index_of(const tess_diffusion_schedule *schedule, double gamma)
{
    int64_t i = schedule->settings.steps - 1;
    while (i >= 0 && schedule->gammas[i] < gamma)
        i--;
    return i;
}

/* The gamma at a place between two steps of the schedule, even in lambda. */
static double gamma_between(const tess_diffusion_schedule *schedule, double place)
{
    const int64_t last = schedule->settings.steps - 1, low = (int64_t)fmin(floor(place), (double)last);
    const double part = place - (double)low;
    if (!(part > 0) || low == last)
        return schedule->gammas[low];
    return gamma_at((1 - part) * lambda_of(schedule->gammas[low]) +
                    part * lambda_of(schedule->gammas[low + 1]));
}

/* Evaluation k of n: the part of the way from the noisy to the clean end. */
static double way(int64_t k, int64_t n)
{
    return n > 1 ? (double)k / (double)(n - 1) : 0;
}

static void place_in_time(const tess_steps_settings *s, int64_t n, double *gammas)
{
    int64_t from = s->schedule->settings.steps - 1;
    if (s->start_gamma > 0)
        from = index_of(s->schedule, s->start_gamma);
    for (int64_t k = 0; k < n; k++)
        gammas[k] = gamma_between(s->schedule, (double)from * (1 - way(k, n)));
}

static void place_in_lambda(const tess_steps_settings *s, int64_t n, double *gammas)
{
    const double least = s->least_gamma > 0 ? s->least_gamma : TESS_GAMMA_TRAINED,
                 end = s->schedule->gammas[0];
    double begin = fmax(tess_schedule_terminal(s->schedule), least);
    if (s->start_gamma > 0)
        begin = s->start_gamma;
    begin = fmin(begin, end);
    for (int64_t k = 0; k < n; k++)
        gammas[k] = gamma_at((1 - way(k, n)) * lambda_of(begin) + way(k, n) * lambda_of(end));
    gammas[0] = begin; /* without rounding */
}

/* What all samplers share. */
static double *begin_row(double *row, double gamma, int64_t step)
{
    row[TESS_DIFFUSE_Y] = sqrt(1 / gamma);
    row[TESS_DIFFUSE_E] = -sqrt(1 / gamma - 1);
    row[TESS_DIFFUSE_LOW] = -1;
    row[TESS_DIFFUSE_HIGH] = 1;
    row[TESS_DIFFUSE_STEP] = (double)(step + 1);
    return row;
}

static void last_row(double *row)
{
    row[TESS_DIFFUSE_CLEAN] = 1;
}

static void ddpm_rows(const tess_steps_settings *s, tess_sampler_steps *steps)
{
    for (int64_t k = 0; k < steps->count; k++) {
        const int64_t i = steps->count - 1 - k;
        const double gamma = s->schedule->gammas[i], beta = s->schedule->betas[i];
        double *row = begin_row(steps->rows + k * TESS_DIFFUSE_CONTROLS, gamma, k);
        steps->gammas[k] = gamma;
        if (i == 0) {
            last_row(row);
            continue;
        }
        const double next = s->schedule->gammas[i - 1], variance = beta * (1 - next) / (1 - gamma);
        row[TESS_DIFFUSE_CLEAN] = beta * sqrt(next) / (1 - gamma);
        row[TESS_DIFFUSE_KEEP] = (1 - next) * sqrt(1 - beta) / (1 - gamma);
        row[TESS_DIFFUSE_NOISE] = sqrt(fmax(variance, LEAST_VARIANCE));
    }
}

static void ddim_row(double gamma, double next, double eta, double *row)
{
    const double sigma = eta * sqrt(fmax(0, (1 - next) / (1 - gamma) * (1 - gamma / next))),
                 keep = sqrt(fmax(0, 1 - next - sigma * sigma)) / sqrt(1 - gamma);
    row[TESS_DIFFUSE_CLEAN] = sqrt(next) - keep * sqrt(gamma);
    row[TESS_DIFFUSE_KEEP] = keep;
    row[TESS_DIFFUSE_NOISE] = sigma;
}

/* `before`: the gamma of the evaluation before; 0: none. */
static void dpmpp_row(double before, double gamma, double next, double *row)
{
    const double h = lambda_of(next) - lambda_of(gamma), all = -sqrt(next) * expm1(-h),
                 h_before = before > 0 ? lambda_of(gamma) - lambda_of(before) : 0,
                 half = h_before > 0 ? h / (2 * h_before) : 0; /* 1 / (2 r) */
    row[TESS_DIFFUSE_CLEAN] = all * (1 + half);
    row[TESS_DIFFUSE_KEEP] = sqrt((1 - next) / (1 - gamma));
    row[TESS_DIFFUSE_PREVIOUS] = -all * half;
}

static void placed_rows(const tess_steps_settings *s, tess_sampler_steps *steps)
{
    const int64_t n = steps->count;
    (s->spacing == TESS_SPACED_TIME ? place_in_time : place_in_lambda)(s, n, steps->gammas);
    for (int64_t k = 0; k < n; k++) {
        const double gamma = steps->gammas[k];
        double *row = begin_row(steps->rows + k * TESS_DIFFUSE_CONTROLS, gamma, k);
        if (k == n - 1)
            last_row(row);
        else if (s->kind == TESS_SAMPLER_DDIM)
            ddim_row(gamma, steps->gammas[k + 1], s->eta, row);
        else
            dpmpp_row(k > 0 ? steps->gammas[k - 1] : 0, gamma, steps->gammas[k + 1], row);
    }
}

/* x0 is the guess itself, which is not clamped. */
static void start_row(const tess_steps_settings *s, tess_sampler_steps *steps)
{
    const bool guess = s->start_gamma > 0;
    double *row = steps->start;
    row[TESS_DIFFUSE_Y] = guess ? 1 : 0;
    row[TESS_DIFFUSE_LOW] = -INFINITY;
    row[TESS_DIFFUSE_HIGH] = INFINITY;
    row[TESS_DIFFUSE_CLEAN] = guess ? sqrt(steps->gammas[0]) : 0;
    row[TESS_DIFFUSE_NOISE] = guess ? sqrt(1 - steps->gammas[0]) : 1;
    row[TESS_DIFFUSE_OPEN] = s->noise_everywhere ? 1 : 0;
}

static tess_status check(const tess_steps_settings *s, tess_error *error)
{
    const int64_t all = s->schedule->settings.steps;
    if ((unsigned)s->kind >= TESS_SAMPLER_KINDS)
        return tess_fail(error, TESS_BAD_OPTION, "sampler %d does not exist", (int)s->kind);
    if (s->kind == TESS_SAMPLER_DDPM && s->count != 0 && s->count != all)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`steps` %lld: ddpm takes all %lld steps of its schedule; use ddim or dpmpp",
                         (long long)s->count, (long long)all);
    if (s->kind != TESS_SAMPLER_DDPM && (s->count < 1 || s->count > TESS_SCHEDULE_MOST_STEPS))
        return tess_fail(error, TESS_BAD_OPTION, "`steps` %lld: use 1 to %d", (long long)s->count,
                         TESS_SCHEDULE_MOST_STEPS);
    if (!(s->eta >= 0 && s->eta <= 1))
        return tess_fail(error, TESS_BAD_OPTION, "`eta` %g: use 0 to 1", s->eta);
    if (s->start_gamma != 0 && !(s->start_gamma > 0 && s->start_gamma <= s->schedule->gammas[0]))
        return tess_fail(error, TESS_BAD_OPTION,
                         "a start at gamma %g: use more than 0 and at most %g, the clean end of the schedule",
                         s->start_gamma, s->schedule->gammas[0]);
    if (!(s->least_gamma >= 0 && s->least_gamma < 1))
        return tess_fail(error, TESS_BAD_OPTION, "a least gamma of %g: use 0 to below 1", s->least_gamma);
    return TESS_OK;
}

tess_status tess_steps_make(const tess_steps_settings *s, tess_sampler_steps *out, tess_error *error)
{
    *out = (tess_sampler_steps){.count = 0};
    TESS_TRY(check(s, error));
    int64_t count = s->count;
    if (s->kind == TESS_SAMPLER_DDPM)
        count = s->start_gamma > 0 ? index_of(s->schedule, s->start_gamma) + 1 : s->schedule->settings.steps;
    out->count = count;
    out->gammas = tess_small_alloc((size_t)count, sizeof *out->gammas);
    out->rows = tess_small_alloc((size_t)count * TESS_DIFFUSE_CONTROLS, sizeof *out->rows);
    if (!out->gammas || !out->rows) {
        tess_steps_clear(out);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld steps", (long long)count);
    }
    if (s->kind == TESS_SAMPLER_DDPM)
        ddpm_rows(s, out);
    else
        placed_rows(s, out);
    start_row(s, out);
    return TESS_OK;
}

void tess_steps_clear(tess_sampler_steps *steps)
{
    tess_small_free(steps->gammas);
    tess_small_free(steps->rows);
    *steps = (tess_sampler_steps){.count = 0};
}
