/* quadratic.c: the matrix of a quadratic form as our nodes store it.
 *
 * cuvis.ai scores with (x - mu)' P (x - mu), where P is what torch.linalg.pinv made of the covariance in float32, possibly
 * trained since. So P itself, not the covariance beside it, must give the scores: our node gets the inverse of P, in
 * fp64, of which it makes P's factor again. Only the symmetric part of P counts. Rounding leaves eigenvalues of P a little
 * below zero where pinv dropped a direction; they are dropped. A form that is really negative somewhere is no distance,
 * and is refused. */
#include "model/cuvis/classes.h"
#include "tensor/symmetric.h"

/* Eigenvalues of P below `least` of the largest would make the others unsafe in the inverse. */
static const double least = 0x1p-29, rounding = 0x1p-23;

static void invert(double *square, size_t c, const double *values, const double *vectors)
{
    for (size_t i = 0; i < c * c; i++)
        square[i] = 0;
    for (size_t k = 0; k < c; k++) {
        if (values[k] <= least * values[c - 1])
            continue;
        const double *v = vectors + k * c;
        for (size_t i = 0; i < c; i++)
            for (size_t j = 0; j < c; j++)
                square[i * c + j] += v[i] * v[j] / values[k];
    }
}

tess_status tess_cuvis_square(tess_memory *memory, tess_cuvis_how how, const char *name, double *square,
                              int channels, tess_error *error)
{
    const size_t c = (size_t)channels;
    for (size_t i = 0; i < c; i++)
        for (size_t j = 0; j < i; j++)
            square[i * c + j] = square[j * c + i] = (square[i * c + j] + square[j * c + i]) / 2;
    tess_block block = {0};
    TESS_TRY(tess_block_alloc(memory, &block, TESS_MEM_WORKSPACE,
                              (c * c + c + tess_symmetric_workspace(channels)) * sizeof(double), error));
    double *vectors = block.data, *values = vectors + c * c, *work = values + c;
    tess_status status = tess_symmetric_eigen(square, channels, values, vectors, work, error);
    if (status == TESS_OK && values[c - 1] <= 0)
        status = tess_fail(error, TESS_BAD_INPUT,
                           "tensor '%.200s' is zero; the pipeline was saved before it was fitted", name);
    else if (status == TESS_OK && values[0] < -rounding * channels * values[c - 1])
        status = tess_fail(
            error, TESS_UNSUPPORTED,
            "tensor '%.200s' has an eigenvalue of %g (the largest is %g); scores below zero are not taken",
            name, values[0], values[c - 1]);
    else if (status == TESS_OK && how == TESS_CUVIS_COVARIANCE)
        invert(square, c, values, vectors);
    tess_block_free(&block);
    return status;
}
