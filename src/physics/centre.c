#include "physics/centre.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

static const double TAPER = 0.1; /* share of the window at each end */
enum { MOST_PAIRED = 2000, MOST_SEARCHED = 16, FREQUENCIES = 48, LEAST_HALVED = 8 };
static const double pi = 3.14159265358979323846;
static const double NEAR = 0.05;    /* degrees by which opposite views may differ from half a turn */
static const double ENERGY = 0.25;  /* least share of two views that must overlap */
static const double MISMATCH = 0.1; /* largest difference between two views, relative to their energy */
/* largest difference between the sums of views, relative to their mean */
static const double MASS = 0.05;
/* largest mean of the outer columns over some views, relative to the brightest column: above it the object is wider */
static const double EDGE = 0.05;
enum { EDGE_GROUPS = 8, EDGE_SHARE = 64 }; /* groups of views; columns for each one of an edge */
static const double CERTAIN = 3;           /* standard errors of a mean: less may be noise */
static const double UNCERTAIN = 0.25;      /* columns: largest uncertainty of the fitted centre */

typedef struct pair {
    const float *one, *other;
} pair;

typedef struct scan {
    const float *views;
    const double *angles;
    int64_t count, columns;
    pair *pairs;
    double *wave; /* (cos, sin) of a frequency under a window, at each column */
    int64_t found;
    double energy; /* of the pairs that are searched */
    bool cut;      /* the object is wider than the detector */
} scan;

static double square(float value)
{
    return (double)value * (double)value;
}

/* Step between the pairs that are searched; all pairs are used to refine. */
static int64_t searched(const scan *s)
{
    return tess_max_i64(1, s->found / MOST_SEARCHED);
}

/* Finds views with a later one half a turn away. Of very many views a part is enough. */
static void find_pairs(scan *s)
{
    const int64_t step = tess_max_i64(1, s->count / MOST_PAIRED);
    for (int64_t i = 0; i < s->count; i += step)
        for (int64_t j = i + 1; j < s->count; j++) {
            const double turn = fabs(fmod(s->angles[j] - s->angles[i], 360));
            if (fabs(turn - 180) > NEAR)
                continue;
            s->pairs[s->found++] = (pair){s->views + i * s->columns, s->views + j * s->columns};
            break;
        }
    for (int64_t p = 0; p < s->found; p += searched(s))
        for (int64_t i = 0; i < s->columns; i++)
            s->energy += square(s->pairs[p].one[i]) + square(s->pairs[p].other[i]);
}

/* The columns s for which k - s is also a column. */
static void overlap(int64_t columns, int64_t k, int64_t *from, int64_t *to)
{
    *from = tess_max_i64(0, k - (columns - 1));
    *to = tess_min_i64(columns - 1, k) + 1;
}

/* How much views differ from their partners mirrored at k / 2, from 0 to about 1; 2: they overlap too little. */
static double mismatch(const scan *s, int64_t k)
{
    double difference = 0, inside = 0;
    int64_t from, to;
    overlap(s->columns, k, &from, &to);
    for (int64_t p = 0; p < s->found; p += searched(s)) {
        const float *one = s->pairs[p].one, *other = s->pairs[p].other;
        for (int64_t i = from; i < to; i++) {
            difference += square(one[i] - other[k - i]);
            inside += square(one[i]) + square(other[k - i]);
        }
    }
    return inside > ENERGY * s->energy ? difference / inside : 2;
}

/* The largest mean value at an edge of the detector, of the largest column's, less what may be noise. Means over
 * several views and columns, because single values are noisy; over a group of views, because an object may reach the
 * edge in few of them. */
static double seen_at_edges(const scan *s)
{
    const int64_t outer = tess_max_i64(1, s->columns / EDGE_SHARE),
                  groups = tess_min_i64(EDGE_GROUPS, s->count);
    double largest = 0, edge = 0;
    for (int64_t i = 0; i < s->columns; i++) {
        double sum = 0;
        for (int64_t k = 0; k < s->count; k++)
            sum += (double)s->views[k * s->columns + i];
        largest = fmax(largest, sum / (double)s->count);
    }
    for (int64_t g = 0; g < 2 * groups; g++) {
        const int64_t from = g / 2 * s->count / groups, to = (g / 2 + 1) * s->count / groups,
                      first = g % 2 ? s->columns - outer : 0;
        double sum = 0, steps = 0;
        for (int64_t k = from; k < to; k++)
            for (int64_t i = first; i < first + outer; i++) {
                const float *at = s->views + k * s->columns + i;
                sum += (double)*at;
                steps += k > from ? square(*at - at[-s->columns]) : 0;
            }
        /* the object changes slowly from view to view, noise does not */
        const double number = (double)((to - from) * outer),
                     noise = to - from > 1 ? sqrt(0.5 * steps / (double)((to - from - 1) * outer)) : 0;
        edge = fmax(edge, fabs(sum) / number - CERTAIN * noise / sqrt(number));
    }
    return largest > 0 ? edge / largest : INFINITY;
}

/* A value, or where the object is cut off the difference of its neighbours, which has no pedestal: a window's own shape
 * times a pedestal does not shift with the view, and pulls the centre to k / 2. `along` is 1, or -1 for a mirror
 * image. */
static double value_at(const scan *s, const float *view, int64_t i, int64_t along)
{
    if (!s->cut)
        return (double)view[i];
    const int64_t last = s->columns - 1;
    return (double)view[tess_max_i64(0, tess_min_i64(i + along, last))] -
           (double)view[tess_max_i64(0, tess_min_i64(i - along, last))];
}

/* Sums the cross spectrum of a view and its partner's mirror image over all pairs, at one frequency. The window is
 * flat except at its ends: one that falls from its middle would pull the centre there. */
static void cross(const scan *s, int64_t k, double frequency, double *real, double *imaginary)
{
    int64_t from, to;
    overlap(s->columns, k, &from, &to);
    for (int64_t i = from; i < to; i++) {
        const double edge =
            fmin((double)(i - from) + 0.5, (double)(to - i) - 0.5) / (TAPER * (double)(to - from));
        const double window = edge < 1 ? 0.5 - 0.5 * cos(pi * edge) : 1;
        s->wave[2 * i] = window * cos(frequency * (double)i);
        s->wave[2 * i + 1] = -window * sin(frequency * (double)i);
    }
    *real = *imaginary = 0;
    for (int64_t p = 0; p < s->found; p++) {
        const float *one = s->pairs[p].one, *other = s->pairs[p].other;
        double a[2] = {0, 0}, b[2] = {0, 0};
        for (int64_t i = from; i < to; i++)
            for (int c = 0; c < 2; c++) {
                a[c] += s->wave[2 * i + c] * value_at(s, one, i, 1);
                b[c] += s->wave[2 * i + c] * value_at(s, other, k - i, -1);
            }
        *real += a[0] * b[0] + a[1] * b[1];
        *imaginary += a[1] * b[0] - a[0] * b[1];
    }
}

/* Difference between twice the centre and k: the slope of the phase, weighted by the spectrum. */
static double refine(const scan *s, int64_t k)
{
    int64_t from, to;
    overlap(s->columns, k, &from, &to);
    double slope = 0, weights = 0;
    const int64_t most =
        tess_min_i64(FREQUENCIES, (to - from) / (s->cut ? 10 : 4)); /* differences are noisy */
    for (int64_t m = 1; m <= most; m++) {
        const double frequency = 2 * pi * (double)m / (double)(to - from);
        double real, imaginary;
        cross(s, k, frequency, &real, &imaginary);
        const double weight = hypot(real, imaginary);
        slope -= weight * frequency * atan2(imaginary, real);
        weights += weight * frequency * frequency;
    }
    return weights > 0 ? fmax(-1, fmin(1, slope / weights)) : 0;
}

/* How far the centres that the first and the last pairs show differ. */
static double agreement(const scan *s, int64_t k)
{
    scan first = *s, last = *s;
    if (s->found < LEAST_HALVED)
        return INFINITY;
    first.found = s->found / 2;
    last.pairs += first.found;
    last.found -= first.found;
    return 0.5 * fabs(refine(&first, k) - refine(&last, k));
}

static tess_status from_pairs(const scan *s, tess_centre *out, tess_error *error)
{
    int64_t best = s->columns - 1;
    double least = mismatch(s, best);
    for (int64_t k = 0; k <= 2 * (s->columns - 1); k++) {
        const double is = mismatch(s, k);
        if (is < least) {
            least = is;
            best = k;
        }
    }
    if (!(least < MISMATCH))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": opposite views are no mirror images of each other (they differ by %.0f %% "
            "at best); check the angles, or give the centre as a column",
            100 * sqrt(fmin(least, 1)));
    /* At the end of the search it is no minimum: views may fit better where they overlap less. */
    const int64_t last = 2 * (s->columns - 1);
    if (best == 0 || best == last || mismatch(s, best - 1) > 1 || mismatch(s, best + 1) > 1)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": opposite views overlap too little; the axis may be outside of the detector: give "
            "the centre as a column, which may be negative");
    *out = (tess_centre){0.5 * ((double)best + refine(s, best)), s->found, agreement(s, best)};
    return TESS_OK;
}

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
static double scatter(const scan *s, const double *moments, double column, double m[3][3])
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

static tess_status fit(const scan *s, const double *moments, tess_centre *out, tess_error *error)
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
    if (s->count < 8 || !isfinite(column) || !(share > 0) || share > 100)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": no two views are half a turn apart, and %lld views over these angles are too "
            "few to find it by the centre of mass; give the centre as a column",
            (long long)s->count);
    const double error_of = scatter(s, moments, column, m) * sqrt(first);
    if (!(error_of < UNCERTAIN) || column < 0 || column > (double)(s->columns - 1))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": no two views are half a turn apart, and the centres of mass give column %.2f "
            "only to within %.2f; give the centre as a column",
            column, error_of);
    *out = (tess_centre){column, 0, error_of};
    return TESS_OK;
}

static tess_status check_edges(const scan *s, tess_error *error)
{
    if (!s->cut)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "\"centre\": no two views are half a turn apart, and the outer columns hold %.1f %% of "
                     "the largest, of "
                     "which %.0f %% are allowed, so that the object is wider than the detector, or its "
                     "background is not zero; "
                     "give the centre as a column",
                     100 * seen_at_edges(s), 100 * EDGE);
}

static tess_status from_mass(const scan *s, double *moments, tess_centre *out, tess_error *error)
{
    double mean = 0, squares = 0;
    for (int64_t k = 0; k < s->count; k++) {
        double sum = 0, moment = 0;
        for (int64_t i = 0; i < s->columns; i++) {
            sum += (double)s->views[k * s->columns + i];
            moment += (double)i * (double)s->views[k * s->columns + i];
        }
        moments[k] = moment / sum;
        mean += sum / (double)s->count;
        squares += sum * sum / (double)s->count;
    }
    const double spread = sqrt(fmax(squares - mean * mean, 0)) / fabs(mean);
    if (!(mean > 0))
        return tess_fail(error, TESS_BAD_INPUT,
                         "\"centre\": the sum of its values is %g, but what attenuates rays is not negative; "
                         "check their sign, or give the centre as a column",
                         mean * (double)s->count);
    if (!(spread < MASS))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": no two views are half a turn apart, and the sums of views differ (by %.0f %%), "
            "so that not all of them see the whole object, or noise is strong; give the centre as a column",
            100 * spread);
    TESS_TRY(check_edges(s, error));
    return fit(s, moments, out, error);
}

static bool all_zero(const scan *s)
{
    int64_t i = 0;
    while (i < s->count * s->columns && s->views[i] == 0)
        i++;
    return i == s->count * s->columns;
}

tess_status tess_centre_find(const float *views, int64_t count, int64_t columns, const double *angles,
                             tess_centre *out, tess_error *error)
{
    scan s = {.views = views, .angles = angles, .count = count, .columns = columns};
    s.pairs = tess_small_alloc((size_t)count, sizeof *s.pairs);
    s.wave = tess_small_alloc((size_t)columns, 2 * sizeof *s.wave);
    double *moments = tess_small_alloc((size_t)count, sizeof *moments);
    tess_status status = TESS_OK;
    if (!s.pairs || !s.wave || !moments)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to pair %lld views", (long long)count);
    if (status == TESS_OK && all_zero(&s))
        status =
            tess_fail(error, TESS_BAD_INPUT,
                      "\"centre\": all its values are zero, so that there is nothing to find it by; check "
                      "the file, or give the centre as a column");
    if (status == TESS_OK) {
        find_pairs(&s);
        s.cut = seen_at_edges(&s) > EDGE;
        status = s.found ? from_pairs(&s, out, error) : from_mass(&s, moments, out, error);
    }
    tess_small_free(s.pairs);
    tess_small_free(s.wave);
    tess_small_free(moments);
    return status;
}
