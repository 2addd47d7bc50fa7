#include "job/denoise/denoise.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/process.h"
#include "job/common/note.h"
#include "job/common/same_files.h"

typedef struct listing {
    int64_t count;
    uint64_t sum; /* of names, files and what is skipped */
} listing;

static listing listing_of(const tess_denoise_job *job)
{
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        struct stat about;
        const int64_t bytes = stat(file->input, &about) == 0 ? (int64_t)about.st_size : -1;
        tess_xxh64_add(&sum, file->name, strlen(file->name) + 1);
        tess_xxh64_add(&sum, &bytes, sizeof bytes);
        tess_xxh64_add(&sum, &file->skipped, sizeof file->skipped);
        if (!file->skipped)
            tess_same_file_of(&sum, file->input, i, job->count);
    }
    return (listing){job->count, tess_xxh64_end(&sum)};
}

/* A rank that had no file to describe has not opened the model yet. */
static tess_status check_model(const char *name, tess_error *error)
{
    char path[4096];
    tess_weights *weights = NULL;
    if (!name || tess_model_is_random(name))
        return TESS_OK;
    TESS_TRY(tess_model_find(name, path, sizeof path, error));
    TESS_TRY(tess_weights_open(path, &weights, error));
    tess_weights_close(weights);
    return TESS_OK;
}

tess_status tess_denoise_same_model(tess_denoise_job *job, tess_error *error)
{
    tess_xxh64 sum;
    if (job->engine.dist->size == 1)
        return TESS_OK;
    TESS_TRY(tess_dist_agree(job->engine.dist, check_model(job->settings->model, error), error));
    tess_xxh64_begin(&sum);
    tess_same_model(&sum, job->settings->model);
    return tess_engine_same_inputs(&job->engine, tess_xxh64_end(&sum), error);
}

tess_status tess_denoise_same_list(tess_denoise_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    if (dist->size == 1)
        return TESS_OK;
    const listing mine = listing_of(job);
    listing *all = tess_small_alloc((size_t)dist->size, sizeof *all);
    tess_status status = all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_gather(dist, &mine, sizeof mine, all, error);
    for (int r = 1; r < dist->size && status == TESS_OK; r++)
        if (all[r].count != all[0].count || all[r].sum != all[0].sum)
            status =
                tess_fail(error, TESS_BAD_INPUT,
                          "rank %d (%s) does not see the same files as rank 0 (%s): %lld, and rank 0 %lld%s; "
                          "all ranks need the same folders",
                          r, dist->places[r].host, dist->places[0].host, (long long)all[r].count,
                          (long long)all[0].count,
                          all[r].count == all[0].count ? " of other names, sizes or contents" : "");
    tess_small_free(all);
    if (status == TESS_OK && job->folder && job->count < dist->size)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%d ranks share %lld file(s): %lld of them have nothing to do", dist->size,
                  (long long)job->count, (long long)(dist->size - job->count));
    return status;
}

typedef struct plan_parts {
    tess_mem_bytes planned;
    uint64_t planned_total, host_bytes;
    double planned_seconds;
    tess_queue_sizes queue_sizes;
} plan_parts;

tess_status tess_denoise_share_plan(tess_denoise_job *job, tess_status mine, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    if (dist->size == 1)
        return mine;
    TESS_TRY(tess_dist_agree(dist, mine, error));
    for (int64_t i = 0; i < job->count && dist->rank == 0; i++)
        job->files[i].fresh = !job->files[i].skipped;
    TESS_TRY(tess_denoise_share(job, error));
    plan_parts parts = {job->planned, job->planned_total, job->host_bytes, job->planned_seconds,
                        job->queue_sizes};
    TESS_TRY(tess_dist_broadcast(dist, 0, &parts, sizeof parts, error));
    job->planned = parts.planned;
    job->planned_total = parts.planned_total;
    job->host_bytes = parts.host_bytes;
    job->queue_sizes = parts.queue_sizes;
    /* The ranks work at the same time, but not at the same file. */
    double longest = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (tess_denoise_todo(&job->files[i]) && job->files[i].choice.seconds > longest)
            longest = job->files[i].choice.seconds;
    const double shared = parts.planned_seconds / dist->size;
    job->planned_seconds = shared > longest ? shared : longest;
    return TESS_OK;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

typedef struct figures {
    tess_mem_usage peak;
    uint64_t resident, overhead, loaded, host_bytes, nccl_bytes;
    double seconds; /* of its files, or of its device */
} figures;

tess_status tess_denoise_share_figures(tess_denoise_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    const bool queued = job->engine.separate_memory && !job->volumes;
    figures mine = {.resident = tess_process_peak(),
                    .overhead = job->overhead,
                    .loaded = job->loaded,
                    .host_bytes = job->host_bytes,
                    .nccl_bytes = tess_nccl_bytes(job->links.nccl),
                    .seconds = queued ? job->figures.seconds : 0};
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &mine.peak);
    for (int64_t i = 0; i < job->count && !queued; i++)
        if (tess_denoise_todo(&job->files[i]) && job->files[i].rank == dist->rank)
            mine.seconds += job->files[i].seconds;
    figures all = mine;
    for (int r = 0; r < dist->size; r++) {
        figures theirs = mine;
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        tess_mem_usage_raise(&all.peak, &theirs.peak);
        all.resident = most(all.resident, theirs.resident);
        all.overhead = most(all.overhead, theirs.overhead);
        all.loaded = most(all.loaded, theirs.loaded);
        all.host_bytes = most(all.host_bytes, theirs.host_bytes);
        all.nccl_bytes = most(all.nccl_bytes, theirs.nccl_bytes);
        all.seconds = theirs.seconds > all.seconds ? theirs.seconds : all.seconds;
        if (job->ranks)
            job->ranks[r].measured = theirs.peak.total;
    }
    job->peak = all.peak;
    job->resident = all.resident;
    job->overhead = all.overhead;
    job->loaded = all.loaded;
    job->host_bytes = all.host_bytes;
    job->links.bytes = all.nccl_bytes;
    job->seconds = all.seconds;
    return TESS_OK;
}

/* Larger plans first; equal ones in the order of the files. */
static int larger_first(const void *one, const void *other)
{
    const tess_denoise_order *a = one, *b = other;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

tess_status tess_denoise_deal(tess_denoise_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    tess_status status = TESS_OK;
    if (dist->size > 1) {
        tess_small_free(job->order);
        job->order = tess_small_alloc((size_t)job->count, sizeof *job->order);
        status = tess_dist_agree(
            dist, job->order ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the files"), error);
    }
    for (int64_t i = 0; i < job->count && status == TESS_OK && dist->size > 1; i++)
        job->order[i] = (tess_denoise_order){job->files[i].choice.seconds, i};
    if (status == TESS_OK && dist->size > 1)
        qsort(job->order, (size_t)job->count, sizeof *job->order, larger_first);
    job->counter = tess_dist_counter(dist);
    return status;
}

int64_t tess_denoise_take(tess_denoise_job *job)
{
    for (;;) {
        const int64_t number = tess_dist_next(job->engine.dist, job->counter);
        if (number >= job->count)
            return -1;
        const int64_t index = job->order ? job->order[number].index : number;
        tess_denoise_file *file = &job->files[index];
        if (!tess_denoise_todo(file))
            continue;
        file->rank = job->engine.dist->rank;
        file->fresh = true;
        return index;
    }
}
