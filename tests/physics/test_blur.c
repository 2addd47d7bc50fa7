/* test_blur.c: compares the stack of blurs with direct circular convolution; its adjoint, the shortcut of the
 * gradient, its norm; sum and orientation of the kernels; the mask. */
#include "physics/blur.h"

#include <math.h>

#include "adjoint.h"
#include "physics/gaussian.h"
#include "physics/mask.h"
#include "solver_ops.h"

static const double angles[] = {0,  25.714285714285715, 51.42857142857143,  77.14285714285714,
                                90, 128.57142857142858, 154.28571428571428, 180};
enum { ANGLES = sizeof angles / sizeof *angles };

static tess_operator *make(tess_device *device, int64_t h, int64_t w, int64_t c, double rows, double columns)
{
    const tess_blur_settings settings = {h, w, c, ANGLES, angles, rows, columns};
    tess_operator *op = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_blur_create(device, &settings, &op, &error) == TESS_OK, "%s", error.text);
    if (!op)
        exit(1);
    return op;
}

/* Written down from the definition, and not as gaussian.c has it. */
static double weight(double rows, double columns, double degrees, int x, int y)
{
    const double t = degrees * acos(-1.0) / 180, u = x * cos(t) - y * sin(t), v = x * sin(t) + y * cos(t);
    return exp(-u * u / (2 * columns * columns) - v * v / (2 * rows * rows));
}

static void convolve(const tess_operator *op, double rows, double columns, double degrees, const float *in,
                     double *out)
{
    const int reach = (int)(fmax(rows, columns) / 0.3 + 1), h = (int)op->image.h, w = (int)op->image.w,
              channels = (int)op->image.c;
    double sum = 0;
    memset(out, 0, (size_t)(h * w * channels) * sizeof *out);
    for (int ky = -reach; ky <= reach; ky++)
        for (int kx = -reach; kx <= reach; kx++) {
            const double k = weight(rows, columns, degrees, kx, ky);
            sum += k;
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++) {
                    const int from = (((y - ky) % h + h) % h * w + ((x - kx) % w + w) % w) * channels;
                    for (int c = 0; c < channels; c++)
                        out[(y * w + x) * channels + c] += k * in[from + c];
                }
        }
    for (int i = 0; i < h * w * channels; i++)
        out[i] /= sum;
}

static void test_convolution(tess_device *device, int64_t h, int64_t w, int64_t c, double rows,
                             double columns)
{
    tess_operator *op = make(device, h, w, c, rows, columns);
    const int64_t pixels = h * w * c;
    float *in = random_floats(1, pixels), *out = random_floats(2, pixels * ANGLES);
    double *expected = malloc((size_t)pixels * sizeof *expected);
    void *scratch = random_floats(3, (int64_t)(op->scratch_bytes / sizeof(float)) + 1);
    const uint64_t calls = tess_mem_calls();
    op->table->forward(op, in, out, scratch, NULL);
    CHECK(tess_mem_calls() == calls);
    for (int i = 0; i < ANGLES; i++) {
        convolve(op, rows, columns, angles[i], in, expected);
        double worst = 0;
        for (int64_t k = 0; k < pixels; k++)
            worst = fmax(worst, fabs(expected[k] - out[i * pixels + k]));
        CHECK_MSG(worst < 2e-6, "%lldx%lld, angle %g: off by %g", (long long)h, (long long)w, angles[i],
                  worst);
    }
    CHECK(op->measurement.n == ANGLES && op->norm_squared == ANGLES && op->held_bytes > 0);
    free(in), free(out), free(expected), free(scratch);
    tess_operator_destroy(op);
}

static void test_adjoint(tess_device *device)
{
    tess_operator *tiny = make(device, 3, 5, 1, 0.9, 0.5), *real = make(device, 205, 137, 3, 2.05, 1.025);
    check_adjoint_matrices(tiny);
    check_adjoint_draws(tiny);
    check_adjoint_draws(real);
    tess_operator_destroy(tiny), tess_operator_destroy(real);
}

static const tess_normal_step GRADIENT = {0, 1, -1, 1, 0};

/* The shortcut against what it is short for; twice, since absorbing begins afresh. */
static void test_gradient(tess_device *device)
{
    tess_operator *op = make(device, 43, 62, 3, 1.2, 0.6);
    const int64_t pixels = adjoint_count(&op->image), all = adjoint_count(&op->measurement);
    float *x = random_floats(4, pixels), *y = random_floats(5, all), *ax = random_floats(6, all);
    float *expected = random_floats(7, pixels), *gradient = random_floats(8, pixels);
    float *back = random_floats(10, pixels);
    void *scratch = random_floats(9, (int64_t)(op->scratch_bytes / sizeof(float)) + 1);
    op->table->forward(op, x, ax, scratch, NULL);
    for (int64_t i = 0; i < all; i++)
        ax[i] -= y[i];
    op->table->adjoint(op, ax, expected, scratch, NULL);
    for (int round = 0; round < 2; round++) {
        op->table->absorb(op, y, scratch, NULL);
        op->table->step(op, &GRADIENT, x, gradient, scratch, NULL);
        double worst = 0, largest = 0;
        for (int64_t i = 0; i < pixels; i++) {
            worst = fmax(worst, fabs((double)expected[i] - gradient[i]));
            largest = fmax(largest, fabs((double)expected[i]));
        }
        CHECK_MSG(worst < 2e-6 * largest, "off by %g of %g", worst, largest);
    }
    /* A step down the gradient, over x itself; the minimum near x, where its own gradient is zero. */
    double down = 0, slope = 0;
    memcpy(back, x, (size_t)pixels * sizeof *x);
    op->table->step(op, &(tess_normal_step){1, -0.1, 0.1, 1, 0}, back, back, scratch, NULL);
    for (int64_t i = 0; i < pixels; i++)
        down = fmax(down, fabs((double)x[i] - 0.1 * expected[i] - back[i]));
    op->table->step(op, &(tess_normal_step){0.5, 0, 1, 0.5, 1}, x, back, scratch, NULL);
    op->table->step(op, &GRADIENT, back, gradient, scratch, NULL);
    for (int64_t i = 0; i < pixels; i++)
        slope = fmax(slope, fabs(gradient[i] + 0.5 * ((double)back[i] - x[i])));
    CHECK_MSG(down < 1e-5 && slope < 2e-5, "off by %g, slope %g", down, slope);
    /* The norm is reached by a constant image, and by nothing more. */
    double flat = 0, random = 0, size = 0;
    memset(y, 0, (size_t)all * sizeof *y);
    op->table->absorb(op, y, scratch, NULL);
    op->table->step(op, &GRADIENT, x, gradient, scratch, NULL);
    for (int64_t i = 0; i < pixels; i++) {
        random += (double)x[i] * gradient[i];
        size += (double)x[i] * x[i];
        x[i] = 1;
    }
    op->table->step(op, &GRADIENT, x, gradient, scratch, NULL);
    for (int64_t i = 0; i < pixels; i++)
        flat = fmax(flat, fabs(gradient[i] - op->norm_squared));
    CHECK_MSG(flat < 1e-5 && random < size * op->norm_squared, "%g", flat);
    free(x), free(y), free(ax), free(expected), free(gradient), free(back), free(scratch);
    tess_operator_destroy(op);
}

static void test_kernel(void)
{
    enum { SIDE = 71 };
    static double kernel[SIDE * SIDE], turned[SIDE * SIDE];
    const tess_gaussian upright = {10.24, 5.12, 0}, lying = {10.24, 5.12, 90};
    CHECK(2 * tess_gaussian_reach(&upright) + 1 == SIDE);
    CHECK(tess_gaussian_reach(&(tess_gaussian){5.12, 2.56, 0}) == 18);
    CHECK(tess_gaussian_reach(&(tess_gaussian){40.96, 20.48, 0}) == 137);
    tess_gaussian_kernel(&upright, kernel);
    tess_gaussian_kernel(&lying, turned);
    double sum = 0, along_rows = 0, along_columns = 0, across = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const double k = kernel[y * SIDE + x];
            sum += k, along_rows += k * (y - 35) * (y - 35), along_columns += k * (x - 35) * (x - 35);
            across = fmax(across, fabs(k - turned[x * SIDE + y]));
        }
    CHECK(fabs(sum - 1) < 1e-12 && across < 1e-15);
    CHECK_MSG(fabs(sqrt(along_rows) - 10.24) < 0.2 && fabs(sqrt(along_columns) - 5.12) < 0.01, "%g %g",
              sqrt(along_rows), sqrt(along_columns));
    /* At 45 degrees u = 0 along x = y: the long axis runs from the upper left to the lower right. */
    tess_gaussian_kernel(&(tess_gaussian){10.24, 5.12, 45}, kernel);
    CHECK(kernel[45 * SIDE + 45] > 2 * kernel[45 * SIDE + 25]);
}

static void test_refuses(tess_device *device)
{
    const double nan = NAN;
    const tess_blur_settings bad[] = {{8, 8, 1, 0, angles, 1, 1},  {0, 8, 1, 1, angles, 1, 1},
                                      {8, 8, 1, 1, angles, 0, 1},  {8, 8, 1, 1, angles, 1, -1},
                                      {8, 8, 1, 1, angles, 99, 1}, {8, 8, 1, 1, angles, NAN, 1},
                                      {8, 8, 1, 1, &nan, 1, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tess_operator *op = NULL;
        tess_error error = {""};
        CHECK_MSG(tess_blur_create(device, &bad[i], &op, &error) == TESS_BAD_OPTION && !op && error.text[0],
                  "%zu", i);
    }
    /* Whatever allocation fails, it says so and loses nothing. */
    const tess_blur_settings good = {8, 9, 1, 2, angles, 1, 0.5};
    bool made = false;
    for (uint64_t n = 1; !made && n < 100; n++) {
        tess_operator *op = NULL;
        tess_error error = {""};
        tess_mem_fail_at(n);
        const tess_status status = tess_blur_create(device, &good, &op, &error);
        tess_mem_fail_at(0);
        made = status == TESS_OK;
        CHECK(made ? op != NULL : status == TESS_NO_MEMORY && !op);
        tess_operator_destroy(op);
    }
    CHECK(made);
}

static void test_mask(tess_device *device)
{
    enum { H = 9, W = 5, C = 3 };
    float *values = random_floats(10, H * W), *x = random_floats(11, H * W * C),
          *y = random_floats(12, H * W * C);
    tess_operator *op = NULL;
    tess_error error = {""};
    values[3] = -4;
    CHECK_MSG(tess_mask_create(device, H, W, C, values, &op, &error) == TESS_OK, "%s", error.text);
    if (!op)
        return;
    op->table->forward(op, x, y, NULL, NULL);
    int wrong = 0;
    for (int i = 0; i < H * W * C; i++)
        wrong += y[i] != x[i] * values[i / C];
    CHECK(wrong == 0 && op->norm_squared == 16 && op->scratch_bytes == 0);
    check_adjoint_matrices(op);
    tess_operator_destroy(op);
    values[7] = NAN;
    CHECK(tess_mask_create(device, H, W, C, values, &op, &error) == TESS_BAD_INPUT && !op);
    free(values), free(x), free(y);
}

int main(void)
{
    tess_device *device = open_cpu(0);
    test_convolution(device, 21, 34, 3, 1.5, 0.7);
    test_convolution(device, 34, 21, 1, 0.8, 2.1);
    test_convolution(device, 17, 6, 2, 3, 1); /* the kernel is wider than the image */
    test_convolution(device, 1, 13, 1, 1, 0.5);
    test_adjoint(device);
    test_gradient(device);
    test_kernel();
    test_refuses(device);
    test_mask(device);
    tess_registry_close(device);
    return check_end();
}
