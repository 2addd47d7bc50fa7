/* What a rank computes of each batch, and what all ranks plan and measure. */
#include <string.h>

#include "base/process.h"
#include "job/common/same_files.h"
#include "job/train/train_job.h"

/* Whole groups of samples that are drawn together, as far as there are enough of them. */
static tess_train_part even_part(int64_t batch, int64_t group, int rank, int ranks)
{
    const int64_t unit = group > 1 && batch % group == 0 && batch / group >= ranks ? group : 1,
                  units = batch / unit, first = units * rank / ranks;
    return (tess_train_part){.first = first * unit, .count = (units * (rank + 1) / ranks - first) * unit};
}

tess_train_part tess_train_part_of(const tess_train_job *job, int64_t batch, int rank)
{
    const int64_t parts = job->config.micro_batches, ranks = job->dist->size;
    tess_train_part part = even_part(batch, job->config.data.repeats, rank, (int)ranks);
    if (ranks == 1 || (parts > 1 && batch % parts)) { /* the plan refuses the second */
        part = (tess_train_part){.count = batch, .micro_batches = (int)parts};
    } else if (parts >= ranks) {
        const int64_t first = parts * rank / ranks, end = parts * (rank + 1) / ranks, size = batch / parts;
        part = (tess_train_part){first * size, (end - first) * size, (int)(end - first), 0, 0};
    } else {
        part.micro_batches = parts > 0;
    }
    return part;
}

tess_status tess_train_check_parts(const tess_train_job *job, tess_error *error)
{
    if (job->dist->size == 1)
        return TESS_OK;
    if (job->config.network.architecture == TESS_TRAIN_PIPELINE)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "training of a pipeline cannot be shared by %d ranks yet; start it once, without "
                         "mpirun or srun",
                         job->dist->size);
    for (int i = 0; i < job->config.phases.count; i++)
        if (job->config.phases.list[i].batch < job->dist->size)
            return tess_fail(error, TESS_BAD_INPUT,
                             "batch: %lld crop(s) cannot be shared by %d ranks; use a larger batch, or at "
                             "most %lld ranks",
                             (long long)job->config.phases.list[i].batch, job->dist->size,
                             (long long)job->config.phases.list[i].batch);
    return TESS_OK;
}

/* Of everything that decides what is computed. */
static tess_status sum_of_inputs(const tess_train_job *job, uint64_t *out, tess_error *error)
{
    tess_json *config = tess_train_config_json(&job->config);
    char *text = tess_json_dump(config, false), *images = tess_images_sums(job->source->images);
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    if (text && images) {
        tess_xxh64_add(&sum, text, strlen(text) + 1);
        tess_xxh64_add(&sum, images, strlen(images) + 1);
    }
    for (int64_t i = 0; i < tess_images_count(job->source->images); i++)
        tess_same_file_of(&sum, tess_images_at(job->source->images, i)->path, i,
                          tess_images_count(job->source->images));
    tess_same_file(&sum, job->config.network.weights.path);
    *out = tess_xxh64_end(&sum);
    const bool made = text && images;
    tess_json_free(config);
    tess_small_free(text);
    tess_small_free(images);
    return made ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to compare the ranks");
}

typedef struct entry {
    tess_train_part part;
    tess_mem_bytes planned;
    double seconds[TESS_CONFIG_PHASES];
    uint64_t inputs;
} entry;

static tess_status take_entries(tess_train_job *job, const entry *all, tess_error *error)
{
    for (int r = 0; r < job->dist->size; r++) {
        const tess_dist_place *places = job->dist->places;
        if (all[r].inputs != all[0].inputs)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "rank %d (%s) does not see the same configuration, images and weights as rank 0 (%s); "
                "all ranks need the same files",
                r, places[r].host, places[0].host);
        job->parts[r] = all[r].part;
        if (tess_mem_total(&all[r].planned) > tess_mem_total(&job->planned))
            job->planned = all[r].planned;
        for (int i = 0; i < job->config.phases.count; i++)
            if (all[r].seconds[i] > job->choices[i].seconds)
                job->choices[i].seconds = all[r].seconds[i];
    }
    job->choice.seconds = job->choices[job->phase - job->config.phases.list].seconds;
    return TESS_OK;
}

tess_status tess_train_share_plan(tess_train_job *job, tess_error *error)
{
    const size_t ranks = (size_t)job->dist->size;
    if (ranks == 1)
        return TESS_OK;
    entry *all = tess_small_alloc(ranks, sizeof *all), mine = {.part = job->part, .planned = job->planned};
    job->parts = tess_small_alloc(ranks, sizeof *job->parts);
    tess_status status =
        all && job->parts ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    if (status == TESS_OK)
        status = sum_of_inputs(job, &mine.inputs, error);
    mine.part.planned = tess_mem_total(&job->planned);
    for (int i = 0; i < job->config.phases.count; i++)
        mine.seconds[i] = job->choices[i].seconds;
    status = tess_dist_agree(job->dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_gather(job->dist, &mine, sizeof mine, all, error);
    if (status == TESS_OK)
        status = take_entries(job, all, error);
    tess_small_free(all);
    return status;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

typedef struct figures {
    tess_mem_usage peak;
    uint64_t resident, overhead;
} figures;

tess_status tess_train_share_figures(tess_train_job *job, tess_error *error)
{
    figures mine = {.resident = tess_process_peak(), .overhead = job->overhead}, all;
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &mine.peak);
    all = mine;
    for (int r = 0; r < job->dist->size && job->dist->size > 1; r++) {
        figures theirs = mine;
        TESS_TRY(tess_dist_broadcast(job->dist, r, &theirs, sizeof theirs, error));
        tess_mem_usage_raise(&all.peak, &theirs.peak);
        all.resident = most(all.resident, theirs.resident);
        all.overhead = most(all.overhead, theirs.overhead);
        job->parts[r].measured = theirs.peak.total;
    }
    job->peak = all.peak;
    job->resident = all.resident;
    job->overhead = all.overhead;
    return TESS_OK;
}

tess_json *tess_train_parts_record(const tess_train_job *job, bool ran)
{
    tess_json *list = tess_json_array();
    for (int r = 0; r < job->dist->size; r++) {
        const tess_train_part *part = &job->parts[r];
        tess_json *one = tess_json_object();
        tess_json_set_int(&one, "first", part->first);
        tess_json_set_int(&one, "crops", part->count);
        tess_json_set_int(&one, "micro_batches", part->micro_batches);
        tess_json_set_int(&one, "planned_bytes", (int64_t)part->planned);
        if (ran)
            tess_json_set_int(&one, "measured_bytes", (int64_t)part->measured);
        tess_json_append(&list, one);
    }
    return list;
}
