/* diffusion_schedule.h: noise schedules of diffusion models, in double precision. A schedule is T values of beta; gamma_i =
 * (1 - beta_0) ... (1 - beta_i) is the part of the signal's energy that is left after step i. gamma_{T-1}, its end, must be
 * close to 0, because sampling starts from pure noise: a schedule that was made for another T may leave a quarter of the
 * signal's amplitude there, and the result is then too smooth. */
#ifndef TESS_SOLVE_DIFFUSION_SCHEDULE_H
#define TESS_SOLVE_DIFFUSION_SCHEDULE_H

#include "base/status.h"

typedef enum tess_schedule_kind {
    TESS_SCHEDULE_LINEAR,
    TESS_SCHEDULE_QUAD,     /* the square roots of beta are linear */
    TESS_SCHEDULE_CONST,    /* beta is `end` */
    TESS_SCHEDULE_WARMUP10, /* linear over the first tenth, then `end` */
    TESS_SCHEDULE_WARMUP50,
    TESS_SCHEDULE_JSD,    /* 1/T, 1/(T-1), ..., 1 */
    TESS_SCHEDULE_COSINE, /* Nichol and Dhariwal 2021, s = 0.008 */
    TESS_SCHEDULE_KINDS
} tess_schedule_kind;

typedef struct tess_schedule_settings {
    tess_schedule_kind kind;
    int64_t steps;     /* T */
    double start, end; /* beta; not used by JSD and COSINE */
} tess_schedule_settings;

typedef struct tess_diffusion_schedule {
    tess_schedule_settings settings;
    double *betas, *gammas; /* of `steps` values; owned: tess_schedule_clear */
} tess_diffusion_schedule;

enum { TESS_SCHEDULE_MOST_STEPS = 100000, TESS_SCHEDULE_TEXT = 96 };
/* Square root of a terminal gamma above which signal is left. */
#define TESS_SCHEDULE_SIGNAL 0.05

const char *tess_schedule_name(tess_schedule_kind kind);
/* Betas are at most 0.999 in every kind, so that no gamma is 0. */
tess_status tess_schedule_make(const tess_schedule_settings *settings, tess_diffusion_schedule *out,
                               tess_error *error) TESS_MUST_CHECK;
void tess_schedule_clear(tess_diffusion_schedule *schedule);
/* The last gamma. */
double tess_schedule_terminal(const tess_diffusion_schedule *schedule);

/* A schedule of so many steps that leaves no signal: linear from 1e-4 to 0.09, or to more for few steps. */
tess_schedule_settings tess_schedule_default(int64_t steps);
/* True if the schedule leaves signal. Then `text` says how much, and names a schedule that does not. */
bool tess_schedule_warns(const tess_diffusion_schedule *schedule, char *text, size_t size);

/* "linear:0.0001:0.09", "cosine": kind, and start and end where the kind has them. Parsing a kind without numbers
 * uses those of tess_schedule_default; `steps` must be set. */
void tess_schedule_text(const tess_schedule_settings *settings, char text[TESS_SCHEDULE_TEXT]);
tess_status tess_schedule_parse(const char *text, tess_schedule_settings *settings,
                                tess_error *error) TESS_MUST_CHECK;

#endif
