/* A mark is the least or the largest value. It is far from almost all others, hardly any lie between, and light behind the kernel cannot
 * fall so fast from it (jump.h). Where the kernel forbids nothing, only values that are negative or bright and very far from all others are marks: bars
 * of a barcode along the motion may be black or white without any gray. Single pixels are left to outliers.h.
 *
 * Bright values may be light: a star or a lamp out of focus that was cut off has a sharp rim, too (clipped.h). So nothing is a bright mark
 * in a flat sky, or where what is beside it is brighter than elsewhere, and the largest value of a camera (2^n - 1) is one only if all
 * others are close to each other, compared with the largest. */
#include "job/reconstruct/mask/marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/common/note.h"
#include "job/reconstruct/mask/jump.h"
#include "job/reconstruct/problem/file_rows.h"

enum { STEPS = 64 }; /* of 32-bit floats: less may be rounding */
enum { SAMPLES = 8192, LEAST = 4, ENDS = 2 };
static const double MOST[] = {0.75, 0.5}; /* of all values, at each end */
static const double OUTSIDE = 0.01;       /* of the others, at each end: these may be outliers */
static const double BETWEEN = 0.001; /* of the others: in the half of the way that is closer to the mark */
static const double FAR = 0.5;       /* of the span of the others */
static const double VERY_FAR[] = {10, 30}; /* of it: a negative mark, or a bright one, needs no other proof */
static const double FREE = 0.7;          /* of the range: a kernel that allows such a jump forbids nothing */
static const double BRIGHTER = 1.25;     /* of the range: what may lie beyond the values that are looked at */
static const double STEEP = 0.5;         /* of the rim */
static const double TOLERANCE = 0.01;    /* of the range, for noise */
static const double MANY = 0.002;        /* of all values: fewer, if they are single ones, are outliers */
static const double SIDE_BY_SIDE = 0.25; /* of the marks: more are no single ones */
static const double ORDINARY = 0.5;      /* of the rim of a bright mark */
static const double FLAT = 10;           /* of the median difference of neighbours: noise spans 5 */
static const double CONTRAST =
    0.5; /* of the largest value: where the least is more, they are close to each other */
enum { LEAST_FULL = 255 };

typedef struct end {
    double value;
    int64_t count;    /* of it */
    double near, far; /* where the other values begin and end, as seen from it */
    bool candidate;
    int64_t rim, steep, beside; /* neighbours; those that no light explains; marks beside marks */
    int64_t ordinary;           /* neighbours as most other values are */
    tess_jumps jumps;
} end;

typedef struct search {
    const tess_problem *p;
    double low, high; /* the range, in units of the file */
    end ends[ENDS];   /* the least, the largest */
    int64_t all, stride;
    float *samples, *left; /* some of the values, and what is on their left; not owned, as is `above` */
    int64_t count;
    float *above; /* the last row */
} search;

static tess_status add(void *user, int64_t y, float *values, tess_error *error)
{
    search *s = user;
    const int64_t samples = tess_problem_row(s->p);
    (void)error;
    for (int64_t i = 0; i < samples; i++) {
        const double value = (double)values[i];
        if (!isfinite(value))
            continue;
        for (int k = 0; k < ENDS; k++) {
            end *e = &s->ends[k];
            if (s->all == 0 || (k ? value > e->value : value < e->value)) {
                e->value = value;
                e->count = 0;
            }
            e->count += value == e->value;
        }
        s->all++;
        if ((y * samples + i) % s->stride == 0 && s->count < SAMPLES) {
            s->left[s->count] = i < s->p->channels ? NAN : values[i - s->p->channels];
            s->samples[s->count++] = values[i];
        }
    }
    return TESS_OK;
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Whether it may be light that was cut off. */
static bool may_be_light(const search *s, const end *e, double difference)
{
    int power;
    const bool whole = e->value == rint(e->value) && (e->value == 1 || e->value >= LEAST_FULL),
               signed_end =
                   !s->p->floats && s->p->range_from == TESS_RANGE_FROM_DATA && e->value == INT16_MAX,
               full = whole && !signed_end && frexp(e->value + 1, &power) == 0.5;
    const tess_problem *p = s->p; /* a given range says what light can be */
    return (p->range_from == TESS_RANGE_FROM_GIVEN && e->value >= s->low && e->value <= s->high) ||
           (e == &s->ends[1] &&
            (e->near - e->far < FLAT * difference || (full && e->far < CONTRAST * e->near)));
}

/* The others among the samples in order, in `list`; returns their number. */
static int64_t sort_others(const search *s, const end *e, float *list, double *difference)
{
    int64_t count = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (isfinite(s->left[i]) && (double)s->samples[i] != e->value && (double)s->left[i] != e->value)
            list[count++] = fabsf(s->samples[i] - s->left[i]);
    qsort(list, (size_t)count, sizeof *list, by_size);
    *difference = count > 0 ? (double)list[count / 2] : INFINITY;
    count = 0;
    for (int64_t i = 0; i < s->count; i++)
        if ((double)s->samples[i] != e->value)
            list[count++] = s->samples[i];
    qsort(list, (size_t)count, sizeof *list, by_size);
    return count;
}

static bool is_candidate(const search *s, end *e, float *list)
{
    const bool dark = e == &s->ends[0];
    double difference;
    int64_t between = 0;
    const int64_t count = sort_others(s, e, list, &difference), outside = (int64_t)(OUTSIDE * (double)count);
    if (e->count < LEAST || (double)e->count > MOST[!dark] * (double)s->all || count == 0)
        return false;
    const double low = (double)list[outside], high = (double)list[count - 1 - outside];
    e->near = dark ? low : high;
    e->far = dark ? high : low;
    for (int64_t i = 0; i < count; i++)
        between += fabs((double)list[i] - e->value) < 0.5 * fabs(e->near - e->value);
    const float largest = fmaxf(fabsf((float)low), fabsf((float)high));
    const double step = (double)nextafterf(largest, INFINITY) - (double)largest;
    return high > low && fabs(e->near - e->value) > fmax(FAR * (high - low), STEPS * step) &&
           (double)between <= BETWEEN * (double)count && !may_be_light(s, e, difference);
}

static tess_status begin(search *s, int64_t blur, tess_error *error)
{
    tess_sampled_kernel kernel = {0};
    tess_status status = tess_sample_kernel(s->p, blur, &kernel, error);
    for (int k = 0; k < ENDS && status == TESS_OK; k++)
        status = tess_jumps_of(&kernel, TOLERANCE, &s->ends[k].jumps, error);
    tess_small_free(kernel.values);
    return status;
}

/* A mark and what is beside it, in the direction `side`. */
static void add_pair(const search *s, end *e, float value, float beside, int side)
{
    if ((double)value != e->value || !isfinite(beside))
        return;
    const double whole = fabs(s->ends[1].value - s->ends[0].value),
                 range = fmin(whole, BRIGHTER * fabs(e->far - e->value)),
                 jump = fabs((double)beside - e->value);
    e->beside += jump == 0;
    if (jump == 0 || e->jumps.from_end[side] > FREE)
        return;
    e->rim++;
    e->ordinary += (double)beside >= fmin(e->near, e->far) && (double)beside <= fmax(e->near, e->far);
    e->steep += jump > range * e->jumps.from_end[side];
}

static tess_status look(void *user, int64_t y, float *values, tess_error *error)
{
    search *s = user;
    const int64_t samples = tess_problem_row(s->p), far = s->p->channels, row = y % s->p->height;
    if (row == 0)
        TESS_TRY(begin(s, y / s->p->height, error));
    for (int k = 0; k < ENDS; k++) {
        end *e = &s->ends[k];
        for (int64_t i = far; i < samples && e->candidate; i++) {
            add_pair(s, e, values[i - far], values[i], 0);
            add_pair(s, e, values[i], values[i - far], 1);
        }
        for (int64_t i = 0; i < samples && e->candidate && row > 0; i++) {
            add_pair(s, e, s->above[i], values[i], 2);
            add_pair(s, e, values[i], s->above[i], 3);
        }
    }
    memcpy(s->above, values, (size_t)samples * sizeof *values);
    return TESS_OK;
}

static bool is_mark(const search *s, const end *e)
{
    const double count = (double)e->count, rim = (double)e->rim, away = fabs(e->near - e->value);
    const bool bright = e == &s->ends[1],
               single = (double)e->beside < 2 * SIDE_BY_SIDE * count && count <= MANY * (double)s->all,
               ordinary = !bright || (double)e->ordinary >= ORDINARY * rim,
               proof = e->rim > 0 && (double)e->steep >= STEEP * rim && ordinary,
               very_far = (bright || e->value < 0) && away > VERY_FAR[bright] * fabs(e->far - e->near);
    return e->candidate && !single && (proof || very_far);
}

/* Looks for one more mark at each end; `list` has room for the samples. */
static tess_status search_once(search *s, tess_problem *p, float *list, const tess_common *common,
                               tess_error *error)
{
    tess_problem plain = *p; /* in the units of the file */
    plain.unit = 1;
    plain.offset = 0;
    TESS_TRY(tess_problem_file_rows(&plain, add, s, error));
    for (int k = 0; k < ENDS; k++)
        s->ends[k].candidate = s->count > 0 && is_candidate(s, &s->ends[k], list);
    if (s->ends[0].candidate || s->ends[1].candidate)
        TESS_TRY(tess_problem_file_rows(&plain, look, s, error));
    for (int k = 0; k < ENDS && p->hidden.mark_count < TESS_MOST_MARKS; k++) {
        const end *e = &s->ends[k];
        if (!is_mark(s, e))
            continue;
        p->hidden.marks[p->hidden.mark_count++] = (float)e->value;
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: %lld values are %.9g, far from the others (%.6g to %.6g), as marks of missing data "
                  "are; they are taken for missing (\"saturated\": false keeps them)",
                  p->measurement, (long long)e->count, e->value, fmin(e->near, e->far),
                  fmax(e->near, e->far));
    }
    return TESS_OK;
}

tess_status tess_problem_find_marks(tess_problem *p, const tess_common *common, tess_error *error)
{
    const tess_hidden *h = &p->hidden;
    const bool bytes = p->range_from == TESS_RANGE_FROM_TYPE && p->unit <= LEAST_FULL;
    const int64_t values = p->count * p->height * tess_problem_row(p);
    if (h->keep[TESS_HIDDEN_DARK] || h->keep[TESS_HIDDEN_BRIGHT] || bytes || p->quantised > 0)
        return TESS_OK;
    float *samples = tess_small_alloc(3 * SAMPLES, sizeof *samples),
          *above = tess_small_alloc((size_t)tess_problem_row(p), sizeof *above);
    tess_status status =
        samples && above ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look for marks");
    for (int before = -1; status == TESS_OK && h->mark_count > before && h->mark_count < TESS_MOST_MARKS;) {
        search s = {.p = p,
                    .low = p->offset,
                    .high = p->offset + p->unit,
                    .stride = tess_max_i64(1, tess_ceil_div(values, SAMPLES)) | 1,
                    .samples = samples,
                    .left = samples + SAMPLES,
                    .above = above};
        before = h->mark_count;
        status = search_once(&s, p, samples + 2 * SAMPLES, common, error);
    }
    tess_small_free(samples);
    tess_small_free(above);
    return status;
}
