/* The forward passes. The first sums values and squares of every channel over short runs of pixels. A run is summed in
 * fp32 relative to its first pixel, so that neither a large mean nor an outlier costs precision; runs are summed in
 * fp64. The second computes the results from three numbers a channel. */
#include "cpu/norm/passes.h"

#include "base/checked.h"
#include "cpu/core/activation.h"

enum { LANES = 16, RUN = 32 };

static inline float value_at(const void *data, int64_t at, bool half)
{
    return half ? tess_bf16_to_float(((const uint16_t *)data)[at]) : ((const float *)data)[at];
}

/* Adds `lanes` channels of a run of at most RUN pixels to the sums of the part. */
static inline __attribute__((always_inline)) void sum_lanes(const void *data, int64_t at, int64_t stride,
                                                            int64_t pixels, int lanes, bool half,
                                                            double *values, double *squares)
{
    float first[LANES] = {0}, value[LANES] = {0}, square[LANES] = {0};
    for (int i = 0; i < lanes; i++)
        first[i] = value_at(data, at + i, half);
    for (int64_t x = 1; x < pixels; x++)
        for (int i = 0; i < lanes; i++) {
            const float v = value_at(data, at + x * stride + i, half) - first[i];
            value[i] += v;
            square[i] += v * v;
        }
    for (int i = 0; i < lanes; i++) {
        const double f = (double)first[i], v = (double)value[i], all = (double)pixels * f;
        values[i] += v + all;
        squares[i] += (double)square[i] + f * (2 * v + all);
    }
}

static inline __attribute__((always_inline)) void sum_run(const tess_norm_passes *p, int64_t at,
                                                          int64_t pixels, bool half, double *sums)
{
    const tess_tensor *in = p->in;
    const void *data = p->in_data;
    int64_t c = 0;
    for (; c + LANES <= in->c; c += LANES)
        sum_lanes(data, at + c, in->stride_w, pixels, LANES, half, sums + c, sums + in->c + c);
    for (; c < in->c; c++)
        sum_lanes(data, at + c, in->stride_w, pixels, 1, half, sums + c, sums + in->c + c);
}

/* An item is a part of an image. */
static void sum_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_norm_passes *p = arg;
    const tess_tensor *in = p->in;
    const int64_t n = item / p->parts, part = item % p->parts;
    double *sums = p->sums + item * 2 * in->c;
    for (int64_t c = 0; c < 2 * in->c; c++)
        sums[c] = 0;
    for (int64_t row = part * p->rows / p->parts; row < (part + 1) * p->rows / p->parts; row++)
        for (int64_t x = 0; x < in->w; x += RUN) {
            const int64_t at = tess_norm_row(in, n, row) + x * in->stride_w,
                          pixels = tess_min_i64(RUN, in->w - x);
            if (in->dtype == TESS_BF16)
                sum_run(p, at, pixels, true, sums);
            else
                sum_run(p, at, pixels, false, sums);
        }
}

void tess_norm_sum(tess_pool *pool, const tess_norm_passes *p)
{
    tess_pool_run(pool, p->in->n * p->parts, sum_item, (void *)p);
}

static void apply_pixel(const tess_norm_passes *p, int64_t n, int64_t from, int64_t to)
{
    const int64_t channels = p->in->c;
    const float *centre = p->table + n * p->step, *factor = centre + channels, *offset = factor + channels;
    float values[TESS_CPU_FEW];
    for (int64_t c = 0; c < channels; c += TESS_CPU_FEW) {
        const int64_t count = tess_min_i64(TESS_CPU_FEW, channels - c);
        tess_cpu_load(p->in->dtype, p->in_data, from + c, count, values);
        for (int64_t i = 0; i < count; i++)
            values[i] = (values[i] - centre[c + i]) * factor[c + i] + offset[c + i];
        tess_cpu_activate(p->activation, values, count);
        tess_cpu_store(p->out->dtype, p->out_data, to + c, count, values);
    }
}

/* An item is a row. */
static void apply_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_norm_passes *p = arg;
    const int64_t n = item / p->rows, row = item % p->rows, from = tess_norm_row(p->in, n, row),
                  to = tess_norm_row(p->out, n, row);
    for (int64_t x = 0; x < p->in->w; x++)
        apply_pixel(p, n, from + x * p->in->stride_w, to + x * p->out->stride_w);
}

void tess_norm_apply(tess_pool *pool, const tess_norm_passes *p)
{
    tess_pool_run(pool, p->in->n * p->rows, apply_item, (void *)p);
}
