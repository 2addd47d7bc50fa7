#include "job/reconstruct/mask/hidden_rows.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/mask/frame.h"
#include "job/reconstruct/mask/hidden.h"

/* Of all values: fewer at the ends of the range may be single ones that do not belong to the picture. */
static const double FEW = 0.005;

tess_status tess_hidden_rows_open(tess_hidden_rows *h, const tess_problem *p, tess_workspace *w,
                                  tess_error *error)
{
    const size_t samples = (size_t)tess_problem_row(p);
    *h = (tess_hidden_rows){.problem = p, .w = w};
    if (!p->hidden.blurs)
        return TESS_OK;
    h->mask = tess_small_alloc(samples, sizeof *h->mask);
    h->last = tess_small_alloc(samples, sizeof *h->last);
    h->filled = tess_small_alloc((size_t)p->channels, sizeof *h->filled);
    return h->mask && h->last && h->filled ? TESS_OK
                                           : tess_fail(error, TESS_NO_MEMORY, "no memory for rows of masks");
}

void tess_hidden_rows_close(tess_hidden_rows *h)
{
    tess_small_free(h->mask);
    tess_small_free(h->last);
    tess_small_free(h->filled);
    *h = (tess_hidden_rows){0};
}

/* The row's index in this rank's part; negative: it is another rank's. */
static int64_t own_row(const tess_problem *p, int64_t y)
{
    const int64_t row = y % p->height - tess_problem_first(p);
    return row < tess_problem_own(p) ? row : -1;
}

static float *measured(const tess_hidden_rows *h, int64_t y)
{
    const tess_problem *p = h->problem;
    return (float *)h->w->measurement.data +
           (y / p->height * tess_problem_own(p) + own_row(p, y)) * tess_problem_row(p);
}

/* Fills the gaps of a channel's row along straight lines; returns whether there was a value. Cut off highlights are values here. */
static bool fill_row(const tess_hidden_rows *h, int64_t y, int64_t channel, float *values)
{
    const tess_problem *p = h->problem;
    int64_t before = -1;
    for (int64_t x = 0; x <= p->width; x++) {
        float *at = values + x * p->channels + channel;
        if (x < p->width) {
            const tess_hidden_reason why = tess_hidden_own(p, y, x, *at);
            if (why == TESS_HIDDEN_MISSING || why == TESS_HIDDEN_FRAME)
                continue;
        } else if (before < 0) {
            return false;
        }
        const float *left = before < 0 ? at : values + before * p->channels + channel,
                    *right = x < p->width ? at : left;
        for (int64_t gap = before + 1; gap < x; gap++) {
            const float share = before < 0 ? 1 : (float)(gap - before) / (float)(x - before);
            values[gap * p->channels + channel] = *left + share * (*right - *left);
        }
        before = x;
    }
    return true;
}

/* The rows of a blur before the first one with a value get that one. */
static tess_status fill_above(tess_hidden_rows *h, int64_t y, int64_t channel, tess_error *error)
{
    const tess_problem *p = h->problem;
    tess_device *device = h->w->device;
    const int64_t samples = tess_problem_row(p);
    const size_t bytes = (size_t)samples * sizeof(float);
    for (int64_t above = y - y % p->height; above < y; above++) {
        if (own_row(p, above) < 0)
            continue;
        device->memory->copy(device, h->mask, measured(h, above), bytes, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
        for (int64_t i = channel; i < samples; i += p->channels)
            h->mask[i] = h->last[i];
        device->memory->copy(device, measured(h, above), h->mask, bytes, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    return TESS_OK;
}

static tess_status set_mask(tess_hidden_rows *h, int64_t y, const float *values, tess_error *error)
{
    const tess_problem *p = h->problem;
    tess_operator *op = h->w->op;
    tess_device *device = h->w->device;
    const int64_t samples = tess_problem_row(p), row = own_row(p, y);
    if (row < 0)
        return TESS_OK;
    for (int64_t i = 0; i < samples; i++)
        h->mask[i] = tess_hidden_weight(p, y, i / p->channels, values[i]);
    device->memory->copy(device, op->table->mask(op, y / p->height) + row * samples, h->mask,
                         (size_t)samples * sizeof(float), NULL);
    return device->streams->sync(device, NULL, error);
}

tess_status tess_hidden_rows_take(tess_hidden_rows *h, int64_t y, float *values, tess_error *error)
{
    const tess_problem *p = h->problem;
    if (!p->hidden.blurs || !p->hidden.blurs[y / p->height])
        return TESS_OK;
    TESS_TRY(set_mask(h, y, values, error));
    for (int64_t c = 0; c < p->channels; c++) {
        if (y % p->height == 0)
            h->filled[c] = false;
        const bool seen = fill_row(h, y, c, values);
        for (int64_t i = c; i < tess_problem_row(p); i += p->channels)
            if (seen)
                h->last[i] = values[i];
            else
                values[i] = h->filled[c] ? h->last[i] : 0;
        if (seen && !h->filled[c])
            TESS_TRY(fill_above(h, y, c, error));
        h->filled[c] = h->filled[c] || seen;
    }
    return TESS_OK;
}

tess_status tess_hidden_blank(const tess_problem *p, tess_workspace *w, int64_t blur, int64_t row,
                              float *values, tess_error *error)
{
    tess_device *device = w->device;
    const int64_t samples = tess_problem_row(p);
    if (!p->hidden.blurs || !p->hidden.blurs[blur])
        return TESS_OK;
    const double ends = (double)(p->hidden.count[TESS_HIDDEN_BRIGHT] + p->hidden.count[TESS_HIDDEN_DARK]);
    if (p->hidden.count[TESS_HIDDEN_MISSING] == 0 && !p->hidden.squares &&
        !(ends < FEW * (double)(p->count * p->height * samples))) {
        for (int64_t i = 0; i < samples && p->hidden.frame; i++)
            if (tess_frame_covers(p, blur * p->height + tess_problem_first(p) + row, i / p->channels))
                values[i] = NAN;
        return TESS_OK;
    }
    const float *mask = w->op->table->mask(w->op, blur) + row * samples;
    for (int64_t at = 0; at < samples; at += TESS_PIECE) {
        const int64_t some = tess_min_i64(TESS_PIECE, samples - at);
        device->memory->copy(device, w->host.piece, mask + at, (size_t)some * sizeof *mask, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
        for (int64_t i = 0; i < some; i++)
            values[at + i] = w->host.piece[i] >= 1 ? values[at + i] : NAN;
    }
    return TESS_OK;
}

/* Writes `count` pixels of the frame from `at` on. */
static tess_status write_frame(const tess_problem *p, tess_workspace *w, float *at, int64_t count,
                               tess_error *error)
{
    tess_device *device = w->device;
    float *row = w->host.rows[0];
    if (count == 0)
        return TESS_OK;
    for (int64_t i = 0; i < count * p->channels; i++)
        row[i] = (float)(((double)p->hidden.frame_value[i % p->channels] - p->offset) / p->unit);
    device->memory->copy(device, at, row, (size_t)(count * p->channels) * sizeof *row, NULL);
    return device->streams->sync(device, NULL, error);
}

tess_status tess_hidden_restore_frame(const tess_problem *p, tess_workspace *w, tess_error *error)
{
    const int64_t *frame = p->hidden.frame, stride = w->op->image.w * p->channels, own = tess_problem_own(p),
                  above = tess_max_i64(p->margin[0] - tess_share_first(p->share), 0);
    for (int64_t y = 0; y < own && frame; y++) {
        float *row = (float *)w->vectors[0] + (above + y) * stride + p->margin[1] * p->channels;
        int64_t ends[2] = {p->width, p->width};
        for (int64_t i = 0; i < 2 * p->count; i++) {
            const int64_t at = i / 2 * p->height + tess_problem_first(p) + y;
            ends[i % 2] = tess_min_i64(ends[i % 2], frame[2 * at + i % 2]);
        }
        TESS_TRY(write_frame(p, w, row, ends[0], error));
        TESS_TRY(write_frame(p, w, row + (p->width - ends[1]) * p->channels, ends[1], error));
    }
    return TESS_OK;
}
