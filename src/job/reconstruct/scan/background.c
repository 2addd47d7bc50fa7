#include "job/reconstruct/scan/background.h"

#include <math.h>

#include "job/common/note.h"

enum { EDGE = 4, LEAST_COLUMNS = 24, LEAST_VIEWS = 12 };
static const double CLEAR = 0.01;  /* of the largest: less hardly matters */
static const double MOST = 0.25;   /* more may be an object */
static const double CERTAIN = 8;   /* standard errors */
static const double SAME = 3;      /* standard errors between sides and columns, or this part of the value: */
static const double NEARLY = 0.15; /* light is not quite even */
static const double NOISY =
    0.25; /* deviations of a value: the logarithm of a few counts is too large on average */
static const double CONSTANT = 1.5; /* times the variance that noise explains */

void tess_background_add(tess_background *b, int64_t columns, const float *values)
{
    b->columns = columns;
    b->views++;
    for (int side = 0; side < 2 && columns >= LEAST_COLUMNS; side++) {
        tess_background_side *s = &b->side[side];
        double v[EDGE], mean = 0;
        for (int i = 0; i < EDGE; i++) {
            v[i] = (double)values[side ? columns - 1 - i : i];
            mean += v[i] / EDGE;
        }
        s->sum += mean;
        s->squares += mean * mean;
        s->slope += 0.5 * (v[0] + v[1] - v[2] - v[3]);
        s->noise += 0.25 * (pow(v[0] - v[1], 2) + pow(v[2] - v[3], 2));
    }
}

double tess_background_value(const tess_background *b, double largest)
{
    if (b->columns < LEAST_COLUMNS || b->views < LEAST_VIEWS || !(largest > 0))
        return 0;
    const double n = (double)b->views;
    const double noise = 0.5 * (b->side[0].noise + b->side[1].noise) / n; /* variance of a value */
    const double error = sqrt(noise / EDGE / n);                          /* of a side's mean */
    const double left = b->side[0].sum / n, right = b->side[1].sum / n, value = 0.5 * (left + right),
                 same = fmax(NEARLY * fabs(value), SAME * error);
    if (!(fabs(value) > CLEAR * largest && value < MOST * largest && fabs(value) > CERTAIN * error &&
          fabs(value) > NOISY * sqrt(noise) && fabs(left - right) < 2 * same))
        return 0;
    for (int i = 0; i < 2; i++) {
        const tess_background_side *s = &b->side[i];
        const double mean = s->sum / n, varies = s->squares / n - mean * mean;
        /* its error is twice that of the mean */
        if (fabs(s->slope / n) > fmax(NEARLY * fabs(value), 2 * SAME * error) ||
            varies > CONSTANT * noise / EDGE * (1 + SAME * sqrt(2 / n)) + pow(NEARLY * value, 2))
            return 0;
    }
    return value;
}

bool tess_background_note(const tess_problem *p, const tess_common *common)
{
    const double unit = tess_problem_measured_unit(p);
    if (p->background == 0)
        return false;
    tess_note(
        common, TESS_NOTE_WARNING,
        "%s: the outer columns on both sides hold %.3g in all views, where line integrals are 0 (%.1f %% "
        "of the largest); %s, which spoils the result; correct it, or subtract %.3g from all line "
        "integrals",
        p->measurement, p->background * unit, 100 * p->background_share,
        !p->counts          ? "an offset was added, or the light of the views is not that of the flat"
        : p->background > 0 ? "\"flat\" is brighter than the light of the scan"
                            : "\"flat\" is darker than the light of the scan",
        p->background * unit);
    return true;
}
