/* A frame begins at the ends of rows, with the value that two corners have in common. An even background does so, too; but there the
 * blur lets no value depart faster from the background than its kernel does (jump.h), and beside a frame that was set after the blur
 * most values do. */
#include "job/reconstruct/mask/frame.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/mask/bars.h"
#include "job/reconstruct/mask/squares.h"

enum { CORNERS = 4, ROWS = 4 };   /* ROWS: two bends side by side */
static const double ALIKE = 0.01; /* of the span of the values */
static const double STEEP = 0.25; /* share of the rim that the kernel does not allow */
static const double MOST = 0.9;   /* of the picture */
static const double MOST_WAVES =
    0.2; /* of the span, in a JPEG: in darker pictures its waves hide where a frame ends */
static const double EVEN = 0.6;   /* share of neighbours that are alike: noise leaves less */
static const double SAME = 0.002; /* of the span: how far these differ */
static const double STILL = 0.9;  /* the same share inside of a frame: it has no noise */
static const double BEND = 0.012; /* of the span: the least bend that counts, more than rounding makes */
static const double RESTLESS =
    0.55; /* share of neighbouring bends with different signs: 3/4 in white noise; texture is smooth in one direction at least */
static const double FREE = 0.5; /* of the range: a kernel that allows such a jump forbids nothing */
static const double BRIGHTER =
    1.5; /* the sharp picture's span, where no range is known, in that of the blurs */

tess_status tess_frames_open(tess_frames *f, tess_error *error)
{
    const tess_problem *p = f->problem;
    f->corners = tess_small_alloc((size_t)(p->count * CORNERS * p->channels), sizeof *f->corners);
    f->last = tess_small_alloc(ROWS * (size_t)tess_problem_row(p), sizeof *f->last);
    f->runs = tess_small_alloc((size_t)(2 * p->count * p->height), sizeof *f->runs);
    f->value = tess_small_alloc((size_t)p->channels, sizeof *f->value);
    return f->corners && f->last && f->runs && f->value
               ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "no memory to look for frames");
}

void tess_frames_close(tess_frames *f)
{
    tess_small_free(f->corners);
    tess_small_free(f->last);
    tess_small_free(f->runs);
    tess_small_free(f->value);
    *f = (tess_frames){0};
}

void tess_frames_add(tess_frames *f, int64_t y, const float *values)
{
    const tess_problem *p = f->problem;
    const int64_t row = y % p->height, samples = tess_problem_row(p);
    const size_t bytes = (size_t)p->channels * sizeof *values;
    float *corners = f->corners + y / p->height * CORNERS * p->channels;
    for (int side = 0; side < 2; side++)
        if (row == (side ? p->height - 1 : 0)) {
            memcpy(corners + 2 * side * p->channels, values, bytes);
            memcpy(corners + (2 * side + 1) * p->channels, values + samples - p->channels, bytes);
        }
    for (int64_t i = 0; i < samples; i++)
        if (isfinite(values[i])) {
            f->low = f->any ? fmin(f->low, (double)values[i]) : (double)values[i];
            f->high = f->any ? fmax(f->high, (double)values[i]) : (double)values[i];
            f->any = true;
        }
}

/* How much values of a frame vary. */
static double variation(const tess_frames *f)
{
    return fmax(ALIKE * (f->high - f->low), tess_waves_of_frame(f->problem));
}

static bool near(const tess_frames *f, const float *pixel, const float *value, double within)
{
    for (int64_t c = 0; c < f->problem->channels; c++)
        if (!(fabs((double)pixel[c] - (double)value[c]) <= within))
            return false;
    return true;
}

static bool alike(const tess_frames *f, const float *pixel, const float *value)
{
    return near(f, pixel, value, variation(f));
}

/* The value that most corners of a blur have, if two have it. */
static const float *value_of(const tess_frames *f, int64_t blur)
{
    const float *corners = f->corners + blur * CORNERS * f->problem->channels, *best = NULL;
    int most = 1;
    for (int i = 0; i < CORNERS; i++) {
        const float *corner = corners + i * f->problem->channels;
        int count = 0;
        for (int k = 0; k < CORNERS; k++)
            count += alike(f, corners + k * f->problem->channels, corner);
        if (count > most)
            most = count, best = corner;
    }
    return best;
}

bool tess_frames_possible(const tess_frames *f)
{
    if (tess_waves_of_frame(f->problem) > MOST_WAVES * (f->high - f->low))
        return false;
    for (int64_t i = 0; i < f->problem->count; i++)
        if (f->high > f->low && value_of(f, i))
            return true;
    return false;
}

static void run(const tess_frames *f, const float *values, const float *value, int64_t *ends)
{
    const int64_t width = f->problem->width, channels = f->problem->channels;
    ends[0] = ends[1] = 0;
    while (ends[0] < width && alike(f, values + ends[0] * channels, value))
        ends[0]++;
    while (ends[0] + ends[1] < width && alike(f, values + (width - 1 - ends[1]) * channels, value))
        ends[1]++;
}

/* A pixel beside one of the frame, in the direction `side`. */
static void add_rim(tess_frames *f, const float *pixel, const float *value, int side)
{
    const tess_problem *p = f->problem;
    const double span = f->high - f->low, range = p->range_from == TESS_RANGE_FROM_DATA
                                                      ? BRIGHTER * span
                                                      : fmax(p->high - p->low, span);
    bool steep = false;
    for (int64_t c = 0; c < p->channels; c++)
        steep = steep || fabs((double)pixel[c] - (double)value[c]) > range * f->jumps.from_end[side];
    f->rim++;
    f->steep += steep;
}

static bool inside(const int64_t *ends, int64_t column, int64_t width)
{
    return column < ends[0] || column >= width - ends[1];
}

static tess_status begin(tess_frames *f, int64_t blur, tess_error *error)
{
    tess_sampled_kernel kernel = {0};
    tess_status status = tess_sample_kernel(f->problem, blur, &kernel, error);
    if (status == TESS_OK)
        status = tess_jumps_of(&kernel, variation(f) / (f->high - f->low), &f->jumps, error);
    tess_small_free(kernel.values);
    f->rim = f->steep = f->pairs = f->equal = f->inner = f->still = 0;
    for (int i = 0; i < 2; i++)
        f->bends[i] = f->turns[i] = 0;
    return status;
}

/* Whether it is black or white, as bars are; backgrounds may have any value. */
static bool at_end(const tess_frames *f, const float *value)
{
    bool low = true, high = true;
    for (int64_t c = 0; c < f->problem->channels; c++) {
        low = low && (double)value[c] - f->low <= variation(f);
        high = high && f->high - (double)value[c] <= variation(f);
    }
    return low || high;
}

/* Whether the picture has noise and the frame has none. The waves of a JPEG are both; there the kernel must forbid nothing. */
static bool only_picture_has_noise(const tess_frames *f)
{
    double most = 0;
    for (int i = 0; i < TESS_JUMP_SIDES; i++)
        most = fmax(most, f->jumps.from_end[i]);
    if ((double)f->equal >= EVEN * (double)f->pairs)
        return false;
    if (f->problem->quantised > 0)
        return most > FREE;
    return (double)f->still >= STILL * (double)f->inner &&
           (double)f->turns[0] > RESTLESS * (double)f->bends[0] &&
           (double)f->turns[1] > RESTLESS * (double)f->bends[1];
}

/* Forgets what is no frame. Where the kernel forbids nothing, as motion along the bars, bars of black or white beside a picture with
 * noise are one all the same. Texture is none: barcodes have even margins. */
static void end(tess_frames *f, const float *value, int64_t *runs)
{
    const tess_problem *p = f->problem;
    int64_t pixels = 0;
    for (int64_t i = 0; i < 2 * p->height; i++)
        pixels += runs[i];
    if (pixels >= tess_max_i64(p->height, p->width) &&
        (double)pixels <= MOST * (double)(p->height * p->width) && f->rim > 0 &&
        (double)f->steep >= STEEP * (double)f->rim)
        f->found++;
    else if (at_end(f, value) && only_picture_has_noise(f) && (pixels = tess_bars_keep(p, runs)) > 0 &&
             (double)pixels <= MOST * (double)(p->height * p->width))
        f->found++;
    else
        memset(runs, 0, 2 * (size_t)p->height * sizeof *runs);
}

static bool same(const tess_frames *f, const float *values, int64_t x)
{
    const int64_t channels = f->problem->channels;
    return near(f, values + x * channels, values + (x + 1) * channels, SAME * (f->high - f->low));
}

/* Compares the neighbours of a row, in the frame and outside of it. */
static void add_pairs(tess_frames *f, const float *values, const int64_t *ends)
{
    const int64_t width = f->problem->width;
    for (int64_t x = 0; x + 1 < width; x++)
        if (x + 1 < ends[0] || x >= width - ends[1]) {
            f->inner++;
            f->still += same(f, values, x);
        } else if (x >= ends[0] && x + 1 < width - ends[1]) {
            f->pairs++;
            f->equal += same(f, values, x);
        }
}

/* Of four values in a line. */
static void add_bends(tess_frames *f, int direction, const float *const at[ROWS])
{
    const double first = (double)*at[0] - 2 * (double)*at[1] + (double)*at[2],
                 second = (double)*at[1] - 2 * (double)*at[2] + (double)*at[3],
                 least = BEND * (f->high - f->low);
    if (fabs(first) > least && fabs(second) > least) {
        f->bends[direction]++;
        f->turns[direction] += (first > 0) != (second > 0);
    }
}

/* Of the newest row, and of the last four if there are as many; outside of the frame. */
static void look_for_bends(tess_frames *f, int64_t row, const int64_t *ends)
{
    const int64_t channels = f->problem->channels, width = f->problem->width,
                  samples = tess_problem_row(f->problem);
    int64_t from = ends[0], to = width - ends[1];
    const float *lines[ROWS];
    for (int i = 0; i < ROWS; i++)
        lines[i] = f->last + (row + 1 + i) % ROWS * samples; /* the oldest first */
    for (int64_t i = from * channels; i < (to - ROWS + 1) * channels; i++) {
        const float *at = lines[ROWS - 1] + i, *const values[ROWS] = {at, at + channels, at + 2 * channels,
                                                                      at + 3 * channels};
        add_bends(f, 0, values);
    }
    for (int i = 1; i < ROWS && row >= ROWS - 1; i++) {
        from = tess_max_i64(from, ends[-2 * i]);
        to = tess_min_i64(to, width - ends[-2 * i + 1]);
    }
    for (int64_t i = from * channels; i < to * channels && row >= ROWS - 1; i++) {
        const float *const values[ROWS] = {lines[0] + i, lines[1] + i, lines[2] + i, lines[3] + i};
        add_bends(f, 1, values);
    }
}

tess_status tess_frames_row(tess_frames *f, int64_t y, const float *values, tess_error *error)
{
    const tess_problem *p = f->problem;
    const int64_t row = y % p->height, blur = y / p->height, width = p->width;
    const float *value = value_of(f, blur), *above = f->last + (row + ROWS - 1) % ROWS * tess_problem_row(p);
    int64_t *ends = f->runs + 2 * y;
    if (!value)
        return TESS_OK;
    if (row == 0)
        TESS_TRY(begin(f, blur, error));
    if (y == 0)
        memcpy(f->value, value, (size_t)p->channels * sizeof *value);
    run(f, values, value, ends);
    if (ends[0] > 0 && ends[0] < width)
        add_rim(f, values + ends[0] * p->channels, value, 0);
    if (ends[1] > 0)
        add_rim(f, values + (width - 1 - ends[1]) * p->channels, value, 1);
    add_pairs(f, values, ends);
    for (int64_t x = 0; x < width && row > 0; x++) {
        const bool now = inside(ends, x, width), before = inside(ends - 2, x, width);
        if (now != before)
            add_rim(f, (now ? above : values) + x * p->channels, value, now ? 3 : 2);
    }
    memcpy(f->last + row % ROWS * tess_problem_row(p), values, (size_t)tess_problem_row(p) * sizeof *values);
    look_for_bends(f, row, ends);
    if (row == p->height - 1)
        end(f, value, ends - 2 * row);
    return TESS_OK;
}

void tess_frames_end(tess_frames *f, tess_hidden *hidden)
{
    if (f->found == 0)
        return;
    for (int64_t c = 0; c < f->problem->channels; c++)
        f->value[c] = (float)((double)f->value[c] * f->problem->unit + f->problem->offset);
    hidden->frame = f->runs;
    hidden->frame_value = f->value;
    f->runs = NULL;
    f->value = NULL;
}

bool tess_frame_covers(const tess_problem *p, int64_t y, int64_t column)
{
    const int64_t *ends = p->hidden.frame + 2 * y, row = y % p->height;
    int64_t wide[2];
    for (int side = 0; side < 2; side++) {
        wide[side] = ends[side] > 0 ? ends[side] + 1 : 0;
        if (row > 0)
            wide[side] = tess_max_i64(wide[side], ends[side - 2]);
        if (row < p->height - 1)
            wide[side] = tess_max_i64(wide[side], ends[side + 2]);
    }
    return inside(wide, column, p->width);
}
