/* A camera's largest value stands for all light above it. Such values fill areas: highlights. Where noise lifts a bright area to the
 * end of the range here and there, they are scattered, and to leave them out would leave only those that noise made darker.
 *
 * Where they are few in all, that does not matter: points of light, and hot pixels that do not stand out enough to be found as outliers (a
 * photograph with 20 of them ends 4 dB higher without them).
 *
 * White paper fills areas as well. If it was not cut off, values fall from it no faster than the kernel lets them (jump.h); where they do,
 * light was cut off. Light that goes on rising beyond the end is cut where it is steep, so that values fall from it in a straight line or
 * level out; from paper they begin to fall slowly and then faster, if the kernel has no sharp rim: then it is paper. Otherwise nothing is
 * known, and areas at the end of the file's range are taken for highlights: photographs lose up to 8 dB if these are kept, paper up to
 * 5 dB if it is left out. Black that is not cut off is common, so that black needs the proof. */
#include "job/reconstruct/mask/clipped.h"

#include <math.h>

#include "base/mem.h"
#include "job/reconstruct/mask/frame.h"
#include "job/reconstruct/mask/squares.h"

enum { ROWS = 3, BLOCK = ROWS * ROWS, MOSTLY = 6 };
enum { NEAR_END = 1, AT_END };
/* Of the way down over the three pixels beside an area, how much steeper the second step is than the first. Photographs that are 1.2 times
 * as bright as the file holds, or more, have up to 0.24, most of them less than 0; pages and QR codes behind a Gaussian 0.34 or more. */
static const double BENT = 0.3;
enum { LEAST_FALLS = 30 };
enum { LEAST_FEW = 4 };    /* values: pictures that were divided by their largest value have one */
enum { LEAST_FULL = 255 }; /* less may be a largest number of photons */
static const double WHOLE = 1e-3;
static const double INNER = 0.1; /* of the values; of scattered ones that are half of all it is 0.004 */
static const double WAVY =
    0.3; /* in a JPEG: of those that are mostly surrounded by such values, if there is proof */
static const double STEEP = 0.05; /* of the rim: paper without noise has none */
static const double FEW = 0.005;  /* of all values */
static const double CLOSE = 0.01; /* of all values: more are a bright sky that was not cut off */
/* Of all values, bright and dark: more leave too little to find the picture from. */
static const double MOST_BRIGHT = 0.5, MOST_DARK = 0.25;
static const double TOLERANCE = 0.01; /* of the range, for noise */
static const double MOST_WAVES =
    0.1; /* of the span, in a JPEG: in darker pictures its waves look like areas and steps */

tess_status tess_clipped_open(tess_clipped *c, tess_error *error)
{
    const size_t values = ROWS * (size_t)tess_problem_row(c->problem);
    c->at_end = tess_small_alloc(values, sizeof *c->at_end);
    c->rows = tess_small_alloc(values, sizeof *c->rows);
    return c->at_end && c->rows ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for rows of a blur");
}

void tess_clipped_close(tess_clipped *c)
{
    tess_small_free(c->at_end);
    tess_small_free(c->rows);
    c->at_end = NULL;
    c->rows = NULL;
}

void tess_clipped_add(tess_clipped *c, const float *values)
{
    for (int64_t i = 0; i < tess_problem_row(c->problem); i++) {
        const double value = (double)values[i];
        if (!isfinite(value))
            continue;
        const bool first = c->all++ == 0, beyond = c->dark ? value < c->end : value > c->end;
        if (first || beyond) {
            c->end = value;
            c->count = 0;
        }
        c->count += value == c->end;
        c->close += value >= c->problem->high - tess_waves_of_highlight(c->problem);
        c->other = first ? value : c->dark ? fmax(c->other, value) : fmin(c->other, value);
    }
}

/* Whether the values end where the file's range does: at its type's maximum, or at that of a camera of fewer bits, 2^n - 1. */
static bool ends_range(const tess_clipped *c)
{
    const tess_problem *p = c->problem;
    const double value = c->end * p->unit + p->offset, whole = rint(value);
    int power;
    return (p->range_from != TESS_RANGE_FROM_DATA && fabs(c->end - p->high) < WHOLE / p->unit) ||
           (fabs(value - whole) < WHOLE && (p->floats ? whole == 1 : whole >= LEAST_FULL) &&
            frexp(whole + 1, &power) == 0.5);
}

/* Floats without a range: the ceiling is whatever the largest value is, and noise lets no area have it by chance. */
static bool unknown_range(const tess_clipped *c)
{
    return c->problem->floats && c->problem->range_from == TESS_RANGE_FROM_DATA;
}

bool tess_clipped_few(const tess_clipped *c)
{
    return !c->dark && ends_range(c) && c->count >= LEAST_FEW && (double)c->count < FEW * (double)c->all;
}

double tess_clipped_waves(const tess_clipped *c)
{
    return (double)c->close < CLOSE * (double)c->all ? tess_waves_of_highlight(c->problem) : 0;
}

bool tess_clipped_possible(const tess_clipped *c)
{
    return c->count >= BLOCK && c->end != c->other &&
           tess_waves_of_highlight(c->problem) <= MOST_WAVES * fabs(c->end - c->other);
}

/* Looks at the middle of three rows. */
static void look(tess_clipped *c, int64_t middle)
{
    const tess_problem *p = c->problem;
    const int64_t samples = tess_problem_row(p), far = p->channels;
    const unsigned char *own = c->at_end + middle * samples;
    const double range = p->range_from == TESS_RANGE_FROM_DATA
                             ? fabs(c->end - c->other)
                             : fmax(p->high - p->low, fabs(c->end - c->other));
    for (int64_t i = far; i < samples - far; i++) {
        const int64_t beside[TESS_JUMP_SIDES] = {middle * samples + i + far, middle * samples + i - far,
                                                 (middle + 1) % ROWS * samples + i,
                                                 (middle + ROWS - 1) % ROWS * samples + i};
        int around = 0;
        int same = 0;
        for (int k = 0; k < BLOCK && own[i]; k++) {
            const unsigned char there = c->at_end[k / ROWS * samples + i + (k % ROWS - 1) * far];
            around += there > 0;
            same += there == AT_END;
        }
        c->inner += same == BLOCK;
        c->mostly += around >= MOSTLY;
        for (int side = 0; side < TESS_JUMP_SIDES && 2 * around > BLOCK; side++) {
            const double jump = fabs((double)c->rows[beside[side]] - c->end);
            c->rim += jump > 0;
            c->steep += jump > range * c->jumps.from_end[side];
        }
    }
}

/* How values fall beside an area, along a row; `step` to the right or to the left. */
static void look_at_falls(tess_clipped *c, const float *values, int64_t from, int64_t to, int64_t step)
{
    for (int64_t i = from; i < to; i++) {
        const double beside = c->end - (double)values[i + step],
                     second = c->end - (double)values[i + 2 * step],
                     third = c->end - (double)values[i + 3 * step];
        if ((double)values[i] != c->end || (double)values[i - step] != c->end ||
            !(beside > 0 && second > 0 && third > beside)) /* also if one is NaN */
            continue;
        c->falls++;
        c->bend += third - 2 * second + beside;
        c->fall += third - beside;
    }
}

static tess_status begin(tess_clipped *c, int64_t blur, tess_error *error)
{
    tess_sampled_kernel kernel = {0};
    tess_status status = tess_sample_kernel(c->problem, blur, &kernel, error);
    if (status == TESS_OK)
        status = tess_jumps_of(&kernel, TOLERANCE, &c->jumps, error);
    tess_small_free(kernel.values);
    return status;
}

tess_status tess_clipped_row(tess_clipped *c, int64_t y, const float *values, tess_error *error)
{
    const tess_problem *p = c->problem;
    const int64_t samples = tess_problem_row(p), row = y % p->height;
    if (row == 0)
        TESS_TRY(begin(c, y / p->height, error));
    for (int64_t i = 0; i < samples; i++) {
        const bool seen =
            isfinite(values[i]) &&
            !(p->hidden.frame &&
              tess_frame_covers(p, y, i / p->channels)); /* otherwise as if it were at the end */
        c->rows[row % ROWS * samples + i] = seen ? values[i] : (float)c->end;
        const bool near = fabs((double)values[i] - c->end) <= tess_waves_of_highlight(p),
                   same = (double)values[i] == c->end;
        c->at_end[row % ROWS * samples + i] = !seen ? 0 : same ? AT_END : near ? NEAR_END : 0;
        c->near += seen && near;
    }
    if (row >= ROWS - 1)
        look(c, (row - 1) % ROWS);
    if (!c->dark) {
        look_at_falls(c, values, p->channels, samples - 3 * p->channels, p->channels);
        look_at_falls(c, values, 3 * p->channels, samples - p->channels, -p->channels);
    }
    return TESS_OK;
}

bool tess_clipped_found(const tess_clipped *c)
{
    const double near = (double)c->near;
    const bool areas = (double)c->inner >= INNER * (double)c->count,
               wavy = c->problem->quantised > 0 && (double)c->mostly >= WAVY * near,
               proof = c->rim > 0 && (double)c->steep >= STEEP * (double)c->rim,
               paper = !(c->problem->quantised > 0) && c->falls >= LEAST_FALLS && c->bend > BENT * c->fall,
               likely = !c->dark && !paper && (ends_range(c) || unknown_range(c));
    return near < (c->dark ? MOST_DARK : MOST_BRIGHT) * (double)c->all &&
           ((areas && (proof || likely)) || (wavy && proof && likely));
}
