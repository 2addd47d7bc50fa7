/* centre_radius.c: the radius about an axis in which the object is, from the means of the columns. */
#include <math.h>
#include <stdlib.h>

#include "physics/centre_parts.h"

static const double FAINT = 0.003; /* of the largest column: no object */
static const double CERTAIN = 4;   /* standard errors of a column's mean: less may be noise */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tess_centre_radius(const tess_centre_views *v, double near, double *noise)
{
    double largest = 0, radius = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double least = fmax(pass ? CERTAIN * noise[v->columns / 2] : 0, FAINT * largest);
        for (int64_t i = 0; i < v->columns && !tess_stop_poll(v->stop); i++) {
            double sum = 0, steps = 0;
            for (int64_t k = 0; k < v->count; k++) {
                const double is = (double)v->values[k * v->columns + i],
                             step = k ? is - (double)v->values[(k - 1) * v->columns + i] : 0;
                sum += is;
                steps += step * step;
            }
            const double mean = fabs(sum) / (double)v->count;
            if (pass && mean > least)
                radius = fmax(radius, fabs((double)i - near));
            largest = fmax(largest, mean);
            if (!pass)
                noise[i] = sqrt(0.5 * steps / (double)(v->count - 1) / (double)v->count);
        }
        if (!pass)
            qsort(noise, (size_t)v->columns, sizeof *noise, by_size);
    }
    return fmax(radius, 1) + 2;
}
