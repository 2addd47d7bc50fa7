/* Places are farther from the border than two kernels reach together, because pixels near it may have been made up. What is hidden, or cut off
 * at a blur's largest value, becomes NaN, and so does everything that it is blurred into. */
#include "job/reconstruct/look/crossed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/look/sampled_kernel.h"

enum {
    SIDE = TESS_CROSSED_SIDE,
    LEAST_KNOWN = SIDE * SIDE / 8 /* values of a place: of fewer, the mean would be most */
};
static const double FAINT = 1e-6; /* of a kernel's peak: less does not count */

static double peak_of(const double *values, int64_t count)
{
    double peak = 0;
    for (int64_t i = 0; i < count; i++)
        peak = fmax(peak, fabs(values[i]));
    return peak;
}

/* The reach of a kernel without zeros around it. */
static void raise_reach(const tess_blur_kernel *k, int64_t reach[2])
{
    const double least = k->values ? FAINT * peak_of(k->values, k->height * k->width) : 0;
    if (!k->values) {
        reach[0] = tess_max_i64(reach[0], tess_kernel_reach_rows(k));
        reach[1] = tess_max_i64(reach[1], tess_kernel_reach_columns(k));
        return;
    }
    for (int64_t i = 0; i < k->height * k->width; i++)
        if (fabs(k->values[i]) > least) {
            reach[0] = tess_max_i64(reach[0], llabs(i / k->width - k->height / 2));
            reach[1] = tess_max_i64(reach[1], llabs(i % k->width - k->width / 2));
        }
}

/* Computes sizes only; false: there is no place. */
static bool lay_out(tess_crossed *c, const tess_problem *p)
{
    *c = (tess_crossed){.problem = p, .channels = tess_min_i64(p->channels, TESS_CROSSED_CHANNELS)};
    for (int64_t i = 0; i < p->count; i++) {
        const tess_blur_kernel gaussian = {
            .gaussian = {p->blur[0], p->blur[1], p->kernels ? 0 : p->angles[i]}};
        raise_reach(p->kernels ? &p->kernels[i] : &gaussian, c->reach);
    }
    c->room[0] = p->height - 4 * c->reach[0] - SIDE;
    c->room[1] = p->width - 4 * c->reach[1] - SIDE;
    c->row = (SIDE + 2 * c->reach[1]) * c->channels;
    c->values = (SIDE + 2 * c->reach[0]) * c->row;
    return c->room[0] >= 0 && c->room[1] >= 0;
}

static int64_t place_values(const tess_crossed *c)
{
    return SIDE * SIDE * c->channels;
}

static size_t bytes_of(const tess_crossed *c)
{
    return (size_t)(c->problem->count * c->values + 2 * place_values(c)) * sizeof(float);
}

size_t tess_crossed_bytes(const tess_problem *p)
{
    tess_crossed c;
    return lay_out(&c, p) ? bytes_of(&c) : 0;
}

static tess_status make_taps(const tess_crossed *c, int64_t i, tess_error *error)
{
    tess_taps *taps = &c->taps[i];
    tess_sampled_kernel k = {0};
    tess_status status = tess_sample_kernel(c->problem, i, &k, error);
    const int64_t width = 2 * k.columns + 1, count = (2 * k.rows + 1) * width;
    if (status == TESS_OK) {
        taps->at = tess_small_alloc((size_t)count, sizeof *taps->at);
        taps->value = tess_small_alloc((size_t)count, sizeof *taps->value);
        if (!taps->at || !taps->value)
            status = tess_fail(error, TESS_NO_MEMORY, "no memory for a kernel");
    }
    const double least = status == TESS_OK ? FAINT * peak_of(k.values, count) : 0;
    for (int64_t n = 0; n < count && status == TESS_OK; n++) {
        const int64_t dy = n / width - k.rows, dx = n % width - k.columns;
        if (!(fabs(k.values[n]) > least) || llabs(dy) > c->reach[0] || llabs(dx) > c->reach[1])
            continue;
        taps->at[taps->count] = -dy * c->row - dx * c->channels;
        taps->value[taps->count++] = (float)k.values[n];
        taps->squares += k.values[n] * k.values[n];
    }
    tess_small_free(k.values);
    return status;
}

static tess_status make(tess_crossed *c, tess_error *error)
{
    const size_t blurs = (size_t)c->problem->count;
    c->taps = tess_small_alloc(blurs, sizeof *c->taps);
    c->brightest = tess_small_alloc(blurs, sizeof *c->brightest);
    if (!c->taps || !c->brightest)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to compare the blurs");
    TESS_TRY(tess_block_alloc(c->w->engine->memory, &c->block, TESS_MEM_HOST, bytes_of(c), error));
    c->patches = c->block.data;
    c->blurred[0] = c->patches + c->problem->count * c->values;
    c->blurred[1] = c->blurred[0] + place_values(c);
    for (int64_t i = 0; i < c->problem->count; i++)
        TESS_TRY(make_taps(c, i, error));
    return TESS_OK;
}

tess_status tess_crossed_open(tess_crossed *c, const tess_problem *p, tess_workspace *w, tess_error *error)
{
    const int64_t values = tess_workspace_values(&w->op->measurement) / p->count;
    (void)lay_out(c, p);
    c->w = w;
    TESS_TRY(tess_share_agree(p->share, make(c, error), error));
    for (int64_t i = 0; i < p->count; i++) {
        tess_extremes seen;
        TESS_TRY(tess_workspace_extremes(w, (float *)w->measurement.data + i * values, values, &seen, error));
        c->brightest[i] = (float)seen.high;
    }
    return TESS_OK;
}

void tess_crossed_close(tess_crossed *c)
{
    for (int64_t i = 0; c->taps && i < c->problem->count; i++) {
        tess_small_free(c->taps[i].at);
        tess_small_free(c->taps[i].value);
    }
    tess_small_free(c->taps);
    tess_small_free(c->brightest);
    tess_block_free(&c->block);
}

double tess_crossed_work(const tess_crossed *c, int64_t i, int64_t j)
{
    return (double)place_values(c) * (double)(c->taps[i].count + c->taps[j].count);
}

void tess_crossed_choose(tess_crossed *c, int64_t most)
{
    for (int k = 0; k < 2; k++)
        c->grid[k] = tess_min_i64(most, 1 + c->room[k] / SIDE);
}

/* A row of a patch from this rank's part of a blur. */
static tess_status take_row(const tess_crossed *c, int64_t i, int64_t row, int64_t left, float *to,
                            tess_error *error)
{
    const tess_problem *p = c->problem;
    tess_workspace *w = c->w;
    tess_device *device = w->device;
    const int64_t samples = tess_problem_row(p), pixels = c->row / c->channels,
                  at = row * samples + left * p->channels;
    const size_t bytes = (size_t)(pixels * p->channels) * sizeof(float);
    const float *measured = (const float *)w->measurement.data + i * tess_problem_own(p) * samples,
                *values = w->host.rows[0], *mask = NULL;
    device->memory->copy(device, w->host.rows[0], measured + at, bytes, NULL);
    if (p->hidden.blurs && p->hidden.blurs[i]) {
        mask = w->host.rows[1];
        device->memory->copy(device, w->host.rows[1], w->op->table->mask(w->op, i) + at, bytes, NULL);
    }
    TESS_TRY(device->streams->sync(device, NULL, error));
    for (int64_t n = 0; n < c->row; n++) {
        const int64_t from = n / c->channels * p->channels + n % c->channels * p->channels / c->channels;
        to[n] = (mask && mask[from] < 1) || values[from] >= c->brightest[i] ? NAN : values[from];
    }
    return TESS_OK;
}

/* The first pixel of a place, from the border. */
static int64_t start_of(const tess_crossed *c, int k, int64_t at)
{
    return 2 * c->reach[k] + (c->grid[k] > 1 ? c->room[k] * at / (c->grid[k] - 1) : c->room[k] / 2);
}

/* Rows that other ranks have are zeros here, to which their values are added. */
tess_status tess_crossed_take(tess_crossed *c, int64_t place, tess_error *error)
{
    const tess_problem *p = c->problem;
    const int64_t top = start_of(c, 0, place / c->grid[1]) - c->reach[0] - tess_problem_first(p),
                  left = start_of(c, 1, place % c->grid[1]) - c->reach[1], rows = c->values / c->row,
                  own = tess_problem_own(p);
    for (int64_t k = 0; k < p->count * rows; k++) {
        const int64_t row = top + k % rows;
        float *to = c->patches + k * c->row;
        if (row >= 0 && row < own)
            TESS_TRY(tess_share_keep(p->share, take_row(c, k / rows, row, left, to, error), error));
        else
            memset(to, 0, (size_t)c->row * sizeof *to);
    }
    return tess_share_many(p->share)
               ? tess_dist_sum_f32(p->share->dist, c->patches, p->count * c->values, error)
               : TESS_OK;
}

static const float *place_of(const tess_crossed *c, int64_t i, int64_t y)
{
    return c->patches + i * c->values + (c->reach[0] + y) * c->row + c->reach[1] * c->channels;
}

/* The place in blur `i`, blurred once more. */
static void blur(const tess_crossed *c, int64_t i, const tess_taps *taps, float *out)
{
    const int64_t row = SIDE * c->channels;
    memset(out, 0, (size_t)place_values(c) * sizeof *out);
    for (int64_t y = 0; y < SIDE; y++)
        for (int64_t k = 0; k < taps->count; k++) {
            const float *from = place_of(c, i, y) + taps->at[k], value = taps->value[k];
            for (int64_t x = 0; x < row; x++)
                out[y * row + x] += value * from[x];
        }
}

/* Adds one channel of the two that are blurred. */
static void add_channel(const tess_crossed *c, int64_t channel, tess_difference *d)
{
    double sum = 0, squares = 0, slopes = 0;
    int64_t known = 0, sloped = 0;
    for (int64_t n = channel; n < place_values(c); n += c->channels) {
        const float *at = c->blurred[0] + n;
        const double off = (double)at[0] - (double)c->blurred[1][n];
        if (!isfinite(off))
            continue;
        sum += off;
        squares += off * off;
        known++;
        if (n / c->channels % SIDE == SIDE - 1 || n + SIDE * c->channels >= place_values(c))
            continue;
        const double across = (double)at[c->channels] - (double)at[0],
                     down = (double)at[SIDE * c->channels] - (double)at[0];
        if (!isfinite(across + down))
            continue;
        slopes += across * across + down * down;
        sloped++;
    }
    if (known < LEAST_KNOWN || sloped == 0)
        return;
    d->square += fmax(squares - sum * sum / (double)known, 0);
    d->slope += slopes * (double)known / (double)sloped;
    d->count += (double)known;
}

void tess_crossed_add(const tess_crossed *c, int64_t i, int64_t j, tess_difference *d)
{
    blur(c, i, &c->taps[j], c->blurred[0]);
    blur(c, j, &c->taps[i], c->blurred[1]);
    for (int64_t channel = 0; channel < c->channels; channel++)
        add_channel(c, channel, d);
}

/* Differences along rows of differences along columns: the blur leaves almost nothing else there (Immerkaer, CVIU 1996). */
double tess_crossed_noise(const tess_crossed *c, int64_t i)
{
    double squares = 0;
    int64_t known = 0;
    for (int64_t y = 1; y < SIDE - 1; y++)
        for (int64_t x = c->channels; x < (SIDE - 1) * c->channels; x++) {
            double second[3];
            for (int64_t k = 0; k < 3; k++) {
                const float *at = place_of(c, i, y + k - 1) + x;
                second[k] = (double)at[-c->channels] - 2 * (double)at[0] + (double)at[c->channels];
            }
            const double value = second[0] - 2 * second[1] + second[2];
            if (!isfinite(value))
                continue;
            squares += value * value / 36;
            known++;
        }
    return known < LEAST_KNOWN ? -1 : sqrt(squares / (double)known);
}
