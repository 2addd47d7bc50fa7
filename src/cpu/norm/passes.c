/* The forward passes. The first sums values and squares of every channel over short runs of pixels; the second computes
 * the results from three numbers a channel. */
#include "cpu/norm/passes.h"

#include "base/checked.h"

enum { RUN = 32 };

static const void *place_in(const tess_norm_passes *p, int64_t at)
{
    return (const char *)p->in_data + at * (int64_t)tess_dtype_size(p->in->dtype);
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
            const tess_norm_run run = {.in = place_in(p, tess_norm_row(in, n, row) + x * in->stride_w),
                                       .in_pixel = in->stride_w,
                                       .pixels = tess_min_i64(RUN, in->w - x),
                                       .channels = in->c,
                                       .in_half = in->dtype == TESS_BF16};
            p->kernels->sum(&run, sums, sums + in->c);
        }
}

void tess_norm_sum(tess_pool *pool, const tess_norm_passes *p)
{
    tess_pool_run(pool, p->in->n * p->parts, sum_item, (void *)p);
}

/* An item is a row. */
static void apply_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_norm_passes *p = arg;
    const tess_tensor *in = p->in, *out = p->out;
    const int64_t n = item / p->rows, row = item % p->rows, to = tess_norm_row(out, n, row);
    const tess_norm_run run = {.in = place_in(p, tess_norm_row(in, n, row)),
                               .out = (char *)p->out_data + to * (int64_t)tess_dtype_size(out->dtype),
                               .in_pixel = in->stride_w,
                               .out_pixel = out->stride_w,
                               .pixels = in->w,
                               .channels = in->c,
                               .in_half = in->dtype == TESS_BF16,
                               .out_half = out->dtype == TESS_BF16,
                               .relu = p->activation == TESS_RELU,
                               .silu = p->activation == TESS_SILU,
                               .table = p->table + n * p->step};
    p->kernels->apply(&run);
}

void tess_norm_apply(tess_pool *pool, const tess_norm_passes *p)
{
    tess_pool_run(pool, p->in->n * p->rows, apply_item, (void *)p);
}
