#include "physics/filter.h"

#include <math.h>

#include "base/mem.h"

static const double pi = 3.14159265358979323846;

int64_t tess_filter_padded(int64_t length)
{
    int64_t padded = 64;
    while (padded < 2 * length)
        padded *= 2;
    return padded;
}

tess_status tess_filter_spectrum(tess_filter filter, int64_t padded, double scale, float *spectrum,
                                 tess_error *error)
{
    double *cosine = tess_small_alloc((size_t)padded, sizeof *cosine);
    if (!cosine)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the ramp filter of %lld samples",
                         (long long)padded);
    for (int64_t i = 0; i < padded; i++)
        cosine[i] = cos(2 * pi * (double)i / (double)padded);
    for (int64_t k = 0; k <= padded / 2; k++) {
        double sum = 0.25; /* the taps are even, so their transform is a sum of cosines */
        for (int64_t n = 1; n < padded / 2; n += 2)
            sum -= 2 / (pi * pi * (double)n * (double)n) * cosine[k * n & (padded - 1)];
        const double window = filter == TESS_FILTER_HANN ? 0.5 * (1 + cosine[k]) : 1;
        spectrum[k] = (float)(sum * window * scale);
    }
    tess_small_free(cosine);
    return TESS_OK;
}

void tess_filter_ops(int64_t rows, int64_t padded, tess_op *transform, tess_op *filter, tess_op *back)
{
    const int64_t bins = padded / 2 + 1;
    const tess_tensor samples = tess_tensor_2d(TESS_F32, 1, rows, padded, 1),
                      half = tess_tensor_2d(TESS_F32, 1, rows, bins, 2);
    *transform = (tess_op){.kind = TESS_OP_FFT,
                           .inputs = 1,
                           .outputs = 1,
                           .in = {samples},
                           .out = {half},
                           .fft = {.rows_only = true}};
    *filter = (tess_op){.kind = TESS_OP_SPECTRUM,
                        .inputs = 2,
                        .outputs = 1,
                        .in = {half, tess_tensor_2d(TESS_F32, 1, 1, bins, 1)},
                        .out = {half}};
    *back = (tess_op){.kind = TESS_OP_FFT,
                      .inputs = 1,
                      .outputs = 1,
                      .in = {half},
                      .out = {samples},
                      .fft = {.inverse = true, .rows_only = true}};
}
