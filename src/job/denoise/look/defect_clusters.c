/* Hot and dead pixels side by side, up to 2 x 2: a member of such a cluster has neighbours like itself, so it does not stand alone.
 *
 * The light of a star falls on pixels around its core as well: at 1.2 pixels of full width they still have 2 % of it. So the
 * pixels around a cluster must be like their surroundings. */
#include <math.h>

#include "base/checked.h"
#include "job/denoise/look/defects.h"

enum { REACH = TESS_DEFECTS_REACH, SIDE = TESS_DEFECTS_ROWS, FEWEST = 8 };

/* The samples around one, which is in the middle; NaN where there is none. */
typedef struct square {
    float at[SIDE][SIDE];
} square;

static square square_of(const tess_defects *d, int64_t y, int64_t x, int64_t c)
{
    const int64_t top = y / d->height * d->height, row = d->width * d->channels;
    square s;
    for (int64_t v = 0; v < SIDE; v++)
        for (int64_t u = 0; u < SIDE; u++) {
            const int64_t j = y + v - REACH, i = x + u - REACH;
            const bool inside = j >= top && j < top + d->height && i >= 0 && i < d->width;
            const float value = inside ? d->rows[j % SIDE * row + i * d->channels + c] : NAN;
            s.at[v][u] = isfinite(value) ? value : NAN;
        }
    return s;
}

static float middle_of(const square *s)
{
    float sorted[SIDE * SIDE];
    int count = 0;
    for (int k = 0; k < SIDE * SIDE; k++) {
        const float value = s->at[k / SIDE][k % SIDE];
        if (isnan(value))
            continue;
        int at = count++;
        for (; at > 0 && sorted[at - 1] > value; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = value;
    }
    return count < FEWEST ? NAN : sorted[count / 2];
}

/* The mean of the pixels that share an edge with the box of 2 x 2 at this corner. */
static float beside(const square *s, int top, int left)
{
    double sum = 0;
    int count = 0;
    for (int v = top - 1; v <= top + 2; v++)
        for (int u = left - 1; u <= left + 2; u++) {
            const bool across = v == top - 1 || v == top + 2, along = u == left - 1 || u == left + 2;
            if (across == along || v < 0 || u < 0 || v >= SIDE || u >= SIDE || isnan(s->at[v][u]))
                continue;
            sum += (double)s->at[v][u];
            count++;
        }
    return count ? (float)(sum / count) : NAN;
}

float tess_defects_cluster(const tess_defects *d, int64_t y, int64_t x, int64_t c)
{
    static const float ALONE = 6,
                       CALM =
                           64; /* times nearer to the middle: other samples; their mean around the cluster */
    const square s = square_of(d, y, x, c);
    const float middle = middle_of(&s), distance = fabsf(s.at[REACH][REACH] - middle);
    int top = REACH, bottom = REACH, left = REACH, right = REACH;
    for (int v = 0; v < SIDE; v++)
        for (int u = 0; u < SIDE; u++)
            if (ALONE * fabsf(s.at[v][u] - middle) >= distance) {
                top = v < top ? v : top, bottom = v > bottom ? v : bottom;
                left = u < left ? u : left, right = u > right ? u : right;
            }
    if (bottom - top > 1 || right - left > 1)
        return 0;
    /* Of a row of two, either side may be the other half of the box. */
    const float around = beside(&s, top, left);
    return CALM * fabsf(around - middle) <= distance ? distance : 0;
}

bool tess_defects_may_cluster(const tess_defects *d, float value, float left, float right, float up,
                              float down)
{
    static const double STEPS = 8;
    const double most = STEPS * (d->step_count ? d->steps / (double)d->step_count : 0);
    const float low_across = left < right ? left : right, low_along = up < down ? up : down,
                high_across = left > right ? left : right, high_along = up > down ? up : down;
    return (double)(value - low_across) > most && (double)(value - low_along) > most
               ? true
               : (double)(high_across - value) > most && (double)(high_along - value) > most;
}
