#include "tensor/moments.h"

#include <math.h>
#include <string.h>

enum { PART = 64 }; /* channels of a row that is kept on the stack */

void tess_moments_clear(double *moments, int channels, bool covariance)
{
    memset(moments, 0, tess_moments_values(channels, covariance) * sizeof *moments);
    moments[TESS_MOMENTS_LEAST] = INFINITY;
    moments[TESS_MOMENTS_LARGEST] = -INFINITY;
}

void tess_moments_merge(double *into, const double *from, int channels, bool covariance)
{
    const double a = into[TESS_MOMENTS_COUNT], b = from[TESS_MOMENTS_COUNT], all = a + b;
    if (!(b > 0))
        return;
    if (!(a > 0)) {
        memcpy(into, from, tess_moments_values(channels, covariance) * sizeof *into);
        return;
    }
    double *mean = into + TESS_MOMENTS_MEAN;
    const double *other = from + TESS_MOMENTS_MEAN;
    if (covariance) {
        double *m2 = into + tess_moments_second(channels);
        const double *add = from + tess_moments_second(channels), factor = a / all * b;
        for (int i = 0; i < channels; i++) {
            const double d = (other[i] - mean[i]) * factor;
            for (int j = i; j < channels; j++) /* both halves get the same bits */
                m2[(size_t)i * (size_t)channels + (size_t)j] +=
                    add[(size_t)i * (size_t)channels + (size_t)j] + d * (other[j] - mean[j]);
        }
        for (int i = 1; i < channels; i++)
            for (int j = 0; j < i; j++)
                m2[(size_t)i * (size_t)channels + (size_t)j] = m2[(size_t)j * (size_t)channels + (size_t)i];
    }
    for (int i = 0; i < channels; i++)
        mean[i] += (other[i] - mean[i]) * (b / all);
    into[TESS_MOMENTS_COUNT] = all;
    into[TESS_MOMENTS_LEAST] = fmin(into[TESS_MOMENTS_LEAST], from[TESS_MOMENTS_LEAST]);
    into[TESS_MOMENTS_LARGEST] = fmax(into[TESS_MOMENTS_LARGEST], from[TESS_MOMENTS_LARGEST]);
}

static bool is_zero(double value)
{
    return !(value < 0) && !(value > 0);
}

/* The one positive factor of all rows of `a`, each of which takes one channel, if all channels are taken and `b` has one
 * value; else 0. */
static double common_factor(int channels, const double *a, const double *b, int outputs)
{
    double factor = 0;
    for (int o = 0; o < outputs; o++) {
        int taken = 0;
        for (int c = 0; c < channels; c++) {
            const double value = a[(size_t)o * (size_t)channels + (size_t)c];
            if (is_zero(value))
                continue;
            if (!(value > 0) || (factor > 0 && !is_zero(value - factor)))
                return 0;
            factor = value;
            taken++;
        }
        if (taken != 1 || !is_zero(b[o] - b[0]))
            return 0;
    }
    for (int c = 0; c < channels; c++) {
        bool found = false;
        for (int o = 0; !found && o < outputs; o++)
            found = !is_zero(a[(size_t)o * (size_t)channels + (size_t)c]);
        if (!found)
            return 0;
    }
    return factor;
}

static double dot(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* out += the part of a M2 a' of channels [first, first + count) on the right, for row `o` and those after it. */
static void add_products(const double *m2, size_t c, const double *a, size_t n, size_t o, size_t first,
                         size_t count, double *out)
{
    double row[PART] = {0};
    for (size_t k = 0; k < c; k++)
        for (size_t i = 0; i < count; i++)
            row[i] += a[o * c + k] * m2[k * c + first + i];
    for (size_t p = o; p < n; p++)
        out[o * n + p] += dot(row, a + p * c + first, (int)count);
}

static size_t taken_by(const double *row, size_t channels)
{
    size_t c = 0;
    while (c + 1 < channels && is_zero(row[c]))
        c++;
    return c;
}

/* The same for all rows where each takes one channel, times `factor`: the sums have one term each. `taken`: room for a value
 * a row. */
static void scale_products(const double *m2, size_t c, const double *a, size_t n, double factor,
                           double *taken, double *out)
{
    for (size_t o = 0; o < n; o++)
        taken[o] = (double)taken_by(a + o * c, c);
    for (size_t o = 0; o < n; o++)
        for (size_t p = o; p < n; p++)
            out[o * n + p] = factor * m2[(size_t)taken[o] * c + (size_t)taken[p]] * factor;
}

void tess_moments_affine(const double *from, int channels, const double *a, const double *b, int outputs,
                         double *to)
{
    const size_t c = (size_t)channels, n = (size_t)outputs;
    const double *m2 = from + tess_moments_second(channels);
    double *mean = to + TESS_MOMENTS_MEAN, *out = to + tess_moments_second(outputs);
    const double factor = common_factor(channels, a, b, outputs);
    tess_moments_clear(to, outputs, true);
    if (!(from[TESS_MOMENTS_COUNT] > 0))
        return;
    to[TESS_MOMENTS_COUNT] = from[TESS_MOMENTS_COUNT];
    to[TESS_MOMENTS_LEAST] = factor > 0 ? factor * from[TESS_MOMENTS_LEAST] + b[0] : NAN;
    to[TESS_MOMENTS_LARGEST] = factor > 0 ? factor * from[TESS_MOMENTS_LARGEST] + b[0] : NAN;
    if (factor > 0)
        scale_products(m2, c, a, n, factor, mean, out);
    for (size_t o = 0; o < n; o++) {
        mean[o] = dot(a + o * c, from + TESS_MOMENTS_MEAN, channels) + b[o];
        for (size_t first = 0; first < c && !(factor > 0); first += PART)
            add_products(m2, c, a, n, o, first, c - first < PART ? c - first : PART, out);
        for (size_t p = o + 1; p < n; p++)
            out[p * n + o] = out[o * n + p];
    }
}
