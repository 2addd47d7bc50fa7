/* centre_mass.c: the axis from the centres of mass of the views, which move as a + x cos t - y sin t. */
#include <math.h>

#include "base/checked.h"
#include "physics/centre_parts.h"

static const double pi = 3.14159265358979323846;
static const double LARGEST =
    100; /* variance of the fitted mean, times the views: above it the wave is not separate */
enum { LEAST_VIEWS = 8 };

/* Solves the symmetric 3 x 3 system by cofactors; `first` is the first diagonal entry of the inverse. */
static double solve(double m[3][3], const double right[3], double *first)
{
    const double c[3] = {m[1][1] * m[2][2] - m[1][2] * m[1][2], m[1][2] * m[0][2] - m[0][1] * m[2][2],
                         m[0][1] * m[1][2] - m[1][1] * m[0][2]};
    const double determinant = m[0][0] * c[0] + m[0][1] * c[1] + m[0][2] * c[2];
    *first = c[0] / determinant;
    return (c[0] * right[0] + c[1] * right[1] + c[2] * right[2]) / determinant;
}

/* Root mean square distance of the centres of mass from the fitted wave, in columns, given the wave's mean. */
static double scatter(const tess_centre_views *s, const double *moments, double column, double m[3][3])
{
    double right[2] = {0, 0}, squares = 0;
    for (int64_t k = 0; k < s->count; k++) {
        right[0] += (moments[k] - column) * cos(s->angles[k] * pi / 180);
        right[1] -= (moments[k] - column) * sin(s->angles[k] * pi / 180);
    }
    const double determinant = m[1][1] * m[2][2] - m[1][2] * m[1][2];
    const double x = (m[2][2] * right[0] - m[1][2] * right[1]) / determinant,
                 y = (m[1][1] * right[1] - m[1][2] * right[0]) / determinant;
    for (int64_t k = 0; k < s->count; k++) {
        const double t = s->angles[k] * pi / 180, rest = moments[k] - column - x * cos(t) + y * sin(t);
        squares += rest * rest;
    }
    return sqrt(squares / (double)tess_max_i64(1, s->count - 3));
}

static tess_status fit(const tess_centre_views *s, const double *moments, tess_centre_mass *out,
                       tess_error *error)
{
    double m[3][3] = {{0}}, right[3] = {0}, first;
    for (int64_t k = 0; k < s->count; k++) {
        const double row[3] = {1, cos(s->angles[k] * pi / 180), -sin(s->angles[k] * pi / 180)};
        for (int i = 0; i < 3; i++) {
            right[i] += row[i] * moments[k];
            for (int j = 0; j < 3; j++)
                m[i][j] += row[i] * row[j];
        }
    }
    const double column = solve(m, right, &first), share = first * (double)s->count;
    if (s->count < LEAST_VIEWS || !isfinite(column) || !(share > 0) || share > LARGEST)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": no two views are half a turn apart, and %lld views over these angles are too "
            "few to find it by the centre of mass; give the centre as a column",
            (long long)s->count);
    out->column = column;
    out->error = scatter(s, moments, column, m) * sqrt(first);
    return TESS_OK;
}

tess_status tess_centre_from_mass(const tess_centre_views *v, double *moments, tess_centre_mass *out,
                                  tess_error *error)
{
    double mean = 0, squares = 0, steps = 0;
    for (int64_t k = 0; k < v->count && !tess_stop_poll(v->stop); k++) {
        double sum = 0, moment = 0;
        for (int64_t i = 0; i < v->columns; i++) {
            const double is = (double)v->values[k * v->columns + i],
                         step = k ? is - (double)v->values[(k - 1) * v->columns + i] : 0;
            sum += is;
            moment += (double)i * is;
            steps += step * step;
        }
        moments[k] = moment / sum;
        mean += sum / (double)v->count;
        squares += sum * sum / (double)v->count;
    }
    if (!(mean > 0))
        return tess_fail(error, TESS_BAD_INPUT,
                         "\"centre\": the sum of its values is %g, but what attenuates rays is not negative; "
                         "check their sign, or give the centre as a column",
                         mean * (double)v->count);
    out->spread = sqrt(fmax(squares - mean * mean, 0)) / mean;
    /* the variance of a sum is that of its columns, of which the differences between views have twice */
    out->noisy = sqrt(0.5 * steps / (double)tess_max_i64(1, v->count - 1)) / mean;
    return fit(v, moments, out, error);
}
