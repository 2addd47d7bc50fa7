/* test_pnp.c: one iteration of the loop, value by value, on a diagonal operator, for which every part can be computed
 * by hand: the data step, the denoiser's level, the relaxation, the clamp, the change. */
#include <math.h>

#include "physics/mask.h"
#include "solve/pnp.h"
#include "solver_ops.h"

enum { PIXELS = 40, VECTORS = TESS_PNP_MOST_VECTORS, ITERATIONS = 4 };

typedef struct scene {
    tess_operator *op;
    tess_data_term term;
    float factor[PIXELS], y[PIXELS], *residual;
    char *memory;
    void *vectors[VECTORS];
} scene;

static void open_scene(scene *s, tess_device *device)
{
    size_t bytes = 0, residual = 0;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < PIXELS; i++) {
        s->factor[i] = 0.2F + 0.02F * (float)i;
        s->y[i] = s->factor[i] * (float)(i % 7) / 6;
    }
    CHECK(tess_mask_create(device, 4, 10, 1, s->factor, &s->op, NULL) == TESS_OK);
    CHECK(tess_data_term_bytes(s->op, &bytes, &residual, NULL) == TESS_OK);
    const size_t vector = tess_vector_bytes(&s->op->image);
    s->memory = calloc(1, bytes + residual + VECTORS * vector);
    if (!s->memory)
        exit(1);
    for (int i = 0; i < VECTORS; i++)
        s->vectors[i] = s->memory + bytes + residual + (size_t)i * vector;
    CHECK(tess_data_term_open(&s->term, s->op, s->y, s->memory + bytes, s->memory, NULL) == TESS_OK);
}

static void close_scene(scene *s)
{
    tess_data_term_close(&s->term);
    tess_operator_destroy(s->op);
    free(s->memory);
}

/* d = 3 z - 0.8 sigma: it leaves the range on both sides. */
typedef struct watch {
    float z[ITERATIONS][PIXELS], x[ITERATIONS][PIXELS];
    double sigma[ITERATIONS], change[ITERATIONS];
    int denoised, seen;
} watch;

static float rough(float z, double sigma)
{
    return 3 * z - (float)(0.8 * sigma);
}

static tess_status denoise(void *user, const void *in, void *out, double sigma, tess_error *error)
{
    (void)error;
    watch *w = user;
    memcpy(w->z[w->denoised], in, sizeof w->z[0]);
    w->sigma[w->denoised++] = sigma;
    for (int i = 0; i < PIXELS; i++)
        ((float *)out)[i] = rough(((const float *)in)[i], sigma);
    return TESS_OK;
}

static tess_status look(void *user, const tess_pnp_facts *facts, tess_error *error)
{
    (void)error;
    watch *w = user;
    CHECK(facts->iteration == w->seen);
    memcpy(w->x[w->seen], facts->x, sizeof w->x[0]);
    w->change[w->seen++] = facts->change;
    return TESS_OK;
}

static double far_from(double a, double b, double worst)
{
    return fmax(worst, fabs(a - b));
}

/* Half-quadratic minima, or gradient steps; with a relaxation or without. */
static void test_iterations(tess_device *device, int64_t inner, double relax)
{
    static watch w;
    scene s;
    open_scene(&s, device);
    memset(&w, 0, sizeof w);
    const tess_pnp_settings settings = {.iterations = ITERATIONS,
                                        .tolerance = 1e-12,
                                        .step = 0.5,
                                        .norm_squared = s.op->norm_squared,
                                        .sigma = 0.4,
                                        .last_sigma = 0.05,
                                        .relax = relax,
                                        .inner = inner,
                                        .weight = 0.02,
                                        .low = 0.1,
                                        .high = 0.9,
                                        .denoise = denoise,
                                        .denoise_user = &w,
                                        .monitor = look,
                                        .monitor_user = &w};
    tess_pnp_result result;
    CHECK(tess_pnp(&s.term, &settings, s.vectors, &result, NULL) == TESS_OK);
    CHECK(w.denoised == ITERATIONS && w.seen == ITERATIONS && result.iterations == ITERATIONS);
    double worst_z = 0, worst_x = 0, worst_change = 0, before[PIXELS] = {0};
    int low = 0, high = 0;
    const double pull = 0.5 * relax, a = relax > 0 ? pull / (1 + pull) : 1;
    for (int k = 0; k < ITERATIONS; k++) {
        const double sigma = 0.4 * pow(0.05 / 0.4, k / (ITERATIONS - 1.0)), held = 0.02 / (sigma * sigma);
        double moved = 0, size = 0;
        CHECK_MSG(fabs(w.sigma[k] - sigma) < 1e-12, "iteration %d: level %g for %g", k, w.sigma[k], sigma);
        for (int i = 0; i < PIXELS; i++) {
            const double f = s.factor[i], z = w.z[k][i],
                         expected = inner ? (held * before[i] + f * s.y[i]) / (held + f * f)
                                          : before[i] - 0.5 * f * (f * before[i] - s.y[i]),
                         x = fmin(fmax((1 - a) * z + a * rough(w.z[k][i], sigma), 0.1), 0.9);
            worst_z = far_from(z, expected, worst_z);
            worst_x = far_from(w.x[k][i], x, worst_x);
            low += w.x[k][i] == 0.1F;
            high += w.x[k][i] == 0.9F;
            moved += (w.x[k][i] - before[i]) * (w.x[k][i] - before[i]);
            size += (double)w.x[k][i] * w.x[k][i];
            before[i] = w.x[k][i];
        }
        worst_change = far_from(w.change[k], sqrt(moved / size), worst_change);
    }
    CHECK_MSG(worst_z < 2e-4 && worst_x < 1e-6 && worst_change < 1e-5,
              "inner %d, relax %g: z off by %g, x by %g, change by %g", (int)inner, relax, worst_z, worst_x,
              worst_change);
    CHECK_MSG(low > 0 && high > 0, "the clamp was never needed: %d low, %d high", low, high);
    CHECK(memcmp(s.vectors[0], w.x[ITERATIONS - 1], sizeof w.x[0]) == 0);
    close_scene(&s);
}

/* A monitor that has seen enough. */
typedef struct patience {
    watch w;
    bool enough;
} patience;

static tess_status tire(void *user, const tess_pnp_facts *facts, tess_error *error)
{
    patience *p = user;
    p->enough = facts->iteration == 1;
    return look(&p->w, facts, error);
}

static void test_enough(tess_device *device)
{
    static patience p;
    scene s;
    open_scene(&s, device);
    const tess_pnp_settings settings = {.iterations = ITERATIONS,
                                        .step = 0.5,
                                        .norm_squared = s.op->norm_squared,
                                        .sigma = 0.1,
                                        .last_sigma = 0.1,
                                        .low = 0.1,
                                        .high = 0.9,
                                        .denoise = denoise,
                                        .denoise_user = &p.w,
                                        .monitor = tire,
                                        .monitor_user = &p,
                                        .enough = &p.enough};
    tess_pnp_result result;
    CHECK(tess_pnp(&s.term, &settings, s.vectors, &result, NULL) == TESS_OK);
    CHECK(result.end == TESS_PNP_ENOUGH && result.iterations == 2 && p.w.seen == 2);
    CHECK(memcmp(s.vectors[0], p.w.x[1], sizeof p.w.x[0]) == 0);
    close_scene(&s);
}

int main(void)
{
    tess_device *device = open_cpu(2);
    for (int inner = 0; inner < 2; inner++) {
        test_iterations(device, inner ? 30 : 0, 0);
        test_iterations(device, inner ? 30 : 0, 1.5);
    }
    test_enough(device);
    tess_registry_close(device);
    return check_end();
}
