#include "plan/ranks/blocks.h"

#include <stdio.h>

#include "base/checked.h"
#include "net/plan.h"

/* The links are assumed, and packing is not counted. */
static const double WORTH = 0.95;

tess_blocks_part tess_blocks_part_of(const tess_blocks *b, int64_t rank)
{
    const int64_t y = rank / b->columns.count, x = rank % b->columns.count;
    return (tess_blocks_part){.row = tess_strips_row(&b->rows, y),
                              .rows = tess_strips_rows(&b->rows, y),
                              .column = tess_strips_row(&b->columns, x),
                              .columns = tess_strips_rows(&b->columns, x),
                              .above = y > 0,
                              .below = y + 1 < b->rows.count,
                              .left = x > 0,
                              .right = x + 1 < b->columns.count,
                              .levels = tess_strips_level_rows(&b->rows, y)};
}

int64_t tess_blocks_most_rows(const tess_blocks *b)
{
    return tess_strips_most(&b->rows);
}

int64_t tess_blocks_most_columns(const tess_blocks *b)
{
    return tess_strips_most(&b->columns);
}

tess_blocks tess_blocks_of(const tess_blocks_image *i, int64_t down, int64_t across)
{
    return (tess_blocks){tess_strips_divide(i->bound, i->grid[TESS_HEIGHT], i->height, down),
                         tess_strips_divide_columns(i->bound, i->grid[TESS_WIDTH], i->width, across)};
}

/* The time of one exchange with all neighbours, whose messages share the rank's link. Those of strips are sent as they are; of
 * blocks, only the channels of the value. */
static double exchange_seconds(const tess_plan_step *step, const tess_links *links, bool outside)
{
    const double latency = outside ? links->outside.latency : links->inside.latency,
                 rate = outside ? links->outside.rate : links->inside.rate;
    const tess_exchange e = {.rows = step->rows,
                             .above = step->above,
                             .below = step->below,
                             .left = step->left,
                             .right = step->right};
    tess_exchange_side sides[TESS_EXCHANGE_SIDES];
    const int count = tess_exchange_sides(&e, sides);
    double seconds = 0;
    for (int i = 0; i < count; i++)
        seconds += latency + (double)sides[i].bytes / rate;
    return seconds;
}

tess_status tess_blocks_seconds(const tess_blocks_image *image, const tess_blocks *b, const tess_rates *rates,
                                const tess_links *links, double *seconds, tess_error *error)
{
    /* The largest part, with as many neighbours as any has. */
    const tess_plan_shape shape = {.n = 1,
                                   .h = tess_round_up(tess_blocks_most_rows(b), image->grid[TESS_HEIGHT]),
                                   .w = tess_round_up(tess_blocks_most_columns(b), image->grid[TESS_WIDTH]),
                                   .above = b->rows.count > 1,
                                   .below = b->rows.count > 2,
                                   .left = b->columns.count > 1,
                                   .right = b->columns.count > 2};
    tess_net_plan *plan = NULL;
    bool measured = true; /* not reported: plans of the parts are */
    TESS_TRY(tess_net_plan_create(image->bound, shape, &plan, error));
    *seconds = tess_rates_plan_seconds(rates, plan, &measured);
    for (int i = 0; i < tess_net_plan_step_count(plan); i++) {
        const tess_plan_step step = tess_net_plan_step(plan, i);
        if (step.kind == TESS_STEP_EXCHANGE)
            *seconds += exchange_seconds(&step, links, tess_blocks_count(b) > links->per_node);
    }
    tess_net_plan_destroy(plan);
    return TESS_OK;
}

tess_status tess_blocks_choose(const tess_blocks_image *image, const tess_rates *rates,
                               const tess_links *links, tess_blocks *blocks, tess_error *error)
{
    double least;
    *blocks = tess_blocks_of(image, image->ranks, 1);
    TESS_TRY(tess_blocks_seconds(image, blocks, rates, links, &least, error));
    least *= WORTH;
    for (int64_t down = blocks->rows.count; down > 0; down--) {
        const tess_blocks trial = tess_blocks_of(image, down, image->ranks / down);
        double seconds;
        if (trial.columns.count == 1 || trial.rows.count < down)
            continue;
        TESS_TRY(tess_blocks_seconds(image, &trial, rates, links, &seconds, error));
        if (seconds >= least)
            continue;
        least = seconds;
        *blocks = trial;
    }
    return TESS_OK;
}

tess_status tess_blocks_parse(const tess_blocks_image *image, const char *text, tess_blocks *blocks,
                              tess_error *error)
{
    long long down = 0, across = 0;
    char rest;
    if (sscanf(text, "%9lldx%9lld%c", &down, &across, &rest) != 2 || down < 1 || across < 1)
        return tess_fail(error, TESS_BAD_OPTION, "must be rows x columns of ranks, as 2x3");
    if (down * across > image->ranks)
        return tess_fail(error, TESS_BAD_OPTION, "needs %lld ranks, and %lld were started", down * across,
                         (long long)image->ranks);
    *blocks = tess_blocks_of(image, down, across);
    const tess_blocks most = tess_blocks_of(image, image->height, image->width);
    if (blocks->rows.count < down || blocks->columns.count < across)
        return tess_fail(error, TESS_BAD_OPTION,
                         "with this network an image of %lld x %lld has at most %lld x %lld blocks",
                         (long long)image->height, (long long)image->width, (long long)most.rows.count,
                         (long long)most.columns.count);
    return TESS_OK;
}
