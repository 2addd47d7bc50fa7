/* One image for several ranks: each takes a strip of rows, and neighbours exchange rows inside the network, so that the
 * result is that of the whole image, bit for bit. A rank's memory is its strip's. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "job/denoise/denoise.h"
#include "plan/limit.h"

bool tess_denoise_in_strips(const tess_denoise_job *job)
{
    return job->engine.dist->size > 1 && !job->folder && job->count == 1 && tess_denoise_todo(&job->files[0]);
}

int64_t tess_denoise_strip_row(const tess_denoise_job *job, int64_t index)
{
    const tess_denoise_strips *s = &job->strips;
    return index == s->count ? job->files[0].info.height
                             : (s->each * index + tess_min_i64(s->longer, index)) * s->step;
}

static tess_status refuse(const tess_denoise_job *job, tess_error *error)
{
    static const char ONCE[] = "start it once, without mpirun or srun";
    const tess_denoise_settings *s = job->settings;
    if (job->engine.separate_memory)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "ranks share one image on the CPU only; set `device` cpu, or %s", ONCE);
    if (job->volumes)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%s is a 3-D model, whose volumes ranks cannot share yet; %s",
                         job->files[0].model->path, ONCE);
    if (s->tile_height > 0)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "ranks share one image in strips, which are not cut into tiles yet; leave out "
                         "`tile`, or %s",
                         ONCE);
    return TESS_OK;
}

/* Rank 0 decides, so that all ranks cut at the same rows whatever kernels they have. */
static tess_status divide(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_file *file = &job->files[0];
    tess_denoise_strips *s = &job->strips;
    tess_dist *dist = job->engine.dist;
    TESS_TRY(refuse(job, error)); /* the same on all ranks */
    const tess_bound *bound = file->model->bound;
    const int64_t height = file->info.height, least = tess_bound_least_strip(bound),
                  step = tess_round_up(least, tess_bound_alignment(bound)),
                  rest = tess_round_up(height % step, tess_net_grid(file->model->model.net, TESS_HEIGHT)),
                  steps = tess_max_i64(height / step + (rest >= least), 1);
    *s = (tess_denoise_strips){.count = tess_min_i64(dist->size, steps),
                               .step = step,
                               .in_place = tess_writer_takes_parts(file->output) && !file->truth};
    /* The largest strip is as small as possible: as few strips are longer as are needed so that the last one, with all
     * rows that are left, is not larger than those. */
    s->each = height / (s->count * step);
    const int64_t left = height - s->each * (s->count - 1) * step, more = left - (s->each + 1) * step;
    s->longer = more > 0 ? tess_ceil_div(more, step) : 0;
    TESS_TRY(tess_dist_broadcast(dist, 0, s, sizeof *s, error));
    for (int64_t i = 0; i < s->count; i++)
        s->most = tess_max_i64(s->most, tess_denoise_strip_row(job, i + 1) - tess_denoise_strip_row(job, i));
    return TESS_OK;
}

/* The request of this rank's strip. Only who runs the sink holds what that reads and writes. */
static void request_strip(const tess_denoise_job *job, tess_denoise_file *file)
{
    const tess_denoise_strips *s = &job->strips;
    const int64_t rank = job->engine.dist->rank;
    tess_cut_request *r = &file->request;
    r->size[TESS_HEIGHT] = tess_denoise_strip_row(job, rank + 1) - tess_denoise_strip_row(job, rank);
    r->above = rank > 0;
    r->below = rank + 1 < s->count;
    r->tile[TESS_HEIGHT] = r->tile[TESS_WIDTH] = TESS_TILE_WHOLE;
    r->batch = 1;
    r->limit = UINT64_MAX;
    if (rank > 0 && !s->in_place)
        r->held_bytes = file->info.held_bytes + (file->prepared ? file->map_info.held_bytes : 0);
    else if (rank > 0)
        r->held_bytes -= file->out_info.extras_bytes; /* parts have none */
}

static tess_status plan_strip(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_file *file = &job->files[0];
    const tess_engine *engine = &job->engine;
    const tess_dist *dist = engine->dist;
    file->choice = (tess_cut_plan){.batch = 1};
    if (dist->rank >= job->strips.count)
        return TESS_OK;
    request_strip(job, file);
    TESS_TRY(tess_cut_choose(file->model->bound, &file->model->model, engine->rates, &file->request,
                             &file->choice, error));
    const long long idle = (long long)(dist->size - job->strips.count);
    int used = snprintf(file->choice.reason, sizeof file->choice.reason,
                        "%lld ranks share the image in strips of at most %lld rows",
                        (long long)job->strips.count, (long long)job->strips.most);
    if (idle)
        snprintf(file->choice.reason + used, sizeof file->choice.reason - (size_t)used,
                 "; it has no strip for the other %lld", idle);
    return TESS_OK;
}

/* What ranks tell each other about their plans. */
typedef struct strip_plan {
    tess_mem_bytes bytes;
    uint64_t total;
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
    strip_plan mine = {.bytes = file->choice.bytes,
                       .seconds = file->choice.seconds * (double)tess_max_i64(file->info.depth, 1)};
    if (job->engine.dist->rank < job->strips.count)
        mine.bytes.by[TESS_MEM_WEIGHTS] = weights_of(&job->engine);
    mine.total = tess_mem_total(&mine.bytes);
    return mine;
}

/* The job's plan has the most of all ranks, and fits if that does. */
static tess_status share_plans(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    const tess_denoise_file *file = &job->files[0];
    tess_dist *dist = job->engine.dist;
    const uint64_t asked = job->settings->common.memory_limit;
    job->planned = (tess_mem_bytes){{0}};
    job->planned_total = 0;
    job->planned_seconds = 0;
    for (int r = 0; r < dist->size; r++) {
        strip_plan theirs = mine_of(job);
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
            if (theirs.bytes.by[c] > job->planned.by[c])
                job->planned.by[c] = theirs.bytes.by[c];
        job->planned_total = theirs.total > job->planned_total ? theirs.total : job->planned_total;
        job->planned_seconds = theirs.seconds > job->planned_seconds ? theirs.seconds : job->planned_seconds;
    }
    const uint64_t needs = job->planned_total + tess_cut_reserve(false);
    if (needs <= limit)
        return TESS_OK;
    return tess_fail(error, TESS_OVER_LIMIT,
                     "a strip of %lld x %lld pixels needs %s, and %s are allowed for each rank; %s%s%s more "
                     "ranks would do",
                     (long long)job->strips.most, (long long)file->info.width, tess_size_enough(needs).text,
                     tess_size_words(limit).text, asked ? "`memory_limit` " : "",
                     asked ? tess_size_enough(needs).text : "", asked ? ", or" : "only");
}

tess_status tess_denoise_plan_strips(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    TESS_TRY(divide(job, error));
    TESS_TRY(tess_dist_agree(job->engine.dist, plan_strip(job, error), error));
    return share_plans(job, limit, error);
}
