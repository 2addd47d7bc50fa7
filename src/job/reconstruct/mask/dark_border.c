/* A pixel at the border sees zeros with the part of the kernel that lies outside, so that it has the other part of the light of those that see
 * only the picture. Along a side the median of these ratios is within TOLERANCE of that part: 340 to 368 of 368 parts of photographs with each
 * of seven kernels were found, and none of those that show light from outside, with vignetting or without. */
#include "job/reconstruct/mask/dark_border.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/mem.h"

enum { TOP, BOTTOM, LEFT, RIGHT, SIDES = TESS_BORDER_SIDES, LINES = TESS_BORDER_LINES };
enum { LEAST = 8 };                   /* ratios of a side */
static const double WHOLE = 0.995;    /* of the kernel: its reach */
static const double CLEAR = 0.8;      /* of the kernel: more inside changes little */
static const double TOLERANCE = 0.12; /* of a ratio */
static const double DARK = 0.02;      /* of the largest: ratios to less are noise */

tess_status tess_dark_border_open(tess_dark_border *b, tess_error *error)
{
    const int64_t longest = tess_max_i64(b->problem->height, b->problem->width);
    float *at = tess_small_alloc((size_t)((SIDES * LINES + 1) * longest), sizeof *at);
    if (!at)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to look at the border of blurs");
    for (int i = 0; i < SIDES * LINES; i++)
        b->lines[i / LINES][i % LINES] = at + i * longest;
    b->ratios = at + SIDES * LINES * longest;
    return TESS_OK;
}

void tess_dark_border_close(tess_dark_border *b)
{
    tess_small_free(b->lines[0][0]);
    *b = (tess_dark_border){0};
}

/* What of the kernel sees the picture at this distance from a side. */
static double inside(const tess_sampled_kernel *k, int side, int64_t distance)
{
    const double *value = k->values;
    double sum = 0;
    for (int64_t y = -k->rows; y <= k->rows; y++)
        for (int64_t x = -k->columns; x <= k->columns; x++, value++) {
            const int64_t towards = side == TOP ? y : side == BOTTOM ? -y : side == LEFT ? x : -x;
            sum += towards <= distance ? *value : 0;
        }
    return sum;
}

static int64_t distance_of(const tess_dark_border *b, int side, int line)
{
    return b->reach[side >= LEFT] * line / (LINES - 1);
}

static tess_status begin(tess_dark_border *b, int64_t blur, tess_error *error)
{
    tess_sampled_kernel k = {0};
    const tess_status status = tess_sample_kernel(b->problem, blur, &k, error);
    b->largest = 0;
    for (int axis = 0; axis < 2 && status == TESS_OK; axis++) {
        const int64_t most = axis ? k.columns : k.rows;
        int64_t reach = 0;
        while (reach < most && fmin(inside(&k, 2 * axis, reach), inside(&k, 2 * axis + 1, reach)) < WHOLE)
            reach++;
        b->reach[axis] = reach;
    }
    for (int i = 0; i < SIDES * LINES && status == TESS_OK; i++)
        b->inside[i / LINES][i % LINES] = inside(&k, i / LINES, distance_of(b, i / LINES, i % LINES));
    tess_small_free(k.values);
    return status;
}

static float light(const tess_problem *p, const float *pixel)
{
    double sum = 0;
    for (int64_t c = 0; c < p->channels; c++)
        sum += (double)pixel[c] * p->unit + p->offset;
    return (float)sum;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Whether the side is as dark as zeros make it. */
static bool is_dark(const tess_dark_border *b, int side)
{
    const tess_problem *p = b->problem;
    const int64_t across = b->reach[side < LEFT], length = side < LEFT ? p->width : p->height;
    const float *far = b->lines[side][LINES - 1];
    for (int line = 0; line < LINES - 1; line++) {
        int64_t count = 0;
        for (int64_t i = across; i < length - across; i++)
            if ((double)far[i] > DARK * b->largest && isfinite(b->lines[side][line][i]))
                b->ratios[count++] = b->lines[side][line][i] / far[i];
        if (count < LEAST)
            return false;
        qsort(b->ratios, (size_t)count, sizeof *b->ratios, by_value);
        if (!(fabs((double)b->ratios[count / 2] - b->inside[side][line]) < TOLERANCE))
            return false;
    }
    return true;
}

/* All sides on which it would show but one, as a picture may change there itself; of two, both. */
static bool judge(const tess_dark_border *b)
{
    const tess_problem *p = b->problem;
    int sides = 0, dark = 0;
    if (p->height < 4 * tess_max_i64(b->reach[0], 1) || p->width < 4 * tess_max_i64(b->reach[1], 1))
        return false;
    for (int side = 0; side < SIDES; side++)
        if (b->inside[side][0] < CLEAR) {
            sides++;
            dark += is_dark(b, side);
        }
    return sides >= 2 && dark >= sides - (sides > 2);
}

tess_status tess_dark_border_add(tess_dark_border *b, int64_t y, const float *values, tess_error *error)
{
    const tess_problem *p = b->problem;
    const int64_t row = y % p->height, last = p->width - 1;
    if (row == 0)
        TESS_TRY(begin(b, y / p->height, error));
    for (int line = 0; line < LINES; line++) {
        const int64_t down = distance_of(b, TOP, line), right = distance_of(b, LEFT, line);
        for (int64_t x = 0; x <= last && row == down; x++)
            b->lines[TOP][line][x] = light(p, values + x * p->channels);
        for (int64_t x = 0; x <= last && row == p->height - 1 - down; x++)
            b->lines[BOTTOM][line][x] = light(p, values + x * p->channels);
        b->lines[LEFT][line][row] = light(p, values + tess_min_i64(right, last) * p->channels);
        b->lines[RIGHT][line][row] = light(p, values + tess_max_i64(last - right, 0) * p->channels);
    }
    for (int64_t x = 0; x <= last; x++) {
        const double here = (double)light(p, values + x * p->channels);
        b->largest = isfinite(here) ? fmax(b->largest, here) : b->largest;
    }
    if (row == p->height - 1)
        b->dark += judge(b);
    return TESS_OK;
}

bool tess_dark_border_found(const tess_dark_border *b)
{
    return b->dark == b->problem->count;
}
