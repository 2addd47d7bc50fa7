/* Schedules against their known ends, and the rows of factors of each sampler against its published formula. */
#include "base/mem.h"
#include "check.h"
#include "solve/diffusion_steps.h"

static tess_error error;

static tess_diffusion_schedule make(tess_schedule_kind kind, int64_t steps, double start, double end)
{
    tess_diffusion_schedule s;
    const tess_schedule_settings settings = {kind, steps, start, end};
    CHECK_MSG(tess_schedule_make(&settings, &s, &error) == TESS_OK, "%s", error.text);
    return s;
}

static void check_near(const char *what, double got, double want, double relative)
{
    CHECK_MSG(fabs(got - want) <= relative * fabs(want), "%s: %.17g, not %.17g", what, got, want);
}

/* The configurations in use, and the signal that each leaves. */
static void test_ends(void)
{
    static const struct {
        int64_t steps;
        double start, end, gamma, within;
        bool warns;
    } rows[] = {{2000, 1e-6, 0.01, 4.386e-5, 2e-4, false}, {1000, 1e-4, 0.09, 6.6e-21, 1e-2, false},
                {512, 1e-4, 0.09, 4.65e-11, 2e-3, false},  {1000, 1e-6, 0.01, 6.62e-3, 1e-3, true},
                {512, 1e-6, 0.01, 0.0766, 1e-3, true},     {500, 1e-6, 0.01, 0.0814, 1e-3, true},
                {512, 1e-4, 0.02, 5.6e-3, 1e-2, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tess_diffusion_schedule s = make(TESS_SCHEDULE_LINEAR, rows[i].steps, rows[i].start, rows[i].end);
        char text[256] = "", better[TESS_SCHEDULE_TEXT];
        check_near("terminal gamma", tess_schedule_terminal(&s), rows[i].gamma, rows[i].within);
        CHECK(tess_schedule_warns(&s, text, sizeof text) == rows[i].warns);
        if (rows[i].warns) {
            const tess_schedule_settings other = tess_schedule_default(rows[i].steps);
            tess_schedule_text(&other, better);
            CHECK_MSG(strstr(text, better) && strstr(text, "linear:0.0001:0.09"), "%s", text);
        }
        tess_schedule_clear(&s);
    }
}

/* Whatever the number of steps, the schedule that is recommended leaves no signal. */
static void test_defaults(void)
{
    for (int64_t steps = 1; steps < 3000; steps = steps < 300 ? steps + 1 : steps + 171) {
        const tess_schedule_settings settings = tess_schedule_default(steps);
        tess_diffusion_schedule s;
        char text[256];
        CHECK(tess_schedule_make(&settings, &s, &error) == TESS_OK);
        CHECK_MSG(!tess_schedule_warns(&s, text, sizeof text), "%lld steps: %s", (long long)steps, text);
        tess_schedule_clear(&s);
    }
}

static double beta_by_hand(tess_schedule_kind kind, int64_t steps, double start, double end, int64_t i)
{
    const double t = steps > 1 ? (double)i / (double)(steps - 1) : 0, s = 0.008, pi = acos(-1);
    const int64_t tenth = (int64_t)(0.1 * (double)steps), half = (int64_t)(0.5 * (double)steps),
                  warm = kind == TESS_SCHEDULE_WARMUP10 ? tenth : half;
    switch (kind) {
    case TESS_SCHEDULE_LINEAR:
        return start + t * (end - start);
    case TESS_SCHEDULE_QUAD:
        return pow(sqrt(start) + t * (sqrt(end) - sqrt(start)), 2);
    case TESS_SCHEDULE_CONST:
        return end;
    case TESS_SCHEDULE_WARMUP10:
    case TESS_SCHEDULE_WARMUP50:
        return i >= warm ? end : start + (warm > 1 ? (double)i / (double)(warm - 1) : 0) * (end - start);
    case TESS_SCHEDULE_JSD:
        return fmin(0.999, 1.0 / (double)(steps - i));
    case TESS_SCHEDULE_COSINE:
        return fmin(0.999, 1 - pow(cos(((double)(i + 1) / (double)steps + s) / (1 + s) * pi / 2), 2) /
                                   pow(cos(((double)i / (double)steps + s) / (1 + s) * pi / 2), 2));
    case TESS_SCHEDULE_KINDS:
        break;
    }
    return NAN;
}

static void test_kinds(void)
{
    static const int64_t counts[] = {1, 2, 7, 100};
    for (int kind = 0; kind < TESS_SCHEDULE_KINDS; kind++)
        for (int c = 0; c < 4; c++) {
            tess_diffusion_schedule s = make((tess_schedule_kind)kind, counts[c], 1e-4, 0.09);
            double gamma = 1;
            for (int64_t i = 0; i < counts[c]; i++) {
                const double beta = beta_by_hand((tess_schedule_kind)kind, counts[c], 1e-4, 0.09, i);
                check_near(tess_schedule_name((tess_schedule_kind)kind), s.betas[i], beta, 1e-11);
                gamma *= 1 - beta;
                CHECK(s.gammas[i] > 0 && s.gammas[i] < 1 && (i == 0 || s.gammas[i] < s.gammas[i - 1]));
            }
            check_near("gamma", tess_schedule_terminal(&s), gamma, 1e-8);
            tess_schedule_clear(&s);
        }
}

static void test_text(void)
{
    static const char *const bad[] = {"",         "lin",       "linear:",        "linear:0.1",
                                      "cosine:1", "linear1:2", "linear:1e-4:.1x"};
    tess_schedule_settings s = {.steps = 512};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(tess_schedule_parse(bad[i], &s, &error) == TESS_BAD_OPTION, "%s", bad[i]);
    char text[TESS_SCHEDULE_TEXT];
    CHECK(tess_schedule_parse("warmup50:1e-6:0.01", &s, &error) == TESS_OK &&
          s.kind == TESS_SCHEDULE_WARMUP50 && s.start == 1e-6 && s.end == 0.01 && s.steps == 512);
    tess_schedule_text(&s, text);
    CHECK(strcmp(text, "warmup50:1e-06:0.01") == 0);
    CHECK(tess_schedule_parse("linear", &s, &error) == TESS_OK && s.end == 0.09);
    CHECK(tess_schedule_parse("cosine", &s, &error) == TESS_OK && s.kind == TESS_SCHEDULE_COSINE);
    static const tess_schedule_settings wrong[] = {
        {TESS_SCHEDULE_LINEAR, 0, 0.1, 0.1},   {TESS_SCHEDULE_LINEAR, 10, 0, 0.1},
        {TESS_SCHEDULE_QUAD, 10, 0.1, 1},      {TESS_SCHEDULE_CONST, 10, 0.1, NAN},
        {TESS_SCHEDULE_CONST, 5000, 0.9, 0.9}, {TESS_SCHEDULE_KINDS, 10, 0.1, 0.1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tess_diffusion_schedule made;
        CHECK(tess_schedule_make(&wrong[i], &made, &error) == TESS_BAD_OPTION && !made.gammas);
    }
}

/* One pixel through a row of factors. */
static double through(const double *k, double y, double e, double previous, double z, double *x0)
{
    *x0 =
        fmin(fmax(k[TESS_DIFFUSE_Y] * y + k[TESS_DIFFUSE_E] * e, k[TESS_DIFFUSE_LOW]), k[TESS_DIFFUSE_HIGH]);
    return k[TESS_DIFFUSE_CLEAN] * *x0 + k[TESS_DIFFUSE_KEEP] * y + k[TESS_DIFFUSE_PREVIOUS] * previous +
           k[TESS_DIFFUSE_NOISE] * z;
}

/* A stand-in for the network and for noise. */
static double noise_of(double y, double gamma)
{
    return 0.8 * sqrt(1 - gamma) * y - 0.2 * sin(3 * y);
}

static double z_of(int64_t k)
{
    return sin(12.9 * (double)k) * 1.5;
}

static double clean_of(double y, double gamma)
{
    return fmin(fmax(y / sqrt(gamma) - sqrt(1 / gamma - 1) * noise_of(y, gamma), -1), 1);
}

/* Each by its published formula. */
static double ddpm_by_hand(const tess_diffusion_schedule *s, int64_t k, double y)
{
    const int64_t i = s->settings.steps - 1 - k;
    const double gamma = s->gammas[i], before = i ? s->gammas[i - 1] : 1, beta = s->betas[i],
                 mean = beta * sqrt(before) / (1 - gamma) * clean_of(y, gamma) +
                        (1 - before) * sqrt(1 - beta) / (1 - gamma) * y,
                 variance = beta * (1 - before) / (1 - gamma);
    return mean + (i ? exp(0.5 * log(fmax(variance, 1e-20))) * z_of(k) : 0);
}

static double ddim_by_hand(double gamma, double next, double eta, int64_t k, double y)
{
    const double x0 = clean_of(y, gamma), e = (y - sqrt(gamma) * x0) / sqrt(1 - gamma),
                 sigma = eta * sqrt((1 - next) / (1 - gamma) * (1 - gamma / next));
    return sqrt(next) * x0 + sqrt(1 - next - sigma * sigma) * e + sigma * z_of(k);
}

static double dpmpp_by_hand(const double *gammas, int64_t k, int64_t n, double y, double previous)
{
    const double gamma = gammas[k], x0 = clean_of(y, gamma);
    if (k == n - 1)
        return x0;
    const double next = gammas[k + 1], lambda = log(sqrt(gamma) / sqrt(1 - gamma)),
                 h = log(sqrt(next) / sqrt(1 - next)) - lambda;
    double d = x0;
    if (k > 0) {
        const double r = (lambda - log(sqrt(gammas[k - 1]) / sqrt(1 - gammas[k - 1]))) / h;
        d = (1 + 1 / (2 * r)) * x0 - 1 / (2 * r) * previous;
    }
    return sqrt(1 - next) / sqrt(1 - gamma) * y - sqrt(next) * (exp(-h) - 1) * d;
}

static void check_rows(const tess_steps_settings *set, const char *name)
{
    tess_sampler_steps s;
    CHECK_MSG(tess_steps_make(set, &s, &error) == TESS_OK, "%s: %s", name, error.text);
    double y = 0.7, want = 0.7, previous = 0, want_previous = 0;
    for (int64_t k = 0; k < s.count; k++) {
        const double gamma = s.gammas[k], *row = s.rows + k * TESS_DIFFUSE_CONTROLS;
        double x0;
        CHECK(k == 0 || s.gammas[k] > s.gammas[k - 1]);
        CHECK(row[TESS_DIFFUSE_STEP] == (double)(k + 1) && row[TESS_DIFFUSE_OPEN] == 0);
        y = through(row, y, noise_of(y, gamma), previous, z_of(k), &x0);
        previous = x0;
        const double clean = clean_of(want, gamma);
        if (set->kind == TESS_SAMPLER_DDPM)
            want = ddpm_by_hand(set->schedule, k, want);
        else if (set->kind == TESS_SAMPLER_DPMPP)
            want = dpmpp_by_hand(s.gammas, k, s.count, want, want_previous);
        else
            want = k == s.count - 1 ? clean : ddim_by_hand(gamma, s.gammas[k + 1], set->eta, k, want);
        want_previous = clean;
        CHECK_MSG(fabs(y - want) < 1e-9, "%s, step %lld: %.12g, not %.12g", name, (long long)k, y, want);
    }
    CHECK_MSG(fabs(y) <= 1, "%s ends at %g", name, y);
    tess_steps_clear(&s);
}

static void test_rows(void)
{
    for (int kind = 0; kind < TESS_SCHEDULE_KINDS; kind++) {
        tess_diffusion_schedule s = make((tess_schedule_kind)kind, 200, 1e-4, 0.09);
        tess_steps_settings set = {.kind = TESS_SAMPLER_DDPM, .schedule = &s};
        check_rows(&set, "ddpm");
        for (int spacing = 0; spacing < 2; spacing++)
            for (int64_t n = 1; n <= 33; n += 8) {
                set = (tess_steps_settings){.kind = TESS_SAMPLER_DPMPP,
                                            .schedule = &s,
                                            .count = n,
                                            .spacing = (tess_step_spacing)spacing};
                check_rows(&set, "dpmpp");
                set.kind = TESS_SAMPLER_DDIM;
                check_rows(&set, "ddim");
                set.eta = 0.7;
                check_rows(&set, "ddim with noise");
            }
        tess_schedule_clear(&s);
    }
}

/* With eta 1 and every step of the schedule, DDIM is DDPM; without noise and memory, DPM++ is DDIM. */
static void test_limits(void)
{
    tess_diffusion_schedule s = make(TESS_SCHEDULE_LINEAR, 60, 1e-4, 0.2);
    const tess_steps_settings ddpm = {.kind = TESS_SAMPLER_DDPM, .schedule = &s},
                              ddim = {.kind = TESS_SAMPLER_DDIM,
                                      .schedule = &s,
                                      .count = 60,
                                      .eta = 1,
                                      .spacing = TESS_SPACED_TIME};
    tess_sampler_steps a, b;
    CHECK(tess_steps_make(&ddpm, &a, &error) == TESS_OK && tess_steps_make(&ddim, &b, &error) == TESS_OK);
    CHECK(a.count == 60 && b.count == 60);
    for (int64_t i = 0; i < 60 * TESS_DIFFUSE_CONTROLS; i++)
        CHECK_MSG(fabs(a.rows[i] - b.rows[i]) <= 1e-9 * fmax(1, fabs(a.rows[i])), "%lld: %g, not %g",
                  (long long)i, b.rows[i], a.rows[i]);
    tess_steps_clear(&a), tess_steps_clear(&b);
    const tess_steps_settings first = {.kind = TESS_SAMPLER_DPMPP, .schedule = &s, .count = 2},
                              second = {.kind = TESS_SAMPLER_DDIM, .schedule = &s, .count = 2};
    CHECK(tess_steps_make(&first, &a, &error) == TESS_OK && tess_steps_make(&second, &b, &error) == TESS_OK);
    for (int64_t i = 0; i < 2 * TESS_DIFFUSE_CONTROLS; i++)
        CHECK(fabs(a.rows[i] - b.rows[i]) <= 1e-12);
    tess_steps_clear(&a), tess_steps_clear(&b);
    tess_schedule_clear(&s);
}

static void test_starts(void)
{
    tess_diffusion_schedule s = make(TESS_SCHEDULE_LINEAR, 1000, 1e-4, 0.09);
    tess_sampler_steps steps;
    tess_steps_settings set = {.kind = TESS_SAMPLER_DPMPP, .schedule = &s, .count = 10};
    CHECK(tess_steps_make(&set, &steps, &error) == TESS_OK);
    CHECK(steps.gammas[0] == TESS_GAMMA_TRAINED && fabs(steps.gammas[9] - s.gammas[0]) < 1e-12);
    CHECK(steps.start[TESS_DIFFUSE_NOISE] == 1 && steps.start[TESS_DIFFUSE_CLEAN] == 0);
    CHECK(steps.start[TESS_DIFFUSE_Y] == 0 && steps.start[TESS_DIFFUSE_OPEN] == 0);
    tess_steps_clear(&steps);
    set.start_gamma = 0.25;
    set.noise_everywhere = true;
    CHECK(tess_steps_make(&set, &steps, &error) == TESS_OK && steps.gammas[0] == 0.25);
    CHECK(steps.start[TESS_DIFFUSE_Y] == 1 && fabs(steps.start[TESS_DIFFUSE_CLEAN] - 0.5) < 1e-15 &&
          fabs(steps.start[TESS_DIFFUSE_NOISE] - sqrt(0.75)) < 1e-15);
    CHECK(steps.start[TESS_DIFFUSE_OPEN] == 1);
    tess_steps_clear(&steps);
    set = (tess_steps_settings){.kind = TESS_SAMPLER_DDPM, .schedule = &s, .start_gamma = 0.25};
    CHECK(tess_steps_make(&set, &steps, &error) == TESS_OK);
    CHECK(steps.count < 1000 && s.gammas[steps.count - 1] >= 0.25 && s.gammas[steps.count] < 0.25 &&
          steps.gammas[0] == s.gammas[steps.count - 1]);
    CHECK(fabs(steps.start[TESS_DIFFUSE_CLEAN] - sqrt(steps.gammas[0])) < 1e-15);
    tess_steps_clear(&steps);
    const tess_steps_settings wrong[] = {
        {.kind = TESS_SAMPLER_DDPM, .schedule = &s, .count = 50},
        {.kind = TESS_SAMPLER_DDIM, .schedule = &s, .count = 0},
        {.kind = TESS_SAMPLER_DDIM, .schedule = &s, .count = 5, .eta = 1.5},
        {.kind = TESS_SAMPLER_DDIM, .schedule = &s, .count = 5, .eta = NAN},
        {.kind = TESS_SAMPLER_DPMPP, .schedule = &s, .count = 5, .start_gamma = 1},
        {.kind = TESS_SAMPLER_DPMPP, .schedule = &s, .count = 5, .start_gamma = -0.1},
        {.kind = TESS_SAMPLER_DPMPP, .schedule = &s, .count = 5, .least_gamma = 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(tess_steps_make(&wrong[i], &steps, &error) == TESS_BAD_OPTION && !steps.rows);
    tess_schedule_clear(&s);
}

int main(void)
{
    test_ends();
    test_defaults();
    test_kinds();
    test_text();
    test_rows();
    test_limits();
    test_starts();
    return check_end();
}
