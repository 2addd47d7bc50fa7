/* FFTs by FFTW, one line at a time: a row or a column of one channel is gathered into a thread's scratch,
 * transformed there with stride 1, and written back. So there are two small plans for any image size, both
 * passes use all threads (FFTW itself uses one), and every line is transformed in the same way: results depend
 * neither on the number of threads nor on addresses.
 *
 * Plans are estimated, never measured: a measured plan may differ from run to run, and so may its results.
 * Prime factors use Rader's algorithm, for which FFTW allocates a few lines of memory. FFTW ends the process
 * if an allocation fails, so its memory is bounded here, requested in advance (tess_op_needs) and counted.
 * Lines are short enough that making a plan takes no noticeable time, prime lengths included.
 *
 * The columns of an inverse are transformed in place: it overwrites its input, as op.h allows. */
#include <fftw3.h>
#include <pthread.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"

enum {
    LONGEST = 1 << 20,  /* most values per line */
    PLAN_BYTES = 16384, /* bytes per plan, plus PLAN_VALUE per value of the line */
    PLAN_VALUE = 48,
    RADER_VALUE = 32, /* bytes per value while a line is transformed */
    LINE_ALIGN = 64,  /* FFTW's plans are valid for buffers with the alignment they were made with */
    COLUMNS = 8       /* complex values per cache line: this many columns are gathered at a time */
};

typedef struct fft_plans {
    fftwf_plan rows, columns;
    tess_memory *memory; /* where the plans' bytes are counted */
    size_t bytes;
} fft_plans;

/* The planner is not thread-safe, nor is destroying a plan. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

typedef struct fft_job {
    const tess_op *op;
    const fft_plans *plans;
    const tess_tensor *real, *spectrum;
    const float *in;
    float *out;
    char *scratch;
} fft_job;

static const tess_tensor *real_of(const tess_op *op)
{
    return op->fft.inverse ? &op->out[0] : &op->in[0];
}

static const tess_tensor *spectrum_of(const tess_op *op)
{
    return op->fft.inverse ? &op->in[0] : &op->out[0];
}

tess_status tess_cpu_fft_refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    (void)device;
    if (op->kind != TESS_OP_FFT)
        return tess_kernel_refuse(error, NULL);
    const tess_tensor *r = real_of(op), *s = spectrum_of(op);
    if (r->dtype != TESS_F32 || s->dtype != TESS_F32)
        return tess_fail(error, TESS_UNSUPPORTED, "the CPU transforms fp32 values");
    if (op->fft.columns_only && (!tess_tensor_same(r, s) || s->c % 2))
        return tess_fail(error, TESS_UNSUPPORTED, "columns of a spectrum are transformed in place");
    if (!op->fft.columns_only &&
        (r->n != s->n || r->d != s->d || r->h != s->h || s->w != r->w / 2 + 1 || s->c != 2 * r->c))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "the spectrum of %lldx%lldx%lld values is not of %lldx%lldx%lld: "
                         "it has w/2+1 columns and twice the channels",
                         (long long)r->h, (long long)r->w, (long long)r->c, (long long)s->h, (long long)s->w,
                         (long long)s->c);
    if (r->w < 1 || r->h < 1 || r->w > LONGEST || r->h > LONGEST)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%lldx%lld pixels cannot be transformed: a side has 1 to %d of them",
                         (long long)r->h, (long long)r->w, (int)LONGEST);
    return TESS_OK;
}

static size_t complex_line(int64_t count)
{
    return tess_align_size((size_t)count * 2 * sizeof(float), LINE_ALIGN);
}

static size_t thread_scratch(const tess_op *op)
{
    const size_t row = op->fft.columns_only
                           ? 0
                           : tess_align_size((size_t)real_of(op)->w * sizeof(float), LINE_ALIGN) +
                                 complex_line(spectrum_of(op)->w);
    const size_t columns = op->fft.rows_only ? 0 : COLUMNS * complex_line(real_of(op)->h);
    return row > columns ? row : columns;
}

/* Most memory that FFTW allocates: both plans, and the buffers of each thread for a line. */
static size_t library_bytes(const tess_op *op, int threads)
{
    const size_t w = op->fft.columns_only ? 0 : (size_t)real_of(op)->w,
                 h = op->fft.rows_only ? 0 : (size_t)real_of(op)->h;
    return 2 * PLAN_BYTES + (w + h) * PLAN_VALUE + (size_t)threads * RADER_VALUE * (w > h ? w : h);
}

void tess_cpu_fft_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const int threads = tess_pool_threads(cpu->pool);
    *needs = (tess_op_needs){.workspace = (size_t)threads * thread_scratch(op) + LINE_ALIGN,
                             .held = library_bytes(op, threads),
                             .block = 1};
}

tess_status tess_cpu_fft_prepare(tess_device *device, const tess_op *op, void **out, tess_error *error)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    fft_plans *fft = *out = tess_small_alloc(1, sizeof *fft);
    if (!fft)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare an FFT");
    /* An estimate only looks at the alignment of the buffers and does not access them. */
    _Alignas(LINE_ALIGN) float real[LINE_ALIGN], complex[LINE_ALIGN];
    fftwf_complex *line = (fftwf_complex *)complex;
    const int w = (int)real_of(op)->w, h = (int)real_of(op)->h;
    pthread_mutex_lock(&planner);
    if (!op->fft.columns_only)
        fft->rows = op->fft.inverse ? fftwf_plan_dft_c2r_1d(w, line, real, FFTW_ESTIMATE)
                                    : fftwf_plan_dft_r2c_1d(w, real, line, FFTW_ESTIMATE);
    if (!op->fft.rows_only)
        fft->columns =
            fftwf_plan_dft_1d(h, line, line, op->fft.inverse ? FFTW_BACKWARD : FFTW_FORWARD, FFTW_ESTIMATE);
    pthread_mutex_unlock(&planner);
    fft->memory = cpu->device.counter;
    fft->bytes = library_bytes(op, tess_pool_threads(cpu->pool));
    tess_memory_count(fft->memory, TESS_MEM_WORKSPACE, (int64_t)fft->bytes);
    if ((fft->rows || op->fft.columns_only) && (fft->columns || op->fft.rows_only))
        return TESS_OK;
    tess_cpu_fft_release(device, fft);
    *out = NULL;
    return tess_fail(error, TESS_NO_MEMORY, "FFTW cannot plan a transform of %dx%d", h, w);
}

void tess_cpu_fft_release(tess_device *device, void *state)
{
    (void)device;
    fft_plans *fft = state;
    if (!fft)
        return;
    pthread_mutex_lock(&planner);
    if (fft->rows)
        fftwf_destroy_plan(fft->rows);
    if (fft->columns)
        fftwf_destroy_plan(fft->columns);
    pthread_mutex_unlock(&planner);
    tess_memory_count(fft->memory, TESS_MEM_WORKSPACE, -(int64_t)fft->bytes);
    tess_small_free(fft);
}

static int64_t line_of(const tess_tensor *t, int64_t item)
{
    const int64_t y = item % t->h, image = item / t->h;
    return image / t->d * t->stride_n + image % t->d * t->stride_d + y * t->stride_h;
}

static void row_item(void *arg, int64_t item, int thread)
{
    const fft_job *job = arg;
    const tess_tensor *r = job->real, *s = job->spectrum;
    float *real = (float *)(job->scratch + (size_t)thread * thread_scratch(job->op));
    float *line = (float *)((char *)real + tess_align_size((size_t)r->w * sizeof(float), LINE_ALIGN));
    const int64_t rows = job->op->fft.rows_only ? tess_max_i64(job->op->fft.rows, 1) : r->h;
    const double pixels = (double)r->w * (double)rows;
    const float scale = (float)(1.0 / pixels);
    for (int64_t c = 0; c < r->c; c++) {
        if (job->op->fft.inverse) {
            const float *from = job->in + line_of(s, item) + 2 * c;
            for (int64_t x = 0; x < s->w; x++, from += s->stride_w)
                line[2 * x] = from[0], line[2 * x + 1] = from[1];
            fftwf_execute_dft_c2r(job->plans->rows, (fftwf_complex *)line, real);
            float *to = job->out + line_of(r, item) + c;
            for (int64_t x = 0; x < r->w; x++, to += r->stride_w)
                *to = real[x] * scale;
        } else {
            const float *from = job->in + line_of(r, item) + c;
            for (int64_t x = 0; x < r->w; x++, from += r->stride_w)
                real[x] = *from;
            fftwf_execute_dft_r2c(job->plans->rows, real, (fftwf_complex *)line);
            float *to = job->out + line_of(s, item) + 2 * c;
            for (int64_t x = 0; x < s->w; x++, to += s->stride_w)
                to[0] = line[2 * x], to[1] = line[2 * x + 1];
        }
    }
}

static int64_t column_blocks(const tess_tensor *spectrum)
{
    return tess_ceil_div(spectrum->w * (spectrum->c / 2), COLUMNS);
}

/* Transforms a few neighbouring columns of a spectrum in place. */
static void column_item(void *arg, int64_t item, int thread)
{
    const fft_job *job = arg;
    const tess_tensor *s = job->spectrum;
    const int64_t channels = s->c / 2, blocks = column_blocks(s), image = item / blocks,
                  first = item % blocks * COLUMNS, count = tess_min_i64(COLUMNS, s->w * channels - first);
    const int64_t pitch = (int64_t)(complex_line(s->h) / sizeof(float));
    float *lines = (float *)(job->scratch + (size_t)thread * thread_scratch(job->op));
    float *data = (job->op->fft.inverse ? (float *)job->in : job->out) + line_of(s, image * s->h);
    int64_t at[COLUMNS];
    for (int64_t i = 0; i < count; i++)
        at[i] = (first + i) / channels * s->stride_w + (first + i) % channels * 2;
    for (int64_t y = 0; y < s->h; y++)
        for (int64_t i = 0; i < count; i++) {
            const float *from = data + y * s->stride_h + at[i];
            lines[i * pitch + 2 * y] = from[0], lines[i * pitch + 2 * y + 1] = from[1];
        }
    for (int64_t i = 0; i < count; i++) {
        fftwf_complex *line = (fftwf_complex *)(lines + i * pitch);
        fftwf_execute_dft(job->plans->columns, line, line);
    }
    for (int64_t y = 0; y < s->h; y++)
        for (int64_t i = 0; i < count; i++) {
            float *to = data + y * s->stride_h + at[i];
            to[0] = lines[i * pitch + 2 * y], to[1] = lines[i * pitch + 2 * y + 1];
        }
}

void tess_cpu_fft_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream)
{
    (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const fft_plans *plans = state;
    const uintptr_t aligned = ((uintptr_t)buffers->workspace + LINE_ALIGN - 1) / LINE_ALIGN * LINE_ALIGN;
    fft_job job = {op, plans, real_of(op), spectrum_of(op), buffers->in[0], buffers->out[0], (char *)aligned};
    const int64_t images = job.real->n * job.real->d, column_items = images * column_blocks(job.spectrum);
    if (op->fft.columns_only) { /* in place */
        tess_pool_run(cpu->pool, column_items, column_item, &job);
        return;
    }
    if (op->fft.inverse && !op->fft.rows_only)
        tess_pool_run(cpu->pool, column_items, column_item, &job);
    tess_pool_run(cpu->pool, images * job.real->h, row_item, &job);
    if (!op->fft.inverse && !op->fft.rows_only)
        tess_pool_run(cpu->pool, column_items, column_item, &job);
}

const tess_kernel tess_cpu_fft = {.name = "fft",
                                  .refuses = tess_cpu_fft_refuses,
                                  .needs = tess_cpu_fft_needs,
                                  .prepare = tess_cpu_fft_prepare,
                                  .run = tess_cpu_fft_run,
                                  .release = tess_cpu_fft_release};
