/* savitzky_golay.c: Savitzky and Golay (1964): a polynomial is fitted by least squares to a window of bands, and its value or
 * derivative (by the band number) at one of them is taken. Bands near the ends use the polynomial of the first or last
 * whole window, or the spectrum is continued, as scipy's modes. The polynomials are orthonormal on the window (Gram), so the normal equations need
 * no solution and no digits are lost. */
#include <math.h>
#include <string.h>

#include "model/spectral/state.h"

enum { ORDERS = 11 };

/* Coefficients of a polynomial in t = (band - centre) / half, orthonormal on the window: Gram-Schmidt on 1, t, t^2, ...,
 * twice, because once is not enough in fp64 for high orders. */
typedef struct gram {
    int window, order;
    double half;
    double c[ORDERS][ORDERS];
} gram;

static double value_at(const double *c, int order, double t)
{
    double sum = 0;
    for (int i = order; i >= 0; i--)
        sum = sum * t + c[i];
    return sum;
}

static double inner(const gram *g, const double *p, const double *q)
{
    double sum = 0;
    for (int w = 0; w < g->window; w++) {
        const double t = (w - g->window / 2) / g->half;
        sum += value_at(p, g->order, t) * value_at(q, g->order, t);
    }
    return sum;
}

static void make_gram(gram *g, int window, int order)
{
    memset(g, 0, sizeof *g);
    g->window = window, g->order = order;
    g->half = window / 2;
    for (int k = 0; k <= order; k++) {
        g->c[k][k] = 1;
        for (int turn = 0; turn < 2; turn++)
            for (int j = 0; j < k; j++) {
                const double along = inner(g, g->c[k], g->c[j]);
                for (int i = 0; i <= order; i++)
                    g->c[k][i] -= along * g->c[j][i];
            }
        const double norm = sqrt(inner(g, g->c[k], g->c[k]));
        for (int i = 0; i <= order; i++)
            g->c[k][i] /= norm;
    }
}

/* The derivative with respect to the band number. */
static double derivative_at(const gram *g, int k, int derivative, double t)
{
    double d[ORDERS];
    memcpy(d, g->c[k], sizeof d);
    for (int n = 0; n < derivative; n++) {
        for (int i = 0; i < g->order; i++)
            d[i] = (i + 1) * d[i + 1] / g->half;
        d[g->order] = 0;
    }
    return value_at(d, g->order, t);
}

/* The band that stands for one beyond an end; -1: zero. */
static int band_within(int band, int bands, tess_filter_ends ends)
{
    if (band >= 0 && band < bands)
        return band;
    switch (ends) {
    case TESS_ENDS_MIRROR:
        return band < 0 ? -band : 2 * (bands - 1) - band;
    case TESS_ENDS_ZERO:
        return -1;
    case TESS_ENDS_NEAREST:
    case TESS_ENDS_INTERP:
        break;
    }
    return band < 0 ? 0 : bands - 1;
}

void tess_savitzky_golay(int window, int order, int derivative, tess_filter_ends ends, int bands, double *a)
{
    gram g;
    make_gram(&g, window, order);
    const int half = window / 2;
    memset(a, 0, (size_t)bands * (size_t)bands * sizeof *a);
    for (int band = 0; band < bands; band++) {
        const bool moved = ends == TESS_ENDS_INTERP;
        const int first = moved && band < half               ? 0
                          : moved && band > bands - 1 - half ? bands - window
                                                             : band - half;
        const double t = (band - first - half) / g.half;
        for (int k = 0; k <= order; k++) {
            const double factor = derivative_at(&g, k, derivative, t);
            for (int w = 0; w < window; w++) {
                const int from = band_within(first + w, bands, ends);
                if (from >= 0)
                    a[(size_t)band * (size_t)bands + (size_t)from] +=
                        factor * value_at(g.c[k], order, (w - half) / g.half);
            }
        }
    }
}
