/* centre_waves.c: the axis from the spectrum of all views together.
 *
 * The line integrals of an object are a function of the angle with a period of a full turn, where each view returns as its
 * mirror image after half a turn. Let F(t, w) be the spectrum of the view at angle t along the columns, counted from the
 * axis. Then F(t + 180, w) is the conjugate of F(t, w): its real part has the even harmonics of t only and its imaginary
 * part the odd ones. An object within a radius R of the axis has none above w R, apart from a margin (Vo et al., Optics
 * Express 22, 2014, use this of views joined with their mirror images). An axis a columns beside the right one multiplies
 * F by exp(i w a). So both parts are fitted by their harmonics up to w R, and the axis is where the least is left:
 *
 *   E(a) = sum over w of m + c cos(2 w a) + s sin(2 w a),
 *
 * where m, c and s do not depend on a. Angles need not be even, because the harmonics are made orthogonal at those that
 * there are. The fit has white noise, so that the curvature of E gives the standard error.
 *
 * An error of a column is the same in all views, so it adds a constant to both parts. The imaginary part of an object has
 * none, so what a constant explains there must be noise; where it is more, it counts less by that ratio. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "physics/centre_parts.h"

static const double pi = 3.14159265358979323846;
enum {
    MOST_VIEWS = 256,
    LEAST_VIEWS = 16,
    LEFT = 3 /* values that no harmonic fits, at least */
};
static const double HIGHEST = 0.7;            /* frequency along the columns, of the highest */
static const double MARGIN = 2, GROWTH = 1.5; /* harmonics above w R: MARGIN + GROWTH (w R)^(1/3) */
static const double ROOM = 1.1;               /* of the radius: columns that are used */
static const double MODEL = 0.005;            /* columns: error without noise */
static const double GAP = 4;                  /* mean steps between neighbouring directions, at most */
static const double DEPENDENT = 1e-6;         /* of its length: a harmonic that the lower ones give */
static const double PLAIN = 4;                /* standard errors by which columns' errors exceed noise */

/* What is fitted: the harmonics of one parity, or the odd ones and a constant. */
enum { EVEN, ODD, CONSTANT, FITS };

typedef struct search {
    const tess_centre_views *v;
    int64_t count, waves, fitted; /* groups of views; frequencies; harmonics in `basis` */
    int64_t from, to;             /* columns that are used */
    double near, radius;
    double *angles, *line, *part, *basis; /* part: (waves, 2, count), real and imaginary */
    double *scores, *left[2]; /* of each group: see score_views; of the real and imaginary parts */
    tess_centre_wave *wave, *sums[FITS];
    double *apart; /* square of what the odd harmonics leave of a constant of length 1, at each frequency */
    double excess; /* variance of a constant by columns' errors, of that of noise; 0: they have none */
} search;

static int64_t most_waves(int64_t columns)
{
    /* frequencies have a step of pi / width, where the width is at least twice the radius; w R stays below the views */
    return tess_min_i64((int64_t)(2 * ROOM * MOST_VIEWS / pi) + 8, columns + 8);
}

size_t tess_centre_waves_bytes(int64_t count, int64_t columns)
{
    const int64_t views = tess_min_i64(count, MOST_VIEWS), waves = most_waves(columns);
    return (size_t)(4 * views + columns + waves + 2 * waves * views + views * views) * sizeof(double) +
           (size_t)((1 + FITS) * waves) * sizeof(tess_centre_wave);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean of a group of views at nearly one angle, of which there are several where there are very many views. */
static void mean_view(const search *s, int64_t group)
{
    const tess_centre_views *v = s->v;
    const int64_t first = group * v->count / s->count, end = (group + 1) * v->count / s->count;
    double number = 0, turn = 0;
    for (int64_t i = s->from; i < s->to; i++)
        s->line[i] = 0;
    for (int64_t k = first; k < end; k++) {
        if (fabs(v->angles[k] - v->angles[first]) > 180.0 / (double)s->count)
            continue;
        for (int64_t i = s->from; i < s->to; i++)
            s->line[i] += (double)v->values[k * v->columns + i];
        turn += v->angles[k];
        number++;
    }
    for (int64_t i = s->from; i < s->to; i++)
        s->line[i] /= number;
    s->angles[group] = turn / number * pi / 180;
}

/* The spectrum of each group of views, with the columns counted from `near`. */
static void transform(const search *s)
{
    for (int64_t g = 0; g < s->count && !tess_stop_poll(s->v->stop); g++) {
        mean_view(s, g);
        for (int64_t w = 0; w < s->waves; w++) {
            const double f = s->wave[w].frequency, start = f * ((double)s->from - s->near), c = cos(f),
                         n = sin(f);
            double re = 0, im = 0, x = cos(start), y = -sin(start);
            for (int64_t i = s->from; i < s->to; i++) {
                re += x * s->line[i];
                im += y * s->line[i];
                const double turned = x * c + y * n;
                y = y * c - x * n;
                x = turned;
            }
            s->part[2 * w * s->count + g] = re;
            s->part[(2 * w + 1) * s->count + g] = im;
        }
    }
}

static double product(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Adds a harmonic at the angles of the views, made orthogonal to the former ones. */
static void add_harmonic(search *s, int64_t n, bool sine)
{
    if (s->fitted == s->count)
        return;
    double *own = s->basis + s->fitted * s->count;
    for (int64_t k = 0; k < s->count; k++)
        own[k] = sine ? sin((double)n * s->angles[k]) : cos((double)n * s->angles[k]);
    const double before = sqrt(product(own, own, s->count));
    for (int again = 0; again < 2; again++)
        for (int64_t b = 0; b < s->fitted; b++) {
            const double *other = s->basis + b * s->count, share = product(own, other, s->count);
            for (int64_t k = 0; k < s->count; k++)
                own[k] -= share * other[k];
        }
    const double length = sqrt(product(own, own, s->count));
    if (!(length > DEPENDENT * before) || !(before > 0))
        return;
    for (int64_t k = 0; k < s->count; k++)
        own[k] /= length;
    s->fitted++;
}

/* Subtracts the harmonics from a part of the spectrum. */
static void leave(const search *s, const double *part, double *left)
{
    memcpy(left, part, (size_t)s->count * sizeof *left);
    for (int64_t b = 0; b < s->fitted; b++) {
        const double *own = s->basis + b * s->count, share = product(part, own, s->count);
        for (int64_t k = 0; k < s->count; k++)
            left[k] -= share * own[k];
    }
}

/* The square of what is left of a constant of length 1. */
static double constant_left(const search *s)
{
    double left = 1;
    for (int64_t b = 0; b < s->fitted; b++) {
        double sum = 0;
        for (int64_t k = 0; k < s->count; k++)
            sum += s->basis[b * s->count + k];
        left -= sum * sum / (double)s->count;
    }
    return fmax(left, 0);
}

/* For how much a fit counts. */
static double weight(const search *s, int fit, int64_t w)
{
    const double share = 1 / (1 + s->excess * s->apart[w]);
    return fit == EVEN ? 1 : fit == ODD ? share : 1 - share;
}

/* What a fit leaves of the real and the imaginary parts: its sums, or the half derivative of E by the axis, view by view. */
static void fit_harmonics(search *s, int fit, bool scores)
{
    const double sign = fit == EVEN ? 1 : -1, *re = s->left[0], *im = s->left[1];
    int64_t next = fit == EVEN ? 0 : 1;
    s->fitted = 0;
    if (fit == CONSTANT)
        add_harmonic(s, 0, false);
    for (int64_t w = 0; w < s->waves && !tess_stop_poll(s->v->stop); w++) {
        const tess_centre_wave *is = s->wave + w;
        for (; next <= is->highest; next += 2) {
            add_harmonic(s, next, false);
            if (next)
                add_harmonic(s, next, true);
        }
        for (int i = 0; i < 2; i++)
            leave(s, s->part + (2 * w + i) * s->count, s->left[i]);
        const double factor = scores ? weight(s, fit, w) * sign * is->frequency / is->variance : 0;
        for (int64_t k = 0; scores && k < s->count; k++)
            s->scores[k] -= factor * re[k] * im[k];
        if (scores)
            continue;
        if (fit == ODD)
            s->apart[w] = constant_left(s);
        const double rr = product(re, re, s->count), ii = product(im, im, s->count);
        s->sums[fit][w] = (tess_centre_wave){.frequency = is->frequency,
                                             .mean = 0.5 * (rr + ii),
                                             .cosine = 0.5 * sign * (rr - ii),
                                             .sine = -sign * product(re, im, s->count),
                                             .left = (double)(s->count - s->fitted)};
    }
}

/* The sums of all that is fitted, for the search. */
static void add_sums(search *s)
{
    for (int64_t w = 0; w < s->waves; w++) {
        tess_centre_wave *to = s->wave + w;
        to->mean = to->cosine = to->sine = to->left = 0;
        for (int fit = 0; fit < FITS; fit++) {
            const tess_centre_wave *is = s->sums[fit] + w;
            const double share = weight(s, fit, w);
            to->mean += share * is->mean;
            to->cosine += share * is->cosine;
            to->sine += share * is->sine;
            to->left += share * is->left;
        }
    }
}

/* The variance that columns' errors add to a constant, of that of noise; 0 where noise explains it. */
static double excess_of_constant(const search *s, double off)
{
    double left[FITS], values[FITS] = {0}, apart = 0;
    for (int fit = 0; fit < FITS; fit++) {
        left[fit] = tess_centre_left(s->sums[fit], s->waves, off);
        for (int64_t w = 0; w < s->waves; w++)
            values[fit] += s->sums[fit][w].left;
    }
    for (int64_t w = 0; w < s->waves; w++)
        apart += s->apart[w];
    const double number = values[ODD] - values[CONSTANT],
                 noise = (left[EVEN] + left[CONSTANT]) / (values[EVEN] + values[CONSTANT]),
                 more = number > 0 && noise > 0 ? (left[ODD] - left[CONSTANT]) / noise - number : 0;
    return more > PLAIN * sqrt(4 * number) && apart > 0 ? more / apart : 0;
}

/* The standard error from the views: each adds its own part to the derivative of E, and these are independent, also where
 * views are out of place, which noise of the columns is not. */
static double error_by_views(search *s, double off, double curvature)
{
    for (int64_t w = 0; w < s->waves; w++) {
        const double turn = s->wave[w].frequency * off, c = cos(turn), n = sin(turn);
        double *re = s->part + 2 * w * s->count, *im = re + s->count;
        for (int64_t k = 0; k < s->count; k++) {
            const double turned = c * re[k] - n * im[k];
            im[k] = n * re[k] + c * im[k];
            re[k] = turned;
        }
    }
    memset(s->scores, 0, (size_t)s->count * sizeof *s->scores);
    for (int fit = 0; fit < (s->excess > 0 ? FITS : CONSTANT); fit++)
        fit_harmonics(s, fit, true);
    return sqrt(product(s->scores, s->scores, s->count)) / (0.5 * curvature);
}

/* Whether the directions leave a gap in the half turn: what is there is not known well. */
static bool has_gap(const search *s, double *sorted)
{
    for (int64_t k = 0; k < s->count; k++)
        sorted[k] = s->angles[k] - pi * floor(s->angles[k] / pi);
    qsort(sorted, (size_t)s->count, sizeof *sorted, by_size);
    double widest = sorted[0] + pi - sorted[s->count - 1];
    for (int64_t k = 1; k < s->count; k++)
        widest = fmax(widest, sorted[k] - sorted[k - 1]);
    return widest > GAP * pi / (double)s->count;
}

/* Chooses the columns and the frequencies. */
static void choose(search *s)
{
    const int64_t columns = s->v->columns;
    s->radius = tess_centre_radius(s->v, s->near, s->line);
    const double room = ROOM * s->radius, width = fmax(2 * room, 8);
    s->from = tess_max_i64(0, (int64_t)floor(s->near - room));
    s->to = tess_min_i64(columns, (int64_t)ceil(s->near + room) + 1);
    s->waves = 0;
    for (int64_t i = 1; i <= (int64_t)(HIGHEST * width) && s->waves < most_waves(columns); i++) {
        const double f = pi * (double)i / width, reach = f * s->radius;
        const int64_t highest = (int64_t)(reach + MARGIN + GROWTH * cbrt(reach));
        if (highest + LEFT >= s->count)
            break;
        s->wave[s->waves++] = (tess_centre_wave){.frequency = f, .highest = highest};
    }
}

bool tess_centre_from_waves(const tess_centre_views *v, double near, double reach, void *memory,
                            double *column, double *within, bool *uneven)
{
    search s = {.v = v, .near = near, .count = tess_min_i64(v->count, MOST_VIEWS)};
    const int64_t waves = most_waves(v->columns);
    if (s.count < LEAST_VIEWS)
        return false;
    s.angles = memory;
    s.line = s.angles + s.count;
    s.part = s.line + v->columns;
    s.basis = s.part + 2 * waves * s.count;
    s.scores = s.basis + s.count * s.count;
    s.left[0] = s.scores + s.count;
    s.left[1] = s.left[0] + s.count;
    s.apart = s.left[1] + s.count;
    s.wave = (tess_centre_wave *)(s.apart + waves);
    for (int fit = 0; fit < FITS; fit++)
        s.sums[fit] = s.wave + (1 + fit) * waves;
    choose(&s);
    if (s.waves == 0)
        return false;
    transform(&s);
    if (tess_stop_wanted(v->stop) || has_gap(&s, s.basis))
        return false;
    for (int fit = 0; fit < FITS; fit++)
        fit_harmonics(&s, fit, false);
    if (tess_stop_wanted(v->stop))
        return false;
    double off, error, curvature;
    for (int again = 0; again < 2; again++) {
        add_sums(&s);
        if (!tess_centre_search(s.wave, s.waves, reach, v->stop, &off, &error, &curvature))
            return false;
        if (!again && !((s.excess = excess_of_constant(&s, off)) > 0))
            break;
    }
    *uneven = s.excess > 0;
    *column = near + off;
    *within = hypot(fmax(error, error_by_views(&s, off, curvature)), MODEL);
    return isfinite(*within) && !tess_stop_wanted(v->stop);
}
