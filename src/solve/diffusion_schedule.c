#include "solve/diffusion_schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static const double LEAST_BETA = 1e-12, MOST_BETA = 0.999, COSINE_SHIFT = 8e-3,
                    HALF_PI = 1.57079632679489661923;

static const char *const names[TESS_SCHEDULE_KINDS] = {
    [TESS_SCHEDULE_LINEAR] = "linear",     [TESS_SCHEDULE_QUAD] = "quad",
    [TESS_SCHEDULE_CONST] = "const",       [TESS_SCHEDULE_WARMUP10] = "warmup10",
    [TESS_SCHEDULE_WARMUP50] = "warmup50", [TESS_SCHEDULE_JSD] = "jsd",
    [TESS_SCHEDULE_COSINE] = "cosine",
};

const char *tess_schedule_name(tess_schedule_kind kind)
{
    return names[kind];
}

/* Value i of `count` from `first` to `last`, as NumPy's linspace has it. */
static double between(double first, double last, int64_t i, int64_t count)
{
    if (count < 2 || i == 0)
        return first;
    return i == count - 1 ? last : (double)i * ((last - first) / (double)(count - 1)) + first;
}

/* Linear over `count` steps, then constant. */
static double warm(const tess_schedule_settings *s, int64_t i, int64_t count)
{
    return i < count ? between(s->start, s->end, i, count) : s->end;
}

static double cosine_signal(const tess_schedule_settings *s, int64_t k)
{
    const double u = (double)k / (double)s->steps + COSINE_SHIFT, c = cos(u / (1 + COSINE_SHIFT) * HALF_PI);
    return c * c;
}

static double beta_of(const tess_schedule_settings *s, int64_t i)
{
    switch (s->kind) {
    case TESS_SCHEDULE_LINEAR:
        return between(s->start, s->end, i, s->steps);
    case TESS_SCHEDULE_QUAD: {
        const double root = between(sqrt(s->start), sqrt(s->end), i, s->steps);
        return root * root;
    }
    case TESS_SCHEDULE_CONST:
        return s->end;
    case TESS_SCHEDULE_WARMUP10:
        return warm(s, i, (int64_t)((double)s->steps * 0.1));
    case TESS_SCHEDULE_WARMUP50:
        return warm(s, i, (int64_t)((double)s->steps * 0.5));
    case TESS_SCHEDULE_JSD:
        return 1 / between((double)s->steps, 1, i, s->steps);
    case TESS_SCHEDULE_COSINE:
        return 1 - cosine_signal(s, i + 1) / cosine_signal(s, i);
    case TESS_SCHEDULE_KINDS:
        break;
    }
    return NAN;
}

static bool has_ends(tess_schedule_kind kind)
{
    return kind != TESS_SCHEDULE_JSD && kind != TESS_SCHEDULE_COSINE;
}

static double terminal_of(const tess_schedule_settings *s)
{
    double gamma = 1;
    for (int64_t i = 0; i < s->steps; i++)
        gamma *= 1 - fmin(beta_of(s, i), MOST_BETA);
    return gamma;
}

tess_status tess_schedule_make(const tess_schedule_settings *s, tess_diffusion_schedule *out,
                               tess_error *error)
{
    *out = (tess_diffusion_schedule){.settings = *s};
    if ((unsigned)s->kind >= TESS_SCHEDULE_KINDS)
        return tess_fail(error, TESS_BAD_OPTION, "schedule %d does not exist", (int)s->kind);
    if (s->steps < 1 || s->steps > TESS_SCHEDULE_MOST_STEPS)
        return tess_fail(error, TESS_BAD_OPTION, "a schedule has 1 to %d steps, not %lld",
                         TESS_SCHEDULE_MOST_STEPS, (long long)s->steps);
    if (has_ends(s->kind) && !(s->start >= LEAST_BETA && s->start < 1 && s->end >= LEAST_BETA && s->end < 1))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "a schedule from %g to %g: both must be at least 1e-12 and below 1, e.g. 0.0001 and 0.09",
            s->start, s->end);
    out->betas = tess_small_alloc((size_t)s->steps, sizeof *out->betas);
    out->gammas = tess_small_alloc((size_t)s->steps, sizeof *out->gammas);
    if (!out->betas || !out->gammas) {
        tess_schedule_clear(out);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a schedule of %lld steps",
                         (long long)s->steps);
    }
    double gamma = 1;
    for (int64_t i = 0; i < s->steps; i++) {
        out->betas[i] = fmin(beta_of(s, i), MOST_BETA);
        out->gammas[i] = gamma *= 1 - out->betas[i];
    }
    if (!(gamma > 1e-200)) { /* its square root and reciprocal are computed */
        tess_schedule_clear(out);
        return tess_fail(error, TESS_BAD_OPTION,
                         "a schedule of %lld steps from %g to %g leaves less than 1e-200 of the signal; use "
                         "smaller values",
                         (long long)s->steps, s->start, s->end);
    }
    return TESS_OK;
}

void tess_schedule_clear(tess_diffusion_schedule *schedule)
{
    tess_small_free(schedule->betas);
    tess_small_free(schedule->gammas);
    schedule->betas = schedule->gammas = NULL;
}

double tess_schedule_terminal(const tess_diffusion_schedule *schedule)
{
    return schedule->gammas[schedule->settings.steps - 1];
}

tess_schedule_settings tess_schedule_default(int64_t steps)
{
    static const double ends[] = {0.09, 0.12, 0.2, 0.3, 0.5, 0.7, 0.9};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const tess_schedule_settings s = {TESS_SCHEDULE_LINEAR, steps, 1e-4, ends[i]};
        if (sqrt(terminal_of(&s)) <= TESS_SCHEDULE_SIGNAL)
            return s;
    }
    return (tess_schedule_settings){TESS_SCHEDULE_COSINE, steps, 1e-4, 0.09}; /* its last beta is 0.999 */
}

bool tess_schedule_warns(const tess_diffusion_schedule *schedule, char *text, size_t size)
{
    const double left = sqrt(tess_schedule_terminal(schedule));
    if (left <= TESS_SCHEDULE_SIGNAL)
        return false;
    char own[TESS_SCHEDULE_TEXT], better[TESS_SCHEDULE_TEXT];
    const tess_schedule_settings other = tess_schedule_default(schedule->settings.steps);
    tess_schedule_text(&schedule->settings, own);
    tess_schedule_text(&other, better);
    snprintf(text, size,
             "`schedule` %s leaves %.1f %% of the signal after %lld steps, but sampling starts from pure "
             "noise; use `schedule` %s",
             own, 100 * left, (long long)schedule->settings.steps, better);
    return true;
}

void tess_schedule_text(const tess_schedule_settings *s, char text[TESS_SCHEDULE_TEXT])
{
    if (has_ends(s->kind))
        snprintf(text, TESS_SCHEDULE_TEXT, "%s:%.12g:%.12g", names[s->kind], s->start, s->end);
    else
        snprintf(text, TESS_SCHEDULE_TEXT, "%s", names[s->kind]);
}

tess_status tess_schedule_parse(const char *text, tess_schedule_settings *s, tess_error *error)
{
    const size_t length = strcspn(text, ":");
    const tess_schedule_settings usual = tess_schedule_default(s->steps);
    tess_schedule_settings read = {TESS_SCHEDULE_KINDS, s->steps, usual.start, usual.end};
    for (int kind = 0; kind < TESS_SCHEDULE_KINDS; kind++)
        if (strlen(names[kind]) == length && strncmp(text, names[kind], length) == 0)
            read.kind = (tess_schedule_kind)kind;
    if (read.kind == TESS_SCHEDULE_KINDS)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`schedule` %s: use linear, quad, const, warmup10, warmup50, jsd or cosine", text);
    int used = 0;
    if (text[length] &&
        (!has_ends(read.kind) || sscanf(text + length, ":%lf:%lf%n", &read.start, &read.end, &used) != 2 ||
         text[length + (size_t)used] != '\0'))
        return tess_fail(error, TESS_BAD_OPTION,
                         "`schedule` %s: write it as linear:0.0001:0.09, or cosine without numbers", text);
    *s = read;
    return TESS_OK;
}
