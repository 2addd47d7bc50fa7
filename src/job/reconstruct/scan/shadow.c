#include "job/reconstruct/scan/shadow.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/problem/views.h"

enum {
    EDGE = 2,             /* outer columns */
    SECTORS = 16,         /* of half a turn */
    SECTOR_VIEWS = 8,     /* at least, in the mean */
    LEAST = 8,            /* values of a sector, for an error that can be trusted */
    MOST_SECTOR = 1 << 16 /* distances times sectors: more need memory */
};
static const double CLEAR = 0.02;       /* of the largest mean: less may be a background */
static const double CERTAIN = 3;        /* standard errors of the mean: less may be noise */
static const double SECTOR_CERTAIN = 6; /* the same for a sector: there are many, of few values each */
static const double FAINT = 1;          /* a pixel more, for the faint end of what is seen */
static const double CORNER =
    0.02; /* of the distance: a right angle's chord falls below CLEAR before its tip */
static const double HALF_WIDTH = 0.5; /* of a column */
/* A square image ends at the middle of a column if one side is even and the other odd; then the column counts. */
static const double RIM = 1; /* pixels at the end of the circle, which is not smooth there */

/* Of all views, and of sectors of them: a corner is far out in few views, and the mean with all others would hide it. */
struct tess_shadow_seen {
    double sum, squares;
    int64_t count;
};

struct tess_shadow_bin {
    double sum, far; /* far: the largest distance */
    int64_t count;
    tess_shadow_seen outside;
};

static double centre_of(const tess_problem *p, int64_t view)
{
    return p->centres ? p->centres[view] : 0.5 * (double)(p->columns - 1);
}

/* Half the width of the image's shadow. */
static double reach_of(const tess_problem *p, int64_t view)
{
    const double turn = p->angles[view] * 3.14159265358979323846 / 180, half = 0.5 * (double)p->width;
    return p->circle ? half : half * (fabs(cos(turn)) + fabs(sin(turn)));
}

static double farthest(const tess_problem *p, int64_t view)
{
    const double centre = centre_of(p, view);
    return fmax(fabs(centre), fabs((double)(p->columns - 1) - centre));
}

/* A view that sees nothing of the image: its centre is wrong, and the operator refuses it. */
static bool is_blind(const tess_problem *p, int64_t view)
{
    const double centre = centre_of(p, view), reach = reach_of(p, view);
    return centre + reach < -HALF_WIDTH || centre - reach > (double)p->columns - HALF_WIDTH;
}

bool tess_shadow_misses(const tess_problem *p)
{
    for (int64_t k = 0; k < p->count; k++)
        if (is_blind(p, k))
            return false;
    for (int64_t k = 0; k < p->count; k++)
        if (farthest(p, k) - HALF_WIDTH >= reach_of(p, k))
            return true;
    return false;
}

tess_status tess_shadow_open(const tess_problem *p, tess_shadow *s, tess_error *error)
{
    double most = 0;
    for (int64_t k = 0; k < p->count; k++)
        most = fmax(most, farthest(p, k));
    *s = (tess_shadow){.problem = p, .count = (int64_t)most + 1};
    s->sectors = tess_min_i64(tess_min_i64(SECTORS, p->count / SECTOR_VIEWS), MOST_SECTOR / s->count);
    s->sectors = tess_max_i64(s->sectors, 1);
    s->bins = tess_small_alloc((size_t)s->count, sizeof *s->bins);
    s->by_sector = tess_small_alloc((size_t)(s->count * s->sectors), sizeof *s->by_sector);
    return s->bins && s->by_sector ? TESS_OK
                                   : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the sinogram");
}

void tess_shadow_close(tess_shadow *s)
{
    tess_small_free(s->bins);
    tess_small_free(s->by_sector);
    *s = (tess_shadow){0};
}

static void add(tess_shadow_seen *to, double value)
{
    to->sum += value;
    to->squares += value * value;
    to->count++;
}

/* Views half a turn apart see the same. */
static int64_t sector_of(const tess_shadow *s, int64_t view)
{
    const double turn = s->problem->angles[view] / 180, part = turn - floor(turn);
    return tess_min_i64((int64_t)(part * (double)s->sectors), s->sectors - 1);
}

void tess_shadow_add(tess_shadow *s, int64_t view, const float *values)
{
    const tess_problem *p = s->problem;
    const double centre = centre_of(p, view), reach = reach_of(p, view) - (p->circle ? RIM : HALF_WIDTH);
    const int64_t edge = tess_min_i64(EDGE, p->columns), sector = sector_of(s, view);
    for (int64_t i = 0; i < p->columns; i++) {
        const double away = fabs((double)i - centre), value = (double)values[i];
        tess_shadow_bin *bin = &s->bins[(int64_t)away];
        bin->sum += value;
        bin->count++;
        bin->far = fmax(bin->far, away);
        if (away - HALF_WIDTH < reach)
            continue;
        add(&bin->outside, value);
        add(&s->by_sector[(int64_t)away * s->sectors + sector], value);
    }
    tess_background_add(&s->background, p->columns, values);
    for (int64_t i = 0; i < edge; i++) {
        s->edge[0] += (double)values[i];
        s->edge[1] += (double)values[p->columns - 1 - i];
    }
}

/* The largest mean of all distances. */
static double largest(const tess_shadow *s)
{
    double most = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (s->bins[i].count)
            most = fmax(most, s->bins[i].sum / (double)s->bins[i].count);
    return most;
}

double tess_shadow_edge(const tess_shadow *s)
{
    const tess_problem *p = s->problem;
    const double most = largest(s), count = (double)(p->count * tess_min_i64(EDGE, p->columns));
    return most > 0 ? fmax(s->edge[0], s->edge[1]) / count / most : 0;
}

double tess_shadow_background(const tess_shadow *s, double *share)
{
    const double most = largest(s), value = tess_background_value(&s->background, most);
    *share = value != 0 ? value / most : 0;
    return value;
}

/* The mean, or 0 if a background or noise explains it. */
static double certain_mean(const tess_shadow_seen *of, double certain, double largest)
{
    const double n = (double)of->count, mean = n > 0 ? of->sum / n : 0,
                 error = n > 1 ? sqrt(fmax(of->squares / n - mean * mean, 0) / (n - 1)) : INFINITY;
    return mean > CLEAR * largest && mean > certain * error ? mean : 0;
}

int64_t tess_shadow_margin(const tess_shadow *s, double *share)
{
    const double most = largest(s);
    double needed = 0;
    *share = 0;
    for (int64_t i = 0; i < s->count && most > 0; i++) {
        const tess_shadow_bin *bin = &s->bins[i];
        const double all = certain_mean(&bin->outside, CERTAIN, most);
        double mean = all;
        for (int64_t k = 0; k < s->sectors; k++) {
            const tess_shadow_seen *part = &s->by_sector[i * s->sectors + k];
            if (part->count >= LEAST)
                mean = fmax(mean, certain_mean(part, SECTOR_CERTAIN, most));
        }
        if (!(mean > 0))
            continue;
        needed = bin->far + HALF_WIDTH + FAINT + (all > 0 ? 0 : CORNER * bin->far);
        *share = fmax(*share, mean / fmax(most, mean)); /* `most` counts columns inside, too */
    }
    return needed > 0 ? (int64_t)ceil(needed - 0.5 * (double)s->problem->width) : 0;
}

static tess_status add_view(void *user, int64_t view, float *values, tess_error *error)
{
    (void)error;
    tess_shadow_add(user, view, values);
    return TESS_OK;
}

tess_status tess_problem_look_outside(tess_problem *p, tess_error *error)
{
    tess_shadow shadow;
    tess_block view = {0};
    int64_t starved;
    if (!tess_shadow_misses(p))
        return TESS_OK;
    TESS_TRY(tess_shadow_open(p, &shadow, error));
    tess_status status =
        tess_block_alloc(p->memory, &view, TESS_MEM_HOST, (size_t)p->columns * sizeof(float), error);
    if (status == TESS_OK)
        status = tess_problem_each_view(p, view.data, &starved, add_view, &shadow, error);
    if (status == TESS_OK)
        p->margin[0] = p->margin[1] = tess_max_i64(tess_shadow_margin(&shadow, &p->outside), 0);
    tess_block_free(&view);
    tess_shadow_close(&shadow);
    return status;
}
