#include "job/common/holes.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { RING = TESS_HOLES_AHEAD + 1, PAST = TESS_HOLES_PAST, MEAN_DISTANCE = 4 * TESS_HOLES_AHEAD };

static size_t row_bytes(int64_t width, int64_t channels)
{
    return tess_align_size((size_t)(width * channels) * sizeof(float), 64);
}

static size_t index_bytes(int64_t width, int64_t channels)
{
    return tess_align_size((size_t)(width * channels) * sizeof(int64_t), 64);
}

size_t tess_holes_bytes(int64_t width, int64_t channels)
{
    return (RING + PAST) * row_bytes(width, channels) + 3 * index_bytes(width, channels);
}

void tess_holes_begin(tess_holes *h, int64_t width, int64_t channels, int64_t height, float mean,
                      void *memory)
{
    char *at = memory;
    *h = (tess_holes){.width = width, .channels = channels, .height = height, .mean = mean};
    h->rows = (float *)at;
    h->above = (float *)(at += RING * row_bytes(width, channels));
    h->above_count = (int64_t *)(at += PAST * row_bytes(width, channels));
    h->above_row = (int64_t *)(at += index_bytes(width, channels));
    h->below_row = (int64_t *)(at + index_bytes(width, channels));
    memset(h->above_count, 0, 3 * index_bytes(width, channels));
}

static float *row_at(const tess_holes *h, int64_t y)
{
    return (float *)((char *)h->rows + (size_t)(y % RING) * row_bytes(h->width, h->channels));
}

/* Where the n-th value of a column is kept, from 0 on, as long as it is one of the last. */
static float *above_at(const tess_holes *h, int64_t column, int64_t n)
{
    return (float *)((char *)h->above + (size_t)(n % PAST) * row_bytes(h->width, h->channels)) + column;
}

/* The place that is `far` places behind a mirror: 0, 1, ..., count - 1, and back again. */
static int64_t fold(int64_t far, int64_t count)
{
    const int64_t at = far % (2 * count);
    return at < count ? at : 2 * count - 1 - at;
}

/* Returns the next row below y with a value in this column, among the rows read so far; -1: none. Checks each row
 * once. */
static int64_t find_below(tess_holes *h, int64_t column, int64_t y)
{
    int64_t row = tess_max_i64(h->below_row[column], y + 1);
    while (row < h->read && isnan(row_at(h, row)[column]))
        row++;
    h->below_row[column] = row;
    return row < h->read ? row : -1;
}

typedef struct average {
    double sum, weights;
} average;

static void add(average *a, float value, int64_t distance)
{
    const double weight = 1 / ((double)distance * (double)distance);
    a->sum += weight * value;
    a->weights += weight;
}

/* The mirror images: of the values at `edge`, edge + step, ..., of which the first is no hole; of the last values of a
 * column; of its next ones, from row `below` on. Where the mirrored value is missing, the one next to it towards the
 * edge counts. */
static float beside(const float *edge, int64_t distance, int64_t count, int64_t step)
{
    int64_t at = fold(distance - 1, tess_min_i64(count, TESS_HOLES_AHEAD)); /* few to search */
    while (isnan(edge[at * step]))
        at--;
    return edge[at * step];
}

static float above(const tess_holes *h, int64_t column, int64_t distance)
{
    const int64_t count = h->above_count[column];
    return *above_at(h, column, count - 1 - fold(distance - 1, tess_min_i64(count, PAST)));
}

static float under(const tess_holes *h, int64_t column, int64_t below, int64_t distance)
{
    int64_t at = below + fold(distance - 1, h->read - below);
    while (isnan(row_at(h, at)[column]))
        at--;
    return row_at(h, at)[column];
}

static float fill(tess_holes *h, int64_t column, int64_t y, const average *sides)
{
    average a = *sides;
    add(&a, h->mean, MEAN_DISTANCE);
    if (h->above_count[column] > 0)
        add(&a, above(h, column, y - h->above_row[column]), y - h->above_row[column]);
    const int64_t below = find_below(h, column, y);
    if (below >= 0)
        add(&a, under(h, column, below, below - y), below - y);
    return (float)(a.sum / a.weights);
}

/* One run of holes in a row: [from, to) of this channel. */
static void fill_run(tess_holes *h, int64_t y, int64_t channel, int64_t from, int64_t to, const float *row,
                     float *values)
{
    const int64_t step = h->channels;
    for (int64_t x = from; x < to; x++) {
        average sides = {0, 0};
        if (from > 0)
            add(&sides, beside(&row[(from - 1) * step + channel], x - from + 1, from, -step), x - from + 1);
        if (to < h->width)
            add(&sides, beside(&row[to * step + channel], to - x, h->width - to, step), to - x);
        values[x * step + channel] = fill(h, x * step + channel, y, &sides);
    }
}

/* The row that was given last is now above. */
static void pass(tess_holes *h)
{
    const float *row = row_at(h, h->given);
    for (int64_t i = 0; i < h->width * h->channels; i++)
        if (!isnan(row[i])) {
            *above_at(h, i, h->above_count[i]++) = row[i];
            h->above_row[i] = h->given;
        }
    h->given++;
}

tess_status tess_holes_next(tess_holes *h, tess_holes_row_fn read, void *user, float *values,
                            tess_error *error)
{
    const int64_t y = h->given, count = h->width * h->channels;
    for (; h->read < tess_min_i64(y + RING, h->height); h->read++)
        TESS_TRY(read(user, row_at(h, h->read), error));
    const float *row = row_at(h, y);
    memcpy(values, row, (size_t)count * sizeof(float));
    for (int64_t c = 0; c < h->channels; c++)
        for (int64_t x = 0, to; x < h->width; x = to) {
            to = x + 1;
            if (!isnan(row[x * h->channels + c]))
                continue;
            while (to < h->width && isnan(row[to * h->channels + c]))
                to++;
            fill_run(h, y, c, x, to, row, values);
        }
    pass(h);
    return TESS_OK;
}

tess_status tess_holes_skip(tess_holes *h, int64_t row, tess_holes_row_fn read, void *user, tess_error *error)
{
    for (; h->given < row; pass(h), h->read++)
        TESS_TRY(read(user, row_at(h, h->read), error));
    return TESS_OK;
}
