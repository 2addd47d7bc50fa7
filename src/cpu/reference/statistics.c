/* Statistics as plain sums in fp64: means first, then products around them; local scores from scratch for every pixel. */
#include "cpu/statistics/statistics.h"
#include <stdlib.h>

#include "base/checked.h"
#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"
#include "tensor/moments.h"

static double value_at(const tess_op *op, const tess_op_buffers *buffers, int64_t pixel, int64_t c)
{
    return (double)((const float *)buffers->in[0])[tess_cpu_pixel(&op->in[0], pixel) + c];
}

static void add_moments(const tess_op *op, const tess_op_buffers *buffers, double *all)
{
    const int64_t c = op->in[0].c, pixels = tess_cpu_pixels(&op->in[0]);
    const bool covariance = op->moments.covariance;
    double *mean = all + TESS_MOMENTS_MEAN, *second = all + tess_moments_second((int)c), count = 0;
    tess_moments_clear(all, (int)c, covariance);
    for (int pass = 0; pass < (covariance ? 2 : 1); pass++) {
        for (int64_t p = 0; p < pixels; p++) {
            if (!tess_cpu_pixel_counts(op, buffers, p))
                continue;
            count += !pass;
            for (int64_t i = 0; i < c; i++) {
                const double x = value_at(op, buffers, p, i);
                all[TESS_MOMENTS_LEAST] = fmin(all[TESS_MOMENTS_LEAST], x);
                all[TESS_MOMENTS_LARGEST] = fmax(all[TESS_MOMENTS_LARGEST], x);
                if (!pass)
                    mean[i] += x;
                for (int64_t j = 0; pass && j < c; j++)
                    second[i * c + j] += (x - mean[i]) * (value_at(op, buffers, p, j) - mean[j]);
            }
        }
        for (int64_t i = 0; !pass && count > 0 && i < c; i++)
            mean[i] /= count;
    }
    all[TESS_MOMENTS_COUNT] = count;
    tess_moments_merge(buffers->out[0], all, (int)c, covariance);
}

static double score_at(const tess_op *op, const tess_op_buffers *buffers, int64_t pixel)
{
    const int64_t c = op->in[0].c, rows = tess_cpu_pixels(&op->in[2]);
    const float *mu = buffers->in[1], *factor = buffers->in[2];
    double score = 0;
    for (int64_t k = 0; k < rows; k++) {
        double sum = 0;
        for (int64_t i = 0; i < c; i++)
            sum += (double)factor[k * c + i] * (value_at(op, buffers, pixel, i) - (double)mu[i]);
        score += sum * sum;
    }
    return isfinite(score) ? score : NAN;
}

/* Calls for every pixel of the ring that counts: pass 0 sums, pass 1 adds products around the mean. */
static double ring_pass(const tess_op *op, const tess_op_buffers *buffers, int64_t pixel, int pass,
                        double *mean, double *second)
{
    const tess_tensor *in = &op->in[0];
    const int64_t c = in->c, outer = op->kernel[TESS_WIDTH] / 2, inner = op->local_rx.inner / 2,
                  x0 = pixel % in->w, y0 = pixel / in->w % in->h, image = pixel - y0 * in->w - x0;
    double count = 0;
    for (int64_t y = tess_max_i64(0, y0 - outer); y <= tess_min_i64(in->h - 1, y0 + outer); y++)
        for (int64_t x = tess_max_i64(0, x0 - outer); x <= tess_min_i64(in->w - 1, x0 + outer); x++) {
            const int64_t p = image + y * in->w + x;
            if ((llabs(y - y0) <= inner && llabs(x - x0) <= inner) || !tess_cpu_pixel_counts(op, buffers, p))
                continue;
            count++;
            for (int64_t i = 0; i < c; i++) {
                const double value = value_at(op, buffers, p, i);
                if (!pass)
                    mean[i] += value;
                for (int64_t j = 0; pass && j <= i; j++)
                    second[i * c + j] += (value - mean[i]) * (value_at(op, buffers, p, j) - mean[j]);
            }
        }
    return count;
}

/* d' inv(s) d by a triangular factor of the lower half of s, which is overwritten, as d is. */
static double distance(double *s, double *d, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double value = s[i * n + j];
            for (int64_t k = 0; k < j; k++)
                value -= s[i * n + k] * s[j * n + k];
            if (i == j && !(value > 0))
                return NAN;
            s[i * n + j] = i == j ? sqrt(value) : value / s[j * n + j];
        }
        for (int64_t k = 0; k < i; k++)
            d[i] -= s[i * n + k] * d[k];
        d[i] /= s[i * n + i];
        sum += d[i] * d[i];
    }
    return isfinite(sum) ? sum : NAN;
}

static double local_at(const tess_op *op, const tess_op_buffers *buffers, int64_t pixel, double *work)
{
    const int64_t c = op->in[0].c;
    double *second = work, *mean = work + c * c;
    for (int64_t i = 0; i < c * c + c; i++)
        work[i] = 0;
    const double count = ring_pass(op, buffers, pixel, 0, mean, second);
    if (count < 2)
        return NAN;
    for (int64_t i = 0; i < c; i++)
        mean[i] /= count;
    ring_pass(op, buffers, pixel, 1, mean, second);
    for (int64_t i = 0; i < c; i++) {
        for (int64_t j = 0; j <= i; j++)
            second[i * c + j] = second[i * c + j] / (count - 1) + (i == j ? op->local_rx.epsilon : 0);
        mean[i] = value_at(op, buffers, pixel, i) - mean[i];
    }
    return distance(second, mean, c);
}

void tess_reference_statistics(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *out = &op->out[0];
    if (op->kind == TESS_OP_MOMENTS) {
        const tess_op one = tess_cpu_moments_one(op);
        for (int64_t n = 0; n < (op->moments.each ? op->in[0].n : 1); n++) {
            const tess_op_buffers at = tess_cpu_moments_at(op, buffers, n);
            add_moments(&one, &at, buffers->workspace);
        }
        return;
    }
    for (int64_t p = 0; p < tess_cpu_pixels(out); p++) {
        const double score = op->kind == TESS_OP_SCORE ? score_at(op, buffers, p)
                                                       : local_at(op, buffers, p, buffers->workspace);
        if (out->dtype == TESS_F64)
            ((double *)buffers->out[0])[tess_cpu_pixel(out, p)] = score;
        else
            tess_reference_store(out, buffers->out[0], tess_cpu_pixel(out, p), score);
    }
}

size_t tess_reference_statistics_workspace(const tess_op *op)
{
    const size_t c = (size_t)op->in[0].c;
    return (op->kind == TESS_OP_MOMENTS ? tess_moments_values((int)c, op->moments.covariance)
            : op->kind == TESS_OP_SCORE ? 0
                                        : c * c + c) *
           sizeof(double);
}

static void reference_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.workspace = tess_reference_statistics_workspace(op), .block = 1};
}

static void reference_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)device, (void)state, (void)stream;
    tess_reference_statistics(op, buffers);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    return tess_cpu_statistics_refuses(op, why);
}

const tess_kernel tess_cpu_statistics_reference = {
    .name = "statistics reference", .refuses = refuses, .needs = reference_needs, .run = reference_run};
