/* The blurs y_i = g_i k_i * x of one picture x agree only if their exposures g_i are known. Convolutions commute, so that
 * k_0 * y_i and k_i * y_0 are the same picture but for the factor g_i / g_0, wherever both kernels stay inside of what was
 * measured. The factor is the median of their ratios at some places: noise is small after two blurs, and highlights
 * that are cut off do not count. Where noise lifts white to the end of the range, what is cut off makes the mean darker, and more so in a blur
 * with more noise; such places are left out. */
#include "job/reconstruct/look/gains.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/common/note.h"
#include "job/reconstruct/look/sampled_kernel.h"

enum {
    SIDE = 4,
    GRID = 5,
    MOST_CHANNELS = 3,
    MOST_RATIOS = SIDE * SIDE * GRID * GRID * MOST_CHANNELS,
    LEAST_RATIOS = 32
};
static const double DIFFER = 0.01;   /* of the exposure: less costs almost nothing */
static const double CERTAIN = 4;     /* standard errors of the median, roughly */
static const double DARK = 0.05;     /* of the brightest: ratios of less are noise */
static const double MOST_CUT = 0.05; /* of the values around a place, at the largest value of all */
static const double MOST_GAIN = 32;  /* beyond this it is another fault */

typedef struct comparison {
    const tess_problem *problem;
    tess_workspace *w;
    tess_sampled_kernel kernel[2]; /* of the first blur, and of the one that is compared */
    int64_t reach[2];              /* of both, in rows and columns */
    float *patch[2];               /* of the first blur, and of the other */
    double largest;                /* of all values */
    float ratios[MOST_RATIOS], light[MOST_RATIOS];
    int64_t count;
} comparison;

/* Collective: copies the pixels around a place of blur `i`, the rows of which several ranks may have: others add zeros. */
static tess_status copy_patch(comparison *c, int64_t i, int64_t top, int64_t left, float *to,
                              tess_error *error)
{
    const tess_problem *p = c->problem;
    tess_device *device = c->w->device;
    const int64_t samples = tess_problem_row(p), width = (SIDE + 2 * c->reach[1]) * p->channels;
    const int64_t first = tess_problem_first(p), own = tess_problem_own(p), rows = SIDE + 2 * c->reach[0];
    const float *from = (const float *)c->w->measurement.data + i * own * samples;
    for (int64_t y = 0; y < rows; y++) {
        const int64_t row = top - c->reach[0] + y - first;
        if (row >= 0 && row < own)
            device->memory->copy(device, to + y * width,
                                 from + row * samples + (left - c->reach[1]) * p->channels,
                                 (size_t)width * sizeof *to, NULL);
        else
            memset(to + y * width, 0, (size_t)width * sizeof *to);
    }
    TESS_TRY(tess_share_keep(p->share, device->streams->sync(device, NULL, error), error));
    return tess_share_many(p->share) ? tess_dist_sum_f32(p->share->dist, to, rows * width, error) : TESS_OK;
}

/* The blurred value, in the units of the file, of a pixel of a patch. */
static double blurred(const comparison *c, const tess_sampled_kernel *k, const float *patch, int64_t y,
                      int64_t x, int64_t channel)
{
    const tess_problem *p = c->problem;
    const int64_t width = (SIDE + 2 * c->reach[1]) * p->channels;
    const double *value = k->values;
    double sum = 0;
    for (int64_t dy = -k->rows; dy <= k->rows; dy++)
        for (int64_t dx = -k->columns; dx <= k->columns; dx++)
            sum += *value++ *
                   (double)
                       patch[(y + c->reach[0] - dy) * width + (x + c->reach[1] - dx) * p->channels + channel];
    return sum * p->unit + p->offset;
}

/* Whether light was cut off around the place. */
static bool is_cut(const comparison *c, int64_t channel)
{
    const int64_t pixels = (SIDE + 2 * c->reach[0]) * (SIDE + 2 * c->reach[1]);
    for (int k = 0; k < 2; k++) {
        int64_t cut = 0;
        for (int64_t i = 0; i < pixels; i++)
            cut += (double)c->patch[k][i * c->problem->channels + channel] >= c->largest;
        if ((double)cut > MOST_CUT * (double)pixels)
            return true;
    }
    return false;
}

static void add_ratios(comparison *c)
{
    bool cut[MOST_CHANNELS];
    for (int64_t i = 0; i < tess_min_i64(c->problem->channels, MOST_CHANNELS); i++)
        cut[i] = is_cut(c, i);
    for (int64_t y = 0; y < SIDE; y++)
        for (int64_t x = 0; x < SIDE; x++)
            for (int64_t channel = 0; channel < tess_min_i64(c->problem->channels, MOST_CHANNELS);
                 channel++) {
                if (cut[channel])
                    continue;
                const double one = blurred(c, &c->kernel[1], c->patch[0], y, x, channel),
                             other = blurred(c, &c->kernel[0], c->patch[1], y, x, channel);
                c->light[c->count] = (float)one;
                c->ratios[c->count++] = one != 0 ? (float)(other / one) : 0;
            }
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double median(float *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return 0.5 * ((double)values[(count - 1) / 2] + (double)values[count / 2]);
}

/* The exposure of a blur relative to the first, 1 if it cannot be told, and whether it plainly differs. */
static double gain_of(comparison *c, bool *differs)
{
    float brightest = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++)
        brightest = fmaxf(brightest, c->light[i]);
    for (int64_t i = 0; i < c->count; i++)
        if (c->light[i] > (float)DARK * brightest)
            c->ratios[kept++] = c->ratios[i];
    if (kept < LEAST_RATIOS ||
        2 * kept < c->count) /* many are dark, or negative: these are not counts of light */
        return 1;
    const double gain = median(c->ratios, kept);
    for (int64_t i = 0; i < kept; i++)
        c->ratios[i] = fabsf(c->ratios[i] - (float)gain);
    const double error = median(c->ratios, kept) / sqrt((double)kept / SIDE);
    if (!(gain > 1 / MOST_GAIN && gain < MOST_GAIN))
        return 1;
    *differs = *differs || fabs(gain - 1) > fmax(DIFFER, CERTAIN * error);
    return gain;
}

/* Compares blur `i` with the first at places all over the picture, farther from the border than both kernels reach
 * together, because pixels near it may have been made up. */
static tess_status compare(comparison *c, int64_t i, double *gain, bool *differs, tess_error *error)
{
    const tess_problem *p = c->problem;
    const tess_sampled_kernel *k = c->kernel;
    c->count = 0;
    c->reach[0] = tess_max_i64(k[0].rows, k[1].rows);
    c->reach[1] = tess_max_i64(k[0].columns, k[1].columns);
    const int64_t margin[2] = {k[0].rows + k[1].rows, k[0].columns + k[1].columns},
                  room[2] = {p->height - 2 * margin[0] - SIDE, p->width - 2 * margin[1] - SIDE};
    const size_t values = (size_t)((SIDE + 2 * c->reach[0]) * (SIDE + 2 * c->reach[1]) * p->channels);
    *gain = 1;
    if (room[0] < 0 || room[1] < 0)
        return TESS_OK;
    float *memory = tess_small_alloc(2 * values, sizeof *memory);
    tess_status status =
        memory ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to compare the blurs");
    status = tess_share_agree(p->share, status, error);
    c->patch[0] = memory;
    c->patch[1] = memory ? memory + values : NULL;
    for (int at = 0; at < GRID * GRID && status == TESS_OK; at++) {
        const int64_t top = margin[0] + room[0] * (at / GRID) / (GRID - 1),
                      left = margin[1] + room[1] * (at % GRID) / (GRID - 1);
        status = copy_patch(c, 0, top, left, c->patch[0], error);
        if (status == TESS_OK)
            status = copy_patch(c, i, top, left, c->patch[1], error);
        if (status == TESS_OK)
            add_ratios(c);
    }
    tess_small_free(memory);
    if (status == TESS_OK)
        *gain = gain_of(c, differs);
    return status;
}

static tess_status estimate(const tess_problem *p, tess_workspace *w, double *gains, bool *differ,
                            tess_error *error)
{
    comparison *c = tess_small_alloc(1, sizeof *c);
    tess_status status = c ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to compare the blurs");
    status = tess_share_agree(p->share, status, error);
    if (status != TESS_OK) {
        tess_small_free(c);
        return status;
    }
    tess_extremes seen = {0};
    *c = (comparison){.problem = p, .w = w};
    gains[0] = 1;
    status = tess_workspace_extremes(w, w->measurement.data, tess_workspace_values(&w->op->measurement),
                                     &seen, error);
    c->largest = seen.high;
    if (status == TESS_OK)
        status = tess_share_agree(p->share, tess_sample_kernel(p, 0, &c->kernel[0], error), error);
    for (int64_t i = 1; i < p->count && status == TESS_OK; i++) {
        status = tess_stop_check(&w->engine->stop, error);
        if (status == TESS_OK)
            status = tess_sample_kernel(p, i, &c->kernel[1], error);
        status = tess_share_agree(p->share, status, error);
        if (status == TESS_OK)
            status = compare(c, i, &gains[i], differ, error);
        tess_small_free(c->kernel[1].values);
        c->kernel[1].values = NULL;
    }
    tess_small_free(c->kernel[0].values);
    tess_small_free(c);
    return status;
}

typedef struct levelling {
    double gain, unit, offset;
} levelling;

static void divide(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    const levelling *l = user;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((((double)values[i] * l->unit + l->offset) / l->gain - l->offset) / l->unit);
}

static tess_status apply(const tess_problem *p, tess_workspace *w, tess_error *error)
{
    const int64_t values = tess_problem_own(p) * tess_problem_row(p);
    for (int64_t i = 0; i < p->count; i++) {
        levelling l = {p->gains[i], p->unit, p->offset};
        if (l.gain != 1)
            TESS_TRY(tess_workspace_pieces(w, (float *)w->measurement.data + i * values, values, true, divide,
                                           &l, error));
    }
    return TESS_OK;
}

tess_status tess_problem_level_gains(tess_problem *p, tess_workspace *w, const tess_common *common,
                                     tess_error *error)
{
    if (p->gains)
        return apply(p, w, error);
    if (p->count < 2 || p->as_published)
        return TESS_OK;
    bool differ = false;
    double *gains = tess_small_alloc((size_t)p->count, sizeof *gains), least = 1, largest = 1;
    tess_status status =
        gains ? TESS_OK
              : tess_fail(error, TESS_NO_MEMORY, "no memory for %lld exposures", (long long)p->count);
    status = tess_share_agree(p->share, status, error);
    if (status == TESS_OK)
        status = estimate(p, w, gains, &differ, error);
    if (status != TESS_OK || !differ) {
        tess_small_free(gains);
        return status;
    }
    p->gains = gains;
    for (int64_t i = 1; i < p->count; i++) {
        least = fmin(least, gains[i]);
        largest = fmax(largest, gains[i]);
    }
    tess_note(
        common, TESS_NOTE_WARNING,
        "%s: its blurs have different exposures, from %.3g to %.3g of the first one's; each is divided by "
        "its own (\"gains\" states them)",
        p->measurement, least, largest);
    return apply(p, w, error);
}
