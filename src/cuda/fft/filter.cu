/* Host side of filter_passes.cuh: selects the kernel for a length, fills its arguments and launches it. */
#include "cuda/fft/filter_passes.cuh"

namespace
{

line_tables tables_of(const tess_filter_lines *l)
{
    return {l->n, (const float2 *)l->roots, (const float2 *)l->chirp, (const float2 *)l->chirp_spectrum};
}

/* Columns per block: a strip, or as many as fit. */
template <int LINE> constexpr int columns_of()
{
    return LINE <= 2048 ? 4 : LINE == 4096 ? 2 : 1;
}

template <int LINE> int shared_columns()
{
    return columns_of<LINE>() * (shared_line<LINE>() + 4) * (int)sizeof(float2);
}

template <int LINE> int lines_of(int channels)
{
    const int shared = channels * shared_line<LINE>() * (int)sizeof(float2);
    return channels * (LINE / HELD) <= MOST_THREADS && shared <= MOST_SHARED ? channels : 1;
}

template <int LINE, bool CHIRP> cudaError_t run_rows(row_job job, bool back, cudaStream_t stream)
{
    const int lines = lines_of<LINE>(job.channels), blocks = (job.lines + lines - 1) / lines,
              bytes = lines * shared_line<LINE>() * (int)sizeof(float2), threads = lines * (LINE / HELD);
    job.whole = lines == job.channels && job.pixel == job.channels;
    if (back)
        rows_back_kernel<LINE, CHIRP><<<blocks, threads, bytes, stream>>>(job);
    else
        rows_kernel<LINE, CHIRP><<<blocks, threads, bytes, stream>>>(job);
    return cudaGetLastError();
}

template <int LINE, bool CHIRP> cudaError_t run_columns(const column_job &job, cudaStream_t stream)
{
    constexpr int COLUMNS = columns_of<LINE>();
    const int blocks = (job.bins + COLUMNS - 1) / COLUMNS * job.channels;
    columns_kernel<LINE, CHIRP, COLUMNS>
        <<<blocks, COLUMNS *(LINE / HELD), shared_columns<LINE>(), stream>>>(job);
    return cudaGetLastError();
}

/* Allows more than 48 KB of shared memory. The code is loaded at the first launch: there are 31 kernels, most
 * jobs need none of them, and the others can wait. */
template <typename KERNEL> cudaError_t allow(KERNEL kernel, int shared_bytes)
{
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                shared_bytes);
}

template <int LINE, bool CHIRP> cudaError_t load_line()
{
    cudaError_t result = allow(rows_kernel<LINE, CHIRP>, MOST_SHARED);
    if (result == cudaSuccess)
        result = allow(rows_back_kernel<LINE, CHIRP>, MOST_SHARED);
    if (result == cudaSuccess)
        result = allow(columns_kernel<LINE, CHIRP, columns_of<LINE>()>, shared_columns<LINE>());
    return result;
}

#define FOR_LINE(line, chirp, function, ...)                                                                 \
    ((line) == 512    ? ((chirp) ? function<512, true>(__VA_ARGS__) : function<512, false>(__VA_ARGS__))     \
     : (line) == 1024 ? ((chirp) ? function<1024, true>(__VA_ARGS__) : function<1024, false>(__VA_ARGS__))   \
     : (line) == 2048 ? ((chirp) ? function<2048, true>(__VA_ARGS__) : function<2048, false>(__VA_ARGS__))   \
     : (line) == 4096 ? ((chirp) ? function<4096, true>(__VA_ARGS__) : function<4096, false>(__VA_ARGS__))   \
                      : ((chirp) ? function<8192, true>(__VA_ARGS__) : function<8192, false>(__VA_ARGS__)))

int bins_of(const tess_filter_plan *plan)
{
    return plan->width / 2 + 1;
}

row_job rows_of(const tess_filter_plan *plan, const tess_tensor *image, void *work)
{
    row_job job = {};
    job.table = tables_of(&plan->rows);
    job.row_roots = (const float2 *)plan->row_roots;
    job.work = (float2 *)work;
    job.row = image->stride_h;
    job.pixel = image->stride_w;
    job.height = plan->height;
    job.width = plan->width;
    job.channels = plan->channels;
    job.bins = bins_of(plan);
    job.even = plan->width % 2 == 0;
    job.lines = (job.even ? plan->height : (plan->height + 1) / 2) * plan->channels;
    return job;
}

/* The filter includes the division by the number of pixels. */
column_job product_of(const tess_filter_run *run, double scale)
{
    column_job job = {};
    job.mode = run->mode;
    job.waves = run->waves;
    job.waves_row = run->spectrum.stride_h;
    job.waves_column = run->spectrum.stride_w;
    job.power = run->power;
    job.power_row = run->power_row;
    job.power_column = run->power_column;
    job.data = run->data;
    job.data_row = run->less.stride_h;
    job.data_column = run->less.stride_w;
    job.a = (float)(run->mode == TESS_FILTER_INVERSE ? scale : run->factor[0] * scale);
    job.b = (float)(run->factor[1] * scale);
    job.c = (float)(run->factor[2] * scale);
    job.d = (float)run->factor[3];
    job.e = (float)run->factor[4];
    return job;
}

} // namespace

extern "C" size_t tess_filter_work(const tess_filter_plan *plan)
{
    const size_t strips = (size_t)(bins_of(plan) + STRIP - 1) / STRIP;
    return (size_t)plan->channels * strips * (size_t)plan->height * STRIP * sizeof(float2);
}

extern "C" cudaError_t tess_filter_launch(const tess_filter_plan *plan, const tess_filter_run *run,
                                          cudaStream_t stream)
{
    const tess_filter_lines *rows = &plan->rows, *columns = &plan->columns;
    column_job middle = product_of(run, 1 / ((double)plan->height * plan->width));
    middle.table = tables_of(columns);
    middle.work = (float2 *)run->work;
    middle.height = plan->height;
    middle.bins = bins_of(plan);
    middle.channels = plan->channels;
    cudaError_t result = cudaSuccess;
    if (run->mode != TESS_FILTER_INVERSE) {
        row_job first = rows_of(plan, &run->real_in, run->work);
        first.in = run->in;
        result = FOR_LINE(rows->line, rows->n != rows->line, run_rows, first, false, stream);
    }
    if (result == cudaSuccess)
        result = FOR_LINE(columns->line, columns->n != columns->line, run_columns, middle, stream);
    if (result != cudaSuccess || run->mode == TESS_FILTER_FORWARD)
        return result;
    row_job last = rows_of(plan, &run->real_out, run->work);
    last.out = run->out;
    return FOR_LINE(rows->line, rows->n != rows->line, run_rows, last, true, stream);
}

extern "C" cudaError_t tess_filter_product(const tess_filter_run *run, int height, int bins, int channels,
                                           cudaStream_t stream)
{
    enum { THREADS = 256, MOST_ROWS = 65535 };
    column_job job = product_of(run, 1);
    job.height = height;
    job.bins = bins;
    job.channels = channels;
    const dim3 grid((unsigned)((bins * channels + THREADS - 1) / THREADS),
                    (unsigned)(height < MOST_ROWS ? height : MOST_ROWS));
    product_kernel<<<grid, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

extern "C" cudaError_t tess_filter_load(int)
{
    cudaError_t result = cudaSuccess;
    for (int line = TESS_FILTER_LEAST; line <= TESS_FILTER_MOST; line *= 2)
        for (int chirp = 0; chirp < 2 && result == cudaSuccess; chirp++)
            result = FOR_LINE(line, chirp, load_line);
    return result;
}
