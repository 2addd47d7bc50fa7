/* What one column alone sees in all views, more or less than those beside it, lies on the axis: whatever else the object has
 * moves to other columns as it turns, and the wall of a tube around the axis is seen on both sides of it, and by the columns
 * between. So a pixel away from the axis is wild if all its values are beyond those of its neighbours, by more than these
 * differ from each other, and the other side of the axis has nothing like it.
 *
 * Neighbours also rise and fall together from view to view, by more than their noise. A pixel that does not rise and fall
 * with those on both sides, while these do with the next ones, is wild if it has other values or more noise as well: where
 * the edge of an object turns from one side to the other, neighbours that work need not follow each other, but they fit.
 *
 * Up to three such pixels may be side by side. */
#include "job/reconstruct/look/pixel_stats.h"

#include <math.h>

enum { FEW_VIEWS = 8, LEAST_VIEWS = 16, MOST_WILD = 3 }; /* MOST_WILD: side by side */
static const double TOGETHER = 0.7;  /* least correlation of pixels that follow each other */
static const double UNRELATED = 0.4; /* largest correlation of those that do not */
static const double CERTAIN = 6;     /* standard errors between both, after Fisher's transform */
static const double LOUD = 2;        /* times the deviation of both neighbours: more is noise */
static const double TOO_LOUD = 5;
static const float FLASHES =
    32; /* one in so many views may be as far off as the farthest, without being noise */
static const double AIR = 0.15; /* of what a wall shows: less is seen by no column inside of it */
static const double FAR = 0.05; /* of the largest mean: less may be air */

void tess_pixel_stats_begin(tess_pixel_stats *s, int64_t rows, int64_t columns, float *memory)
{
    const int64_t count = rows * columns;
    *s = (tess_pixel_stats){.rows = rows,
                            .columns = columns,
                            .low = memory,
                            .high = memory + count,
                            .mean = memory + 2 * count,
                            .square = memory + 3 * count,
                            .product = memory + 4 * count};
    for (int64_t i = 0; i < count * TESS_PIXEL_FLOATS; i++)
        memory[i] = 0;
}

void tess_pixel_stats_add(tess_pixel_stats *s, const float *view)
{
    const int64_t before = s->views++;
    const float part = 1 / (float)s->views;
    for (int64_t i = 0; i < s->rows * s->columns; i++) {
        const float value = view[i], away = before ? value - s->mean[i] : 0;
        /* The pixel to the right still has the mean of the views before. */
        if (before && (i + 1) % s->columns)
            s->product[i] += away * (view[i + 1] - s->mean[i + 1]) * (1 - part);
        s->low[i] = before && !(value < s->low[i]) && !isnan(value) ? s->low[i] : value;
        s->high[i] = before && !(value > s->high[i]) && !isnan(value) ? s->high[i] : value;
        s->mean[i] = before ? s->mean[i] + away * part : value;
        s->square[i] += away * away * (1 - part);
    }
}

bool tess_pixel_is_stuck(const tess_pixel_stats *s, int64_t i)
{
    return !(s->high[i] > s->low[i]);
}

/* Of a pixel with the one to its right; NaN: one of them does not change. */
static double correlation(const tess_pixel_stats *s, int64_t i)
{
    const double squares = (double)s->square[i] * (double)s->square[i + 1];
    return squares > 0 ? fmin((double)s->product[i] / sqrt(squares), 0.999999) : NAN;
}

/* Whether the two pixels from `together` follow each other, and those from `apart` do not. */
static bool breaks(const tess_pixel_stats *s, int64_t together, int64_t apart)
{
    const double both = correlation(s, together), own = correlation(s, apart);
    return both > TOGETHER && own < UNRELATED &&
           atanh(both) - atanh(fmax(own, 0)) > CERTAIN / sqrt((double)(s->views - 3));
}

/* Whether the column as far on the other side of the axis, or one beside it, comes near the mean of pixel i, which is
 * `excess` from those of its neighbours; also if that column is not known. */
static bool is_mirrored(const tess_pixel_stats *s, const tess_turning *turning, int64_t i, double excess)
{
    const double at = turning->columns[0] + turning->columns[1] - (double)(i % s->columns);
    if (turning->columns[1] - turning->columns[0] > 1 || !(at >= 1 && at <= (double)(s->columns - 2)))
        return true;
    const float *mean = s->mean + i / s->columns * s->columns + (int64_t)(at + 0.5);
    for (int k = -1; k <= 1; k++)
        if (!(fabs((double)(mean[k] - s->mean[i])) > 0.5 * fabs(excess)))
            return true;
    return false;
}

/* The squares of a pixel without what a few views can make of them: noise has its share in all views, while the layers of a laminate shine
 * up in the few that see them from the side, in some columns alone. */
static float lasting_square(const tess_pixel_stats *s, int64_t i)
{
    const float far = fmaxf(s->high[i] - s->mean[i], s->mean[i] - s->low[i]);
    return s->square[i] - fmaxf((float)s->views / FLASHES, 1) * far * far;
}

/* Whether a pixel between a and b has other values, or more noise. */
static bool is_odd(const tess_pixel_stats *s, const tess_turning *turning, int64_t i, int64_t a, int64_t b,
                   double far)
{
    const double share = (double)(i - a) / (double)(b - a),
                 between = (1 - share) * (double)s->mean[a] + share * (double)s->mean[b],
                 excess = (double)s->mean[i] - between;
    return (fabs(excess) > far && !is_mirrored(s, turning, i, excess)) ||
           lasting_square(s, i) > (float)(LOUD * LOUD) * fmaxf(s->square[a], s->square[b]);
}

/* Whether the pixels from `first` to `last` are strangers to those around them and to each other. */
static bool are_strangers(const tess_pixel_stats *s, const tess_turning *turning, int64_t first, int64_t last,
                          double far)
{
    if (first % s->columns < 2 || last % s->columns + 2 >= s->columns)
        return false;
    for (int64_t i = first; i <= last; i++)
        if (!is_odd(s, turning, i, first - 1, last + 1, far) ||
            (i < last && !(correlation(s, i) < UNRELATED)))
            return false;
    return s->views >= LEAST_VIEWS && breaks(s, first - 2, first - 1) && breaks(s, last + 1, last);
}

/* Whether all values of the pixels from `first` to `last` are beyond those on both sides. */
static bool are_beyond(const tess_pixel_stats *s, const tess_turning *turning, int64_t first, int64_t last,
                       double far)
{
    if (first % s->columns < 1 || last % s->columns + 1 >= s->columns)
        return false;
    const int64_t a = first - 1, b = last + 1;
    const double low = (double)fminf(s->low[a], s->low[b]), high = (double)fmaxf(s->high[a], s->high[b]),
                 more = (double)fmaxf(s->mean[a], s->mean[b]), less = (double)fminf(s->mean[a], s->mean[b]);
    for (int64_t i = first; i <= last; i++) {
        const bool above = (double)s->low[i] > high + far, below = (double)s->high[i] < low - far,
                   negative = (double)s->high[i] < -far, in_air = more < AIR * (double)s->mean[i];
        const double excess = (double)s->mean[i] - (above ? more : less);
        if ((!above && !below) || fabs(excess) < 2 * (more - less))
            return false;
        if (!negative && !in_air && is_mirrored(s, turning, i, excess))
            return false;
    }
    return true;
}

/* Whether a pixel has far more noise than the two beside it, whatever the object: what moves through one column away from
 * the axis moves through the next ones, too. */
static bool is_too_loud(const tess_pixel_stats *s, int64_t i)
{
    if (i % s->columns < 1 || i % s->columns + 1 >= s->columns || s->views < LEAST_VIEWS)
        return false;
    return lasting_square(s, i) > (float)(TOO_LOUD * TOO_LOUD) * fmaxf(s->square[i - 1], s->square[i + 1]);
}

bool tess_pixel_is_wild(const tess_pixel_stats *s, const tess_turning *turning, int64_t i, double largest)
{
    const double far = FAR * largest, column = (double)(i % s->columns);
    const bool on_axis = column > turning->columns[0] - 1 && column < turning->columns[1] + 1;
    if (s->views < FEW_VIEWS || isnan(s->mean[i]) || tess_pixel_is_stuck(s, i))
        return false;
    if (!turning->turns || (on_axis && !((double)s->high[i] < -far))) /* matter is not negative */
        return false;
    if (is_too_loud(s, i))
        return true;
    for (int64_t count = 1; count <= MOST_WILD; count++)
        for (int64_t first = i - count + 1; first <= i; first++) {
            const int64_t last = first + count - 1;
            if (first >= 0 && last < s->rows * s->columns && first / s->columns == last / s->columns &&
                (are_strangers(s, turning, first, last, far) || are_beyond(s, turning, first, last, far)))
                return true;
        }
    return false;
}

double tess_pixel_stats_largest(const tess_pixel_stats *s)
{
    double largest = 0;
    for (int64_t i = 0; i < s->rows * s->columns; i++)
        if (i % s->columns)
            largest = fmax(largest, fmin((double)s->mean[i], (double)s->mean[i - 1]));
    return largest;
}
