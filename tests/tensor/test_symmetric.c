/* Eigenvalues and factors of inverses: matrices with known eigenvalues, residuals and orthogonality; wide ranges,
 * multiple and zero eigenvalues, tiny and huge scales. */
#include "tensor/symmetric.h"

#include "base/rng.h"
#include "check.h"

static tess_error error;

/* a = Q diag(values) Q', with Q a product of reflections of random vectors. */
static void make(double *a, int n, const double *values, uint32_t item)
{
    float *u = malloc((size_t)n * sizeof *u);
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int i = 0; i < n; i++)
        a[i * n + i] = values[i];
    for (uint32_t k = 0; k < 3; k++) {
        tess_rng_normal((tess_rng_key){3, item, k}, 0, n, u);
        double norm = 0;
        for (int i = 0; i < n; i++)
            norm += (double)u[i] * (double)u[i];
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < n; i++) { /* rows, then columns */
                double dot = 0;
                for (int j = 0; j < n; j++)
                    dot += (double)u[j] * (side ? a[j * n + i] : a[i * n + j]);
                for (int j = 0; j < n; j++)
                    *(side ? &a[j * n + i] : &a[i * n + j]) -= 2 * dot / norm * (double)u[j];
            }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            a[j * n + i] = a[i * n + j];
    free(u);
}

typedef struct eigen_case {
    const char *name;
    int n;
    double scale, ratio; /* values are scale * ratio^i, i rising; 0: all equal but two zeros */
} eigen_case;

static const eigen_case cases[] = {
    {"one", 1, 3, 1},          {"two", 2, 1, 0.5},       {"small", 13, 1, 0.7},    {"wide", 100, 1e6, 0.82},
    {"equal", 40, 2.5, 0},     {"flat", 65, 1, 0.999},   {"huge", 20, 1e150, 0.5}, {"tiny", 20, 1e-150, 0.5},
    {"large", 210, 1e4, 0.95}, {"negative", 30, -1, 0.8}};

static double value_of(const eigen_case *k, int i)
{
    return k->ratio > 0 ? k->scale * pow(k->ratio, i) : i < 2 && k->n > 2 ? 0 : k->scale;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_vectors(const eigen_case *k, const double *a, const double *values, const double *v)
{
    const int n = k->n;
    double norm = 0, residual = 0, skew = 0;
    for (int i = 0; i < n; i++)
        norm = fmax(norm, fabs(values[i]));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double av = 0, vv = 0;
            for (int t = 0; t < n; t++) {
                av += a[j * n + t] * v[i * n + t];
                vv += v[i * n + t] * v[j * n + t];
            }
            residual = fmax(residual, fabs(av - values[i] * v[i * n + j]));
            skew = fmax(skew, fabs(vv - (i == j)));
        }
    CHECK_MSG(residual <= 1e-14 * n * norm, "%s: residual %.3g of %.3g", k->name, residual, norm);
    CHECK_MSG(skew <= 2e-15 * n + 1e-15, "%s: vectors off by %.3g", k->name, skew);
}

static void check_case(const eigen_case *k)
{
    const int n = k->n;
    const size_t nn = (size_t)(n * n);
    double *a = malloc(nn * sizeof *a), *v = malloc(nn * sizeof *v), *f = malloc(nn * sizeof *f),
           *values = malloc((size_t)n * sizeof *values), *want = malloc((size_t)n * sizeof *want),
           *work = malloc(tess_symmetric_workspace(n) * sizeof *work);
    for (int i = 0; i < n; i++)
        want[i] = value_of(k, i);
    make(a, n, want, (uint32_t)n);
    qsort(want, (size_t)n, sizeof *want, rising);
    CHECK_MSG(tess_symmetric_eigen(a, n, values, v, work, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < n; i++)
        CHECK_MSG(fabs(values[i] - want[i]) <= 1e-14 * n * fmax(fabs(want[0]), fabs(want[n - 1])),
                  "%s: value %d is %.17g, not %.17g", k->name, i, values[i], want[i]);
    check_vectors(k, a, values, v);
    memcpy(f, a, nn * sizeof *f); /* in place */
    CHECK(tess_symmetric_eigen(f, n, values, f, work, &error) == TESS_OK);
    CHECK_MSG(memcmp(f, v, nn * sizeof *f) == 0, "%s differs in place", k->name);
    int rank = -1, kept = 0;
    const double cutoff = 1e-6;
    CHECK(tess_symmetric_whiten(a, n, cutoff, values, f, &rank, work, &error) == TESS_OK);
    for (int i = 0; i < n; i++)
        kept += want[i] > 0 && want[i] > cutoff * want[n - 1];
    CHECK_MSG(rank == kept, "%s: rank %d, not %d", k->name, rank, kept);
    double most = 0; /* F a F' is the identity of that rank */
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            v[i * n + j] = 0;
            for (int t = 0; t < n; t++)
                v[i * n + j] += f[i * n + t] * a[t * n + j];
        }
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int t = 0; t < n; t++)
                sum += v[i * n + t] * f[j * n + t];
            most = fmax(most, fabs(sum - (i == j && i < rank)));
        }
    }
    CHECK_MSG(most <= 1e-8, "%s: F a F' is off by %.3g", k->name, most);
    free(a), free(v), free(f), free(values), free(want), free(work);
}

static void check_bad(void)
{
    double a[4] = {1, 0, NAN, 1}, values[2], v[4], work[16];
    CHECK(tess_symmetric_workspace(2) <= 16);
    CHECK(tess_symmetric_eigen(a, 2, values, v, work, &error) == TESS_BAD_INPUT);
    CHECK(strstr(error.text, "(1, 0)") != NULL);
    const double zero[4] = {0};
    int rank = -1;
    CHECK(tess_symmetric_whiten(zero, 2, 0, values, v, &rank, work, &error) == TESS_OK && rank == 0);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
    check_bad();
    return check_end();
}
