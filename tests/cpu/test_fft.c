/* test_fft.c: transforms of many channels and images equal the sum that defines them, at even, odd and prime sizes;
 * the inverse restores the input at a real size; any number of threads gives the same bits. */
#include <math.h>

#include "solver_ops.h"

static const double TURN = 6.283185307179586;

typedef struct shape {
    int64_t n, d, h, w, c;
    bool rows_only;
} shape;

static tess_tensor tensor(const shape *s, int64_t w, int64_t c)
{
    tess_tensor t = tess_tensor_2d(TESS_F32, s->n, s->h, w, c);
    t.d = s->d;
    t.stride_n = s->d * t.stride_d;
    return t;
}

static tess_op fft_of(const shape *s, bool inverse)
{
    const tess_tensor real = tensor(s, s->w, s->c), half = tensor(s, s->w / 2 + 1, 2 * s->c);
    return (tess_op){.kind = TESS_OP_FFT,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {inverse ? half : real},
                     .out = {inverse ? real : half},
                     .fft = {inverse, s->rows_only}};
}

static int64_t floats(const tess_tensor *t)
{
    return t->n * t->stride_n;
}

/* One value of the spectrum, by its definition. */
static void naive(const shape *s, const float *in, int64_t row, int64_t column, int64_t c, double *re,
                  double *im)
{
    *re = *im = 0;
    for (int64_t y = s->rows_only ? row : 0; y < (s->rows_only ? row + 1 : s->h); y++)
        for (int64_t x = 0; x < s->w; x++) {
            double turns = (double)(x * column % s->w) / (double)s->w;
            if (!s->rows_only)
                turns += (double)(y * row % s->h) / (double)s->h;
            const double value = in[(y * s->w + x) * s->c + c];
            *re += value * cos(TURN * turns);
            *im -= value * sin(TURN * turns);
        }
}

static void against_definition(tess_device *device, shape s)
{
    const tess_op op = fft_of(&s, false);
    float *in = random_floats(1, floats(&op.in[0])), *out = random_floats(2, floats(&op.out[0]));
    run_op(device, op, (tess_op_buffers){.in = {in}, .out = {out}});
    double worst = 0;
    for (int64_t image = 0; image < s.n * s.d; image++)
        for (int64_t y = 0; y < s.h; y++)
            for (int64_t x = 0; x < op.out[0].w; x++)
                for (int64_t c = 0; c < s.c; c++) {
                    const float *got = out + ((image * s.h + y) * op.out[0].w + x) * op.out[0].c + 2 * c;
                    double re, im;
                    naive(&s, in + image * s.h * s.w * s.c, y, x, c, &re, &im);
                    worst = fmax(worst, hypot(got[0] - re, got[1] - im));
                }
    const double size = sqrt((double)s.w * (s.rows_only ? 1.0 : (double)s.h));
    CHECK_MSG(worst < 2e-6 * size, "%lldx%lldx%lld: off by %g", (long long)s.h, (long long)s.w,
              (long long)s.c, worst);
    free(in), free(out);
}

static void there_and_back(tess_device *device, shape s)
{
    const tess_op to = fft_of(&s, false), back = fft_of(&s, true);
    float *in = random_floats(3, floats(&to.in[0])), *half = random_floats(4, floats(&to.out[0])),
          *out = random_floats(5, floats(&to.in[0]));
    run_op(device, to, (tess_op_buffers){.in = {in}, .out = {half}});
    run_op(device, back, (tess_op_buffers){.in = {half}, .out = {out}});
    double worst = 0;
    for (int64_t i = 0; i < floats(&to.in[0]); i++)
        worst = fmax(worst, fabs((double)in[i] - out[i]));
    CHECK_MSG(worst < 5e-6, "%lldx%lld comes back with a difference of %g", (long long)s.h, (long long)s.w,
              worst);
    free(in), free(half), free(out);
}

static tess_op columns_of(tess_tensor half, bool inverse)
{
    return (tess_op){.kind = TESS_OP_FFT,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {half},
                     .out = {half},
                     .fft = {.inverse = inverse, .columns_only = true}};
}

/* A filter, and rows, columns, product, columns, rows one after another: as ranks do it, to the last bit. */
static void in_parts(tess_device *device, shape s)
{
    shape lines = s;
    lines.rows_only = true;
    const double factors[TESS_FILTER_FACTORS] = {0.3, -0.7, 0.9, 1.1, 0.4};
    tess_op rows = fft_of(&lines, false), rows_back = fft_of(&lines, true), whole = fft_of(&s, false);
    rows_back.fft.rows = s.h;
    const tess_tensor image = rows.in[0], half = rows.out[0],
                      power = tess_tensor_2d(TESS_F32, 1, s.h, half.w, 1);
    tess_op product = {.kind = TESS_OP_FILTER,
                       .inputs = 3,
                       .outputs = 1,
                       .in = {half, power, half},
                       .out = {half},
                       .filter = {.product_only = true}},
            filter = {.kind = TESS_OP_FILTER,
                      .inputs = 3,
                      .outputs = 1,
                      .in = {image, power, half},
                      .out = {image}};
    float *in = random_floats(31, floats(&image)), *gains = random_floats(32, floats(&power)),
          *data = random_floats(33, floats(&half)), *waves = random_floats(34, floats(&half)),
          *spectrum = random_floats(35, floats(&half)), *out = random_floats(36, floats(&image)),
          *expected = random_floats(37, floats(&image));
    for (int64_t i = 0; i < floats(&power); i++)
        gains[i] = fabsf(gains[i]);
    run_op(device, whole, (tess_op_buffers){.in = {in}, .out = {spectrum}});
    run_op(device, filter, (tess_op_buffers){.in = {in, gains, data}, .out = {expected}, .factors = factors});
    run_op(device, rows, (tess_op_buffers){.in = {in}, .out = {waves}});
    run_op(device, columns_of(half, false), (tess_op_buffers){.in = {waves}, .out = {waves}});
    bool same = true;
    for (int64_t i = 0; i < floats(&half); i++)
        same = same && waves[i] == spectrum[i];
    CHECK_MSG(same, "%lldx%lld: the spectrum in parts", (long long)s.h, (long long)s.w);
    run_op(device, product,
           (tess_op_buffers){.in = {waves, gains, data}, .out = {waves}, .factors = factors});
    run_op(device, columns_of(half, true), (tess_op_buffers){.in = {waves}, .out = {waves}});
    run_op(device, rows_back, (tess_op_buffers){.in = {waves}, .out = {out}});
    for (int64_t i = 0; i < floats(&image); i++)
        same = same && out[i] == expected[i];
    CHECK_MSG(same, "%lldx%lld: the filter in parts", (long long)s.h, (long long)s.w);
    free(in), free(gains), free(data), free(waves), free(spectrum), free(out), free(expected);
}

/* A window of wider pixels of somebody else. */
static void with_strides(tess_device *device)
{
    const shape s = {1, 1, 7, 10, 2, false};
    tess_op dense = fft_of(&s, false), wide = dense;
    wide.in[0].stride_w = 5, wide.in[0].stride_h = 5 * 13,
    wide.in[0].stride_n = wide.in[0].stride_d = 7 * 5 * 13;
    wide.out[0].stride_w = 6, wide.out[0].stride_h = 6 * 9,
    wide.out[0].stride_n = wide.out[0].stride_d = 7 * 6 * 9;
    float *in = random_floats(6, floats(&wide.in[0])), *copy = random_floats(7, floats(&dense.in[0]));
    float *out = random_floats(8, floats(&wide.out[0])), *expected = random_floats(9, floats(&dense.out[0]));
    for (int64_t i = 0; i < floats(&dense.in[0]); i++)
        copy[i] = in[i / 20 * wide.in[0].stride_h + i / 2 % 10 * 5 + i % 2];
    run_op(device, dense, (tess_op_buffers){.in = {copy}, .out = {expected}});
    run_op(device, wide, (tess_op_buffers){.in = {in}, .out = {out}});
    bool same = true;
    for (int64_t i = 0; i < floats(&dense.out[0]); i++)
        same = same && expected[i] == out[i / 24 * wide.out[0].stride_h + i / 4 % 6 * 6 + i % 4];
    CHECK(same);
    free(in), free(copy), free(out), free(expected);
}

static void threads_do_not_matter(void)
{
    const shape s = {1, 1, 51, 62, 3, false};
    const tess_op op = fft_of(&s, false);
    float *in = random_floats(10, floats(&op.in[0])), *one = random_floats(11, floats(&op.out[0])),
          *five = random_floats(12, floats(&op.out[0]));
    tess_device *single = open_cpu(1), *many = open_cpu(5);
    run_op(single, op, (tess_op_buffers){.in = {in}, .out = {one}});
    run_op(many, op, (tess_op_buffers){.in = {in}, .out = {five}});
    CHECK(memcmp(one, five, (size_t)floats(&op.out[0]) * sizeof *one) == 0);
    tess_registry_close(single), tess_registry_close(many);
    free(in), free(one), free(five);
}

/* Against the transform, the formula, and the transform back; then over its own input, and without what it adds. */
static void filter_of(tess_device *device, shape s)
{
    const tess_op to = fft_of(&s, false), back = fft_of(&s, true);
    const tess_tensor power = tess_tensor_2d(TESS_F32, 1, s.h, s.w / 2 + 1, 1);
    const tess_op op = {.kind = TESS_OP_FILTER,
                        .outputs = 1,
                        .in = {to.in[0], power, to.out[0]},
                        .out = {to.in[0]},
                        .inputs = 3};
    const double f[TESS_FILTER_FACTORS] = {0.3, -0.7, 1.3, 0.5, 0.9};
    float *in = random_floats(3, floats(&to.in[0])), *data = random_floats(4, floats(&to.out[0])),
          *factor = random_floats(5, floats(&power)), *half = random_floats(6, floats(&to.out[0])),
          *expected = random_floats(7, floats(&to.in[0])), *out = random_floats(8, floats(&to.in[0]));
    for (int64_t i = 0; i < floats(&power); i++)
        factor[i] *= factor[i];
    for (int plain = 0; plain < 2; plain++) {
        const double factors[TESS_FILTER_FACTORS] = {f[0], f[1], plain ? 0 : f[2], f[3], f[4]};
        if (!plain)
            run_op(device, to, (tess_op_buffers){.in = {out}, .out = {data}});
        run_op(device, to, (tess_op_buffers){.in = {in}, .out = {half}});
        for (int64_t i = 0; i < floats(&to.out[0]); i++) {
            const double v = factor[i / (2 * s.c) % (s.h * (s.w / 2 + 1))];
            half[i] = (float)(((f[0] + f[1] * v) * half[i] + factors[2] * data[i]) / (f[3] + f[4] * v));
        }
        run_op(device, back, (tess_op_buffers){.in = {half}, .out = {expected}});
        memcpy(out, in, (size_t)floats(&to.in[0]) * sizeof *in);
        run_op(device, op,
               (tess_op_buffers){.in = {out, factor, plain ? NULL : data}, .out = {out}, .factors = factors});
        double worst = 0;
        for (int64_t i = 0; i < floats(&to.in[0]); i++)
            worst = fmax(worst, fabs((double)expected[i] - out[i]));
        CHECK_MSG(worst < 1e-5, "a filter of %lldx%lld is off by %g", (long long)s.h, (long long)s.w, worst);
    }
    free(in), free(data), free(factor), free(half), free(expected), free(out);
}

static void refuses(tess_device *device)
{
    const shape s = {1, 1, 8, 8, 1, false};
    tess_op op = fft_of(&s, false);
    tess_op_needs needs;
    tess_error error;
    op.out[0].w = 8;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    op = fft_of(&s, false);
    op.in[0].dtype = TESS_BF16;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    op = (tess_op){
        .kind = TESS_OP_FILTER, .outputs = 1, .in = {op.out[0], op.out[0]}, .out = {op.out[0]}, .inputs = 2};
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
}

int main(void)
{
    tess_device *device = open_cpu(0);
    static const shape shapes[] = {
        {1, 1, 8, 8, 1, false},   {1, 1, 13, 17, 3, false}, {2, 1, 9, 10, 2, false}, {1, 1, 1, 7, 1, false},
        {1, 1, 5, 1, 3, false},   {1, 1, 1, 1, 1, false},   {2, 3, 4, 19, 1, true},  {1, 1, 6, 31, 3, true},
        {1, 1, 37, 22, 3, false}, {1, 2, 11, 12, 1, false}, {1, 1, 2, 683, 1, true}, {1, 1, 3, 64, 5, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        against_definition(device, shapes[i]);
        there_and_back(device, shapes[i]);
    }
    there_and_back(device, (shape){1, 1, 683, 1366, 3, false});
    there_and_back(device, (shape){1, 1, 911, 512, 1, false});
    filter_of(device, (shape){1, 1, 13, 17, 3, false});
    filter_of(device, (shape){2, 3, 9, 10, 2, false});
    filter_of(device, (shape){1, 1, 64, 683, 1, false});
    in_parts(device, (shape){1, 1, 13, 17, 3, false});
    in_parts(device, (shape){1, 1, 48, 30, 1, false});
    with_strides(device);
    threads_do_not_matter();
    refuses(device);
    tess_registry_close(device);
    return check_end();
}
