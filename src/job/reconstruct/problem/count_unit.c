/* What one count is in a file of counts. A ray without a count had less light than one count, but how much less nobody
 * knows: half a count is the usual guess. So what it is given depends on the dose; a fixed share of the light, such as
 * 1/10,000 where a flat field has 200 counts, is a line integral that nothing in the data supports, and its streaks ruin
 * the image. */
#include <math.h>

#include "job/reconstruct/problem/views.h"

enum { LOOKED_AT = 8, MOST_COUNTS = 8 }; /* views; counts of a value that shows the unit */
static const double NEAR = 1e-3;         /* of the unit: distance of a value from a whole number of counts */
static const int64_t ENOUGH = 16;        /* values of two or more counts */

/* What the first views say of floats. */
typedef struct floats_seen {
    bool whole; /* all are whole numbers */
    double least, largest;
} floats_seen;

static void look(floats_seen *seen, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)values[i];
        seen->whole = seen->whole && value == rint(value);
        if (value > 0)
            seen->least = fmin(seen->least, value);
        seen->largest = fmax(seen->largest, value);
    }
}

/* Values that are a few times the least one are whole multiples of it, if that is one count. */
static bool are_multiples(double unit, const float *values, int64_t count, int64_t *several)
{
    for (int64_t i = 0; i < count; i++) {
        const double counts = (double)values[i] / unit;
        if (!(counts > NEAR) || counts > MOST_COUNTS + 0.5)
            continue;
        if (!(fabs(counts - rint(counts)) < NEAR))
            return false;
        *several += counts > 1.5;
    }
    return true;
}

tess_status tess_problem_find_count_unit(tess_problem *p, const tess_views_info *is, tess_error *error)
{
    p->count_unit = p->counts && is->integers ? 1 : 0;
    if (is->integers || !p->counts)
        return TESS_OK;
    tess_block block = {0};
    const int64_t samples = p->file_rows * p->file_columns,
                  views = is->views < LOOKED_AT ? is->views : LOOKED_AT;
    TESS_TRY(tess_block_alloc(p->memory, &block, TESS_MEM_HOST, (size_t)samples * sizeof(float), error));
    floats_seen seen = {.whole = true, .least = INFINITY};
    int64_t several = 0;
    bool multiples = true;
    tess_status status = TESS_OK;
    for (int pass = 0; pass < 2 && status == TESS_OK; pass++) {
        tess_views *v = NULL;
        status = tess_views_open(p->memory, p->stop, p->measurement, &v, error);
        for (int64_t k = 0; k < views && status == TESS_OK; k++) {
            status = tess_views_next(v, is->rows > 1 ? p->row : -1, block.data, error);
            if (status == TESS_OK && pass == 0)
                look(&seen, block.data, samples);
            else if (status == TESS_OK)
                multiples = multiples && are_multiples(seen.least, block.data, samples, &several);
        }
        tess_views_close(v);
    }
    tess_block_free(&block);
    p->count_unit = seen.whole && seen.largest > 1                           ? 1
                    : multiples && several >= ENOUGH && isfinite(seen.least) ? seen.least
                                                                             : 0;
    return status;
}
