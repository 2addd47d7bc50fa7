#define _POSIX_C_SOURCE 200809L
#include "job/reconstruct/reconstruct_ranks.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "job/common/rank_speeds.h"
#include "job/reconstruct/problem/data.h"
#include "job/reconstruct/run/quality.h"
#include "plan/ranks/strips.h"

static const char ONCE[] = "start it once, without mpirun or srun";

static tess_status check_measured(const tess_problem *p, tess_error *error)
{
    char larger[96];
    if (p->synthetic || p->physics == TESS_PHYSICS_BLUR || !tess_problem_enlarged(p))
        return TESS_OK;
    const long long width = p->width + 2 * p->margin[1], height = p->height + 2 * p->margin[0];
    snprintf(larger, sizeof larger, "\"size\": %lld", width);
    if (p->physics == TESS_PHYSICS_CONE)
        snprintf(larger, sizeof larger, "\"volume\": [%lld, %lld, %lld]",
                 (long long)(p->depth + 2 * p->margin_depth), height, width);
    return tess_fail(error, TESS_UNSUPPORTED,
                     "%s: rays outside of the image see something, so more is computed than is shown, which "
                     "ranks cannot share yet; give %s, or %s",
                     p->name, larger, ONCE);
}

tess_status tess_parts_check(const tess_dist *dist, const tess_reconstruct_settings *s, const tess_problem *p,
                             tess_error *error)
{
    if (dist->size == 1)
        return TESS_OK;
    TESS_TRY(check_measured(p, error));
    if (p->physics != TESS_PHYSICS_BLUR && dist->size > p->count)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%d ranks are too many for %lld views, which they share; start at most %lld",
                         dist->size, (long long)p->count, (long long)p->count);
    if (p->depth == 1 && p->physics == TESS_PHYSICS_CONE)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%s: ranks share the slices of a volume, and this one has a single slice; %s",
                         p->name, ONCE);
    if (p->depth > 1 && dist->size > p->depth)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%d ranks are too many for a volume of %lld slices; start at most %lld", dist->size,
                         (long long)p->depth, (long long)p->depth);
    if (p->depth == 1 && s->tile_height != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`tile`: each rank has a strip of the image; leave it out");
    return TESS_OK;
}

/* Strips begin at multiples of what the network needs, as for `denoise`, and each has rows enough for a window of SSIM, not
 * counting those of the margins. The largest is as small as possible, or by `speeds` of the ranks, if these are not NULL, the one that
 * takes longest. Beside a wide margin, the first and the last strip are longer. */
static tess_status divide_rows(tess_parts *parts, const tess_problem *p, const tess_prior *prior,
                               const double *speeds, tess_error *error)
{
    tess_share *share = &parts->share;
    const int64_t height = tess_problem_divided(p), above = p->margin[0];
    const tess_bound *bound = prior->model->bound;
    const int64_t least = tess_max_i64(tess_bound_least_strip(bound), TESS_JUDGE_BEFORE),
                  step = tess_round_up(least, tess_bound_alignment(bound)), over = height % step,
                  rest = tess_round_up(over, tess_net_grid(prior->model->model.net, TESS_HEIGHT)),
                  steps = tess_max_i64(height / step + (rest >= least && over >= TESS_JUDGE_BEFORE), 1),
                  size = share->dist->size, first = tess_ceil_div(above + TESS_JUDGE_BEFORE, step),
                  last = tess_min_i64(steps - 1, (above + p->height - TESS_JUDGE_BEFORE) / step),
                  many = tess_max_i64(last - first + 2, 1); /* as strips may begin at first .. last */
    if (size > many)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "%lld ranks are too many for an image of %lld rows: with this network a strip has %lld "
            "of them or more, and ranks share no reconstruction in blocks; start at most %lld",
            (long long)size, (long long)height, (long long)step, (long long)many);
    tess_strips strips = tess_strips_of_steps(step, steps, height, size);
    if (speeds)
        strips = tess_strips_by_speed(&strips, speeds);
    parts->by_speed = strips.by_speed;
    for (int64_t r = 1; r < size; r++)
        share->from[r] = step * tess_min_i64(tess_max_i64(tess_strips_row(&strips, r) / step, first + r - 1),
                                             last - (size - 1 - r));
    share->from[0] = 0;
    share->from[size] = height;
    return TESS_OK;
}

/* Slices are independent of each other, or slabs begin where a 3-D network allows it. */
static tess_status divide_slices(tess_share *share, int64_t depth, const tess_prior *prior, tess_error *error)
{
    const tess_bound *bound = prior->model->bound;
    const bool volume = prior->model->model.volume;
    const int64_t grid = volume ? tess_net_grid(prior->model->model.net, TESS_DEPTH) : 1,
                  least = volume ? tess_bound_least_slab(bound) : 1, step = tess_round_up(least, grid),
                  size = share->dist->size, rest = tess_round_up(depth % step, grid),
                  steps = tess_max_i64(depth / step + (depth % step > 0 && rest >= least), 1);
    if (size > steps)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "%lld ranks are too many for a volume of %lld slices: with this network a slab has %lld of them "
            "or more; start at most %lld, or use `prior` slices",
            (long long)size, (long long)depth, (long long)step, (long long)steps);
    for (int64_t r = 0; r < size; r++)
        share->from[r] = steps * r / size * step;
    share->from[size] = depth;
    return TESS_OK;
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* Of what a rank has found out about its inputs. */
static uint64_t hash_of(const tess_problem *p)
{
    const char *const files[] = {p->name, p->image, p->truth, p->measurement, p->geometry, p->flat, p->dark};
    const int64_t numbers[] = {p->depth, p->height, p->width, p->channels, p->rows, p->columns, p->count};
    uint64_t hash = mix(0xcbf29ce484222325u, numbers, sizeof numbers);
    for (int64_t i = 0; p->kernels && i < p->count; i++)
        hash = mix(hash, p->kernels[i].values,
                   (size_t)(p->kernels[i].height * p->kernels[i].width) * sizeof *p->kernels[i].values);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct stat about;
        const int64_t bytes = files[i] && stat(files[i], &about) == 0 ? (int64_t)about.st_size : -1;
        hash = mix(hash, &bytes, sizeof bytes);
    }
    return hash;
}

static tess_status divide(tess_parts *parts, const tess_problem *p, const tess_prior *prior,
                          tess_error *error)
{
    const size_t size = (size_t)parts->share.dist->size;
    parts->share.from = tess_small_alloc(size + 1, sizeof *parts->share.from);
    parts->ranks = tess_small_alloc(size, sizeof *parts->ranks);
    if (!parts->share.from || !parts->ranks)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    return p->depth > 1 ? divide_slices(&parts->share, p->depth, prior, error)
                        : divide_rows(parts, p, prior, NULL, error);
}

static void say_shared(tess_parts *parts, const tess_problem *p, const tess_prior *prior)
{
    const bool volume = prior->model->model.volume;
    static const char *const ways[] = {
        [TESS_PHYSICS_BLUR] = "the spectrum by its columns, because the data step divides by it",
        [TESS_PHYSICS_RADON] =
            "the views; image and views are gathered to compute, and small beside the network",
        [TESS_PHYSICS_CONE] =
            "the views, onto which each projects its slab, so that none gathers the volume"};
    const int size = parts->share.dist->size;
    char blurs[160];
    int64_t most = 0, least = parts->ranks[0].count;
    char rows[80];
    for (int r = 0; r < size; r++) {
        most = tess_max_i64(most, parts->ranks[r].count);
        least = tess_min_i64(least, parts->ranks[r].count);
    }
    if (parts->by_speed)
        snprintf(rows, sizeof rows, "strips of %lld to %lld rows, by the speed of the ranks,",
                 (long long)least, (long long)most);
    else
        snprintf(rows, sizeof rows, "%s of at most %lld %s,", p->depth > 1 ? "slabs" : "strips",
                 (long long)most, p->depth > 1 ? "slices" : "rows");
    tess_blur_exchange_say(&parts->blurs, blurs, sizeof blurs);
    snprintf(parts->reason, sizeof parts->reason, "%d ranks have %s %s%s, and share %s", size, rows,
             volume         ? "exchange slices inside the network"
             : p->depth > 1 ? "denoise slices one by one"
                            : "exchange rows inside the network",
             prior->links ? " on cards" : "", p->unknown ? blurs : ways[p->physics]);
}

/* Rank 0 decides, so that all divide alike whatever kernels they have. */
static tess_status follow_first(tess_parts *parts, const tess_problem *p, tess_error *error)
{
    tess_dist *dist = parts->share.dist;
    TESS_TRY(tess_dist_broadcast(dist, 0, parts->share.from,
                                 ((size_t)dist->size + 1) * sizeof *parts->share.from, error));
    for (int r = 0; r < dist->size; r++) {
        const int64_t rows = p->depth > 1 ? p->height : 1, first = tess_problem_shown(p, &parts->share, r);
        parts->ranks[r].first = first / rows;
        parts->ranks[r].count = (tess_problem_shown(p, &parts->share, r + 1) - first) / rows;
    }
    return TESS_OK;
}

/* Seconds of the network in one iteration on a strip of so many rows; 0: not known. */
static double network_seconds(const tess_problem *p, const tess_prior *prior, int64_t rows)
{
    const tess_engine_model *model = prior->model;
    const tess_plan_shape shape = {.n = 1,
                                   .h = tess_round_up(rows, tess_net_grid(model->model.net, TESS_HEIGHT)),
                                   .w = tess_round_up(p->width, tess_net_grid(model->model.net, TESS_WIDTH))};
    tess_net_plan *plan = NULL;
    tess_error ignored;
    bool measured = true;
    if (tess_net_plan_create(model->bound, shape, &plan, &ignored) != TESS_OK)
        return 0;
    const double seconds = tess_rates_plan_seconds(prior->engine->rates, plan, &measured);
    tess_net_plan_destroy(plan);
    return seconds * (double)(model->model.channels == 1 ? p->channels : 1);
}

/* Only where results do not depend on how the rows are divided, to the last bit: two runs may measure different speeds. */
static tess_status divide_by_speed(tess_parts *parts, const tess_problem *p, const tess_prior *prior,
                                   int64_t iterations, tess_error *error)
{
    tess_dist *dist = parts->share.dist;
    int64_t most = 0;
    double *speeds;
    if (p->depth > 1 || p->unknown)
        return TESS_OK;
    for (int r = 0; r < dist->size; r++)
        most = tess_max_i64(most, parts->ranks[r].count);
    const tess_rank_work work = {.model = prior->model,
                                 .rows = most,
                                 .width = p->width,
                                 .ranks = dist->size,
                                 .seconds = (double)iterations * network_seconds(p, prior, most),
                                 .limit = tess_engine_free_limit(prior->engine)};
    TESS_TRY(tess_rank_speeds(prior->engine, &work, &speeds, error));
    if (!speeds)
        return TESS_OK;
    tess_status status = tess_dist_agree(dist, divide_rows(parts, p, prior, speeds, error), error);
    if (status == TESS_OK)
        status = follow_first(parts, p, error);
    for (int r = 0; r < dist->size; r++)
        parts->ranks[r].speed = speeds[r];
    tess_small_free(speeds);
    return status;
}

tess_status tess_parts_divide(tess_parts *parts, const tess_problem *p, const tess_prior *prior,
                              const tess_rates *rates, int64_t iterations, tess_error *error)
{
    tess_dist *dist = prior->engine->dist;
    parts->share.dist = dist;
    if (dist->size == 1)
        return TESS_OK;
    TESS_TRY(tess_engine_same_inputs(prior->engine, hash_of(p), error));
    TESS_TRY(tess_dist_agree(dist, divide(parts, p, prior, error), error));
    TESS_TRY(follow_first(parts, p, error));
    TESS_TRY(divide_by_speed(parts, p, prior, iterations, error));
    if (p->unknown)
        TESS_TRY(tess_blur_way_choose(rates, p, &parts->share, &parts->blurs, error));
    say_shared(parts, p, prior);
    return TESS_OK;
}

tess_status tess_parts_divide_equally(tess_parts *parts, const tess_problem *p, const tess_prior *prior,
                                      tess_error *error)
{
    TESS_TRY(tess_dist_agree(parts->share.dist, divide_rows(parts, p, prior, NULL, error), error));
    TESS_TRY(follow_first(parts, p, error));
    say_shared(parts, p, prior);
    return TESS_OK;
}

void tess_parts_avoid_halo(tess_parts *parts, const tess_problem *p, const tess_prior *prior)
{
    parts->blurs.way = TESS_BLURS_SPECTRUM;
    parts->blurs.because = TESS_BLURS_BY_MEMORY;
    say_shared(parts, p, prior);
}

void tess_parts_clear(tess_parts *parts)
{
    tess_small_free(parts->share.from);
    tess_small_free(parts->ranks);
    parts->share.from = NULL;
    parts->ranks = NULL;
}

tess_status tess_parts_share_plan(tess_parts *parts, tess_budget *budget, tess_error *error)
{
    tess_dist *dist = parts->share.dist;
    typedef struct plan {
        tess_mem_usage bytes;
        double seconds;
    } plan;
    const plan mine = {budget->planned, budget->seconds};
    for (int r = 0; r < dist->size && dist->size > 1; r++) {
        plan theirs = mine;
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        parts->ranks[r].planned = theirs.bytes.total;
        parts->ranks[r].planned_host = theirs.bytes.bytes.by[TESS_MEM_HOST];
        tess_mem_usage_raise(&budget->planned, &theirs.bytes);
        budget->seconds = theirs.seconds > budget->seconds ? theirs.seconds : budget->seconds;
    }
    return TESS_OK;
}

tess_status tess_parts_share_peak(tess_parts *parts, tess_mem_usage *peak, uint64_t sent, uint64_t *nccl,
                                  tess_error *error)
{
    tess_dist *dist = parts->share.dist;
    typedef struct counted {
        tess_mem_usage bytes;
        uint64_t sent, nccl;
    } counted;
    const counted mine = {*peak, sent, *nccl};
    for (int r = 0; r < dist->size && dist->size > 1; r++) {
        counted theirs = mine;
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        parts->ranks[r].measured = theirs.bytes.total;
        parts->ranks[r].measured_host = theirs.bytes.bytes.by[TESS_MEM_HOST];
        parts->ranks[r].sent = theirs.sent;
        *nccl = theirs.nccl > *nccl ? theirs.nccl : *nccl;
        tess_mem_usage_raise(peak, &theirs.bytes);
    }
    return TESS_OK;
}

void tess_parts_record(const tess_parts *parts, const tess_problem *p, tess_json **own)
{
    if (!parts->ranks)
        return;
    tess_json *list = tess_json_array();
    for (int r = 0; r < parts->share.dist->size; r++) {
        const tess_rank_part *part = &parts->ranks[r];
        tess_json *entry = tess_json_object();
        tess_json_set_int(&entry, "rank", r);
        tess_json_set_int(&entry, p->depth > 1 ? "first_slice" : "first_row", part->first);
        tess_json_set_int(&entry, p->depth > 1 ? "slices" : "rows", part->count);
        if (part->speed > 0)
            tess_json_set_double(&entry, "speed", part->speed);
        tess_json_set_int(&entry, "planned_bytes", (int64_t)part->planned);
        if (part->planned_host)
            tess_json_set_int(&entry, "planned_host_bytes", (int64_t)part->planned_host);
        if (part->measured)
            tess_json_set_int(&entry, "measured_bytes", (int64_t)part->measured);
        if (part->measured && part->planned_host)
            tess_json_set_int(&entry, "measured_host_bytes", (int64_t)part->measured_host);
        if (part->measured)
            tess_json_set_int(&entry, "gradient_sent_bytes", (int64_t)part->sent);
        tess_json_append(&list, entry);
    }
    tess_json_set(own, "parts", list);
    tess_json_set_string(own, "parts_reason", parts->reason);
    if (p->unknown)
        tess_json_set(own, "blur_exchange", tess_blur_exchange_record(&parts->blurs));
}
