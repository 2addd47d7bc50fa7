/* Modified Gram-Schmidt in fp64, twice for each vector ("twice is enough", Giraud et al. 2005). It gives the factor Q whose
 * R has a positive diagonal, which is uniform over the orthogonal matrices (Mezzadri 2007); PyTorch's orthogonal_
 * corrects the signs of a QR factorisation to the same end. */
#include "train/orthogonal.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

static double dot(const double *a, const double *b, int64_t n)
{
    /* Four sums, since each addition waits for the one before it. */
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* `count` vectors of length n, one after another. */
static void orthonormalise(double *vectors, int64_t count, int64_t n)
{
    for (int64_t i = 0; i < count; i++) {
        double *v = vectors + i * n;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++) {
                const double *other = vectors + j * n, along = dot(v, other, n);
                for (int64_t k = 0; k < n; k++)
                    v[k] -= along * other[k];
            }
        const double length = sqrt(dot(v, v, n));
        for (int64_t k = 0; k < n; k++)
            v[k] /= length;
    }
}

tess_status tess_orthogonal(int64_t rows, int64_t columns, float *values, tess_error *error)
{
    const bool wide = rows <= columns;
    const int64_t count = wide ? rows : columns, n = wide ? columns : rows;
    double *vectors = tess_small_alloc((size_t)(count * n), sizeof *vectors);
    if (!vectors)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for an orthogonal matrix of %lld x %lld",
                         (long long)rows, (long long)columns);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < n; k++)
            vectors[i * n + k] = wide ? values[i * columns + k] : values[k * columns + i];
    orthonormalise(vectors, count, n);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < n; k++)
            *(wide ? &values[i * columns + k] : &values[k * columns + i]) = (float)vectors[i * n + k];
    tess_small_free(vectors);
    return TESS_OK;
}
