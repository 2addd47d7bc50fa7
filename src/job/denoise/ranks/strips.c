/* One image for several ranks: each takes a strip of rows, or a block of a grid where that is faster or strips would be lower than
 * the network allows, and neighbours exchange rows and columns inside the network, so that the result is that of the whole image, bit
 * for bit. A rank's memory is its part's. Slower ranks have fewer rows, where their speeds are known. If that does not fit, or tiles are asked for, the image is cut as for one rank, and each
 * rank takes some rows of tiles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/common/rank_speeds.h"
#include "job/denoise/ranks/strips.h"
#include "plan/ranks/blurs.h"

bool tess_denoise_in_strips(const tess_denoise_job *job)
{
    return job->engine.dist->size > 1 && !job->folder && job->count == 1 && tess_denoise_todo(&job->files[0]);
}

int64_t tess_denoise_strip_tile(const tess_denoise_job *job, int64_t index)
{
    return job->files[0].choice.rows.tiles * index / job->strips.count;
}

int64_t tess_denoise_strip_row(const tess_denoise_job *job, int64_t index)
{
    const tess_denoise_strips *s = &job->strips;
    if (index == s->count)
        return job->files[0].info.height;
    return s->tiles ? tess_axis_span(&job->files[0].choice.rows, tess_denoise_strip_tile(job, index)).from
                    : tess_strips_row(&s->blocks.rows, index);
}

bool tess_denoise_in_blocks(const tess_denoise_job *job)
{
    return job->strips.blocks.columns.count > 1;
}

tess_blocks_part tess_denoise_part_of(const tess_denoise_job *job, int64_t rank)
{
    if (!job->strips.tiles)
        return tess_blocks_part_of(&job->strips.blocks, rank);
    const int64_t first = tess_denoise_strip_row(job, rank);
    return (tess_blocks_part){.row = first,
                              .rows = tess_denoise_strip_row(job, rank + 1) - first,
                              .columns = job->files[0].info.width};
}

bool tess_denoise_writes(const tess_denoise_job *job, int64_t rank)
{
    const tess_denoise_strips *s = &job->strips;
    return rank == 0 || (s->in_place && rank < s->count &&
                         (!tess_denoise_in_blocks(job) || rank % s->blocks.columns.count == 0));
}

static void set_most(tess_denoise_job *job)
{
    tess_denoise_strips *s = &job->strips;
    s->most_columns = tess_denoise_in_blocks(job) ? tess_blocks_most_columns(&s->blocks) : 0;
    s->most = 0;
    for (int64_t i = 0; i < s->count; i++)
        s->most = tess_max_i64(s->most, tess_denoise_part_of(job, i).rows);
}

static tess_status refuse(const tess_denoise_job *job, tess_error *error)
{
    static const char ONCE[] = "start it once, without mpirun or srun";
    if (job->volumes)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%s is a 3-D model, whose volumes ranks cannot share yet; %s",
                         job->files[0].model->path, ONCE);
    return TESS_OK;
}

/* The grid of TESSERA_GRID, or the fastest one. A network that cannot be divided is not found out here. */
static tess_status choose(const tess_denoise_job *job, tess_blocks *blocks, tess_error *error)
{
    const tess_denoise_file *file = &job->files[0];
    const tess_net *net = file->model->model.net;
    const tess_dist *dist = job->engine.dist;
    const tess_blocks_image image = {
        .bound = file->model->bound,
        .grid = {1, tess_net_grid(net, TESS_HEIGHT), tess_net_grid(net, TESS_WIDTH)},
        .height = file->info.height,
        .width = file->info.width,
        .ranks = dist->size};
    const char *wanted = getenv("TESSERA_GRID");
    if (wanted && wanted[0]) {
        const tess_status status = tess_blocks_parse(&image, wanted, blocks, error);
        return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, "TESSERA_GRID");
    }
    const tess_links links = tess_blurs_links(dist->places ? dist->places[0].locals : dist->size);
    const tess_status status = tess_blocks_choose(&image, job->engine.rates, &links, blocks, error);
    return status == TESS_UNSUPPORTED || status == TESS_OVER_LIMIT ? TESS_OK : status;
}

/* Rank 0 decides, so that all ranks cut at the same rows whatever kernels they have. */
static tess_status divide(tess_denoise_job *job, tess_error *error)
{
    const tess_denoise_file *file = &job->files[0];
    tess_denoise_strips *s = &job->strips;
    tess_dist *dist = job->engine.dist;
    *s = (tess_denoise_strips){.in_place = tess_writer_takes_parts(file->output) && !file->truth};
    TESS_TRY(tess_dist_agree(dist, dist->rank == 0 ? choose(job, &s->blocks, error) : TESS_OK, error));
    TESS_TRY(tess_dist_broadcast(dist, 0, s, sizeof *s, error));
    s->count = tess_blocks_count(&s->blocks);
    set_most(job);
    return TESS_OK;
}

/* The request of this rank's part. Only who runs the sink holds what that reads and writes. */
static void request_strip(const tess_denoise_job *job, tess_denoise_file *file)
{
    const int64_t rank = job->engine.dist->rank;
    const tess_blocks_part part = tess_denoise_part_of(job, rank);
    tess_cut_request *r = &file->request;
    if (tess_denoise_in_blocks(job)) {
        r->fixed_io_bytes += tess_block_io_bytes(job, rank);
        r->in_row_bytes = r->in_row_bytes / (size_t)file->info.width * (size_t)part.columns;
        r->out_row_bytes = r->out_row_bytes / (size_t)file->info.width * (size_t)part.columns;
    }
    r->size[TESS_HEIGHT] = part.rows;
    r->size[TESS_WIDTH] = part.columns;
    r->above = part.above;
    r->below = part.below;
    r->left = part.left;
    r->right = part.right;
    r->levels = part.levels;
    r->tile[TESS_HEIGHT] = r->tile[TESS_WIDTH] = TESS_TILE_WHOLE;
    r->batch = 1;
    r->limit = UINT64_MAX;
    if (job->engine.dist->places) /* the rows of all ranks of a host are in its memory */
        r->host_limit /= (uint64_t)job->engine.dist->places[rank].locals;
    if (!tess_denoise_writes(job, rank))
        r->held_bytes = file->info.held_bytes + (file->prepared ? file->map_info.held_bytes : 0);
    else if (rank > 0)
        r->held_bytes -= file->out_info.extras_bytes; /* parts have none */
}

static tess_status plan_strip(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_file *file = &job->files[0];
    const tess_engine *engine = &job->engine;
    file->choice = (tess_cut_plan){.batch = 1};
    if (engine->dist->rank >= job->strips.count)
        return TESS_OK;
    request_strip(job, file);
    TESS_TRY(tess_cut_choose(file->model->bound, &file->model->model, engine->rates, &file->request,
                             &file->choice, error));
    if (engine->separate_memory)
        tess_card_plan(job);
    return TESS_OK;
}

/* What ranks tell each other about their plans. */
typedef struct strip_plan {
    tess_mem_bytes bytes;
    uint64_t total, host_bytes;
    double seconds;
} strip_plan;

/* Of all models that are loaded, of which one may only have been looked at. */
static uint64_t weights_of(const tess_engine *engine)
{
    uint64_t weights = 0;
    for (int m = 0; m < engine->model_count; m++)
        weights +=
            engine->device->memory->granted(engine->device, tess_bound_weight_bytes(engine->models[m].bound));
    return weights;
}

static strip_plan mine_of(const tess_denoise_job *job)
{
    const tess_denoise_file *file = &job->files[0];
    const double speed = job->ranks[job->engine.dist->rank].speed;
    strip_plan mine = {.bytes = file->choice.bytes,
                       .host_bytes = job->host_bytes,
                       .seconds = file->choice.seconds * (double)tess_max_i64(file->info.depth, 1) /
                                  (speed > 0 ? speed : 1)};
    if (job->engine.dist->rank < job->strips.count)
        mine.bytes.by[TESS_MEM_WEIGHTS] = weights_of(&job->engine);
    mine.total = tess_mem_total(&mine.bytes);
    return mine;
}

/* The job's plan has the most of all ranks. */
static tess_status share_plans(tess_denoise_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    job->planned = (tess_mem_bytes){{0}};
    job->planned_total = 0;
    job->planned_seconds = 0;
    for (int r = 0; r < dist->size; r++) {
        strip_plan theirs = mine_of(job);
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
            if (theirs.bytes.by[c] > job->planned.by[c])
                job->planned.by[c] = theirs.bytes.by[c];
        job->ranks[r].planned = theirs.total;
        job->host_bytes = theirs.host_bytes > job->host_bytes ? theirs.host_bytes : job->host_bytes;
        job->planned_total = theirs.total > job->planned_total ? theirs.total : job->planned_total;
        job->planned_seconds = theirs.seconds > job->planned_seconds ? theirs.seconds : job->planned_seconds;
    }
    return TESS_OK;
}

/* Plans as for one rank, and shares the rows of tiles: the result is the one of that rank, bit for bit. */
static tess_status plan_tiles(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    tess_denoise_file *file = &job->files[0];
    tess_dist *dist = job->engine.dist;
    tess_denoise_strips *s = &job->strips;
    tess_denoise_request(&job->engine, job->settings, file);
    const tess_status status = dist->rank == 0 ? tess_denoise_plan(job, limit, error) : TESS_OK;
    TESS_TRY(tess_denoise_share_plan(job, status, error));
    const int64_t tiles = file->choice.rows.tiles;
    *s = (tess_denoise_strips){
        .count = tess_min_i64(dist->size, tiles), .tiles = true, .in_place = s->in_place};
    set_most(job);
    job->planned_seconds = file->choice.seconds * (double)tess_max_i64(file->info.depth, 1) *
                           (double)tess_ceil_div(tiles, s->count) / (double)tiles;
    for (int r = 0; r < dist->size; r++)
        job->ranks[r].planned = r < s->count ? job->planned_total : 0;
    return TESS_OK;
}

/* Says how ranks share the image. The reason of a strip's own plan, that it is not cut, says nothing. */
static void say_shared(tess_denoise_job *job)
{
    const tess_denoise_strips *s = &job->strips;
    const int64_t idle = job->engine.dist->size - s->count;
    int used =
        snprintf(job->shared, sizeof job->shared, "%lld rank(s) share the image in ", (long long)s->count);
    char *at = job->shared + used;
    const size_t room = sizeof job->shared - (size_t)used;
    if (tess_denoise_in_blocks(job))
        used += snprintf(at, room, "%lld x %lld blocks of at most %lld x %lld pixels",
                         (long long)s->blocks.rows.count, (long long)s->blocks.columns.count,
                         (long long)s->most, (long long)s->most_columns);
    else if (!s->tiles && s->blocks.rows.by_speed)
        used += snprintf(at, room, "strips of %lld to %lld rows, by the speed of the ranks",
                         (long long)tess_strips_least(&s->blocks.rows), (long long)s->most);
    else
        used += snprintf(at, room, "%s of at most %lld rows", s->tiles ? "rows of tiles" : "strips",
                         (long long)s->most);
    if (!s->tiles)
        job->files[0].choice.reason[0] = '\0';
    if (!idle)
        return;
    snprintf(job->shared + used, sizeof job->shared - (size_t)used, "; the other %lld have nothing to do",
             (long long)idle);
    tess_note(&job->settings->common, TESS_NOTE_WARNING, "%s", job->shared);
}

/* Strips are not possible if a layer looks at the whole image, or if one is too large to be addressed. */
static tess_status plan_strips(tess_denoise_job *job, uint64_t limit, bool *fits, tess_error *error)
{
    const tess_status status = tess_dist_agree(job->engine.dist, plan_strip(job, error), error);
    if (status == TESS_UNSUPPORTED || status == TESS_OVER_LIMIT)
        return TESS_OK;
    TESS_TRY(status);
    TESS_TRY(share_plans(job, error));
    *fits = job->planned_total + tess_cut_reserve(job->engine.separate_memory) <= limit;
    return TESS_OK;
}

/* Plans again, with strips that have other rows. */
static tess_status plan_rows(tess_denoise_job *job, const tess_strips *rows, uint64_t limit, bool *fits,
                             tess_error *error)
{
    tess_denoise_request(&job->engine, job->settings, &job->files[0]);
    job->strips.blocks.rows = *rows;
    set_most(job);
    *fits = false;
    return plan_strips(job, limit, fits, error);
}

/* Strips whose rows follow the speeds of the ranks, where that gains time and they fit the memory, too. */
static tess_status divide_by_speed(tess_denoise_job *job, uint64_t limit, bool *fits, tess_error *error)
{
    const tess_denoise_file *file = &job->files[0];
    const tess_strips equal = job->strips.blocks.rows;
    const tess_rank_work work = {.model = file->model,
                                 .rows = job->strips.most,
                                 .width = file->info.width,
                                 .ranks = job->strips.count,
                                 .seconds = job->planned_seconds,
                                 .limit = limit};
    double *speeds;
    TESS_TRY(tess_rank_speeds(&job->engine, &work, &speeds, error));
    if (!speeds)
        return TESS_OK;
    for (int r = 0; r < job->engine.dist->size; r++)
        job->ranks[r].speed = speeds[r];
    tess_strips rows = tess_strips_by_speed(&equal, speeds);
    const double seconds = work.seconds * tess_strips_longest(&rows, speeds) / (double)work.rows;
    tess_small_free(speeds);
    TESS_TRY(tess_dist_broadcast(job->engine.dist, 0, &rows, sizeof rows, error));
    TESS_TRY(plan_rows(job, &rows, limit, fits, error)); /* also if they are equal: the seconds are others */
    if (*fits && rows.by_level) /* ranks that end at the same time wait for each other inside of the levels */
        job->planned_seconds = fmax(job->planned_seconds, seconds);
    return *fits ? TESS_OK : plan_rows(job, &equal, limit, fits, error);
}

tess_status tess_denoise_plan_strips(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    TESS_TRY(refuse(job, error)); /* the same on all ranks */
    job->ranks = tess_small_alloc((size_t)dist->size, sizeof *job->ranks);
    tess_status status = job->ranks ? tess_bound_separate_upsampling(job->files[0].model->bound, error)
                                    : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(divide(job, error));
    bool fits = false;
    if (job->settings->tile_height <= 0) /* else tiles are asked for */
        TESS_TRY(plan_strips(job, limit, &fits, error));
    if (fits && !tess_denoise_in_blocks(job))
        TESS_TRY(divide_by_speed(job, limit, &fits, error));
    if (!fits)
        TESS_TRY(plan_tiles(job, limit, error));
    say_shared(job);
    return TESS_OK;
}
