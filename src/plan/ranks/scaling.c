#include "plan/ranks/scaling.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "physics/operator.h"
#include "plan/ranks/blocks.h"
#include "plan/ranks/slabs.h"
#include "plan/ranks/timetable.h"

/* What `reconstruct` makes if nothing else is asked for. */
enum { VIEWS_2D = 100, VIEWS_3D = 50, VECTORS = 5 };

bool tess_scale_problem_of(const char *name, int64_t size, bool square, tess_scale_problem *p)
{
    *p = (tess_scale_problem){.depth = 1, .height = size, .width = size, .channels = 1};
    if (strcmp(name, "deblur") == 0) {
        p->kind = TESS_SCALE_DEBLUR;
        p->width = square ? size : size * 321 / 481;
        p->channels = 3;
    } else if (strcmp(name, "tomo2d") == 0) {
        p->kind = TESS_SCALE_TOMO2D;
        p->views = VIEWS_2D;
        p->rows = 1;
        p->columns = size;
    } else if (strcmp(name, "tomo3d") == 0) {
        p->kind = TESS_SCALE_TOMO3D;
        p->depth = size;
        p->views = VIEWS_3D;
        p->rows = p->columns = size + tess_ceil_div(size, 8);
    } else {
        return false;
    }
    return true;
}

static double values_of(const tess_scale_problem *p)
{
    return (double)p->depth * (double)p->height * (double)p->width * (double)p->channels;
}

/* Seconds of so many operations and bytes of an operator, as `reconstruct` predicts them. */
static double operator_seconds(const tess_scale_setup *setup, const char *name, double flops, double bytes,
                               bool *measured)
{
    const tess_device_facts *facts = tess_rates_facts(setup->rates);
    return (flops / facts->flops + bytes / facts->bytes) * tess_rates_operator(setup->rates, name, measured);
}

/* Blurs with an unknown boundary, in the way that is faster. Returns the values that a rank holds for them. */
static double add_blurs(const tess_scale_setup *setup, const tess_scale_problem *p, int ranks,
                        tess_scale_point *point)
{
    const tess_blurs blurs = {.height = p->height,
                              .width = p->width,
                              .channels = p->channels,
                              .count = p->blurs,
                              .reach = p->reach,
                              .rows = point->rows};
    point->blurs = tess_blurs_choose(&blurs, &setup->links, setup->rates, ranks, point->blur_costs);
    const double own = (double)p->height * (double)p->width / point->used,
                 blurred =
                     point->blurs == TESS_BLURS_HALO ? (double)(tess_blurs_rows(&blurs) * p->width) : own;
    point->gradient = point->blur_costs[point->blurs].computing;
    point->gradient_communication = point->blur_costs[point->blurs].communication;
    return 6 * (double)p->channels * blurred + own / 2;
}

/* To project a volume and back. Slabs exchange the rows that see them; rows of a volume, which no run divides, would exchange whole views. */
static tess_status views_seconds(const tess_scale_setup *setup, const tess_scale_problem *p,
                                 const tess_blocks *blocks, tess_scale_point *point, tess_error *error)
{
    double once = tess_links_all_gather(&setup->links, point->used,
                                        (double)p->views * (double)p->rows * (double)p->columns *
                                            (double)sizeof(float));
    const tess_rays_settings rays = {.geometry = p->parallel ? TESS_PARALLEL_3D : TESS_CONE_3D,
                                     .depth = p->depth,
                                     .height = p->height,
                                     .width = p->width,
                                     .spacing = p->spacing > 0 ? p->spacing : 1,
                                     .views = p->views,
                                     .rows = p->rows,
                                     .columns = p->columns,
                                     .vectors = p->vectors};
    if (point->slabs)
        TESS_TRY(tess_slabs_seconds(&rays, &blocks->rows, &setup->links, &once, error));
    point->gradient_communication = 2 * once;
    return TESS_OK;
}

/* As `reconstruct` does it. Circular blurs: the spectrum is computed by rows, transposed, filtered by columns and returned. Views of an
 * image: ranks share the views; the image is gathered to project it, and the views to backproject them. Views of a volume: each
 * rank projects its slab; the projections are summed where they belong, and sent back to backproject them. */
static tess_status add_gradient(const tess_scale_setup *setup, const tess_scale_problem *p,
                                const tess_blocks *blocks, tess_scale_point *point, tess_error *error)
{
    const int ranks = point->used;
    const tess_links *l = &setup->links;
    const double values = values_of(p), pixels = values / (double)p->channels, share = point->used,
                 float_bytes = sizeof(float);
    double held = VECTORS * values / share;
    bool known = true; /* not reported: no rate of an operator is exact */
    switch (p->kind) {
    case TESS_SCALE_DENOISE:
        return TESS_OK;
    case TESS_SCALE_DEBLUR: {
        const double transforms = 2 * (double)p->channels;
        if (p->blurs) {
            held += add_blurs(setup, p, ranks, point);
            break;
        }
        point->gradient =
            operator_seconds(setup, "blur", transforms * 2.5 * pixels * log2(pixels + 1) / share,
                             transforms * 8 * float_bytes * pixels / share, &known);
        point->gradient_communication = 2 * tess_links_transpose(l, ranks, values * float_bytes);
        held += (3 * values + pixels / 2) / share;
        break;
    }
    case TESS_SCALE_TOMO2D: {
        const double samples =
            0.7854 * (double)p->columns * (double)p->height * (double)tess_ceil_div(p->views, point->used);
        point->gradient = 2 * operator_seconds(setup, "radon", TESS_SAMPLE_FLOPS * samples,
                                               TESS_SAMPLE_BYTES * samples, &known);
        const double rays = (double)p->views * (double)p->columns;
        point->gradient_communication = tess_links_all_gather(l, ranks, values * float_bytes) +
                                        tess_links_all_gather(l, ranks, rays * float_bytes);
        held += (ranks > 1 ? values : 0) + 2 * rays / share;
        break;
    }
    case TESS_SCALE_TOMO3D: {
        const double rays = (double)p->views * (double)p->rows * (double)p->columns,
                     samples = rays * (double)p->height / share;
        point->gradient = 2 * operator_seconds(setup, "cone", TESS_SAMPLE_FLOPS * samples,
                                               TESS_SAMPLE_BYTES * samples, &known);
        TESS_TRY(views_seconds(setup, p, blocks, point, error));
        held += 2 * rays / share;
        break;
    }
    }
    /* Three sums of vectors, each with two inputs. */
    point->gradient += 9 * values / share * float_bytes / tess_rates_facts(setup->rates)->bytes;
    point->gradient *= p->steps > 0 ? p->steps : 1;
    point->gradient_communication *= p->steps > 0 ? p->steps : 1;
    point->bytes += held * float_bytes;
    return TESS_OK;
}

/* Parts that differ in their neighbours or in their rows: first, last, inner ones, and longer ones; of blocks, the same in columns. */
typedef struct strip_kind {
    tess_plan_shape shape;
    tess_timetable timetable;
} strip_kind;

typedef struct strip_kinds {
    strip_kind *list; /* has room for all ranks */
    int count;
} strip_kinds;

static tess_status timetable_of(strip_kinds *kinds, const tess_scale_setup *setup, tess_plan_shape shape,
                                int *index, tess_error *error)
{
    for (*index = 0; *index < kinds->count; ++*index)
        if (tess_plan_shape_same(&kinds->list[*index].shape, &shape))
            return TESS_OK;
    strip_kind *kind = &kinds->list[kinds->count++];
    kind->shape = shape;
    return tess_timetable_make(setup->bound, setup->rates, shape, &kind->timetable, error);
}

/* Groups are chosen for an inner strip whose exchange is the slowest: one between two nodes, if there is one. */
static tess_status avoid(strip_kinds *kinds, const tess_scale_setup *setup, int ranks,
                         tess_scale_point *point, tess_error *error)
{
    int inner = 0, lower = 0;
    for (int i = 0; i < kinds->count; i++)
        if (kinds->list[i].timetable.sides >= kinds->list[inner].timetable.sides)
            inner = i;
    for (int r = 0; r + 1 < ranks; r++)
        if (tess_links_exchange(&setup->links, ranks, r, 1) >
            tess_links_exchange(&setup->links, ranks, lower, 1))
            lower = r;
    const tess_timetable *model = &kinds->list[inner].timetable;
    int *groups = tess_small_alloc((size_t)model->count + 1, sizeof *groups);
    if (!groups)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a timetable");
    point->avoided =
        tess_timetable_groups(model, setup->rates, &setup->links, ranks, lower, setup->avoid, groups);
    for (int i = 0; i < kinds->count; i++)
        tess_timetable_avoid(&kinds->list[i].timetable, setup->rates, groups);
    tess_small_free(groups);
    return TESS_OK;
}

static tess_status run_strips(const tess_scale_setup *setup, const tess_scale_problem *p,
                              const tess_blocks *blocks, strip_kinds *kinds, const tess_timetable **of_rank,
                              tess_scale_point *point, tess_error *error)
{
    const int used = (int)tess_blocks_count(blocks);
    int *index = tess_small_alloc((size_t)used, sizeof *index);
    tess_status status = index ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    for (int r = 0; r < used && status == TESS_OK; r++) {
        const tess_blocks_part part = tess_blocks_part_of(blocks, r);
        const int64_t rows = part.rows;
        const bool alone = p->divide == TESS_DIVIDE_SLICES;
        tess_plan_shape shape = {
            .n = 1,
            .h = tess_round_up(point->slabs ? p->height : rows, setup->grid[TESS_HEIGHT]),
            .w = tess_round_up(part.columns, setup->grid[TESS_WIDTH]),
            .d = alone ? 1 : tess_round_up(point->slabs ? rows : p->depth, setup->grid[TESS_DEPTH]),
            .above = part.above && !alone,
            .below = part.below && !alone,
            .left = part.left,
            .right = part.right,
            .slices = point->slabs && !alone,
            .levels = part.levels};
        if (tess_level_rows_given(&part.levels))
            shape.h = part.levels.rows[0];
        point->rows = tess_max_i64(point->rows, rows);
        status = timetable_of(kinds, setup, shape, &index[r], error);
    }
    if (status == TESS_OK && setup->avoid > 1 && used > 1 && !point->slabs && !point->across)
        status = avoid(kinds, setup, used, point, error);
    for (int r = 0; r < used && status == TESS_OK; r++) {
        of_rank[r] = &kinds->list[index[r]].timetable;
        point->bytes = fmax(point->bytes,
                            of_rank[r]->arena_bytes + of_rank[r]->workspace_bytes + of_rank[r]->weight_bytes);
        point->measured = point->measured && of_rank[r]->measured;
    }
    tess_small_free(index);
    return status;
}

static tess_strips divide_rows(const tess_scale_setup *setup, const tess_scale_problem *p, int ranks,
                               bool slabs)
{
    if (p->divide == TESS_DIVIDE_SLICES)
        return tess_strips_of(1, p->depth, ranks);
    if (slabs)
        return tess_strips_of(tess_round_up(tess_bound_least_slab(setup->bound), setup->grid[TESS_DEPTH]),
                              p->depth, ranks);
    if (setup->strips && setup->strips->height == p->height)
        return *setup->strips;
    return tess_strips_divide(setup->bound, setup->grid[TESS_HEIGHT], p->height, ranks);
}

static tess_status simulate(const tess_scale_setup *setup, const tess_scale_problem *p, int ranks, bool slabs,
                            const tess_blocks *blocks, tess_scale_point *point, tess_error *error)
{
    const int used = (int)tess_blocks_count(blocks), across = (int)blocks->columns.count;
    strip_kinds kinds = {.list = tess_small_alloc((size_t)used, sizeof *kinds.list)};
    const tess_timetable **of_rank = tess_small_alloc((size_t)used, sizeof *of_rank);
    tess_timetable_time time = {0};
    *point = (tess_scale_point){.ranks = ranks, .used = used, .slabs = slabs, .avoided = 1, .measured = true};
    if (across > 1) {
        point->across = across;
        point->columns = tess_blocks_most_columns(blocks);
    }
    tess_status status = kinds.list && of_rank
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for the timetables of ranks");
    if (status == TESS_OK)
        status = run_strips(setup, p, blocks, &kinds, of_rank, point, error);
    if (status == TESS_OK)
        status = tess_timetable_run(of_rank, setup->pace, used, across, &setup->links, &time, error);
    for (int i = 0; i < kinds.count; i++)
        tess_timetable_clear(&kinds.list[i].timetable);
    tess_small_free(kinds.list);
    tess_small_free(of_rank);
    TESS_TRY(status);
    const double runs =
        (double)tess_max_i64(p->planes, 1) * (p->divide == TESS_DIVIDE_SLICES ? (double)point->rows : 1);
    point->denoiser = runs * time.compute;
    point->denoiser_communication = runs * time.communication;
    point->sent = runs * time.sent;
    TESS_TRY(add_gradient(setup, p, blocks, point, error));
    point->seconds = point->gradient + point->denoiser + tess_scale_communication(point);
    return TESS_OK;
}

static tess_status simulate_strips(const tess_scale_setup *setup, const tess_scale_problem *p, int ranks,
                                   bool slabs, tess_scale_point *point, tess_error *error)
{
    slabs = slabs || p->divide != TESS_DIVIDE_ROWS;
    const tess_blocks blocks = {divide_rows(setup, p, ranks, slabs), tess_strips_of(1, p->width, 1)};
    return simulate(setup, p, ranks, slabs, &blocks, point, error);
}

/* The grid that `denoise` would take, if that has blocks. */
static tess_status simulate_blocks(const tess_scale_setup *setup, const tess_scale_problem *p, int ranks,
                                   tess_scale_point *point, tess_error *error)
{
    tess_blocks_image image = {.bound = setup->bound, .height = p->height, .width = p->width, .ranks = ranks};
    tess_blocks blocks;
    for (int i = 0; i < TESS_SPATIAL; i++)
        image.grid[i] = setup->grid[i];
    TESS_TRY(tess_blocks_choose(&image, setup->rates, &setup->links, &blocks, error));
    if (blocks.columns.count == 1)
        return TESS_OK;
    tess_scale_point other;
    TESS_TRY(simulate(setup, p, ranks, false, &blocks, &other, error));
    if (other.seconds < point->seconds)
        *point = other;
    return TESS_OK;
}

tess_status tess_scale_ours(const tess_scale_setup *setup, const tess_scale_problem *p, int ranks,
                            tess_scale_point *point, tess_error *error)
{
    TESS_TRY(simulate_strips(setup, p, ranks, false, point, error));
    if (p->kind == TESS_SCALE_DENOISE && p->depth == 1 && ranks > 1 && setup->avoid <= 1)
        TESS_TRY(simulate_blocks(setup, p, ranks, point, error));
    if (!setup->slabs || p->depth == 1 || ranks == 1 || p->divide != TESS_DIVIDE_ROWS)
        return TESS_OK;
    tess_scale_point other;
    TESS_TRY(simulate_strips(setup, p, ranks, true, &other, error));
    if (other.seconds < point->seconds)
        *point = other;
    return TESS_OK;
}
