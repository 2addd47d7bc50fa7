#include "dist/assist.h"

#include <stdio.h>
#include <string.h>

#include "base/help.h"
#include "base/mem.h"
#include "base/trace.h"

static bool join_all(tess_dist *dist, const tess_help_address *all)
{
    const tess_dist_place *places = dist->places;
    bool joined = true;
    for (int r = 0; r < dist->size && joined; r++)
        if (strcmp(places[r].host, places[dist->rank].host) == 0)
            joined = tess_help_join(dist->help, places[r].local, &all[r]);
    return joined;
}

/* Collective: *shared is whether all ranks that have others on their host share memory with them. */
static tess_status share(tess_dist *dist, tess_help_address *all, bool *shared, tess_error *error)
{
    const tess_dist_place *place = &dist->places[dist->rank];
    tess_help_address mine = tess_help_address_of(dist->help);
    *shared = true;
    TESS_TRY(tess_dist_gather(dist, &mine, sizeof mine, all, error));
    mine.bytes = place->locals == 1 || (dist->help && join_all(dist, all));
    TESS_TRY(tess_dist_gather(dist, &mine, sizeof mine, all, error));
    for (int r = 0; r < dist->size; r++)
        *shared = *shared && all[r].bytes;
    return TESS_OK;
}

tess_status tess_assist_open(tess_dist *dist, tess_error *error)
{
    const tess_dist_place *place = &dist->places[dist->rank];
    tess_help_address *all = tess_small_alloc((size_t)dist->size, sizeof *all);
    bool shared = false;
    tess_status status =
        all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for %d ranks", dist->size);
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK) {
        dist->help = tess_help_create(place->local, place->locals);
        status = share(dist, all, &shared, error);
    }
    if (!shared)
        tess_assist_close(dist);
    tess_small_free(all);
    return status;
}

void tess_assist_close(tess_dist *dist)
{
    tess_help_destroy(dist->help);
    dist->help = NULL;
}

bool tess_assist_once(const tess_dist *dist)
{
    const double start = tess_trace_begin(dist->trace);
    const int owner = tess_help_once(dist->help);
    if (owner >= 0 && dist->trace) {
        char name[48];
        snprintf(name, sizeof name, "help number %d of the host", owner);
        tess_trace_end(dist->trace, TESS_TRACE_LOOP, name, start);
    }
    return owner >= 0;
}
