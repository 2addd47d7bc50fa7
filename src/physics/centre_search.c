/* centre_search.c: the axis at which the harmonics of all frequencies leave the least (centre_waves.c). */
#include <math.h>

#include "physics/centre_parts.h"

enum { NEWTON = 8 };
static const double STEP = 0.1;   /* columns, of the search */
static const double APART = 0.35; /* columns to another minimum, at least */
static const double CLEAR = 12;   /* variances of noise by which another minimum is larger, at least */
static const double FEW = 10;     /* values of all frequencies that count at each */

double tess_centre_left(const tess_centre_wave *waves, int64_t count, double off)
{
    double sum = 0;
    for (int64_t w = 0; w < count; w++) {
        const tess_centre_wave *is = waves + w;
        const double turn = 2 * is->frequency * off;
        sum += is->mean + is->cosine * cos(turn) + is->sine * sin(turn);
    }
    return sum;
}

/* The first and the second derivative of what is left. */
static void slopes(const tess_centre_wave *waves, int64_t count, double off, double *first, double *second)
{
    *first = *second = 0;
    for (int64_t w = 0; w < count; w++) {
        const tess_centre_wave *is = waves + w;
        const double f = 2 * is->frequency, turn = f * off;
        *first += f * (is->sine * cos(turn) - is->cosine * sin(turn));
        *second -= f * f * (is->cosine * cos(turn) + is->sine * sin(turn));
    }
}

/* The step at which the least is left. */
static double search_steps(const tess_centre_wave *waves, int64_t count, int64_t steps, tess_stop *stop)
{
    double best = 0, least = INFINITY;
    for (int64_t i = -steps; i <= steps && !tess_stop_poll(stop); i++) {
        const double is = tess_centre_left(waves, count, STEP * (double)i);
        if (is < least)
            least = is, best = STEP * (double)i;
    }
    return best;
}

/* Divides each frequency by the variance of what is left of it. Noise of the detector has the same at all, but views that
 * are out of place have more where the object has more. */
static void weigh(tess_centre_wave *waves, int64_t count, double off)
{
    double values = 0;
    for (int64_t w = 0; w < count; w++)
        values += waves[w].left;
    const double mean = tess_centre_left(waves, count, off) / values;
    for (int64_t w = 0; w < count; w++) {
        tess_centre_wave *is = waves + w;
        const double turn = 2 * is->frequency * off,
                     left = is->mean + is->cosine * cos(turn) + is->sine * sin(turn),
                     variance = mean > 0 ? (fmax(left, 0) + FEW * mean) / (is->left + FEW) : 1;
        is->variance = variance;
        is->mean /= variance;
        is->cosine /= variance;
        is->sine /= variance;
    }
}

bool tess_centre_search(tess_centre_wave *waves, int64_t count, double reach, tess_stop *stop, double *off,
                        double *error, double *curvature)
{
    const int64_t steps = (int64_t)ceil(reach / STEP);
    double values = 0, first, second;
    weigh(waves, count, search_steps(waves, count, steps, stop));
    double best = search_steps(waves, count, steps, stop), least = tess_centre_left(waves, count, best);
    if (fabs(best) > STEP * ((double)steps - 0.5))
        return false;
    const double coarse = best;
    for (int i = 0; i < NEWTON; i++) {
        slopes(waves, count, best, &first, &second);
        if (second > 0)
            best = fmax(coarse - STEP, fmin(coarse + STEP, best - first / second));
    }
    for (int64_t w = 0; w < count; w++)
        values += waves[w].left;
    slopes(waves, count, best, &first, &second);
    least = fmin(least, tess_centre_left(waves, count, best));
    const double noise = 2 * fmax(least, 0) / values; /* twice as many frequencies as columns */
    double before = INFINITY, here = tess_centre_left(waves, count, -STEP * (double)steps);
    for (int64_t i = -steps; i <= steps && !tess_stop_poll(stop); i++) {
        const double after = i < steps ? tess_centre_left(waves, count, STEP * (double)(i + 1)) : INFINITY;
        if (here <= before && here <= after && fabs(STEP * (double)i - coarse) > APART &&
            !(here - least > CLEAR * noise))
            return false;
        before = here, here = after;
    }
    *off = best;
    *error = sqrt(2 * noise / second);
    *curvature = second;
    return second > 0 && !tess_stop_wanted(stop);
}
