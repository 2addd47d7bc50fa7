#include "job/reconstruct/look/outlier.h"

#include <math.h>

enum { NEAR = 8, ALL = 24, GROUP = 3, SIDE = TESS_OUTLIER_SIDE, MIDDLE = ALL / 2 };
enum { SQUARES = 50 }; /* sum of squared columns of a window, from its middle */

/* Times what a point shows: points may lie side by side, and measured kernels are not exact. */
static const double MARGIN = 2.5;
/* At least: noise exceeds these by chance in less than one of 10^12 values. */
static const double LEAST_ALONE = 2, LEAST_GROUP = 3;
static const double FAINT = 0.01; /* of the kernel's peak: smaller peaks of it do not count */

/* The 8 and the 24 values around one, in falling order. */
typedef struct around {
    double near[NEAR], all[ALL];
} around;

/* The window without its slope, which says nothing about its middle. */
static void level(const float *window, float *out)
{
    double across = 0, down = 0;
    for (int i = 0; i <= ALL; i++) {
        across += (double)window[i] * (i % SIDE - TESS_OUTLIER_REACH);
        down += (double)window[i] * (i / SIDE - TESS_OUTLIER_REACH);
    }
    for (int i = 0; i <= ALL; i++)
        out[i] = (float)((double)window[i] -
                         (across * (i % SIDE - TESS_OUTLIER_REACH) + down * (i / SIDE - TESS_OUTLIER_REACH)) /
                             SQUARES);
}

/* Puts `value` into a list in falling order. */
static void insert(double *list, int count, double value)
{
    int at = count;
    for (; at > 0 && list[at - 1] < value; at--)
        list[at] = list[at - 1];
    list[at] = value;
}

/* `sign` -1: of the window upside down. */
static void sort_near(const float *window, int sign, double *near)
{
    int count = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dy || dx)
                insert(near, count++, sign * (double)window[MIDDLE + dy * SIDE + dx]);
}

static void sort_all(const float *window, int sign, double *all)
{
    int count = 0;
    for (int i = 0; i <= ALL; i++)
        if (i != MIDDLE)
            insert(all, count++, sign * (double)window[i]);
}

static double ratio(double excess, double span)
{
    return excess <= 0 ? 0 : span > 0 ? excess / span : INFINITY;
}

/* Raises the limits to what the middle of this window needs. */
static void allow(tess_outlier_limits *limits, const float *raw, int sign, double least)
{
    around a;
    float window[SIDE * SIDE];
    level(raw, window);
    const double value = sign * (double)window[MIDDLE];
    sort_near(window, sign, a.near);
    sort_all(window, sign, a.all);
    if (value - a.near[0] > least)
        limits->alone = fmax(limits->alone, MARGIN * ratio(value - a.near[0], a.all[0] - a.all[ALL - 1]));
    if (value - a.near[GROUP - 1] > least)
        limits->group = fmax(
            limits->group, MARGIN * ratio(value - a.near[GROUP - 1], a.all[GROUP - 1] - a.all[ALL - GROUP]));
}

tess_outlier_limits tess_outlier_limits_of(const tess_sampled_kernel *kernel)
{
    const int64_t height = 2 * kernel->rows + 1, width = 2 * kernel->columns + 1;
    tess_outlier_limits limits = {.alone = LEAST_ALONE, .group = LEAST_GROUP};
    double peak = 0;
    for (int64_t i = 0; i < height * width; i++)
        peak = fmax(peak, kernel->values[i]);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            float window[SIDE * SIDE];
            for (int i = 0; i < SIDE * SIDE; i++) {
                const int64_t row = y + i / SIDE - TESS_OUTLIER_REACH,
                              column = x + i % SIDE - TESS_OUTLIER_REACH;
                const bool inside = row >= 0 && row < height && column >= 0 && column < width;
                window[i] = inside ? (float)kernel->values[row * width + column] : 0;
            }
            allow(&limits, window, 1, FAINT * peak);
            allow(&limits, window, -1, FAINT * peak); /* a dark point */
        }
    return limits;
}

static bool exceeds(const tess_outlier_limits *limits, double excess, double limit, double span)
{
    return excess > limits->excess && isfinite(limit) && excess > limit * fmax(limits->span, span);
}

static bool stands_out(const tess_outlier_limits *limits, const float *window, int sign, const double *near)
{
    double all[ALL];
    const double value = sign * (double)window[MIDDLE];
    sort_all(window, sign, all);
    return exceeds(limits, value - near[0], limits->alone, all[0] - all[ALL - 1]) ||
           exceeds(limits, value - near[GROUP - 1], limits->group, all[GROUP - 1] - all[ALL - GROUP]);
}

bool tess_is_outlier(const tess_outlier_limits *limits, const float raw[SIDE * SIDE], float *fill)
{
    float window[SIDE * SIDE];
    level(raw, window);
    for (int sign = -1; sign <= 1; sign += 2) {
        const double value = sign * (double)window[MIDDLE];
        double near[NEAR];
        sort_near(window, sign, near);
        /* Most values end here: the span of the 8 is part of the span of the 24. */
        if (!(value - near[GROUP - 1] > fmax(limits->excess, near[GROUP - 1] - near[NEAR - GROUP])) ||
            !stands_out(limits, window, sign, near))
            continue;
        sort_near(raw, 1, near); /* another outlier beside it would have changed the slope */
        *fill = (float)(0.5 * (near[NEAR / 2 - 1] + near[NEAR / 2]));
        return true;
    }
    return false;
}
