/* test_vector_ops.c: compares weighted sums, inner products and products with spectra with plain loops: in place, on
 * strided windows, and with any number of threads. */
#include "solver_ops.h"

enum { H = 13, W = 11, C = 3, COUNT = H * W * C };

static tess_tensor image(void)
{
    return tess_tensor_2d(TESS_F32, 1, H, W, C);
}

static void test_combine(tess_device *device)
{
    float *a = random_floats(1, COUNT), *b = random_floats(2, COUNT), *c = random_floats(3, COUNT);
    float *out = random_floats(4, COUNT);
    for (int residuals = 0; residuals <= 2; residuals++) {
        tess_op op = {.kind = TESS_OP_COMBINE,
                      .outputs = 1,
                      .in = {image()},
                      .out = {image()},
                      .inputs = 1 + residuals};
        op.in[1] = op.in[2] = image();
        op.combine = (tess_op_combine){0.5, -2, 3, -1, 1.5};
        run_op(device, op, (tess_op_buffers){.in = {a, b, c}, .out = {out}});
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            double sum = 0.5 * a[i] + (residuals > 0 ? -2.0 * b[i] : 0) + (residuals > 1 ? 3.0 * c[i] : 0);
            wrong += !(fabs(out[i] - fmin(fmax(sum, -1), 1.5)) < 2e-6);
        }
        CHECK_MSG(wrong == 0, "%d residuals: %d wrong", residuals, wrong);
    }
    /* In place, and what has no weight is not read. */
    tess_op op = {.kind = TESS_OP_COMBINE, .outputs = 1, .in = {image()}, .out = {image()}, .inputs = 2};
    op.in[1] = image();
    op.combine = (tess_op_combine){0, 2, 0, -INFINITY, INFINITY};
    float *expected = random_floats(2, COUNT), *nan = random_floats(5, COUNT);
    for (int i = 0; i < COUNT; i++)
        nan[i] = NAN;
    run_op(device, op, (tess_op_buffers){.in = {nan, b}, .out = {b}});
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += b[i] != 2 * expected[i];
    op.combine.b = 0;
    run_op(device, op, (tess_op_buffers){.in = {nan, nan}, .out = {nan}});
    for (int i = 0; i < COUNT; i++)
        wrong += nan[i] != 0;
    CHECK(wrong == 0);
    /* NaN is not hidden by the limits. */
    nan[7] = NAN;
    op.combine = (tess_op_combine){1, 0, 0, 0, 1};
    run_op(device, op, (tess_op_buffers){.in = {nan, nan}, .out = {nan}});
    CHECK(isnan(nan[7]) && nan[8] == 0);
    free(a), free(b), free(c), free(out), free(expected), free(nan);
}

/* A window of one channel, placed into an image. */
static void test_window(tess_device *device)
{
    float *from = random_floats(6, COUNT), *to = random_floats(7, COUNT), *before = random_floats(7, COUNT);
    tess_tensor window = image();
    window.h = 4, window.w = 5, window.c = 1;
    const tess_op op = {.kind = TESS_OP_COMBINE,
                        .inputs = 1,
                        .outputs = 1,
                        .in = {window},
                        .out = {window},
                        .combine = {1, 0, 0, -INFINITY, INFINITY}};
    run_op(device, op, (tess_op_buffers){.in = {from + 2}, .out = {to + (6 * W + 4) * C}});
    int wrong = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < C; c++) {
                const bool inside = y >= 6 && y < 10 && x >= 4 && x < 9 && c == 0;
                const int at = (y * W + x) * C + c;
                wrong += to[at] != (inside ? from[((y - 6) * W + x - 4) * C + 2] : before[at]);
            }
    CHECK(wrong == 0);
    free(from), free(to), free(before);
}

static double dot(tess_device *device, const tess_tensor *t, const float *a, const float *b)
{
    tess_op op = {.kind = TESS_OP_DOT, .outputs = 1, .in = {*t}, .inputs = 2};
    op.out[0] = tess_tensor_2d(TESS_F64, 1, 1, 1, 1);
    op.in[1] = *t;
    double sum = NAN;
    run_op(device, op, (tess_op_buffers){.in = {a, b}, .out = {&sum}});
    return sum;
}

static void test_dot(void)
{
    const tess_tensor sizes[] = {tess_tensor_2d(TESS_F32, 1, 1, 1, 1), image(),
                                 tess_tensor_2d(TESS_F32, 2, 301, 207, 3),
                                 tess_tensor_2d(TESS_F32, 1, 3, 70001, 1)};
    tess_device *devices[3] = {open_cpu(1), open_cpu(2), open_cpu(5)};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t count = sizes[s].n * sizes[s].stride_n;
        float *a = random_floats(8, count), *b = random_floats(9, count);
        long double exact = 0, size = 0;
        for (int64_t i = 0; i < count; i++) {
            exact += (long double)a[i] * b[i];
            size += fabsl((long double)a[i] * b[i]);
        }
        const double one = dot(devices[0], &sizes[s], a, b);
        CHECK_MSG(fabsl(one - exact) <= 1e-14L * size, "%g, not %Lg", one, exact);
        for (int k = 1; k < 3; k++)
            CHECK(dot(devices[k], &sizes[s], a, b) == one);
        free(a), free(b);
    }
    tess_tensor window = image();
    window.w = 5, window.c = 2;
    float *a = random_floats(10, COUNT), *b = random_floats(11, COUNT);
    double exact = 0;
    for (int i = 0; i < COUNT; i++)
        if (i / C % W < 5 && i % C < 2)
            exact += (double)a[i] * b[i];
    CHECK(fabs(dot(devices[1], &window, a, b) - exact) < 1e-12);
    free(a), free(b);
    for (int k = 0; k < 3; k++)
        tess_registry_close(devices[k]);
}

/* Two images of two complex channels; factors real or complex, for every row or one for all. */
static void test_spectrum(tess_device *device)
{
    enum { PIXELS = H * W, ALL = 2 * PIXELS * 4 };
    float *in = random_floats(12, ALL), *factor = random_floats(13, PIXELS * 2),
          *less = random_floats(14, ALL);
    float *out = random_floats(15, ALL);
    for (int which = 0; which < 16; which++) {
        const bool complex = which & 1, conjugate = which & 2, one_row = which & 4, minus = which & 8;
        const int parts = complex ? 2 : 1;
        tess_op op = {.kind = TESS_OP_SPECTRUM,
                      .outputs = 1,
                      .spectrum = {complex, conjugate},
                      .inputs = minus ? 3 : 2};
        op.in[0] = op.out[0] = op.in[2] = tess_tensor_2d(TESS_F32, 2, H, W, 4);
        op.in[1] = tess_tensor_2d(TESS_F32, 1, one_row ? 1 : H, W, parts);
        run_op(device, op, (tess_op_buffers){.in = {in, factor, less}, .out = {out}});
        int wrong = 0;
        for (int i = 0; i < ALL; i += 2) {
            const int pixel = i / 4 % PIXELS, at = (one_row ? pixel % W : pixel) * parts;
            const double re = factor[at], im = complex ? factor[at + 1] * (conjugate ? -1.0 : 1.0) : 0;
            const double real = in[i] * re - in[i + 1] * im - (minus ? less[i] : 0),
                         imaginary = in[i] * im + in[i + 1] * re - (minus ? less[i + 1] : 0);
            wrong += !(fabs(out[i] - real) < 3e-6 && fabs(out[i + 1] - imaginary) < 3e-6);
        }
        CHECK_MSG(wrong == 0, "case %d: %d wrong", which, wrong);
    }
    free(in), free(factor), free(less), free(out);
}

static void test_refuses(tess_device *device)
{
    tess_op op = {.kind = TESS_OP_COMBINE,
                  .inputs = 1,
                  .outputs = 1,
                  .in = {image()},
                  .out = {image()},
                  .kernel = {1, 1, 1}};
    tess_op_needs needs;
    tess_error error;
    op.out[0].w--;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    op.out[0] = image(), op.out[0].dtype = TESS_BF16;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    op = (tess_op){.kind = TESS_OP_SPECTRUM, .outputs = 1, .in = {image()}, .out = {image()}, .inputs = 2};
    op.in[1] = tess_tensor_2d(TESS_F32, 1, H, W + 1, 1);
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
}

int main(void)
{
    tess_device *device = open_cpu(0);
    test_combine(device);
    test_window(device);
    test_dot();
    test_spectrum(device);
    test_refuses(device);
    tess_registry_close(device);
    return check_end();
}
