/* Noise of simulated measurements. */
#include <math.h>

#include "base/checked.h"
#include "base/rng.h"
#include "job/reconstruct/problem/data.h"

enum { SLICES = 64 };

/* Adds noise to one piece of a measurement; the noise of a value depends only on its operator and position. */
typedef struct noise {
    const tess_problem *problem;
    tess_pool *pool;
    float level;
    uint64_t seed;
    int64_t first, count;
    float *values;
} noise;

static void add_noise_slice(void *arg, int64_t slice, int thread)
{
    (void)thread;
    const noise *n = arg;
    const tess_problem *p = n->problem;
    /* Each blur has its own random numbers; the views of a scan are one measurement. A rank has rows of each blur. */
    const bool blur = p->physics == TESS_PHYSICS_BLUR;
    const int64_t each = blur ? tess_problem_own(p) * tess_problem_row(p) : INT64_MAX,
                  before = blur ? tess_problem_first(p) * tess_problem_row(p)
                                : tess_problem_first_view(p) * p->rows * p->columns;
    float draws[TESS_PIECE / SLICES];
    int64_t at = slice * (TESS_PIECE / SLICES);
    const int64_t end = tess_min_i64(n->count, at + TESS_PIECE / SLICES);
    while (at < end) {
        const int64_t item = (n->first + at) / each, inside = (n->first + at) % each;
        const int64_t some = tess_min_i64(end - at, each - inside);
        tess_rng_normal((tess_rng_key){n->seed, (uint32_t)item, 0}, before + inside, some, draws);
        for (int64_t i = 0; i < some; i++) {
            float value = n->values[at + i] + n->level * draws[i];
            if (p->clamped)
                value = fminf(fmaxf(value, (float)p->low), (float)p->high);
            n->values[at + i] = value;
        }
        at += some;
    }
}

static void add_noise(void *user, int64_t first, int64_t count, float *values)
{
    noise *n = user;
    n->first = first;
    n->count = count;
    n->values = values;
    tess_pool_run(n->pool, SLICES, add_noise_slice, n);
}

tess_status tess_problem_add_noise(const tess_problem *p, tess_workspace *w, void *measurement, double level,
                                   uint64_t seed, tess_error *error)
{
    noise n = {.problem = p, .pool = w->engine->host, .level = (float)level, .seed = seed};
    return tess_workspace_pieces(w, measurement, tess_workspace_values(&w->op->measurement), true, add_noise,
                                 &n, error);
}
