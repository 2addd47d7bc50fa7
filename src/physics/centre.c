#include "physics/centre.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "physics/centre_parts.h"

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
static const double REACH = 3;             /* columns on both sides of the centre of mass that are searched */
static const double SEVERAL = 6;           /* or so many standard errors of it, */
static const double ROUGH = 0.25;          /* or this part of the detector */
static const double AGREE = 3;             /* standard errors by which two centres may differ */
static const double DOUBT = 0.1; /* of the difference of two that do not agree: the error of the better one */
static const double MISLED = 1;  /* columns: from the pairs' centre, the spectrum's is wrong */
static const double LEAST = 0.002; /* columns: no centre is known better */
static const double TINY = 1e-12;  /* least variance, in columns squared */

typedef struct pair {
    const float *one, *other;
} pair;

typedef struct scan {
    const float *views;
    const double *angles;
    int64_t count, columns;
    pair *pairs;
    double *wave; /* (cos, sin) of a frequency under a window, at each column */
    void *waves;  /* memory of tess_centre_from_waves */
    int64_t found;
    double energy;   /* of the pairs that are searched */
    bool cut;        /* the object is wider than the detector */
    tess_stop *stop; /* when it is set, loops end early */
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
    for (int64_t i = 0; i < s->count && !tess_stop_poll(s->stop); i += step)
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
    for (int64_t i = 0; i < s->columns && !tess_stop_poll(s->stop); i++) {
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
    for (int64_t p = 0; p < s->found && !tess_stop_poll(s->stop); p++) {
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
    for (int64_t m = 1; m <= most && !tess_stop_poll(s->stop); m++) {
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
    for (int64_t k = 0; k <= 2 * (s->columns - 1) && !tess_stop_poll(s->stop); k++) {
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
            "at best); check the angles; if these are right, noise is strong: give the centre as a column",
            100 * sqrt(fmin(least, 1)));
    /* At the end of the search it is no minimum: views may fit better where they overlap less. */
    const int64_t last = 2 * (s->columns - 1);
    if (best == 0 || best == last || mismatch(s, best - 1) > 1 || mismatch(s, best + 1) > 1)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": opposite views overlap too little; the axis may be outside of the detector: give "
            "the centre as a column, which may be negative");
    *out = (tess_centre){
        .column = 0.5 * ((double)best + refine(s, best)), .pairs = s->found, .within = agreement(s, best)};
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

/* The centres of mass say where to look, and the spectrum of all views is more precise where there is noise. Where the
 * two agree, each counts by its error. Where they do not, there is a background or the columns have
 * errors, which move the centres of mass much more. */
static tess_status without_pairs(const scan *s, double *moments, tess_centre *out, tess_error *error)
{
    const tess_centre_views v = {s->views, s->angles, s->count, s->columns, s->stop};
    const double last = (double)(s->columns - 1);
    tess_centre_mass m;
    double column, within;
    bool rings = false; /* columns have errors, which the spectrum takes into account */
    TESS_TRY(tess_centre_from_mass(&v, moments, &m, error));
    const double uneven = sqrt(fmax(m.spread * m.spread - m.noisy * m.noisy, 0));
    const bool inside = m.column >= 0 && m.column <= last,
               enough = m.spread < MASS && m.error < UNCERTAIN && inside;
    if (uneven < MASS)
        TESS_TRY(check_edges(s, error));
    const bool near = inside && m.error < ROUGH * last;
    const bool found =
        uneven < MASS && tess_centre_from_waves(&v, near ? m.column : 0.5 * last,
                                                near ? fmax(REACH, SEVERAL * m.error) : ROUGH * last,
                                                s->waves, &column, &within, &rings);
    if (found && within < UNCERTAIN) {
        const double apart = fabs(column - m.column);
        const bool agree = !rings && apart < AGREE * hypot(within, m.error);
        const double one = 1 / (within * within), other = agree ? 1 / fmax(m.error * m.error, TINY) : 0;
        *out = (tess_centre){.column = (one * column + other * m.column) / (one + other),
                             .within = agree   ? fmax(fmin(within, m.error), LEAST)
                                       : rings ? within
                                               : hypot(within, DOUBT * apart),
                             .spectrum = true};
        return TESS_OK;
    }
    if (!(m.spread < MASS))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": no two views are half a turn apart, and the sums of views differ (by %.0f %%), "
            "so that not all of them see the whole object, or noise is strong; give the centre as a column",
            100 * m.spread);
    if (!enough)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"centre\": no two views are half a turn apart, and the centres of mass give column %.2f "
            "only to within %.2f; give the centre as a column",
            m.column, m.error);
    *out = (tess_centre){.column = m.column, .within = m.error};
    return TESS_OK;
}

/* The noise of a few pairs counts in full, of all views together much less. The pairs are kept for what only they can
 * see: an object wider than the detector, and a wrong centre of the spectrum. */
static tess_status from_few_pairs(const scan *s, double *moments, tess_centre *out, tess_error *error)
{
    tess_centre all;
    TESS_TRY(from_pairs(s, out, error));
    if (!s->cut && without_pairs(s, moments, &all, NULL) == TESS_OK && all.spectrum &&
        fabs(all.column - out->column) < MISLED)
        *out = all;
    return TESS_OK;
}

static bool all_zero(const scan *s)
{
    int64_t i = 0;
    while (i < s->count * s->columns && s->views[i] == 0)
        i++;
    return i == s->count * s->columns;
}

size_t tess_centre_bytes(int64_t count, int64_t columns)
{
    return tess_centre_waves_bytes(count, columns);
}

tess_status tess_centre_find(const tess_centre_views *v, void *memory, tess_centre *out, tess_error *error)
{
    const int64_t count = v->count, columns = v->columns;
    scan s = {.views = v->values,
              .angles = v->angles,
              .count = count,
              .columns = columns,
              .waves = memory,
              .stop = v->stop};
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
        status = s.found >= LEAST_HALVED ? from_pairs(&s, out, error)
                 : s.found               ? from_few_pairs(&s, moments, out, error)
                                         : without_pairs(&s, moments, out, error);
        if (tess_stop_wanted(v->stop)) /* whatever was found */
            status = tess_stop_check(v->stop, error);
    }
    tess_small_free(s.pairs);
    tess_small_free(s.wave);
    tess_small_free(moments);
    return status;
}
