/* test_fft_cuda.c: compares the solvers' vector and spectrum ops on the card with the CPU on the same data: weighted
 * sums, inner products, products with spectra, transforms of even, odd and prime sizes; on windows, in place, twice
 * with the same bits, and replayed from a graph. */
#include "gpu.h"
#include "solver_ops.h"

enum { INPUTS = 3 }; /* in and the residuals */

static tess_device *card, *host;

/* One op's tensors on the host: a NULL input is not given to the card either. */
typedef struct data {
    float *from[INPUTS];
    void *out;
    int in_place; /* 1: out is `in`; 2, 3: a residual; 0: by itself */
    const double *factors;
} data;

static size_t bytes_of(const tess_tensor *t)
{
    size_t bytes = 0;
    CHECK(tess_tensor_bytes(t, &bytes));
    return bytes;
}

static const tess_tensor *input(const tess_op *op, int i)
{
    return i ? &op->in[1 + i - 1] : &op->in[0];
}

static tess_block upload(const void *values, size_t bytes)
{
    tess_block block = {0};
    tess_error error = {""};
    if (card->memory->alloc(card, &block, TESS_MEM_WORKSPACE, bytes, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    if (values)
        card->memory->copy(card, block.data, values, bytes, NULL);
    return block;
}

static void synced(void)
{
    tess_error error = {""};
    CHECK_MSG(card->streams->sync(card, NULL, &error) == TESS_OK, "%s", error.text);
}

static void run_captured(const tess_prepared *prepared, const tess_op_buffers *buffers)
{
    tess_error error = {""};
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    synced(); /* the stream knows nothing of the copies */
    bool made = card->streams->create(card, &stream, &error) == TESS_OK &&
                card->graphs->begin(card, stream, &error) == TESS_OK;
    CHECK_MSG(made, "%s", error.text);
    if (!made)
        return;
    card->ops->run(card, prepared, buffers, stream);
    made = card->graphs->end(card, stream, &graph, &error) == TESS_OK;
    CHECK_MSG(made, "%s", error.text);
    if (made) {
        card->graphs->launch(card, graph, stream);
        CHECK_MSG(card->streams->sync(card, stream, &error) == TESS_OK, "%s", error.text);
        card->graphs->release(card, graph);
    }
    card->streams->destroy(card, stream);
}

/* Runs the op on the card; d->out is what it holds before, and then the result. */
static void on_card(tess_op op, const data *d, bool captured)
{
    for (int k = 0; k < TESS_SPATIAL; k++)
        op.kernel[k] = op.stride[k] = 1;
    tess_error error = {""};
    tess_op_needs needs = {0};
    tess_prepared *prepared = NULL;
    if (card->ops->query(card, &op, &needs, &error) != TESS_OK ||
        card->ops->prepare(card, &op, &prepared, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        return;
    }
    tess_block from[INPUTS] = {{0}}, out = upload(d->out, bytes_of(&op.out[0])),
               workspace = upload(NULL, needs.workspace + 1);
    for (int i = 0; i <= tess_op_residuals(&op); i++)
        if (d->from[i] && d->in_place != i + 1)
            from[i] = upload(d->from[i], bytes_of(input(&op, i)));
    tess_op_buffers buffers = {.out = {out.data}, .workspace = workspace.data, .factors = d->factors};
    buffers.in[0] = d->in_place == 1 ? out.data : from[0].data;
    for (int r = 0; r < tess_op_residuals(&op); r++)
        buffers.in[1 + r] = d->in_place == r + 2 ? out.data : from[r + 1].data;
    if (captured)
        run_captured(prepared, &buffers);
    else
        card->ops->run(card, prepared, &buffers, NULL);
    card->memory->copy(card, d->out, out.data, bytes_of(&op.out[0]), NULL);
    synced();
    card->ops->release(card, prepared);
    card->memory->free(card, &out), card->memory->free(card, &workspace);
    for (int i = 0; i < INPUTS; i++)
        if (from[i].data)
            card->memory->free(card, &from[i]);
}

/* Compares the CPU's result with the card's, each on a copy of `before`; the card's captured run must give the same
 * bits. */
static double difference(const char *name, tess_op op, data d)
{
    const size_t bytes = bytes_of(&op.out[0]);
    const int64_t count = (int64_t)(bytes / sizeof(float));
    float *want = malloc(bytes), *got = malloc(bytes), *again = malloc(bytes);
    const float *before = d.in_place ? d.from[d.in_place - 1] : d.out;
    memcpy(want, before, bytes), memcpy(got, before, bytes), memcpy(again, before, bytes);
    float *copies[INPUTS] = {NULL}; /* the CPU's inverse overwrites what it reads */
    for (int i = 0; i <= tess_op_residuals(&op); i++)
        if (d.from[i]) {
            copies[i] = malloc(bytes_of(input(&op, i)));
            memcpy(copies[i], d.from[i], bytes_of(input(&op, i)));
        }
    tess_op_buffers buffers = {
        .in = {d.in_place == 1 ? want : copies[0]}, .out = {want}, .factors = d.factors};
    for (int r = 0; r < tess_op_residuals(&op); r++)
        buffers.in[1 + r] = d.in_place == r + 2 ? want : copies[r + 1];
    run_op(host, op, buffers);
    d.out = got;
    on_card(op, &d, false);
    d.out = again;
    on_card(op, &d, true);
    CHECK_MSG(memcmp(got, again, bytes) == 0, "%s: other bits from a graph", name);
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
        const double off = same ? 0 : fabs((double)got[i] - want[i]);
        worst = off <= worst ? worst : off; /* NaN is taken, */
        if (isnan(off))
            worst = INFINITY; /* and is the worst */
    }
    for (int i = 0; i < INPUTS; i++)
        free(copies[i]);
    free(want), free(got), free(again);
    return worst;
}

static tess_tensor with_gaps(tess_tensor t, int64_t pixel, int64_t row)
{
    t.stride_w = pixel;
    t.stride_h = row * pixel;
    t.stride_d = t.h * t.stride_h;
    t.stride_n = t.d * t.stride_d;
    return t;
}

static float *values_of(uint32_t item, const tess_tensor *t)
{
    return random_floats(item, (int64_t)(bytes_of(t) / sizeof(float)));
}

static void test_combine(void)
{
    const tess_tensor shapes[] = {
        tess_tensor_2d(TESS_F32, 1, 13, 11, 3), tess_tensor_2d(TESS_F32, 2, 1, 1, 1),
        tess_tensor_3d(TESS_F32, 2, 3, 37, 301, 1), tess_tensor_2d(TESS_F32, 1, 70001, 1, 2)};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int which = 0; which < 3 * 2 * 4; which++) {
            const int residuals = which % 3, in_place = which / 6;
            const bool gaps = which / 3 % 2;
            if (in_place > residuals + 1)
                continue;
            tess_op op = {.kind = TESS_OP_COMBINE, .outputs = 1, .in = {shapes[s]}, .inputs = 1 + residuals};
            op.combine = (tess_op_combine){0.5, -2, 3, -1, 1.5};
            if (gaps)
                op.in[0] = with_gaps(op.in[0], op.in[0].c + 2, op.in[0].w + 3);
            op.in[1] = in_place || !gaps ? op.in[0] : shapes[s];
            op.out[0] = op.in[2] = op.in[0];
            data d = {.in_place = in_place, .out = values_of(4, &op.out[0])};
            for (int i = 0; i <= residuals; i++)
                d.from[i] = values_of((uint32_t)i, input(&op, i));
            const double off = difference("combine", op, d);
            CHECK_MSG(off == 0, "shape %zu, case %d: off by %g", s, which, off);
            free(d.out);
            for (int i = 0; i < INPUTS; i++)
                free(d.from[i]);
        }
}

/* What has no factor is not read, not even where there is nothing; NaN stays. */
static void test_zero_factors(void)
{
    const tess_tensor t = tess_tensor_2d(TESS_F32, 1, 13, 11, 3);
    float *values = values_of(1, &t), *out = values_of(2, &t);
    tess_op op = {.kind = TESS_OP_COMBINE, .outputs = 1, .in = {t, t, t}, .out = {t}, .inputs = 3};
    op.combine = (tess_op_combine){0, 2, 0, -INFINITY, INFINITY};
    on_card(op, &(data){.from = {NULL, values, NULL}, .out = out}, false);
    int wrong = 0;
    for (int i = 0; i < 13 * 11 * 3; i++)
        wrong += out[i] != 2 * values[i];
    op.combine.b = 0;
    on_card(op, &(data){.out = out}, false);
    for (int i = 0; i < 13 * 11 * 3; i++)
        wrong += out[i] != 0;
    values[7] = NAN;
    op.combine = (tess_op_combine){1, 0, 0, 0, 1};
    on_card(op, &(data){.from = {values, NULL, NULL}, .out = out}, false);
    CHECK(wrong == 0 && isnan(out[7]) && out[8] >= 0 && out[8] <= 1);
    free(values), free(out);
}

static void test_dot(void)
{
    const tess_tensor image = tess_tensor_2d(TESS_F32, 1, 13, 11, 3);
    const tess_tensor shapes[] = {tess_tensor_2d(TESS_F32, 1, 1, 1, 1),
                                  image,
                                  tess_tensor_2d(TESS_F32, 2, 301, 207, 3),
                                  tess_tensor_3d(TESS_F32, 1, 3, 3, 70001, 1),
                                  with_gaps(image, 5, 17),
                                  tess_tensor_2d(TESS_F32, 1, 3000, 4001, 1)};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int gaps = 0; gaps < 2; gaps++) {
            tess_op op = {.kind = TESS_OP_DOT, .outputs = 1, .in = {shapes[s]}, .inputs = 2};
            op.out[0] = tess_tensor_2d(TESS_F64, 1, 1, 1, 1);
            op.in[1] = gaps ? with_gaps(shapes[s], shapes[s].c + 1, shapes[s].w) : shapes[s];
            float *a = values_of(1, &op.in[0]), *b = values_of(2, &op.in[1]);
            double want = 0, got = 1, again = 2, size = 0;
            run_op(host, op, (tess_op_buffers){.in = {a, b}, .out = {&want}});
            on_card(op, &(data){.from = {a, b}, .out = &got}, false);
            on_card(op, &(data){.from = {a, b}, .out = &again}, true);
            size = sqrt((double)(op.in[0].n * op.in[0].d * op.in[0].h) * (double)(op.in[0].w * op.in[0].c));
            CHECK_MSG(fabs(got - want) <= 1e-13 * size && got == again, "shape %zu: %.17g, %.17g, not %.17g",
                      s, got, again, want);
            free(a), free(b);
        }
}

static void test_spectrum(void)
{
    for (int which = 0; which < 64; which++) {
        const bool complex = which & 1, conjugate = which & 2, one_row = which & 4, minus = which & 8;
        tess_op op = {.kind = TESS_OP_SPECTRUM,
                      .outputs = 1,
                      .spectrum = {complex, conjugate},
                      .inputs = minus ? 3 : 2};
        op.in[0] = tess_tensor_3d(TESS_F32, 2, 2, 13, 301, 6);
        if (which & 16)
            op.in[0] = with_gaps(op.in[0], 8, 311);
        op.out[0] = op.in[2] = op.in[0];
        op.in[1] = tess_tensor_2d(TESS_F32, 1, one_row ? 1 : 13, 301, complex ? 2 : 1);
        data d = {.out = values_of(4, &op.out[0]), .in_place = which & 32 ? 1 : 0};
        for (int i = 0; i <= tess_op_residuals(&op); i++)
            d.from[i] = values_of((uint32_t)i + 1, input(&op, i));
        const double off = difference("spectrum", op, d);
        CHECK_MSG(off == 0, "case %d: off by %g", which, off);
        free(d.out);
        for (int i = 0; i < INPUTS; i++)
            free(d.from[i]);
    }
}

typedef struct shape {
    int64_t n, d, h, w, c;
    bool rows_only, gaps;
} shape;

static tess_op fft_of(const shape *s, bool inverse)
{
    tess_tensor real = tess_tensor_3d(TESS_F32, s->n, s->d, s->h, s->w, s->c);
    tess_tensor half = tess_tensor_3d(TESS_F32, s->n, s->d, s->h, s->w / 2 + 1, 2 * s->c);
    if (s->gaps) {
        real = with_gaps(real, s->c + 1, s->w + 3);
        half = with_gaps(half, 2 * s->c + 2, s->w / 2 + 4);
    }
    return (tess_op){.kind = TESS_OP_FFT,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {inverse ? half : real},
                     .out = {inverse ? real : half},
                     .fft = {inverse, s->rows_only}};
}

static void test_fft(shape s)
{
    const double pixels = (double)s.w * (s.rows_only ? 1.0 : (double)s.h);
    const tess_op to = fft_of(&s, false), back = fft_of(&s, true);
    char name[96];
    snprintf(name, sizeof name, "%lldx%lldx%lldx%lldx%lld%s%s", (long long)s.n, (long long)s.d,
             (long long)s.h, (long long)s.w, (long long)s.c, s.rows_only ? " rows" : "",
             s.gaps ? " gaps" : "");
    float *image = values_of(1, &to.in[0]), *waves = values_of(2, &to.out[0]);
    double off = difference(name, to, (data){.from = {image}, .out = waves});
    CHECK_MSG(off < 5e-6 * sqrt(pixels), "%s: off by %g", name, off);
    /* The inverse of a true spectrum: what a real image's does not have, libraries read differently. */
    run_op(host, to, (tess_op_buffers){.in = {image}, .out = {waves}});
    off = difference(name, back, (data){.from = {waves}, .out = image});
    CHECK_MSG(off < 1e-5, "%s: back, off by %g", name, off);
    free(image), free(waves);
}

static void test_filter(shape s)
{
    const double factors[TESS_FILTER_FACTORS] = {0.3, -0.7, 1.3, 0.5, 0.9};
    const tess_op to = fft_of(&s, false);
    tess_op op = {.kind = TESS_OP_FILTER, .outputs = 1, .in = {to.in[0]}, .out = {to.in[0]}, .inputs = 3};
    op.in[1] = tess_tensor_2d(TESS_F32, 1, s.h, s.w / 2 + 1, 1);
    op.in[2] = to.out[0];
    float *image = values_of(1, &op.in[0]), *power = values_of(2, &op.in[1]),
          *waves = values_of(3, &to.out[0]);
    for (int64_t i = 0; i < s.h * (s.w / 2 + 1); i++)
        power[i] *= power[i];
    run_op(host, to, (tess_op_buffers){.in = {image}, .out = {waves}});
    for (int in_place = 0; in_place < 2; in_place++) {
        data d = {.from = {image, power, waves}, .in_place = in_place, .factors = factors};
        d.out = values_of(4, &op.out[0]);
        const double off = difference("filter", op, d);
        CHECK_MSG(off < 1e-5, "filter of %lldx%lldx%lld: off by %g", (long long)s.h, (long long)s.w,
                  (long long)s.c, off);
        free(d.out);
    }
    free(image), free(power), free(waves);
}

static void test_refuses(void)
{
    const shape s = {1, 1, 8, 8, 1, false, false};
    tess_op op = fft_of(&s, false);
    tess_op_needs needs;
    tess_error error = {""};
    op.out[0].w = 8;
    CHECK(card->ops->query(card, &op, &needs, &error) == TESS_UNSUPPORTED);
    op = fft_of(&s, false);
    op.in[0].dtype = TESS_BF16;
    CHECK(card->ops->query(card, &op, &needs, &error) == TESS_UNSUPPORTED);
    op = (tess_op){.kind = TESS_OP_COMBINE, .inputs = 1, .outputs = 1, .in = {op.out[0]}, .out = {op.in[0]}};
    CHECK(card->ops->query(card, &op, &needs, &error) == TESS_UNSUPPORTED);
}

int main(void)
{
    int status = 0;
    card = gpu_open(&status);
    if (!card)
        return status;
    host = open_cpu(0);
    test_combine();
    test_zero_factors();
    test_dot();
    test_spectrum();
    static const shape shapes[] = {{1, 1, 8, 8, 1, false, false},      {1, 1, 13, 17, 3, false, false},
                                   {2, 1, 9, 10, 2, false, false},     {1, 1, 1, 7, 1, false, false},
                                   {1, 1, 5, 1, 3, false, false},      {1, 1, 1, 1, 1, false, false},
                                   {2, 3, 4, 19, 1, true, false},      {1, 1, 6, 31, 3, true, false},
                                   {1, 1, 37, 22, 3, false, false},    {1, 2, 11, 12, 1, false, false},
                                   {1, 1, 2, 683, 1, true, false},     {1, 1, 3, 64, 5, false, false},
                                   {2, 2, 7, 10, 2, false, true},      {2, 2, 7, 11, 1, true, true},
                                   {2, 3, 8, 64, 1, true, false},      {3, 5, 16, 12, 3, true, false},
                                   {1, 1, 683, 1366, 3, false, false}, {1, 1, 911, 2733, 1, false, false},
                                   {1, 1, 720, 2048, 1, true, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        test_fft(shapes[i]);
    static const shape filters[] = {{1, 1, 8, 8, 1, false, false},       {1, 1, 13, 17, 3, false, false},
                                    {2, 3, 9, 10, 2, false, false},      {2, 2, 7, 10, 2, false, true},
                                    {1, 1, 512, 1024, 1, false, false},  {1, 1, 2048, 1366, 3, false, false},
                                    {1, 1, 4096, 2733, 3, false, false}, {1, 1, 1024, 683, 3, false, false},
                                    {1, 1, 2048, 2048, 3, false, false}, {1, 1, 8192, 600, 1, false, false},
                                    {1, 1, 20, 16384, 3, false, false},  {1, 1, 1500, 5000, 1, false, false},
                                    {1, 1, 5000, 99, 2, false, false}};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        test_filter(filters[i]);
    test_refuses();
    tess_registry_close(host), tess_registry_close(card);
    return check_end();
}
