/* A camera's largest value stands for all light above it. Such values fill areas: highlights. Where noise lifts a bright area to the
 * end of the range here and there, they are scattered, and to leave them out would leave only those that noise made darker. */
#include "job/reconstruct/look/clipped.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { LEAST = 9 };                /* values: 3 x 3 */
static const double INNER = 0.1;   /* share of values inside areas; of scattered ones that are half of all it is 0.004 */
static const double MOST_SHARE = 0.5;

void tess_clipped_close(tess_clipped *c)
{
    tess_small_free(c->rows);
    c->rows = NULL;
}

void tess_clipped_add(tess_clipped *c, const float *values)
{
    for (int64_t i = 0; i < tess_problem_row(c->problem); i++) {
        const double value = (double)values[i];
        if (!isfinite(value) || (c->count > 0 && value < c->most))
            continue;
        c->count = c->count > 0 && value == c->most ? c->count + 1 : 1;
        c->most = value;
    }
}

bool tess_clipped_possible(const tess_clipped *c)
{
    const tess_problem *p = c->problem;
    const bool end = p->range_from == TESS_RANGE_FROM_DATA
                         ? c->most == 1 || !p->floats
                         : c->most >= p->high;
    return end && c->count >= LEAST &&
           (double)c->count < MOST_SHARE * (double)(p->count * p->height * tess_problem_row(p));
}

tess_status tess_clipped_open(tess_clipped *c, tess_error *error)
{
    c->rows = tess_small_alloc(3 * (size_t)tess_problem_row(c->problem), 1);
    return c->rows ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for rows of a blur");
}

void tess_clipped_row(tess_clipped *c, int64_t y, const float *values)
{
    const tess_problem *p = c->problem;
    const int64_t samples = tess_problem_row(p), far = p->channels;
    unsigned char *own = c->rows + y % 3 * samples;
    for (int64_t i = 0; i < samples; i++)
        own[i] = (double)values[i] >= c->most;
    if (y % p->height < 2)
        return;
    for (int64_t i = far; i < samples - far; i++) { /* the middle of three rows */
        int around = 0;
        for (int k = 0; k < 9; k++)
            around += c->rows[k / 3 * samples + i + (k % 3 - 1) * far];
        c->inner += around == 9;
    }
}

bool tess_clipped_found(const tess_clipped *c)
{
    return (double)c->inner >= INNER * (double)c->count;
}
