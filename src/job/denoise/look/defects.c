#include "job/denoise/look/defects.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum {
    MOST_DEFECTS = 1 << 18,
    MOST_STEPS = 1 << 14,
    MOST_OF_SLICE = 1 << 12,
    AROUND = TESS_DEFECTS_ROWS * TESS_DEFECTS_ROWS - 1,
    FEWEST = 8 /* a corner has as many neighbours */
};

static bool begin_steps(tess_defect_steps *steps, int64_t room, int64_t rows, int64_t row)
{
    *steps = (tess_defect_steps){.room = room,
                                 .stride = tess_stride_across(tess_ceil_div(rows * row, room), row),
                                 .sizes = tess_small_alloc((size_t)room, sizeof *steps->sizes)};
    return steps->sizes != NULL;
}

tess_status tess_defects_begin(tess_defects *d, int64_t width, int64_t channels, int64_t height, int64_t rows,
                               tess_error *error)
{
    *d = (tess_defects){.width = width, .channels = channels, .height = height};
    const size_t row = (size_t)(width * channels);
    const int64_t slices = rows / height;
    d->rows = tess_small_alloc((TESS_DEFECTS_ROWS + 1) * row, sizeof *d->rows);
    d->row = d->rows ? d->rows + TESS_DEFECTS_ROWS * row : NULL;
    bool enough = d->rows && begin_steps(&d->all, MOST_STEPS, rows, width * channels);
    if (slices > 1) {
        d->slice_least = tess_small_alloc((size_t)slices, sizeof *d->slice_least);
        enough = enough && d->slice_least && begin_steps(&d->slice, MOST_OF_SLICE, height, width * channels);
    }
    return enough ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
}

void tess_defects_release(tess_defects *d)
{
    tess_small_free(d->rows);
    tess_small_free(d->all.sizes);
    tess_small_free(d->slice.sizes);
    tess_small_free(d->slice_least);
    tess_small_free(d->list);
    *d = (tess_defects){0};
}

static float *row_at(const tess_defects *d, int64_t y)
{
    return d->rows + y % TESS_DEFECTS_ROWS * d->width * d->channels;
}

/* Second differences do not see a slope; their median does not see edges. */
static void take_steps(tess_defects *d, const float *row, tess_defect_steps *steps)
{
    const int64_t step = d->channels;
    for (int64_t i = 0; i < d->width * step; i++) {
        if (steps->seen++ % steps->stride != 0 || i < step || i >= (d->width - 1) * step ||
            steps->count == steps->room)
            continue;
        const float size = fabsf(2 * row[i] - row[i - step] - row[i + step]);
        if (!isfinite(size))
            continue;
        steps->sizes[steps->count++] = size;
        d->steps += (double)size;
        d->step_count++;
    }
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Samples that are mostly equal have no noise to compare with. */
static double least_of(tess_defect_steps *steps)
{
    static const double LEVELS = 10;
    static const double STEP =
        0.6745 * 2.4495; /* median of |2a - b - c| over the noise level of a, b and c */
    if (steps->count == 0)
        return INFINITY;
    qsort(steps->sizes, (size_t)steps->count, sizeof *steps->sizes, compare_floats);
    const double middle = (double)steps->sizes[steps->count / 2];
    return middle > 0 ? LEVELS * middle / STEP : INFINITY;
}

double tess_defects_least(tess_defects *d)
{
    return least_of(&d->all);
}

double tess_defects_slice_least(const tess_defects *d, int64_t slice)
{
    return d->slice_least ? d->slice_least[slice] : INFINITY;
}

bool tess_defects_is_far(const tess_defect *one, double least, double low, double high)
{
    static const double CLUSTER =
        10; /* times farther: else the light around a star would hide in the noise */
    const double value = (double)one->value, beyond = 0.5 * (high - low);
    return (double)one->distance > (one->cluster ? CLUSTER : 1) * least &&
           (value < low - beyond || value > high + beyond);
}

void tess_defects_put(tess_defects *d, const float *values)
{
    memcpy(row_at(d, d->read), values, (size_t)(d->width * d->channels) * sizeof *values);
    d->read++;
    take_steps(d, values, &d->all);
    if (!d->slice_least)
        return;
    take_steps(d, values, &d->slice);
    if (d->read % d->height == 0) {
        d->slice_least[d->read / d->height - 1] = least_of(&d->slice);
        d->slice.count = d->slice.seen = 0;
    }
}

/* The values around a sample of row y, at most `reach` pixels away and in its slice. */
static int gather(const tess_defects *d, int64_t y, int64_t x, int64_t c, int64_t reach, float *around)
{
    const int64_t slice = y / d->height * d->height, from = tess_max_i64(y - reach, slice),
                  to = tess_min_i64(y + reach, slice + d->height - 1), left = tess_max_i64(x - reach, 0),
                  right = tess_min_i64(x + reach, d->width - 1);
    int count = 0;
    for (int64_t v = from; v <= to; v++) {
        const float *row = row_at(d, v);
        for (int64_t u = left; u <= right; u++) {
            const float value = row[u * d->channels + c];
            if ((u != x || v != y) && isfinite(value))
                around[count++] = value;
        }
    }
    return count;
}

static void sort(float *values, int count)
{
    for (int i = 1; i < count; i++) {
        const float value = values[i];
        int at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

/* Whether the value is beyond all but one of its direct neighbours, by more than their range. Cheap: it rejects almost
 * every sample. */
static bool stands_out(const tess_defects *d, int64_t y, int64_t x, int64_t c, float value)
{
    float near[8];
    const int count = gather(d, y, x, c, 1, near);
    if (count < 3)
        return false;
    float least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < count; i++) {
        const float n = near[i];
        if (n < least[0])
            least[1] = least[0], least[0] = n;
        else if (n < least[1])
            least[1] = n;
        if (n > most[0])
            most[1] = most[0], most[0] = n;
        else if (n > most[1])
            most[1] = n;
    }
    return value > most[1] ? value - most[1] > 2 * (most[1] - least[0])
                           : least[1] - value > 2 * (most[0] - least[1]);
}

/* How many of the values are not much nearer to the middle than `distance`. */
static int count_far(const float *values, int count, float middle, float distance)
{
    static const float ALONE = 6;
    int far = 0;
    for (int i = 0; i < count; i++)
        far += ALONE * fabsf(values[i] - middle) >= distance;
    return far;
}

/* The distance from the median of the 24 values around it, if these are much nearer to it; else 0. Some may be other
 * defects: one anywhere, or three that do not touch it. The end of a line has two, of which one touches it, and a star's
 * light falls on its neighbours. */
static float distance_of(const tess_defects *d, int64_t y, int64_t x, int64_t c, float value)
{
    float around[AROUND], near[8];
    const int count = gather(d, y, x, c, TESS_DEFECTS_REACH, around), touching = gather(d, y, x, c, 1, near);
    if (count < FEWEST)
        return 0;
    sort(around, count);
    const float middle = around[count / 2], distance = fabsf(value - middle);
    const int far = count_far(around, count, middle, distance);
    return far <= 1 || (far <= 3 && count_far(near, touching, middle, distance) == 0) ? distance : 0;
}

static bool keep(tess_defects *d, const tess_defect *one)
{
    d->many = d->count == MOST_DEFECTS;
    if (d->many)
        return false;
    if (d->count == d->room) {
        const int64_t room = tess_min_i64(2 * d->room + 256, MOST_DEFECTS);
        tess_defect *list = tess_small_realloc(d->list, (size_t)room, sizeof *list);
        if (!list)
            return false; /* one less is known */
        d->list = list;
        d->room = room;
    }
    d->list[d->count++] = *one;
    return true;
}

/* The same as stands_out with four neighbours, which holds wherever that does; true where one has no value. */
static bool may_stand_out(float value, float left, float right, float up, float down)
{
    const float a = left > right ? left : right, b = left > right ? right : left, c = up > down ? up : down,
                e = up > down ? down : up, most = a > c ? a : c, least = b < e ? b : e,
                high = a > c ? (c > b ? c : b) : (a > e ? a : e),
                low = b < e ? (e < a ? e : a) : (b < c ? b : c);
    return value > high ? !(value - high <= 2 * (high - least)) : !(low - value <= 2 * (most - low));
}

const float *tess_defects_next(tess_defects *d)
{
    const int64_t y = d->given, top = y / d->height * d->height, bottom = top + d->height - 1,
                  step = d->channels, count = d->width * step;
    if (d->read <= tess_min_i64(y + TESS_DEFECTS_REACH, bottom))
        return NULL;
    const float *row = row_at(d, y), *up = row_at(d, tess_max_i64(y - 1, top)), *down = row_at(d, y + 1);
    const bool inside = y > top && y < bottom;
    memcpy(d->row, row, (size_t)count * sizeof *d->row);
    for (int64_t i = 0; i < count && !d->many; i++) {
        const float value = row[i];
        const bool within = inside && i >= step && i < count - step;
        const bool alone = !within || may_stand_out(value, row[i - step], row[i + step], up[i], down[i]),
                   clustered = !within || tess_defects_may_cluster(d, value, row[i - step], row[i + step],
                                                                   up[i], down[i]);
        if (!isfinite(value) || !(alone || clustered))
            continue;
        const int64_t x = i / step, c = i % step;
        tess_defect one = {.index = y * count + i, .value = value};
        if (alone && stands_out(d, y, x, c, value))
            one.distance = distance_of(d, y, x, c, value);
        one.cluster = !(one.distance > 0) && clustered;
        if (one.cluster)
            one.distance = tess_defects_cluster(d, y, x, c);
        if (one.distance > 0 && keep(d, &one))
            d->row[i] = NAN;
    }
    d->given++;
    return d->row;
}
