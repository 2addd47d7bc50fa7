/* Eigenvalues by Householder's reduction to a tridiagonal matrix and implicit QL steps (Wilkinson and Reinsch, Linear
 * Algebra, 1971), own code instead of LAPACK because the matrices are small and packages should not depend on one.
 *
 * Vectors are kept as rows and the whole symmetric matrix is updated, not a half: all inner loops run along memory. */
#include "tensor/symmetric.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 60, USUAL_STEPS = 20, LANES = 8 }; /* QL steps an eigenvalue; two or three are usual */
enum { MOST_POWER = 1000 };

size_t tess_symmetric_workspace(int n)
{
    return (size_t)n * ((size_t)n + 3);
}

/* Lanes fix the order of the sum, so that the compiler may use vectors. */
static double dot(const double *restrict a, const double *restrict b, size_t count)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += a[i + l] * b[i + l];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* to += factor * from */
static void add_row(double *restrict to, const double *restrict from, double factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += factor * from[i];
}

/* Makes x the vector u of the reflection I - tau u u', u[0] = 1, that maps x to (beta, 0, ...); returns tau. */
static double reflector(double *x, size_t count, double *beta)
{
    double scale = 0;
    for (size_t i = 0; i < count; i++)
        scale = fmax(scale, fabs(x[i]));
    *beta = x[0];
    double rest = 0;
    for (size_t i = 1; scale > 0 && i < count; i++)
        rest += x[i] / scale * (x[i] / scale);
    if (!(rest > 0))
        return 0;
    const double first = x[0] / scale, norm = sqrt(first * first + rest);
    *beta = -copysign(norm, first) * scale;
    const double tau = (*beta - x[0]) / *beta, below = x[0] - *beta;
    for (size_t i = 1; i < count; i++)
        x[i] /= below;
    x[0] = 1;
    return tau;
}

/* a becomes tridiagonal: d, e. The vectors of the reflections stay in the rows of `a`, right of the diagonal. */
static void tridiagonal(double *a, size_t n, double *d, double *e, double *tau, double *p)
{
    for (size_t k = 0; k + 1 < n; k++) {
        const size_t first = k + 1, count = n - first;
        double *u = a + k * n + first;
        d[k] = a[k * n + k];
        tau[k] = reflector(u, count, &e[k]);
        if (!(tau[k] > 0) && !(tau[k] < 0))
            continue;
        for (size_t i = 0; i < count; i++)
            p[i] = tau[k] * dot(a + (first + i) * n + first, u, count);
        add_row(p, u, -0.5 * tau[k] * dot(p, u, count), count);
        for (size_t i = 0; i < count; i++) { /* A - u p' - p u' */
            add_row(a + (first + i) * n + first, p, -u[i], count);
            add_row(a + (first + i) * n + first, u, -p[i], count);
        }
    }
    d[n - 1] = a[n * n - 1];
    e[n - 1] = 0;
}

static void rotate(double *restrict lower, double *restrict upper, double c, double s, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const double f = upper[k];
        upper[k] = s * lower[k] + c * f;
        lower[k] = c * lower[k] - s * f;
    }
}

/* One implicit QL step on rows l..m of the tridiagonal matrix, whose values are about 1 at most: no square overflows. */
static void ql_step(double *d, double *e, size_t l, size_t m, double *z, size_t n)
{
    double g = (d[l + 1] - d[l]) / (2 * e[l]), r = sqrt(g * g + 1);
    g = d[m] - d[l] + e[l] / (g + copysign(r, g));
    double s = 1, c = 1, p = 0;
    for (size_t i = m; i-- > l;) {
        const double f = s * e[i], b = c * e[i];
        r = sqrt(f * f + g * g);
        e[i + 1] = r;
        if (!(r > 0)) { /* the matrix splits here */
            d[i + 1] -= p;
            e[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        rotate(z + i * n, z + (i + 1) * n, c, s, n);
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

/* A matrix of low rank leaves a block of roundings, whose values are never small beside their neighbours. What does not
 * end after some steps is therefore compared with the whole matrix, which the reduction has rounded as much already. */
static bool diagonalise(double *d, double *e, double *z, size_t n)
{
    double norm = 0;
    for (size_t i = 0; i < n; i++)
        norm = fmax(norm, fabs(d[i]) + (i + 1 < n ? fabs(e[i]) : 0));
    for (size_t l = 0; l < n; l++)
        for (int steps = 0;; steps++) {
            size_t m = l;
            const double least = steps < USUAL_STEPS ? DBL_MIN : DBL_EPSILON * norm + DBL_MIN;
            while (m + 1 < n && fabs(e[m]) > DBL_EPSILON * (fabs(d[m]) + fabs(d[m + 1])) + least)
                m++;
            if (m == l)
                break;
            if (steps == MOST_STEPS)
                return false;
            ql_step(d, e, l, m, z, n);
        }
    return true;
}

static void swap_rows(double *a, double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* Ascending values, and the signs of the vectors. */
static void order(double *values, double *z, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t least = i, largest = 0;
        for (size_t j = i + 1; j < n; j++)
            least = values[j] < values[least] ? j : least;
        if (least != i) {
            swap_rows(values + i, values + least, 1);
            swap_rows(z + i * n, z + least * n, n);
        }
        for (size_t k = 1; k < n; k++)
            largest = fabs(z[i * n + k]) > fabs(z[i * n + largest]) ? k : largest;
        const double sign = copysign(1, z[i * n + largest]);
        for (size_t k = 0; k < n; k++)
            z[i * n + k] *= sign;
    }
}

tess_status tess_symmetric_eigen(const double *a, int rows, double *values, double *vectors,
                                 double *workspace, tess_error *error)
{
    const size_t n = (size_t)rows;
    double *work = workspace, *e = work + n * n, *tau = e + n, *p = tau + n, largest = 0;
    int power = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            if (!isfinite(a[i * n + j]))
                return tess_fail(
                    error, TESS_BAD_INPUT,
                    "value (%zu, %zu) of a symmetric matrix is not finite; eigenvalues need finite values", i,
                    j);
            largest = fmax(largest, fabs(a[i * n + j]));
        }
    if (n == 0)
        return TESS_OK;
    frexp(largest, &power);
    power = power < -MOST_POWER ? -MOST_POWER : power > MOST_POWER ? MOST_POWER : power;
    const double scale = ldexp(1, power), inverse = ldexp(1, -power); /* powers of two change no digit */
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            work[i * n + j] = work[j * n + i] = inverse * a[i * n + j];
    memset(vectors, 0, n * n * sizeof *vectors);
    for (size_t i = 0; i < n; i++)
        vectors[i * n + i] = 1;
    tridiagonal(work, n, values, e, tau, p);
    if (!diagonalise(values, e, vectors, n))
        return tess_fail(error, TESS_BAD_INPUT,
                         "the eigenvalues of a matrix of %d rows were not found in %d steps", rows,
                         MOST_STEPS);
    for (size_t i = 0; i < n; i++)
        for (size_t k = n - 1; k-- > 0;) {
            const double *u = work + k * n + k + 1;
            double *z = vectors + i * n + k + 1;
            add_row(z, u, -tau[k] * dot(u, z, n - k - 1), n - k - 1);
        }
    for (size_t i = 0; i < n; i++)
        values[i] *= scale;
    order(values, vectors, n);
    return TESS_OK;
}

tess_status tess_symmetric_whiten(const double *a, int rows, double cutoff, double *values, double *factor,
                                  int *rank, double *workspace, tess_error *error)
{
    const size_t n = (size_t)rows;
    TESS_TRY(tess_symmetric_eigen(a, rows, values, factor, workspace, error));
    for (size_t i = 0; i < n / 2; i++)
        swap_rows(factor + i * n, factor + (n - 1 - i) * n, n);
    *rank = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = values[n - 1 - i];
        const bool kept = value > 0 && value > cutoff * values[n - 1];
        for (size_t k = 0; k < n; k++)
            factor[i * n + k] = kept ? factor[i * n + k] / sqrt(value) : 0;
        *rank += kept;
    }
    return TESS_OK;
}
