/* Whether exchanges between cards can go by NCCL. Every rank says what it has, and all draw the same conclusion. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "dist/nccl.h"

typedef struct state {
    tess_nccl_wish wish; /* without the pointer */
    bool shares, untold; /* untold: the CPU in place of a card, for tests, has NCCL only if it is asked for */
    int version;         /* 0: no library */
    char why[128];       /* there is none */
} state;

static void name_version(char *text, size_t size, int version)
{
    const int major = version / (version < 10000 ? 1000 : 10000);
    snprintf(text, size, "NCCL %d.%d.%d", major, version / 100 % (version < 10000 ? 10 : 100), version % 100);
}

/* Why this rank keeps all from using NCCL; "": it does not. */
static void why_not(const state *all, int rank, char *why, size_t size)
{
    const state *one = &all[rank];
    why[0] = '\0';
    if (one->wish.off)
        snprintf(why, size, "TESSERA_NCCL=0");
    else if (one->untold)
        snprintf(why, size, "the device is no card");
    else if (one->shares)
        snprintf(why, size, "ranks share a card");
    else if (!one->version)
        snprintf(why, size, "%s", one->why);
    else if (one->version != all[0].version)
        snprintf(why, size, "rank %d has NCCL %d and rank 0 %d", rank, one->version, all[0].version);
}

static state look(tess_device *device, bool shares, tess_nccl_api *api)
{
    tess_error error;
    state mine;
    memset(&mine, 0, sizeof mine);
    mine.wish = tess_nccl_wished();
    mine.shares = shares;
    mine.untold = device->host_memory && !mine.wish.asked;
    if (mine.wish.off || mine.untold || shares)
        return mine;
    if (tess_nccl_load(mine.wish.file, api, &error) == TESS_OK)
        mine.version = api->version;
    else
        snprintf(mine.why, sizeof mine.why, "%.*s", (int)sizeof mine.why - 1, error.text);
    mine.wish.file = NULL;
    return mine;
}

tess_status tess_nccl_find(tess_dist *dist, tess_device *device, bool shares, tess_nccl_found *found,
                           tess_error *error)
{
    char why[sizeof found->words - 32] = "";
    memset(found, 0, sizeof *found);
    const state mine = look(device, shares, &found->api);
    state *all = tess_small_alloc((size_t)dist->size, sizeof *all);
    tess_status status = all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_gather(dist, &mine, sizeof mine, all, error);
    for (int r = 0; r < dist->size && status == TESS_OK; r++) {
        found->required = found->required || all[r].wish.required;
        if (!why[0])
            why_not(all, r, why, sizeof why);
    }
    if (status == TESS_OK && !why[0]) {
        found->usable = true;
        name_version(found->words, sizeof found->words, all[0].version);
    }
    tess_small_free(all);
    TESS_TRY(status);
    if (why[0])
        snprintf(found->words, sizeof found->words, "pinned memory: %s", why);
    return why[0] && found->required
               ? tess_fail(error, TESS_UNSUPPORTED,
                           "TESSERA_NCCL=1: %s; without it, exchanges go through pinned memory", why)
               : TESS_OK;
}
