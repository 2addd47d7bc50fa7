/* Transforms of images by our own kernels (filter.cu): the ops that they accept, and their tables. They do not
 * accept sides above 8192, nor sides above 4096 that are not a power of two; for these
 * `tess_cuda_filter_whole` does a filter with cuFFT, as a transform, a product and an inverse transform.
 *
 * A prepared op owns its tables, about 100 KB, like the plans of cuFFT. */
#include "cuda/fft/filter.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { ALIGN = 256 };
static const double TURN = 6.283185307179586476925;

typedef struct filter_handle {
    tess_filter_plan plan;
    float *tables; /* on the card */
} filter_handle;

/* The length of line used to transform n values; 0: not supported. */
static int line_of(int64_t n)
{
    int64_t line = TESS_FILTER_LEAST;
    while (line < n)
        line *= 2;
    if (line != n)
        while (line < 2 * n - 1)
            line *= 2;
    return line <= TESS_FILTER_MOST ? (int)line : 0;
}

static const tess_tensor *real_of(const tess_op *op)
{
    return op->kind == TESS_OP_FFT && op->fft.inverse ? &op->out[0] : &op->in[0];
}

static int64_t row_values(const tess_tensor *real)
{
    return real->w % 2 ? real->w : real->w / 2;
}

static bool even_strides(const tess_tensor *t)
{
    return t->stride_w % 2 == 0 && t->stride_h % 2 == 0 && t->stride_d % 2 == 0 && t->stride_n % 2 == 0;
}

static bool fits(const tess_tensor *r, const tess_tensor *s)
{
    return r->dtype == TESS_F32 && s->dtype == TESS_F32 && r->n == s->n && r->d == s->d && r->h == s->h &&
           s->w == r->w / 2 + 1 && s->c == 2 * r->c && even_strides(s);
}

static const char *refuses_tensors(const tess_op *op)
{
    if (op->kind == TESS_OP_FILTER && op->filter.product_only)
        return "a card filters whole images";
    if (op->kind == TESS_OP_FFT) {
        if (op->fft.rows_only || op->fft.columns_only)
            return "rows alone are left to cuFFT";
        return fits(real_of(op), op->fft.inverse ? &op->in[0] : &op->out[0])
                   ? NULL
                   : "a spectrum has w/2+1 columns, twice the channels, and pixels at even places";
    }
    const tess_tensor *a = &op->in[0], *b = &op->out[0], *power = &op->in[1];
    if (a->dtype != TESS_F32 || b->dtype != TESS_F32 || a->n != b->n || a->d != b->d || a->h != b->h ||
        a->w != b->w || a->c != b->c)
        return "a filter takes and makes fp32 images of one size";
    if (tess_op_residuals(op) < 1 || power->dtype != TESS_F32 || power->n != 1 || power->d != 1 ||
        power->h != a->h || power->w != a->w / 2 + 1 || power->c != 1)
        return "the filter does not fit the image";
    if (tess_op_residuals(op) > 1 && !fits(a, &op->in[2]))
        return "what a filter adds must be a spectrum of its image, with pixels at even places";
    return NULL;
}

static const char *filter_refuses(const tess_op *op, int capability)
{
    (void)capability;
    if (op->kind != TESS_OP_FILTER && op->kind != TESS_OP_FFT)
        return "only transforms of images, and filters";
    const tess_tensor *r = real_of(op);
    if (r->n < 1 || r->d < 1 || r->h < 1 || r->w < 1 || r->c < 1)
        return "it has no values";
    if (!line_of(r->h) || !line_of(row_values(r)) || r->c > 1024)
        return "sides are at most 4096, or a power of two up to 8192; channels at most 1024";
    return refuses_tensors(op);
}

static tess_filter_plan plan_of(const tess_op *op)
{
    const tess_tensor *r = real_of(op);
    const int n = (int)row_values(r), h = (int)r->h;
    return (tess_filter_plan){.height = h,
                              .width = (int)r->w,
                              .channels = (int)r->c,
                              .rows = {.n = n, .line = line_of(n)},
                              .columns = {.n = h, .line = line_of(h)}};
}

static size_t filter_workspace(const tess_op *op)
{
    const tess_filter_plan plan = plan_of(op);
    return ALIGN + tess_filter_work(&plan);
}

/* Radix-2 FFT in place. */
static void transform(double *v, int count)
{
    for (int i = 1, j = 0; i < count; i++) {
        int bit = count >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        for (int p = 0; i < j && p < 2; p++) {
            const double swap = v[2 * i + p];
            v[2 * i + p] = v[2 * j + p];
            v[2 * j + p] = swap;
        }
    }
    for (int half = 1; half < count; half *= 2)
        for (int k = 0; k < half; k++) {
            const double c = cos(TURN * k / (2 * half)), s = -sin(TURN * k / (2 * half));
            for (int i = k; i < count; i += 2 * half) {
                double *a = v + 2 * i, *b = a + 2 * half;
                const double re = b[0] * c - b[1] * s, im = b[0] * s + b[1] * c;
                b[0] = a[0] - re, b[1] = a[1] - im;
                a[0] += re, a[1] += im;
            }
        }
}

static size_t line_floats(const tess_filter_lines *l)
{
    return 2 * (size_t)l->line + (l->n != l->line ? 2 * (size_t)(l->n + l->line) : 0);
}

static void fill_roots(float *to, int64_t count, double of)
{
    for (int64_t k = 0; k < count; k++) {
        to[2 * k] = (float)cos(TURN * (double)k / of);
        to[2 * k + 1] = (float)-sin(TURN * (double)k / of);
    }
}

/* Writes the roots and, if needed, the chirp and the spectrum of its wrapped conjugate. `wide`: 2 line
 * doubles. */
static void fill_line(const tess_filter_lines *l, float *to, double *wide)
{
    fill_roots(to, l->line, l->line);
    if (l->n == l->line)
        return;
    float *chirp = to + 2 * l->line, *spectrum = chirp + 2 * l->n;
    memset(wide, 0, 2 * (size_t)l->line * sizeof *wide);
    for (int64_t k = 0; k < l->n; k++) {
        const double turns = (double)(k * k % (2 * l->n)) / (2 * l->n), c = cos(TURN * turns),
                     s = sin(TURN * turns);
        const int64_t mirrored = k ? l->line - k : 0;
        chirp[2 * k] = (float)c, chirp[2 * k + 1] = (float)-s;
        wide[2 * k] = wide[2 * mirrored] = c / l->line;
        wide[2 * k + 1] = wide[2 * mirrored + 1] = s / l->line;
    }
    transform(wide, l->line);
    for (int64_t k = 0; k < 2 * (int64_t)l->line; k++)
        spectrum[k] = (float)wide[k];
}

static const float *point(tess_filter_lines *l, const float *at)
{
    l->roots = at;
    l->chirp = at + 2 * l->line;
    l->chirp_spectrum = l->chirp + 2 * l->n;
    return at + line_floats(l);
}

static tess_status make_tables(filter_handle *f, tess_error *error)
{
    tess_filter_plan *plan = &f->plan;
    const size_t floats = line_floats(&plan->rows) + line_floats(&plan->columns) + (size_t)plan->width + 2;
    float *host = tess_small_alloc(floats, sizeof *host);
    double *wide = tess_small_alloc(2 * TESS_FILTER_MOST, sizeof *wide);
    tess_status status =
        host && wide ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the tables of an FFT");
    if (status == TESS_OK) {
        fill_line(&plan->rows, host, wide);
        fill_line(&plan->columns, host + line_floats(&plan->rows), wide);
        fill_roots(host + line_floats(&plan->rows) + line_floats(&plan->columns), plan->width / 2 + 1,
                   plan->width);
        status = tess_cuda_check(cudaMalloc((void **)&f->tables, floats * sizeof *host), "tables of an FFT",
                                 error);
    }
    if (status == TESS_OK)
        status = tess_cuda_check(cudaMemcpy(f->tables, host, floats * sizeof *host, cudaMemcpyHostToDevice),
                                 "tables of an FFT", error);
    plan->row_roots = point(&plan->columns, point(&plan->rows, f->tables));
    tess_small_free(host);
    tess_small_free(wide);
    return status;
}

static void filter_release(void *handle)
{
    filter_handle *f = handle;
    (void)cudaFree(f->tables);
    tess_small_free(f);
}

static tess_status filter_prepare(const tess_op *op, void **handle, tess_error *error)
{
    *handle = NULL;
    filter_handle *f = tess_small_alloc(1, sizeof *f);
    if (!f)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare an FFT");
    f->plan = plan_of(op);
    tess_status status = make_tables(f, error);
    if (status == TESS_OK)
        *handle = f;
    else
        filter_release(f);
    return status;
}

static int64_t image_at(const tess_tensor *t, int64_t i)
{
    return i / t->d * t->stride_n + i % t->d * t->stride_d;
}

tess_filter_run tess_filter_run_of(const tess_op *op, const tess_op_buffers *b)
{
    tess_filter_run run = {.mode = TESS_FILTER_BOTH, .real_in = op->in[0], .real_out = op->out[0]};
    if (op->kind == TESS_OP_FFT) {
        run.mode = op->fft.inverse ? TESS_FILTER_INVERSE : TESS_FILTER_FORWARD;
        run.spectrum = op->fft.inverse ? op->in[0] : op->out[0];
        run.in = op->fft.inverse ? NULL : b->in[0];
        run.out = op->fft.inverse ? b->out[0] : NULL;
        run.waves = op->fft.inverse ? (float *)b->in[0] : b->out[0]; /* an inverse only reads it */
        return run;
    }
    run.in = b->in[0];
    run.out = b->out[0];
    run.power = b->in[1];
    run.power_row = op->in[1].stride_h;
    run.power_column = op->in[1].stride_w;
    run.less = op->in[2];
    run.data = tess_op_residuals(op) > 1 && b->factors[2] != 0 ? b->in[2] : NULL;
    memcpy(run.factor, b->factors, sizeof run.factor);
    return run;
}

static tess_status filter_run(void *handle, const tess_op *op, const tess_op_buffers *buffers,
                              cudaStream_t stream, tess_error *error)
{
    const filter_handle *f = handle;
    const tess_filter_run first = tess_filter_run_of(op, buffers);
    char *work = (char *)(((uintptr_t)buffers->workspace + ALIGN - 1) / ALIGN * ALIGN);
    if ((uintptr_t)first.waves % 8 || (uintptr_t)first.data % 8)
        return tess_fail(error, TESS_UNSUPPORTED, "a spectrum must begin at a multiple of 8 bytes");
    for (int64_t i = 0; i < op->in[0].n * op->in[0].d; i++) {
        tess_filter_run run = first;
        run.work = work;
        run.in = first.in ? first.in + image_at(&run.real_in, i) : NULL;
        run.out = first.out ? first.out + image_at(&run.real_out, i) : NULL;
        run.waves = first.waves ? first.waves + image_at(&run.spectrum, i) : NULL;
        run.data = first.data ? first.data + image_at(&run.less, i) : NULL;
        TESS_TRY(tess_cuda_check(tess_filter_launch(&f->plan, &run, stream), "FFT", error));
    }
    return TESS_OK;
}

const tess_cuda_launch tess_cuda_filter = {.refuses = filter_refuses,
                                           .load = tess_filter_load,
                                           .workspace = filter_workspace,
                                           .prepare = filter_prepare,
                                           .release = filter_release,
                                           .run_prepared = filter_run};
