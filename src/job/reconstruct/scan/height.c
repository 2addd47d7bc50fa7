#include "job/reconstruct/scan/height.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

enum {
    ROWS = 128,
    COLUMNS = 128,
    LEAST = 16
}; /* rows and columns that are looked at; rays for an error that can be trusted */
static const double MIDDLE = 0.75; /* of half of the width: rays farther away cross little of the volume */
static const double WHOLE =
    0.9; /* of its way through a volume without top and bottom: such a ray does not leave */
static const double HOLDS = 1.5; /* times what a ray through matter like that of the middle would see */
static const double CLEAR = 0.02, CERTAIN = 3; /* as in shadow3.c */
static const double STEEP = 0.35;              /* slope of a ray from which "above" says nothing */

typedef struct row {
    double sum, squares, crossed, top; /* top: the highest that its rays come within the volume's width */
    int64_t count;
    double all, way; /* of all rays in the middle: their values and their way without top and bottom */
} row;

struct tess_heights {
    const tess_problem *problem;
    double radius, half; /* in voxels */
    row rows[ROWS];
};

/* A ray within the cylinder around the axis that the volume's width gives. */
typedef struct way {
    double whole, inside; /* its length in voxels, and of that between top and bottom */
    double top;           /* its largest distance from the middle slice */
    double aside;         /* its distance from the axis, with the radius as the unit */
    bool steep;
} way;

static bool way_of(const tess_heights *h, int64_t view, int64_t r, int64_t c, way *out)
{
    const tess_problem *p = h->problem;
    const double *v = p->vectors + 12 * view, right = (double)c - 0.5 * (double)(p->columns - 1),
                 down = (double)r - 0.5 * (double)(p->rows - 1);
    double from[3], along[3];
    for (int i = 0; i < 3; i++) {
        const double pixel = v[3 + i] + right * v[6 + i] + down * v[9 + i];
        from[i] = (p->parallel ? pixel : v[i]) / p->spacing;
        along[i] = (p->parallel ? v[i] : pixel - v[i]) / p->spacing;
    }
    const double flat = along[0] * along[0] + along[1] * along[1],
                 at = -(from[0] * along[0] + from[1] * along[1]) / flat,
                 aside = hypot(from[0] + at * along[0], from[1] + at * along[1]);
    if (!(flat > 0) || !(aside < h->radius))
        return false;
    const double reach = sqrt((h->radius * h->radius - aside * aside) / flat), slope = along[2],
                 middle = from[2] + at * slope, length = sqrt(flat + slope * slope);
    /* A quarter of the pixel's height at the axis: what sees half of the last slice still sees the volume. But rows between a
     * single slice and nothing see half of it, which would become twice as bright. */
    const double pixel = fabs(v[11]) / p->spacing * (p->parallel ? 1 : fabs(at)),
                 bound = p->depth > 1 ? h->half + 0.25 * pixel : 0.9 * h->half;
    double low = -reach, high = reach;
    if (fabs(slope) * reach < 1e-9)
        high = fabs(middle) > bound ? low : high;
    else {
        const double a = (-bound - middle) / slope, b = (bound - middle) / slope;
        low = fmax(low, fmin(a, b));
        high = fmin(high, fmax(a, b));
    }
    *out = (way){.whole = 2 * reach * length,
                 .inside = fmax(high - low, 0) * length,
                 .top = fabs(middle) + fabs(slope) * reach,
                 .aside = aside / h->radius,
                 .steep = slope * slope > STEEP * STEEP * flat};
    return true;
}

static void begin(const tess_problem *p, tess_heights *h)
{
    *h = (tess_heights){.problem = p,
                        .radius = 0.5 * (double)tess_max_i64(p->width, p->height),
                        .half = 0.5 * (double)p->depth};
}

bool tess_heights_matter(const tess_problem *p)
{
    tess_heights h;
    way w;
    bool leave = false;
    begin(p, &h);
    for (int64_t view = 0; view < p->count; view++)
        for (int64_t r = 0; r < p->rows; r += tess_max_i64(p->rows - 1, 1))
            if (way_of(&h, view, r, p->columns / 2, &w)) {
                if (w.steep)
                    return false;
                leave = leave || w.inside < WHOLE * w.whole;
            }
    return leave;
}

tess_status tess_heights_create(const tess_problem *p, tess_heights **out, tess_error *error)
{
    if (!(*out = tess_small_alloc(1, sizeof **out)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to look at the views");
    begin(p, *out);
    return TESS_OK;
}

void tess_heights_destroy(tess_heights *h)
{
    tess_small_free(h);
}

void tess_heights_add(tess_heights *h, int64_t view, const float *values)
{
    const tess_problem *p = h->problem;
    const int64_t down = tess_ceil_div(p->rows, ROWS), right = tess_ceil_div(p->columns, COLUMNS);
    for (int64_t r = 0; r < p->rows; r += down)
        for (int64_t c = 0; c < p->columns; c += right) {
            row *at = &h->rows[r / down];
            const double value = (double)values[r * p->columns + c];
            way w;
            if (!way_of(h, view, r, c, &w) || w.aside > MIDDLE)
                continue;
            at->all += value;
            at->way += w.whole;
            if (w.inside >= WHOLE * w.whole)
                continue;
            at->sum += value;
            at->squares += value * value;
            at->crossed += w.inside;
            at->top = fmax(at->top, w.top);
            at->count++;
        }
}

int64_t tess_heights_missing(const tess_heights *h, double *share)
{
    double dense = 0, largest = 0, top = 0;
    for (int i = 0; i < ROWS; i++)
        if (h->rows[i].way > 0)
            dense = fmax(dense, h->rows[i].all / h->rows[i].way);
    for (int i = 0; i < ROWS; i++)
        if (h->rows[i].count)
            largest = fmax(largest, h->rows[i].sum / (double)h->rows[i].count);
    for (int i = 0; i < ROWS && dense > 0; i++) {
        const row *r = &h->rows[i];
        const double n = (double)r->count, mean = n > 0 ? r->sum / n : 0,
                     more = n > 0 ? mean - HOLDS * dense * r->crossed / n : 0;
        if (r->count < LEAST || !(more > CLEAR * largest) ||
            !(more > CERTAIN * sqrt(fmax(r->squares / n - mean * mean, 0) / n)))
            continue;
        top = fmax(top, r->top);
        *share = fmax(*share, more / largest);
    }
    return top > h->half ? (int64_t)ceil(top - h->half) : 0;
}
