#include "job/reconstruct/scan/turning.h"

#include <math.h>

static const double EVENLY = 0.2; /* length of the mean direction; that of half a circle is 0.64 */
static const double QUARTER = 90; /* degrees */
static const double ANYWHERE =
    0.125; /* of the columns, about the middle, where a centre that is searched may be */

static double volume_of(const double *a, const double *b, const double *c)
{
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
           a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/* The column at which a view of a volume shows the volume's middle: d + a u + b v is on the ray through the origin. */
static double column_of(const tess_problem *p, const double *view)
{
    const double *ray = view, *u = view + 6, *v = view + 9, *d = view + 3;
    const double negative[3] = {-d[0], -d[1], -d[2]};
    return 0.5 * (double)(p->columns - 1) + volume_of(negative, v, ray) / volume_of(u, v, ray);
}

/* The angle between two directions, in degrees. */
static double between(const double *a, const double *b)
{
    const double product = a[0] * b[0] + a[1] * b[1] + a[2] * b[2],
                 lengths = sqrt((a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) *
                                (b[0] * b[0] + b[1] * b[1] + b[2] * b[2]));
    return lengths > 0 ? acos(fmax(-1, fmin(product / lengths, 1))) * 57.29577951308232 : 0;
}

static double length_of(const double *a)
{
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

/* The views' mean step from row to row is along the axis, whatever turns with them. */
static double roll_of(const tess_problem *p)
{
    double along[3] = {0, 0, 0}, sum = 0;
    for (int64_t i = 0; i < p->count; i++)
        for (int k = 0; k < 3; k++)
            along[k] += p->vectors[12 * i + 9 + k];
    for (int64_t i = 0; i < p->count; i++) {
        const double *u = p->vectors + 12 * i + 6,
                     lengths = length_of(u) * length_of(along) * (double)p->count;
        sum += lengths > 0 ? (u[0] * along[0] + u[1] * along[1] + u[2] * along[2]) / lengths : 0;
    }
    return fabs(sum) * (double)p->columns;
}

/* The direction from the middle to the source, or of parallel rays, counts. */
static tess_turning of_volume(const tess_problem *p)
{
    tess_turning t = {.columns = {INFINITY, -INFINITY}, .roll = roll_of(p)};
    double sum[3] = {0, 0, 0};
    for (int64_t i = 0; i < p->count; i++) {
        const double *view = p->vectors + 12 * i, *first = p->vectors, column = column_of(p, view);
        t.degrees = fmax(t.degrees, between(view, first));
        t.turns = t.turns || view[0] * first[0] + view[1] * first[1] + view[2] * first[2] <= 0;
        const double length = sqrt(view[0] * view[0] + view[1] * view[1] + view[2] * view[2]);
        for (int k = 0; k < 3; k++)
            sum[k] += length > 0 ? view[k] / length / (double)p->count : 0;
        t.columns[0] = fmin(t.columns[0], column);
        t.columns[1] = fmax(t.columns[1], column);
    }
    t.full = t.turns && sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]) < EVENLY;
    return t;
}

tess_turning tess_problem_turning(const tess_problem *p)
{
    if (p->physics == TESS_PHYSICS_CONE)
        return of_volume(p);
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < p->count; i++) {
        low = fmin(low, p->angles[i]);
        high = fmax(high, p->angles[i]);
    }
    const double middle = 0.5 * (double)(p->columns - 1), some = ANYWHERE * (double)p->columns;
    tess_turning t = {
        .degrees = high - low, .turns = high - low >= QUARTER, .columns = {p->centre, p->centre}};
    if (isnan(p->centre)) {
        t.columns[0] = middle - some;
        t.columns[1] = middle + some;
    }
    return t;
}
