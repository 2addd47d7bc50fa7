/* Runs: tiles of the coarsest map first, each level put together before the next; then the output. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "job/common/note.h"
#include "job/fill/fill_job.h"
#include "train/checksum.h"

static void add_file(tess_xxh64 *sum, const char *path)
{
    struct stat facts;
    if (path && stat(path, &facts) == 0) {
        const int64_t parts[3] = {facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
        tess_xxh64_add(sum, parts, sizeof parts);
    }
}

static void add_text(tess_xxh64 *sum, const char *text)
{
    tess_xxh64_add(sum, text ? text : "", text ? strlen(text) + 1 : 1);
}

uint64_t tess_fill_fingerprint(const tess_fill_job *job, bool device)
{
    const tess_fill_settings *s = job->settings;
    const tess_fill_map *map = &job->map;
    const double numbers[] = {s->eta, s->most_distance, s->nodata, map->low, map->high, map->base};
    const int64_t counts[] = {s->sampler,
                              job->step_count,
                              job->tile,
                              job->overlap,
                              job->samples,
                              s->scaling,
                              s->voids,
                              (int64_t)s->common.seed,
                              map->levels[0].height,
                              map->levels[0].width,
                              map->valid_pixels,
                              map->count};
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    tess_xxh64_add(&sum, numbers, sizeof numbers);
    tess_xxh64_add(&sum, counts, sizeof counts);
    add_text(&sum, s->schedule);
    if (device) {
        add_text(&sum, job->engine.precision);
        add_text(&sum, job->engine.facts.name);
    }
    add_file(&sum, s->input);
    add_file(&sum, s->mask);
    add_file(&sum, s->second);
    add_file(&sum, job->model_path);
    for (int i = 0; i < map->count; i++) {
        const tess_bitmap *wanted = &map->levels[i].wanted;
        tess_xxh64_add(&sum, wanted->bits, (size_t)(wanted->h * wanted->words) * sizeof *wanted->bits);
    }
    return tess_xxh64_end(&sum);
}

static tess_status load(tess_fill_job *job, tess_error *error)
{
    tess_device *device = job->engine.device;
    struct {
        const tess_bound *bound;
        tess_block *block;
    } const all[] = {{job->embedding, &job->embedding_weights}, {job->step, &job->step_weights}};
    for (int i = 0; i < 2; i++) {
        TESS_TRY(device->memory->alloc(device, all[i].block, TESS_MEM_WEIGHTS,
                                       tess_bound_weight_bytes(all[i].bound), error));
        TESS_TRY(tess_bound_load(all[i].bound, job->file, all[i].block->data, error));
    }
    return device->streams->sync(device, NULL, error);
}

static tess_fill_blend blend_of(tess_fill_job *job)
{
    return (tess_fill_blend){.map = &job->map,
                             .list = &job->list,
                             .journal = job->journal,
                             .deviations = job->samples > 1,
                             .factor = job->deviation_factor,
                             .stop = &job->engine.stop,
                             .memory = job->engine.memory};
}

/* The tiles of a level. Ranks take them in turn, until there is no more or a rank has failed. */
static tess_status compute_level(tess_fill_job *job, int level, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    tess_status status = TESS_OK;
    for (int guided = 0; guided < 2; guided++) {
        job->counter = tess_dist_counter(dist);
        if (status == TESS_OK)
            status = tess_fill_group(job, level, guided, error);
        if (status != TESS_OK)
            tess_dist_drain(dist, job->counter);
    }
    return tess_dist_agree(dist, status, error);
}

/* Rank 0 puts a level together for all. */
static tess_status blend_level(tess_fill_job *job, int level, tess_error *error)
{
    const tess_fill_blend blend = blend_of(job);
    const tess_fill_level *l = &job->map.levels[level];
    tess_dist *dist = job->engine.dist;
    TESS_TRY(tess_fill_journal_share(job->journal, error));
    const tess_status status = dist->rank == 0 ? tess_fill_blend_level(&blend, level, error) : TESS_OK;
    TESS_TRY(tess_dist_agree(dist, status, error));
    return tess_dist_broadcast(dist, 0, l->values, (size_t)(l->height * l->width) * sizeof *l->values, error);
}

static tess_status compute_levels(tess_fill_job *job, tess_error *error)
{
    for (int level = job->map.count; level-- > 0;) {
        TESS_TRY(compute_level(job, level, error));
        if (level > 0)
            TESS_TRY(blend_level(job, level, error));
    }
    return TESS_OK;
}

static tess_status compute(tess_fill_job *job, tess_error *error)
{
    tess_device *device = job->engine.device;
    const double start = tess_clock();
    TESS_TRY(tess_dist_agree(job->engine.dist, load(job, error), error));
    tess_engine_learn_weights(&job->engine, tess_clock() - start, (double)job->net.parameters);
    const tess_status status = compute_levels(job, error);
    job->reading = tess_meter_end(device, job->meter);
    job->meter = NULL;
    tess_error other;
    const tess_status shared = tess_fill_journal_share(job->journal, status == TESS_OK ? error : &other);
    TESS_TRY(status != TESS_OK ? status : shared);
    device->memory->free(device, &job->embedding_weights);
    device->memory->free(device, &job->step_weights);
    return TESS_OK;
}

static tess_status write_outputs(tess_fill_job *job, tess_raster_output *output,
                                 tess_raster_output *deviation, tess_error *error)
{
    const tess_fill_blend blend = blend_of(job);
    if (job->list.count > 0)
        TESS_TRY(tess_fill_blend_write(&blend, output, deviation, job->second, &job->seams, error));
    if (job->truth)
        TESS_TRY(tess_fill_compare(&job->map, output, job->truth, job->engine.memory, &job->engine.stop,
                                   &job->quality, error));
    return tess_stop_check(&job->engine.stop, error);
}

/* Both outputs are complete before either gets its name. */
static tess_status write(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    const tess_raster_target target = tess_fill_target(s);
    tess_raster_output *output = NULL, *deviation = NULL;
    tess_status status =
        tess_raster_output_create(job->raster, s->output, &target, &job->engine.stop, &output, error);
    if (status == TESS_OK && s->deviation)
        status = tess_raster_like(job->raster, s->deviation, "standard deviation", &deviation, error);
    if (status == TESS_OK)
        status = write_outputs(job, output, deviation, error);
    if (status == TESS_OK && deviation) {
        char ignored[8];
        status = tess_raster_output_commit(deviation, &job->engine.stop, ignored, sizeof ignored, error);
        deviation = NULL;
    }
    if (status == TESS_OK) {
        status = tess_raster_output_commit(output, &job->engine.stop, job->notes, sizeof job->notes, error);
        output = NULL;
    }
    tess_raster_output_abandon(deviation);
    tess_raster_output_abandon(output);
    return status;
}

/* Says what is kept of a run that was stopped. */
static tess_status stopped(const tess_fill_job *job, tess_error *error)
{
    const int64_t count = tess_fill_journal_count(job->journal);
    if (count == 0)
        return TESS_INTERRUPTED;
    return tess_fail(error, TESS_INTERRUPTED,
                     "stopped; %lld of %lld tiles are finished and kept, and `resume` goes on",
                     (long long)count, (long long)job->list.count);
}

static int64_t values_of(const void *user, int64_t tile)
{
    const tess_fill_job *job = user;
    return job->list.tiles[tile].pixels * (int64_t)(job->samples > 1 ? 2 : 1);
}

static tess_status open_journal(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    const tess_fill_journal_settings journal = {.output = s->output,
                                                .fingerprint = tess_fill_fingerprint(job, true),
                                                .tiles = job->list.count,
                                                .most = 2 * job->tile * job->tile,
                                                .count_of = values_of,
                                                .user = job,
                                                .resume = s->resume,
                                                .memory = job->engine.memory,
                                                .dist = job->engine.dist};
    TESS_TRY(tess_fill_journal_open(&journal, &job->journal, error));
    job->resumed = tess_fill_journal_count(job->journal);
    if (s->resume && job->resumed > 0)
        tess_note(&s->common, TESS_NOTE_DETAIL, "%lld of %lld tiles were there already",
                  (long long)job->resumed, (long long)job->list.count);
    return TESS_OK;
}

tess_status tess_fill_run(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    tess_dist *dist = job->engine.dist;
    TESS_TRY(open_journal(job, error));
    tess_stop_begin(&job->engine.stop, (job->list.count - job->resumed) * job->samples * job->step_count);
    tess_status status = job->list.count > 0 ? compute(job, error) : TESS_OK;
    if (status == TESS_OK)
        status = tess_dist_agree(dist, dist->rank == 0 ? write(job, error) : TESS_OK, error);
    if (status == TESS_INTERRUPTED)
        return stopped(job, error);
    if (status != TESS_OK && tess_fill_journal_count(job->journal) > 0) /* a full disk, for example */
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%lld of %lld tiles are finished and kept in %s.unfinished; `resume` goes on",
                  (long long)tess_fill_journal_count(job->journal), (long long)job->list.count, s->output);
    TESS_TRY(status);
    tess_stop_end(&job->engine.stop);
    tess_fill_journal_close(job->journal, true);
    job->journal = NULL;
    return TESS_OK;
}
