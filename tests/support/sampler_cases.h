/* sampler_cases.h: windows and settings of diffusion samplers, and their trajectories in fp64 by the published formulas. */
#ifndef TESS_TESTS_SAMPLER_CASES_H
#define TESS_TESTS_SAMPLER_CASES_H

#include "counter.h"
#include "small_diffusion.h"
#include "solve/diffusion_sampler.h"

enum { CASE_H = 16, CASE_W = 24, CASE_PIXELS = CASE_H * CASE_W, CASE_CHANNELS = 3, CASE_MAP = 1000 };
enum { CASE_SEED = 77 };

/* Windows of a map: values, mask and a guess depend on the pixel of the map. */
typedef struct windows {
    int64_t n;
    float *cond, *known, *guess, *result;
    int64_t *items;
} windows;

static inline float map_value(int64_t row, int64_t column, uint32_t what)
{
    float value;
    tess_rng_uniform((tess_rng_key){9, what, 0}, row * CASE_MAP + column, 1, &value);
    return 0.6f * sinf(0.2f * (float)row) * cosf(0.15f * (float)column) + 0.3f * (value - 0.5f);
}

static inline float map_mask(int64_t row, int64_t column)
{
    const int64_t y = row % 16, x = column % 20;
    if (y < 3 || x < 4)
        return 0;
    return y == 3 || x == 4 ? 0.5f : 1; /* a gradual border */
}

static inline windows make_windows(int64_t n, bool guess)
{
    windows w = {n,
                 small_room((size_t)n * CASE_PIXELS * (CASE_CHANNELS - 1) * sizeof(float)),
                 small_room((size_t)n * CASE_PIXELS * 2 * sizeof(float)),
                 NULL,
                 small_room((size_t)n * CASE_PIXELS * sizeof(float)),
                 small_room((size_t)n * TESS_DIFFUSE_ITEMS * sizeof(int64_t))};
    if (guess)
        w.guess = small_room((size_t)n * CASE_PIXELS * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        const int64_t item[TESS_DIFFUSE_ITEMS] = {i % 2, 5 + 7 * i, 3 + 9 * i, CASE_MAP, i % 2};
        memcpy(w.items + i * TESS_DIFFUSE_ITEMS, item, sizeof item);
        for (int64_t p = 0; p < CASE_PIXELS; p++) {
            const int64_t row = item[1] + p / CASE_W, column = item[2] + p % CASE_W, at = i * CASE_PIXELS + p;
            const float mask = map_mask(row, column);
            w.known[2 * at] = mask >= 1 ? NAN : map_value(row, column, 0); /* under a void nothing is read */
            w.known[2 * at + 1] = mask;
            w.cond[2 * at] = mask > 0 ? -1 : map_value(row, column, 0);
            w.cond[2 * at + 1] = map_value(row, column, 1);
            if (guess)
                w.guess[at] = map_value(row, column, 2);
        }
    }
    return w;
}

static inline void clear_windows(windows *w)
{
    free(w->cond), free(w->known), free(w->guess), free(w->result), free(w->items);
}

static inline tess_sampler_batch batch_of(const windows *w, int64_t first, int64_t n)
{
    return (tess_sampler_batch){
        n, w->cond + first * CASE_PIXELS * (CASE_CHANNELS - 1), w->known + first * CASE_PIXELS * 2,
        w->guess ? w->guess + first * CASE_PIXELS : NULL, w->items + first * TESS_DIFFUSE_ITEMS};
}

typedef struct sampler_case {
    const char *name;
    tess_sampler_kind kind;
    int64_t schedule_steps, count;
    double eta, start_gamma;
    bool noise_everywhere;
    tess_step_spacing spacing;
} sampler_case;

static const sampler_case sampler_cases[] = {
    {"ddpm 50", TESS_SAMPLER_DDPM, 50, 0, 0, 0, false, TESS_SPACED_LAMBDA},
    {"ddpm 50, noise everywhere", TESS_SAMPLER_DDPM, 50, 50, 0, 0, true, TESS_SPACED_LAMBDA},
    {"ddpm from a guess", TESS_SAMPLER_DDPM, 50, 0, 0, 0.3, false, TESS_SPACED_LAMBDA},
    {"ddim 10", TESS_SAMPLER_DDIM, 512, 10, 0, 0, false, TESS_SPACED_LAMBDA},
    {"ddim 12 with noise", TESS_SAMPLER_DDIM, 512, 12, 0.7, 0, false, TESS_SPACED_TIME},
    {"dpmpp 10", TESS_SAMPLER_DPMPP, 512, 10, 0, 0, false, TESS_SPACED_LAMBDA},
    {"dpmpp 10, in time", TESS_SAMPLER_DPMPP, 512, 10, 0, 0, false, TESS_SPACED_TIME},
    {"dpmpp 8 from a guess", TESS_SAMPLER_DPMPP, 512, 8, 0, 0.2, false, TESS_SPACED_LAMBDA},
    {"dpmpp 1", TESS_SAMPLER_DPMPP, 512, 1, 0, 0, false, TESS_SPACED_LAMBDA},
};
enum { SAMPLER_CASES = sizeof sampler_cases / sizeof sampler_cases[0] };

static inline tess_diffusion_schedule schedule_of(const sampler_case *c)
{
    const tess_schedule_settings settings = tess_schedule_default(c->schedule_steps);
    tess_diffusion_schedule schedule;
    CHECK(tess_schedule_make(&settings, &schedule, NULL) == TESS_OK);
    return schedule;
}

static inline tess_sampler_settings settings_of(const small_diffusion *net, const sampler_case *c,
                                                const tess_diffusion_schedule *schedule, int64_t batch)
{
    return (tess_sampler_settings){.device = net->device,
                                   .net = &net->net,
                                   .embedding = net->embedding,
                                   .step = net->step,
                                   .steps = {.kind = c->kind,
                                             .schedule = schedule,
                                             .count = c->count,
                                             .eta = c->eta,
                                             .spacing = c->spacing,
                                             .start_gamma = c->start_gamma,
                                             .noise_everywhere = c->noise_everywhere},
                                   .seed = CASE_SEED,
                                   .height = CASE_H,
                                   .width = CASE_W,
                                   .batch = batch};
}

static inline tess_sampler *open_sampler(const small_diffusion *net, const sampler_case *c, int64_t batch)
{
    tess_error error = {{0}};
    tess_diffusion_schedule schedule = schedule_of(c);
    const tess_sampler_settings settings = settings_of(net, c, &schedule, batch);
    tess_sampler *sampler = NULL;
    CHECK_MSG(tess_sampler_create(&settings, &sampler, &error) == TESS_OK, "%s: %s", c->name, error.text);
    tess_schedule_clear(&schedule);
    CHECK_MSG(tess_sampler_prepare(sampler, net->embedding_weights.data, net->step_weights.data, &error) ==
                  TESS_OK,
              "%s: %s", c->name, error.text);
    return sampler;
}

/* One step of one pixel, by the published formula; gamma' = 1 after the last. */
static inline double next_y(const sampler_case *c, const double gammas[3], double y, double x0,
                            double previous, double z)
{
    const double before = gammas[0], gamma = gammas[1], next = gammas[2], a = sqrt(gamma),
                 s = sqrt(1 - gamma);
    if (next >= 1)
        return x0;
    if (c->kind == TESS_SAMPLER_DDPM) {
        const double beta = 1 - gamma / next;
        return beta * sqrt(next) / (1 - gamma) * x0 + (1 - next) * sqrt(1 - beta) / (1 - gamma) * y +
               sqrt(fmax(1e-20, beta * (1 - next) / (1 - gamma))) * z;
    }
    if (c->kind == TESS_SAMPLER_DDIM) {
        const double sigma = c->eta * sqrt((1 - next) / (1 - gamma) * (1 - gamma / next));
        return sqrt(next) * x0 + sqrt(1 - next - sigma * sigma) * (y - a * x0) / s + sigma * z;
    }
    const double lambda = log(a / s), h = log(sqrt(next) / sqrt(1 - next)) - lambda;
    double d = x0;
    if (before > 0) {
        const double r = (lambda - log(sqrt(before) / sqrt(1 - before))) / h;
        d = (1 + 1 / (2 * r)) * x0 - 1 / (2 * r) * previous;
    }
    return sqrt(1 - next) / s * y - sqrt(next) * (exp(-h) - 1) * d;
}

static inline double composed(const windows *w, int64_t at, double y)
{
    const double m = w->known[2 * at + 1];
    return m >= 1 ? y : (double)w->known[2 * at] * (1 - m) + m * y;
}

static inline double noise_at(const int64_t *item, int64_t step, int64_t p)
{
    float z;
    tess_rng_normal((tess_rng_key){CASE_SEED, (uint32_t)item[0], (uint32_t)step},
                    (item[1] + p / CASE_W) * item[3] + item[2] + p % CASE_W, 1, &z);
    return item[4] ? -z : z;
}

/* The trajectory of one window in fp64. */
static inline void plain_sample(tess_weights *weights, const sampler_case *c, const tess_sampler_steps *steps,
                                const windows *w, int64_t i, double *y)
{
    const int64_t *item = w->items + i * TESS_DIFFUSE_ITEMS, first = i * CASE_PIXELS;
    double *image = small_room(CASE_PIXELS * CASE_CHANNELS * sizeof *image), previous[CASE_PIXELS] = {0};
    const double g = steps->gammas[0];
    for (int64_t p = 0; p < CASE_PIXELS; p++) {
        const double z = noise_at(item, 0, p);
        y[p] = w->guess ? sqrt(g) * (double)w->guess[first + p] + sqrt(1 - g) * z : z;
        if (!c->noise_everywhere)
            y[p] = composed(w, first + p, y[p]);
    }
    for (int64_t k = 0; k < steps->count; k++) {
        const double gamma = steps->gammas[k], gammas[3] = {k ? steps->gammas[k - 1] : 0, gamma,
                                                            k + 1 < steps->count ? steps->gammas[k + 1] : 1};
        for (int64_t p = 0; p < CASE_PIXELS; p++) {
            image[p * CASE_CHANNELS] = w->cond[2 * (first + p)];
            image[p * CASE_CHANNELS + 1] = w->cond[2 * (first + p) + 1];
            image[p * CASE_CHANNELS + 2] = y[p];
        }
        double *e = plain_noise(weights, image, CASE_H, CASE_W, CASE_CHANNELS, gamma);
        for (int64_t p = 0; p < CASE_PIXELS; p++) {
            const double x0 = fmin(fmax(y[p] / sqrt(gamma) - sqrt(1 / gamma - 1) * e[p], -1), 1);
            y[p] = composed(w, first + p, next_y(c, gammas, y[p], x0, previous[p], noise_at(item, k + 1, p)));
            previous[p] = x0;
        }
        free(e);
    }
    free(image);
}

#endif
