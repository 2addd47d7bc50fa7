/* The devices of the ranks that share a job. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "job/common/engine.h"

tess_status tess_engine_rank_devices(tess_engine *engine, tess_rank_device **all, tess_error *error)
{
    tess_dist *dist = engine->dist;
    tess_rank_device mine = {.id = engine->facts.id};
    snprintf(mine.kind, sizeof mine.kind, "%s", engine->device->kind);
    snprintf(mine.name, sizeof mine.name, "%s", engine->facts.name);
    *all = tess_small_alloc((size_t)dist->size, sizeof **all);
    tess_status status = *all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_gather(dist, &mine, sizeof mine, *all, error);
    if (status == TESS_OK)
        return TESS_OK;
    tess_small_free(*all);
    *all = NULL;
    return status;
}

bool tess_engine_same_device(const tess_engine *engine, const tess_rank_device *all, int a, int b)
{
    const tess_dist_place *places = engine->dist->places;
    return all[a].id == all[b].id && strcmp(places[a].host, places[b].host) == 0;
}

tess_status tess_engine_compare(tess_engine *engine, tess_error *error)
{
    tess_dist *dist = engine->dist;
    tess_rank_device *all;
    tess_status status = TESS_OK;
    if (dist->size == 1)
        return TESS_OK;
    TESS_TRY(tess_engine_rank_devices(engine, &all, error));
    engine->sharing = 0;
    for (int r = 0; r < dist->size && status == TESS_OK; r++) {
        engine->sharing += tess_engine_same_device(engine, all, r, dist->rank);
        if (strcmp(all[r].kind, all[0].kind) != 0)
            status =
                tess_fail(error, TESS_UNSUPPORTED,
                          "rank %d (%s) computes on %s and rank 0 (%s) on %s; set `device` to one that all "
                          "hosts have",
                          r, dist->places[r].host, all[r].kind, dist->places[0].host, all[0].kind);
    }
    tess_small_free(all);
    return status;
}

tess_status tess_engine_open_ranks(tess_engine *engine, tess_dist *dist, tess_memory *memory,
                                   const tess_common *common, tess_error *error)
{
    if (!dist || dist->size == 1)
        return tess_engine_open(engine, memory, common, error);
    TESS_TRY(tess_dist_agree(dist, tess_engine_open_on(engine, dist, memory, common, error), error));
    return tess_engine_compare(engine, error);
}

void tess_engine_help(tess_engine *engine)
{
    if (strcmp(engine->device->kind, "cpu") == 0 && !engine->separate_memory && engine->dtype == TESS_F32 &&
        tess_pool_threads(engine->host) == 1)
        engine->device->help = engine->dist->help;
}

tess_status tess_engine_same_inputs(tess_engine *engine, uint64_t hash, tess_error *error)
{
    tess_dist *dist = engine->dist;
    uint64_t first = hash;
    int other = -1;
    for (int r = 0; r < dist->size; r++) { /* few numbers: simpler than a gather */
        uint64_t theirs = hash;
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        first = r == 0 ? theirs : first;
        other = other < 0 && theirs != first ? r : other;
    }
    if (other < 0)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "rank %d (%s) does not see the same input files as rank 0 (%s); all ranks need the same "
                     "folders",
                     other, dist->places[other].host, dist->places[0].host);
}

tess_status tess_engine_share_limit(tess_engine *engine, uint64_t *limit, tess_error *error)
{
    uint64_t least = *limit;
    for (int r = 0; r < engine->dist->size; r++) {
        uint64_t theirs = *limit;
        TESS_TRY(tess_dist_broadcast(engine->dist, r, &theirs, sizeof theirs, error));
        least = theirs < least ? theirs : least;
    }
    *limit = least;
    return TESS_OK;
}

tess_status tess_engine_share_figures(tess_engine *engine, tess_engine_figures *figures, tess_error *error)
{
    tess_engine_figures all = *figures;
    all.units = 0;
    all.operations = 0;
    for (int r = 0; r < engine->dist->size; r++) {
        tess_engine_figures theirs = *figures;
        TESS_TRY(tess_dist_broadcast(engine->dist, r, &theirs, sizeof theirs, error));
        tess_mem_usage_raise(&all.peak, &theirs.peak);
        all.resident = theirs.resident > all.resident ? theirs.resident : all.resident;
        all.overhead = theirs.overhead > all.overhead ? theirs.overhead : all.overhead;
        all.seconds = theirs.seconds > all.seconds ? theirs.seconds : all.seconds;
        all.units += theirs.units;
        all.operations += theirs.operations;
    }
    *figures = all;
    return TESS_OK;
}
