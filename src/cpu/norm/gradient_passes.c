/* The backward passes of norms. Both compute the gradient before the activation again from the values, which is
 * cheaper than a tensor that keeps it. Sums are fp32 over short runs of pixels and fp64 over the runs. */
#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/norm/passes.h"

enum { RUN = 16 };

/* A few channels of one pixel: the gradient before the activation, and in - centre. */
static void load(const tess_norm_passes *p, const float *table, int64_t gradient_at, int64_t in_at,
                 int64_t count, float *gradients, float *values)
{
    const float *centre = table, *factor = table + p->in->c, *offset = factor + p->in->c;
    float results[TESS_CPU_FEW];
    tess_cpu_load(p->gradient->dtype, p->gradient_data, gradient_at, count, gradients);
    tess_cpu_load(p->in->dtype, p->in_data, in_at, count, values);
    for (int64_t i = 0; i < count; i++)
        values[i] -= centre[i];
    if (p->activation == TESS_LINEAR)
        return;
    for (int64_t i = 0; i < count; i++)
        results[i] = values[i] * factor[i] + offset[i];
    tess_cpu_activation_grad(p->activation, results, gradients, count);
}

/* Adds a few channels of a run of pixels to the sums of a part. */
static void sum_run(const tess_norm_passes *p, const float *table, int64_t gradient_at, int64_t in_at,
                    int64_t pixels, int64_t count, double *sums)
{
    float gradients[TESS_CPU_FEW], values[TESS_CPU_FEW], sum[TESS_CPU_FEW] = {0}, product[TESS_CPU_FEW] = {0};
    for (int64_t x = 0; x < pixels; x++) {
        load(p, table, gradient_at + x * p->gradient->stride_w, in_at + x * p->in->stride_w, count, gradients,
             values);
        for (int64_t i = 0; i < count; i++) {
            sum[i] += gradients[i];
            product[i] += gradients[i] * values[i];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        sums[i] += (double)sum[i];
        sums[p->in->c + i] += (double)product[i];
    }
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
        for (int64_t x = 0; x < in->w; x += RUN)
            for (int64_t c = 0; c < in->c; c += TESS_CPU_FEW)
                sum_run(p, p->table + n * p->step + c,
                        tess_norm_row(p->gradient, n, row) + x * p->gradient->stride_w + c,
                        tess_norm_row(in, n, row) + x * in->stride_w + c, tess_min_i64(RUN, in->w - x),
                        tess_min_i64(TESS_CPU_FEW, in->c - c), sums + c);
}

void tess_norm_sum_gradients(tess_pool *pool, const tess_norm_passes *p)
{
    tess_pool_run(pool, p->in->n * p->parts, sum_item, (void *)p);
}

/* An item is a row. */
static void apply_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_norm_passes *p = arg;
    const tess_tensor *in = p->in, *out = p->out, *gradient = p->gradient;
    const int64_t n = item / p->rows, row = item % p->rows;
    float gradients[TESS_CPU_FEW], values[TESS_CPU_FEW];
    for (int64_t x = 0; x < in->w; x++)
        for (int64_t c = 0; c < in->c; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, in->c - c);
            const float *factor = p->back + n * p->step + c, *offset = factor + in->c,
                        *slope = offset + in->c;
            load(p, p->table + n * p->step + c, tess_norm_row(gradient, n, row) + x * gradient->stride_w + c,
                 tess_norm_row(in, n, row) + x * in->stride_w + c, count, gradients, values);
            for (int64_t i = 0; i < count; i++)
                values[i] = gradients[i] * factor[i] + offset[i] + values[i] * slope[i];
            tess_cpu_store(out->dtype, p->out_data, tess_norm_row(out, n, row) + x * out->stride_w + c, count,
                           values);
        }
}

void tess_norm_apply_gradients(tess_pool *pool, const tess_norm_passes *p)
{
    tess_pool_run(pool, p->in->n * p->rows, apply_item, (void *)p);
}
