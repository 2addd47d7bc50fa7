/* Solvers on dense matrices, whose solutions can be computed in other ways. */
#include <math.h>

#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "solve/cg.h"
#include "solve/pnp.h"
#include "solve/power.h"

enum { ROWS = 24, COLS = 12, VECTORS = TESS_PNP_MOST_VECTORS };

/* y = A x; with `shortcut` all steps come from A^T A and b = A^T y, as an operator has them that absorbs its
 * measurement. */
typedef struct dense {
    tess_operator op;
    float a[ROWS][COLS], b[COLS];
} dense;

static void dense_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                          tess_stream *stream)
{
    (void)scratch, (void)stream;
    const dense *d = (const dense *)op;
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < COLS; c++)
            sum += (double)d->a[r][c] * ((const float *)image)[c];
        ((float *)measurement)[r] = (float)sum;
    }
}

static void dense_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    (void)scratch, (void)stream;
    const dense *d = (const dense *)op;
    for (int c = 0; c < COLS; c++) {
        double sum = 0;
        for (int r = 0; r < ROWS; r++)
            sum += (double)d->a[r][c] * ((const float *)measurement)[r];
        ((float *)image)[c] = (float)sum;
    }
}

static void dense_absorb(tess_operator *op, const void *measurement, void *scratch, tess_stream *stream)
{
    dense_adjoint(op, measurement, ((dense *)op)->b, scratch, stream);
}

/* ((a + b N) x + c A^T y) / (d + e N), by Gauss's elimination; N is positive. */
static void dense_step(tess_operator *op, const tess_normal_step *s, const void *image, void *out,
                       void *scratch, tess_stream *stream)
{
    (void)scratch, (void)stream;
    const dense *d = (const dense *)op;
    const float *x = image;
    double m[COLS][COLS + 1];
    for (int i = 0; i < COLS; i++) {
        m[i][COLS] = s->a * x[i] + s->c * d->b[i];
        for (int k = 0; k < COLS; k++) {
            double n = 0;
            for (int r = 0; r < ROWS; r++)
                n += (double)d->a[r][i] * d->a[r][k];
            m[i][COLS] += s->b * n * x[k];
            m[i][k] = s->e * n + (i == k ? s->d : 0);
        }
    }
    for (int i = 0; i < COLS; i++)
        for (int r = 0; r < COLS; r++) {
            const double factor = m[r][i] / m[i][i];
            for (int k = i; r != i && k <= COLS; k++)
                m[r][k] -= factor * m[i][k];
        }
    for (int i = 0; i < COLS; i++)
        ((float *)out)[i] = (float)(m[i][COLS] / m[i][i]);
}

static const tess_operator_table plain = {.forward = dense_forward, .adjoint = dense_adjoint};
static const tess_operator_table shortcut = {
    .forward = dense_forward, .adjoint = dense_adjoint, .absorb = dense_absorb, .step = dense_step};

/* A problem with its memory. */
typedef struct bench {
    dense dense;
    float truth[COLS], y[ROWS];
    char *memory;
    void *vectors[VECTORS];
    tess_data_term term;
} bench;

static void open_bench(bench *b, tess_device *device, const tess_operator_table *table)
{
    memset(b, 0, sizeof *b);
    b->dense.op = (tess_operator){.table = table,
                                  .device = device,
                                  .name = "dense",
                                  .image = tess_tensor_2d(TESS_F32, 1, 1, COLS, 1),
                                  .measurement = tess_tensor_2d(TESS_F32, 1, 1, ROWS, 1)};
    tess_rng_normal((tess_rng_key){3, 0, 0}, 0, ROWS * COLS, &b->dense.a[0][0]);
    tess_rng_uniform((tess_rng_key){3, 1, 0}, 0, COLS, b->truth);
    dense_forward(&b->dense.op, b->truth, b->y, NULL, NULL);
    size_t bytes = 0, residual = 0;
    CHECK(tess_data_term_bytes(&b->dense.op, &bytes, &residual, NULL) == TESS_OK);
    const size_t vector = tess_vector_bytes(&b->dense.op.image);
    b->memory = calloc(1, bytes + VECTORS * vector + residual);
    for (int i = 0; i < VECTORS; i++)
        b->vectors[i] = b->memory + bytes + (size_t)i * vector;
    CHECK(tess_data_term_open(&b->term, &b->dense.op, b->y, b->memory + bytes + VECTORS * vector, b->memory,
                              NULL) == TESS_OK);
    if (table->absorb)
        table->absorb(&b->dense.op, b->y, b->term.scratch, NULL);
}

static void close_bench(bench *b)
{
    tess_data_term_close(&b->term);
    free(b->memory);
}

static double distance(const float *a, const float *b, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++) {
        const double difference = fabs((double)a[i] - b[i]);
        if (!(difference <= most))
            most = difference;
    }
    return most;
}

/* The largest eigenvalue of A^T A, by many plain iterations in fp64. */
static double largest_eigenvalue(const dense *d)
{
    double x[COLS], y[ROWS], value = 0;
    for (int c = 0; c < COLS; c++)
        x[c] = 1 + 0.1 * c;
    for (int k = 0; k < 20000; k++) {
        double norm = 0;
        for (int r = 0; r < ROWS; r++) {
            y[r] = 0;
            for (int c = 0; c < COLS; c++)
                y[r] += (double)d->a[r][c] * x[c];
        }
        for (int c = 0; c < COLS; c++) {
            x[c] = 0;
            for (int r = 0; r < ROWS; r++)
                x[c] += (double)d->a[r][c] * y[r];
            norm += x[c] * x[c];
        }
        value = sqrt(norm);
        for (int c = 0; c < COLS; c++)
            x[c] /= value;
    }
    return value;
}

static void test_power(tess_device *device)
{
    const tess_operator_table *tables[] = {&plain, &shortcut};
    for (int t = 0; t < 2; t++) {
        bench b;
        tess_power_result fine, coarse;
        open_bench(&b, device, tables[t]);
        const double truth = largest_eigenvalue(&b.dense);
        tess_power_settings settings = {.iterations = 1000, .absolute = 1e-5, .seed = 5};
        CHECK(tess_power(&b.term, &settings, b.vectors, &fine, NULL) == TESS_OK);
        CHECK_MSG(fabs(fine.norm_squared - truth) < 1e-3 * truth, "%g for %g", fine.norm_squared, truth);
        settings = (tess_power_settings){.iterations = 1000, .relative = 1e-2, .seed = 5};
        CHECK(tess_power(&b.term, &settings, b.vectors, &coarse, NULL) == TESS_OK);
        CHECK(coarse.iterations < fine.iterations && coarse.norm_squared <= truth * (1 + 1e-6));
        settings = (tess_power_settings){.iterations = 3, .seed = 5};
        CHECK(tess_power(&b.term, &settings, b.vectors, &coarse, NULL) == TESS_OK && coarse.iterations == 3);
        close_bench(&b);
    }
}

static void test_power_of_nothing(tess_device *device)
{
    bench b;
    tess_power_result result;
    tess_error error = {{0}};
    open_bench(&b, device, &plain);
    memset(b.dense.a, 0, sizeof b.dense.a);
    const tess_power_settings settings = {.iterations = 100, .relative = 1e-3};
    CHECK(tess_power(&b.term, &settings, b.vectors, &result, &error) == TESS_BAD_INPUT);
    CHECK(strstr(error.text, "geometry") != NULL);
    close_bench(&b);
}

static void test_cg(tess_device *device)
{
    const tess_operator_table *tables[] = {&plain, &shortcut};
    for (int t = 0; t < 2; t++) {
        bench b;
        tess_cg_result result;
        open_bench(&b, device, tables[t]);
        const tess_cg_settings settings = {.iterations = 60, .tolerance = 1e-6};
        CHECK(tess_cg(&b.term, &settings, b.vectors + 1, b.vectors[0], &result, NULL) == TESS_OK);
        CHECK_MSG(distance(b.vectors[0], b.truth, COLS) < 1e-4, "off by %g after %lld",
                  distance(b.vectors[0], b.truth, COLS), (long long)result.iterations);
        CHECK(result.iterations <= 2 * COLS && result.residual <= 1e-6);
        const tess_cg_settings short_of = {.iterations = 2, .tolerance = 1e-6};
        CHECK(tess_cg(&b.term, &short_of, b.vectors + 1, b.vectors[0], &result, NULL) == TESS_OK);
        CHECK(result.iterations == 2 && result.residual > 1e-6);
        close_bench(&b);
    }
}

/* From x0, with a shift: A^T (A x - y) + shift (x - x0) is zero at the end. */
static void test_cg_warm(tess_device *device)
{
    const tess_operator_table *tables[] = {&plain, &shortcut};
    for (int t = 0; t < 2; t++) {
        bench b;
        tess_cg_result result;
        float start[COLS], gradient[COLS], nothing[COLS] = {0};
        open_bench(&b, device, tables[t]);
        tess_rng_uniform((tess_rng_key){3, 2, 0}, 0, COLS, start);
        memcpy(b.vectors[0], start, sizeof start);
        const tess_cg_settings settings = {.iterations = 60, .tolerance = 1e-6, .shift = 5, .warm = true};
        CHECK(tess_cg(&b.term, &settings, b.vectors + 1, b.vectors[0], &result, NULL) == TESS_OK);
        CHECK(tess_data_term_gradient(&b.term, b.vectors[0], gradient, NULL) == TESS_OK);
        for (int c = 0; c < COLS; c++)
            gradient[c] += 5 * (((float *)b.vectors[0])[c] - start[c]);
        CHECK_MSG(distance(gradient, nothing, COLS) < 1e-3, "slope %g", distance(gradient, nothing, COLS));
        close_bench(&b);
    }
}

/* A denoiser that changes nothing, and what it was asked. */
typedef struct watch {
    bench *bench;
    double first_sigma, last_sigma, last_misfit, step;
    bool monotone;
    int calls;
} watch;

static tess_status identity(void *user, const void *in, void *out, double sigma, tess_error *error)
{
    (void)error;
    watch *w = user;
    memcpy(out, in, COLS * sizeof(float));
    if (w->calls++ == 0)
        w->first_sigma = sigma;
    w->last_sigma = sigma;
    return TESS_OK;
}

static tess_status look(void *user, const tess_pnp_facts *facts, tess_error *error)
{
    (void)error;
    watch *w = user;
    float y[ROWS];
    double misfit = 0;
    dense_forward(&w->bench->dense.op, facts->x, y, NULL, NULL);
    for (int r = 0; r < ROWS; r++)
        misfit += ((double)y[r] - w->bench->y[r]) * ((double)y[r] - w->bench->y[r]);
    w->monotone = w->monotone && misfit <= w->last_misfit * (1 + 1e-5) + 1e-9;
    w->last_misfit = misfit;
    w->step = facts->step;
    return TESS_OK;
}

static tess_pnp_settings settings_for(bench *b, watch *w)
{
    *w = (watch){.bench = b, .monotone = true, .last_misfit = INFINITY};
    return (tess_pnp_settings){.iterations = 2000,
                               .step = 0.99 / largest_eigenvalue(&b->dense),
                               .sigma = 0.2,
                               .last_sigma = 0.05,
                               .high = 1,
                               .denoise = identity,
                               .denoise_user = w,
                               .monitor = look,
                               .monitor_user = w};
}

static void test_pnp_descends(tess_device *device)
{
    const tess_operator_table *tables[] = {&plain, &shortcut};
    for (int t = 0; t < 2; t++) {
        bench b;
        watch w;
        tess_pnp_result result;
        open_bench(&b, device, tables[t]);
        tess_pnp_settings settings = settings_for(&b, &w);
        settings.relax = 3;
        CHECK(tess_pnp(&b.term, &settings, b.vectors, &result, NULL) == TESS_OK);
        CHECK(w.monotone && result.halvings == 0 && result.iterations == 2000);
        CHECK_MSG(distance(b.vectors[0], b.truth, COLS) < 1e-3, "off by %g",
                  distance(b.vectors[0], b.truth, COLS));
        CHECK(fabs(w.first_sigma - 0.2) < 1e-12 && fabs(w.last_sigma - 0.05) < 1e-12);
        close_bench(&b);
    }
}

/* Steps of conjugate gradients reach in few iterations what gradients need thousands for. */
static void test_pnp_inner(tess_device *device)
{
    const tess_operator_table *tables[] = {&plain, &shortcut};
    for (int t = 0; t < 2; t++) {
        bench b;
        watch w;
        tess_pnp_result result;
        open_bench(&b, device, tables[t]);
        tess_pnp_settings settings = settings_for(&b, &w);
        settings.iterations = 8;
        settings.inner = 10;
        settings.weight = 1e-6;
        CHECK(tess_pnp(&b.term, &settings, b.vectors, &result, NULL) == TESS_OK);
        CHECK_MSG(result.iterations == 8 && distance(b.vectors[0], b.truth, COLS) < 1e-3, "off by %g",
                  distance(b.vectors[0], b.truth, COLS));
        close_bench(&b);
    }
}

/* Far too long a step: found by the norm where it is known, by the data term where it is not. */
static void test_pnp_halves(tess_device *device)
{
    for (int known = 0; known < 2; known++) {
        bench b;
        watch w;
        tess_pnp_result result;
        open_bench(&b, device, &plain);
        const double norm = largest_eigenvalue(&b.dense);
        tess_pnp_settings settings = settings_for(&b, &w);
        settings.step = 100 / norm;
        settings.norm_squared = known ? norm : 0;
        CHECK(tess_pnp(&b.term, &settings, b.vectors, &result, NULL) == TESS_OK);
        CHECK_MSG(result.halvings >= 5 && result.step * norm <= (known ? 2 : 2.5), "%lld halvings to %g",
                  (long long)result.halvings, result.step * norm);
        CHECK(distance(b.vectors[0], b.truth, COLS) < 0.05);
        close_bench(&b);
    }
}

/* Measurements that overflow are reported by every kind of step; clamped they would be a black image. */
static void test_overflow(tess_device *device)
{
    const tess_operator_table *tables[] = {&plain, &shortcut};
    for (int way = 0; way < 8; way++) {
        bench b;
        watch w;
        tess_pnp_result result;
        tess_cg_result cg;
        tess_error error = {{0}};
        open_bench(&b, device, tables[way % 2]);
        for (int r = 0; r < ROWS; r++)
            b.y[r] = b.dense.a[r][0] > 0 ? 3e38F : -3e38F;
        if (way % 2)
            dense_absorb(&b.dense.op, b.y, b.term.scratch, NULL);
        tess_pnp_settings settings = settings_for(&b, &w);
        settings.iterations = 2;
        settings.inner = way & 2 ? 4 : 0;
        settings.norm_squared = way & 4 ? largest_eigenvalue(&b.dense) : 0;
        CHECK_MSG(tess_pnp(&b.term, &settings, b.vectors, &result, &error) == TESS_BAD_INPUT, "way %d", way);
        CHECK(strstr(error.text, "measurements") != NULL && w.calls == 0);
        const tess_cg_settings few = {.iterations = 4};
        CHECK(tess_cg(&b.term, &few, b.vectors + 1, b.vectors[0], &cg, &error) == TESS_BAD_INPUT);
        close_bench(&b);
    }
}

static tess_status refuse(void *user, const tess_pnp_facts *facts, tess_error *error)
{
    (void)user;
    return facts->iteration == 2 ? tess_fail(error, TESS_INTERRUPTED, "enough") : TESS_OK;
}

static void test_pnp_stops(tess_device *device)
{
    bench b;
    watch w;
    tess_pnp_result result;
    open_bench(&b, device, &plain);
    tess_pnp_settings settings = settings_for(&b, &w);
    settings.tolerance = 1e-3;
    CHECK(tess_pnp(&b.term, &settings, b.vectors, &result, NULL) == TESS_OK);
    CHECK(result.iterations > 2 && result.iterations < 2000);
    settings.tolerance = 0;
    settings.max_seconds = 1e-9;
    CHECK(tess_pnp(&b.term, &settings, b.vectors, &result, NULL) == TESS_OK && result.iterations == 1);
    settings.max_seconds = 0;
    settings.monitor = refuse;
    CHECK(tess_pnp(&b.term, &settings, b.vectors, &result, NULL) == TESS_INTERRUPTED);
    close_bench(&b);
}

int main(void)
{
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    tess_device *device = NULL;
    tess_error error;
    if (tess_registry_open("cpu", &options, &device, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    test_power(device);
    test_power_of_nothing(device);
    test_cg(device);
    test_cg_warm(device);
    test_pnp_inner(device);
    test_pnp_descends(device);
    test_pnp_halves(device);
    test_pnp_stops(device);
    test_overflow(device);
    tess_registry_close(device);
    return check_end();
}
