/* The devices of the ranks that share a job. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "job/common/engine.h"

tess_status tess_engine_compare(tess_engine *engine, tess_error *error)
{
    typedef struct entry {
        char kind[16];
        uint64_t id;
    } entry;
    tess_dist *dist = engine->dist;
    if (dist->size == 1)
        return TESS_OK;
    entry mine = {.id = engine->facts.id}, *all = tess_small_alloc((size_t)dist->size, sizeof *all);
    tess_status status = all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    snprintf(mine.kind, sizeof mine.kind, "%s", engine->device->kind);
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_gather(dist, &mine, sizeof mine, all, error);
    engine->sharing = 0;
    for (int r = 0; r < dist->size && status == TESS_OK; r++) {
        engine->sharing +=
            all[r].id == mine.id && strcmp(dist->places[r].host, dist->places[dist->rank].host) == 0;
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
