/* test_convolve.c: compares blurs with any kernel with explicit sums: circular, and the middle of a larger
 * picture, also without some of its values; absorbed measurements; N x; a few steps of conjugate gradients with the preconditioner; refused
 * settings; sketches. */
#include "physics/convolve.h"

#include <math.h>

#include "adjoint.h"
#include "counter.h"
#include "solve/cg.h"
#include "solver_ops.h"

static const double streak[] = {0, 1, 2, 0.5, 0.25, 4, 1}, corner[] = {0, 0, 0, 0, 1, 0, 0, 2, 5};
static const tess_blur_kernel kernels[] = {{.values = streak, .height = 1, .width = 7},
                                           {.values = corner, .height = 3, .width = 3}};
enum { KERNELS = 2 };
typedef enum way { CIRCULAR, MARGINS, MASKED, WAYS } way;
static const char *const names[WAYS] = {"circular", "margins", "masked"};
static const bool only_second[KERNELS] = {false, true};

static tess_convolve_settings settings_of(int64_t h, int64_t w, int64_t c, way margins)
{
    return (tess_convolve_settings){.height = h,
                                    .width = w,
                                    .channels = c,
                                    .margin_rows = margins ? 1 : 0,
                                    .margin_columns = margins ? 3 : 0,
                                    .seen_height = margins ? h - 2 : 0,
                                    .seen_width = margins ? w - 7 : 0,
                                    .count = KERNELS,
                                    .masked = margins == MASKED ? only_second : NULL,
                                    .kernels = kernels};
}

static float seen(const tess_operator *op, int64_t i)
{
    return op->table->mask && op->table->mask((tess_operator *)op, i / op->measurement.stride_n) ? i % 5 > 1
                                                                                                 : 1;
}

static tess_operator *make(tess_device *device, const tess_convolve_settings *settings)
{
    tess_operator *op = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_convolve_create(device, settings, &op, &error) == TESS_OK, "%s", error.text);
    if (!op)
        exit(1);
    for (int64_t i = 0; i < KERNELS && op->table->mask; i++) {
        float *mask = op->table->mask(op, i);
        CHECK((mask != NULL) == (settings->masked && settings->masked[i]));
        for (int64_t k = 0; mask && k < op->measurement.stride_n; k++)
            mask[k] = seen(op, i * op->measurement.stride_n + k);
    }
    return op;
}

/* One value of a true convolution: the kernel is turned around, and divided by its sum. */
static double blurred(const tess_operator *op, const tess_blur_kernel *k, const float *in, int64_t y,
                      int64_t x, int64_t channel)
{
    const int64_t h = op->image.h, w = op->image.w, c = op->image.c;
    double sum = 0, all = 0;
    for (int64_t i = 0; i < k->height; i++)
        for (int64_t j = 0; j < k->width; j++) {
            const int64_t from_y = (y - (i - k->height / 2) + h) % h,
                          from_x = (x - (j - k->width / 2) + w) % w;
            sum += k->values[i * k->width + j] * in[(from_y * w + from_x) * c + channel];
            all += k->values[i * k->width + j];
        }
    return sum / all;
}

static void test_sums(tess_device *device, way margins)
{
    const tess_convolve_settings settings = settings_of(12, 23, 3, margins);
    tess_operator *op = make(device, &settings);
    const tess_tensor *m = &op->measurement;
    float *in = random_floats(1, adjoint_count(&op->image)), *out = random_floats(2, adjoint_count(m));
    void *scratch = random_floats(3, (int64_t)(op->scratch_bytes / sizeof(float)) + 1);
    const uint64_t calls = tess_mem_calls();
    op->table->forward(op, in, out, scratch, NULL);
    CHECK(tess_mem_calls() == calls);
    CHECK(m->n == KERNELS && m->h == (margins ? 10 : 12) && m->w == (margins ? 16 : 23));
    double worst = 0;
    for (int64_t i = 0; i < adjoint_count(m); i++) {
        const int64_t c = i % m->c, x = i / m->c % m->w, y = i / m->c / m->w % m->h, k = i / m->stride_n;
        worst = fmax(worst, fabs(out[i] - seen(op, i) * blurred(op, &kernels[k], in, y + settings.margin_rows,
                                                                x + settings.margin_columns, c)));
    }
    CHECK_MSG(worst < 3e-6, "%s: off by %g", names[margins], worst);
    free(in), free(out), free(scratch);
    tess_operator_destroy(op);
}

static double off(const float *a, const float *b, int64_t count)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        worst = fmax(worst, fabs((double)a[i] - b[i]));
    return worst;
}

/* What is absorbed gives the gradient that forward and adjoint give; twice, since absorbing begins afresh. */
static void test_gradient(tess_device *device, way margins)
{
    const tess_convolve_settings settings = settings_of(31, 26, 2, margins);
    tess_operator *op = make(device, &settings);
    const int64_t pixels = adjoint_count(&op->image), all = adjoint_count(&op->measurement);
    float *x = random_floats(4, pixels), *y = random_floats(5, all), *ax = random_floats(6, all);
    float *gradient = random_floats(7, pixels), *expected = random_floats(8, pixels);
    void *scratch = random_floats(9, (int64_t)(op->scratch_bytes / sizeof(float)) + 1);
    CHECK(tess_data_term_absorbed(op) && tess_data_term_exact(op) == !margins);
    op->table->forward(op, x, ax, scratch, NULL);
    for (int64_t i = 0; i < all; i++)
        ax[i] -= y[i];
    op->table->adjoint(op, ax, expected, scratch, NULL);
    for (int round = 0; round < 2; round++) {
        op->table->absorb(op, y, scratch, NULL);
        if (margins)
            op->table->normal(op, true, x, gradient, scratch, NULL);
        else
            op->table->step(op, &(tess_normal_step){0, 1, -1, 1, 0}, x, gradient, scratch, NULL);
        CHECK_MSG(off(gradient, expected, pixels) < 2e-5, "%s: off by %g", names[margins],
                  off(gradient, expected, pixels));
    }
    /* No image is amplified more than the norm says. */
    double size = 0, seen = 0;
    op->table->forward(op, x, ax, scratch, NULL);
    for (int64_t i = 0; i < pixels; i++)
        size += (double)x[i] * x[i];
    for (int64_t i = 0; i < all; i++)
        seen += (double)ax[i] * ax[i];
    CHECK(seen <= size * op->norm_squared && fabs(op->norm_squared - KERNELS) < 1e-6);
    free(x), free(y), free(ax), free(gradient), free(expected), free(scratch);
    tess_operator_destroy(op);
}

/* |A x - y|^2 + shift |x - x0|^2: its gradient at the end against the one at the start. */
static double solved(tess_device *device, bool preconditioned)
{
    const tess_convolve_settings settings = settings_of(40, 45, 1, MARGINS);
    tess_operator *op = make(device, &settings);
    tess_operator_table table = *op->table;
    if (!preconditioned)
        table.precondition = NULL;
    op->table = &table;
    const int64_t pixels = adjoint_count(&op->image);
    size_t bytes = 0, residual = 0;
    CHECK(tess_data_term_bytes(op, &bytes, &residual, NULL) == TESS_OK && residual == 0);
    float *x = random_floats(11, pixels), *x0 = random_floats(11, pixels), *g = random_floats(12, pixels),
          *y = random_floats(13, adjoint_count(&op->measurement)), *r = random_floats(14, pixels),
          *p = random_floats(15, pixels), *q = random_floats(16, pixels);
    char *memory = calloc(1, bytes);
    tess_data_term term;
    CHECK(tess_data_term_open(&term, op, NULL, NULL, memory, NULL) == TESS_OK);
    op->table->absorb(op, y, term.scratch, NULL);
    void *const vectors[] = {r, p, q};
    tess_cg_result result;
    const tess_cg_settings cg = {.iterations = 6, .shift = 0.01, .warm = true};
    double before, after;
    CHECK(tess_data_term_gradient(&term, x, g, NULL) == TESS_OK);
    before = adjoint_dot(g, g, pixels);
    CHECK(tess_cg(&term, &cg, vectors, x, &result, NULL) == TESS_OK && result.iterations == 6);
    CHECK(tess_data_term_gradient(&term, x, g, NULL) == TESS_OK);
    for (int64_t i = 0; i < pixels; i++)
        g[i] += 0.01F * (x[i] - x0[i]);
    after = adjoint_dot(g, g, pixels);
    tess_data_term_close(&term);
    free(x), free(x0), free(g), free(y), free(r), free(p), free(q), free(memory);
    tess_operator_destroy(op);
    return sqrt(after / before);
}

static void test_refuses(tess_device *device)
{
    const double nan[] = {1, NAN, 1}, none[] = {1, -1, 0}, even[] = {1, 1};
    const tess_blur_kernel bad[] = {{.values = nan, .height = 1, .width = 3},
                                    {.values = none, .height = 3, .width = 1},
                                    {.values = even, .height = 1, .width = 2}};
    tess_operator *op = NULL;
    tess_error error = {""};
    for (int i = 0; i < 3; i++) {
        const tess_convolve_settings s = {
            .height = 8, .width = 8, .channels = 1, .count = 1, .kernels = &bad[i]};
        CHECK(tess_convolve_create(device, &s, &op, &error) == TESS_BAD_INPUT && !op);
    }
    const int64_t sides[] = {0, -5, (int64_t)1 << 40, ((int64_t)1 << 20) + 1};
    for (int i = 0; i < 4; i++) {
        const tess_convolve_settings s = settings_of(sides[i], 20, 1, CIRCULAR),
                                     t = settings_of(20, sides[i], 1, CIRCULAR);
        CHECK(tess_convolve_create(device, &s, &op, &error) == TESS_BAD_OPTION && !op);
        CHECK(tess_convolve_create(device, &t, &op, &error) == TESS_BAD_OPTION && !op);
    }
    tess_convolve_settings outside = settings_of(20, 20, 1, MARGINS),
                           whole = settings_of(20, 20, 1, CIRCULAR);
    outside.margin_rows = 3;
    whole.masked = only_second; /* without margins the operator is diagonal */
    CHECK(tess_convolve_create(device, &outside, &op, &error) == TESS_BAD_OPTION && !op);
    CHECK(tess_convolve_create(device, &whole, &op, &error) == TESS_BAD_OPTION && !op);
    const tess_convolve_settings good = settings_of(12, 15, 1, MASKED);
    bool made = false;
    for (uint64_t n = 1; !made && n < 200;
         n++) { /* whatever allocation fails, it says so and loses nothing */
        tess_mem_fail_at(n);
        const tess_status status = tess_convolve_create(device, &good, &op, &error);
        tess_mem_fail_at(0);
        made = status == TESS_OK;
        CHECK(made ? op != NULL : status == TESS_NO_MEMORY && !op);
        tess_operator_destroy(op);
    }
    CHECK(made);
}

/* A sketch gives the bytes of the operator exactly and allocates nothing, even if they would be terabytes. */
static void test_sketch(tess_device *device, way margins)
{
    const tess_convolve_settings small = settings_of(61, 50, 3, margins);
    tess_convolve_settings huge = settings_of(1000003, 1048573, 3, margins);
    tess_operator sketch;
    tess_error error = {""};
    CHECK_MSG(tess_convolve_sketch(device, &small, &sketch, &error) == TESS_OK, "%s", error.text);
    tess_memory_reset_peak(&test_counter);
    const uint64_t total = counted_now();
    tess_operator *op = make(device, &small);
    CHECK(counted_peak() - total <= sketch.held_bytes + sketch.making_bytes);
    CHECK_MSG(counted_now() - total == sketch.held_bytes && op->held_bytes == sketch.held_bytes,
              "%llu for %zu", (unsigned long long)(counted_now() - total), sketch.held_bytes);
    CHECK(op->scratch_bytes == sketch.scratch_bytes && op->step_scratch_bytes == sketch.step_scratch_bytes);
    tess_operator_destroy(op);
    tess_memory_reset_peak(&test_counter);
    CHECK(tess_convolve_sketch(device, &huge, &sketch, &error) == TESS_OK && sketch.held_bytes >> 40 > 0);
    CHECK(counted_peak() == total);
    CHECK(tess_convolve_side(256, 9) == 280 && tess_convolve_side(1, 0) == 1 &&
          tess_convolve_side(121, 0) == 125);
}

int main(void)
{
    tess_device *device = open_cpu(0);
    for (way margins = CIRCULAR; margins < WAYS; margins++) {
        test_sums(device, margins);
        test_gradient(device, margins);
        test_sketch(device, margins);
    }
    const double with = solved(device, true), without = solved(device, false);
    CHECK_MSG(with < 0.01 && with < without / 3, "six steps leave %g of the gradient, %g without", with,
              without);
    test_refuses(device);
    tess_registry_close(device);
    return check_end();
}
