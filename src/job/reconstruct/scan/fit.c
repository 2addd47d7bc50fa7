/* What a right image leaves of the views is their noise, and at sharp edges, errors of both signs. Wrong angles leave what is smooth. So
 * the means of blocks of the sinogram are compared with the noise of such means: they tell both apart where single values do not. */
#include "job/reconstruct/scan/fit.h"

#include <math.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/problem/data.h"
#include "job/reconstruct/scan/rim.h"

enum {
    SIDE = 8,           /* of a block, in views and columns */
    LEAST_BLOCKS = 4,   /* one behind the other: of fewer views, blocks have fewer */
    MOST_BLOCKS = 4096, /* side by side: columns beyond are not looked at */
    MOST_ROWS = 64,     /* of a volume's detector, evenly: each is looked at as a sinogram is */
    LEAST_JUDGED = 2    /* iterations */
};
/* Least of both that is noted: of the noise of such means, and of the root mean square of the views. Of sinograms: Right angles leave up to 3.7 times the
 * noise, without noise up to 0.0061 of the views, and light that drifts 0.0083; angles times 2 leave 21 times and 0.05, halved ones 5.7 times and
 * 0.011, at least. Balls in a cone beam: 4.4 and 0.0036 at most; a detector that is mirrored, swapped or two columns off 10 times and 0.027, at least. */
static const double MISFIT = 4.5, VISIBLE = 0.01;

static int64_t side_of(const tess_problem *p)
{
    return tess_max_i64(1, tess_min_i64(SIDE, p->count / LEAST_BLOCKS));
}

/* Sums of the blocks that begin at one view, and of all blocks of their columns, for each row that is looked at. */
typedef struct blocks {
    int64_t columns, rows, step, views,
        side; /* of this rank; step: rows from one to the next; side: views of a block */
    double *sum, *total;
    double square, count; /* of their means, times the root of their values */
} blocks;

static int64_t across(const blocks *b)
{
    return tess_min_i64(MOST_BLOCKS, b->columns / SIDE);
}

static int64_t all_across(const blocks *b)
{
    return tess_ceil_div(b->rows, b->step) * across(b);
}

static void end_blocks(blocks *b, int64_t views)
{
    for (int64_t i = 0; i < all_across(b); i++) {
        b->square += b->sum[i] * b->sum[i] / (double)(SIDE * views);
        b->total[i] += b->sum[i];
        b->sum[i] = 0;
    }
    b->count += (double)all_across(b);
}

static void add(void *user, int64_t first, int64_t count, float *values)
{
    blocks *b = user;
    const int64_t all = across(b) * SIDE;
    for (int64_t i = 0; i < count; i++) {
        const int64_t column = (first + i) % b->columns, line = (first + i) / b->columns,
                      row = line % b->rows, view = line / b->rows;
        if (column < all && row % b->step == 0)
            b->sum[row / b->step * across(b) + column / SIDE] += (double)values[i];
        if (column == b->columns - 1 && row == b->rows - 1 &&
            ((view + 1) % b->side == 0 || view == b->views - 1))
            end_blocks(b, view % b->side + 1);
    }
}

/* Collective: adds up the blocks of all ranks, and leaves out the means over all views: errors of columns, and edges of objects that are
 * symmetric about the axis. */
static tess_status join(const tess_problem *p, blocks *b, tess_error *error)
{
    if (tess_share_many(p->share))
        TESS_TRY(tess_dist_sum_f64(p->share->dist, b->total, all_across(b), error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &b->square, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &b->count, error));
    for (int64_t i = 0; i < all_across(b); i++)
        b->square -= b->total[i] * b->total[i] / (double)(SIDE * p->count);
    b->count -= (double)all_across(b);
    return TESS_OK;
}

/* Collective: the root mean square of the blocks' means in the residual, as if they had the noise of one value; 0: there are none. */
static tess_status look_at_blocks(const tess_problem *p, tess_workspace *w, double *level, tess_error *error)
{
    blocks b = {.columns = p->columns,
                .rows = p->rows,
                .step = tess_ceil_div(p->rows, MOST_ROWS),
                .views = tess_problem_own_views(p),
                .side = side_of(p)};
    tess_status status = TESS_OK;
    b.sum = tess_small_alloc((size_t)(2 * all_across(&b) + 1), sizeof *b.sum);
    b.total = b.sum + all_across(&b);
    if (!b.sum)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for sums of blocks");
    if (status == TESS_OK)
        status =
            tess_workspace_pieces(w, w->term.residual, b.views * b.rows * b.columns, false, add, &b, error);
    status = tess_share_agree(p->share, status, error);
    if (status == TESS_OK)
        status = join(p, &b, error);
    if (status == TESS_OK)
        *level = b.count > 0 ? sqrt(fmax(b.square, 0) / b.count) : 0;
    tess_small_free(b.sum);
    return status;
}

/* No image of that size holds what the detector's outer columns see, or no such volume what it sees; that is said. */
static bool too_small(const tess_problem *p)
{
    if (p->physics == TESS_PHYSICS_CONE)
        return tess_problem_truncated(p) || (p->outside > 0 && !p->margin_depth && !p->margin[0]);
    return tess_problem_truncated(p) && p->width + 2 * p->margin[1] <= p->columns + 2;
}

static bool is_judged(const tess_problem *p, const tess_recipe *recipe, int64_t iterations)
{
    return p->physics != TESS_PHYSICS_BLUR && !p->synthetic && !p->as_published && !p->transmission &&
           !too_small(p) && recipe->inner > 0 && !(recipe->relax > 0) && iterations >= LEAST_JUDGED;
}

/* Leaves the views of the result minus the measured ones in the residual. */
static tess_status judge_all(const tess_problem *p, const tess_recipe *recipe, tess_workspace *w,
                             double *misfit, tess_error *error)
{
    const tess_data_term *term = &w->term;
    const tess_sum off = {.a = 1, .x = term->residual, .b = -1, .y = w->measurement.data};
    double rays = (double)tess_workspace_values(&w->op->measurement), measured, projected, level;
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &rays, error));
    TESS_TRY(
        tess_vectors_dot(&term->measurements, w->measurement.data, w->measurement.data, &measured, error));
    TESS_TRY(tess_data_term_energy(term, w->vectors[0], &projected, error));
    TESS_TRY(tess_vectors_sum(&term->measurements, &off, term->residual, error));
    TESS_TRY(look_at_blocks(p, w, &level, error));
    const double ratio = recipe->noise > 0 ? level / recipe->noise : 0,
                 share = measured > 0 ? level / sqrt((double)(SIDE * side_of(p)) * measured / rays) : 0;
    *misfit = ratio > MISFIT && share > VISIBLE ? ratio : 0;
    return TESS_OK;
}

tess_status tess_scan_judge(const tess_problem *p, const tess_recipe *recipe, tess_workspace *w,
                            tess_outcome *outcome, tess_error *error)
{
    if (!is_judged(p, recipe, outcome->result.iterations))
        return TESS_OK;
    TESS_TRY(judge_all(p, recipe, w, &outcome->misfit, error));
    /* What a wrong geometry leaves may look like matter outside, and an enlarged volume holds that. */
    if (p->physics != TESS_PHYSICS_CONE || outcome->misfit > 0 || p->axis_off != 0 || p->margin[0] > 0)
        return TESS_OK;
    return tess_scan_judge_rim(p, w, &outcome->rim, error);
}

void tess_scan_misfit_note(const tess_problem *p, double misfit, const tess_common *common)
{
    const char *const range = p->range_from == TESS_RANGE_FROM_GIVEN ? ", \"range\"" : "";
    if (p->physics == TESS_PHYSICS_CONE)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: the result does not fit the views: they differ by %.0f times what noise explains; check "
            "in %s the sense of rotation, whether rows and columns of the detector are swapped or "
            "mirrored, and its offset%s; or the object reaches out of \"volume\"",
            p->measurement, misfit, p->geometry, range);
    else
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: the result does not fit the views: they differ by %.0f times what noise explains; check the "
            "angles (half a turn or a full one, the step, the sense of rotation)%s and the centre",
            p->measurement, misfit, range);
}
