#include "job/common/card_links.h"

#include <stdio.h>

#include "job/common/note.h"

/* Without NCCL the job goes on, unless NCCL is required, or the failure is none of NCCL's. */
static tess_status connect(tess_card_links *links, tess_engine *engine, const tess_common *common,
                           const tess_nccl_found *found, tess_error *error)
{
    const tess_status status = tess_nccl_open(engine->dist, engine->device, &found->api, &links->nccl, error);
    if (status != TESS_DEVICE_LOST)
        return status;
    if (found->required)
        return tess_fail_prefix(error, TESS_UNSUPPORTED, "TESSERA_NCCL=1");
    links->by_nccl = false;
    snprintf(links->words, sizeof links->words, "pinned memory: %.*s", (int)sizeof links->words - 16,
             error->text);
    tess_note(common, TESS_NOTE_WARNING,
              "NCCL cannot be used (%s): messages between cards pass through pinned memory", error->text);
    error->text[0] = '\0';
    return TESS_OK;
}

tess_status tess_card_links_open(tess_card_links *links, tess_engine *engine, const tess_common *common,
                                 bool connects, tess_error *error)
{
    tess_nccl_found found;
    const bool shares = engine->facts.id && engine->sharing > 1;
    TESS_TRY(tess_nccl_find(engine->dist, engine->device, shares, &found, error));
    links->by_nccl = found.usable;
    snprintf(links->words, sizeof links->words, "%s", found.words);
    if (!found.usable || !connects)
        return TESS_OK;
    TESS_TRY(connect(links, engine, common, &found, error));
    engine->device->facts(engine->device, &engine->facts);
    return TESS_OK;
}

size_t tess_card_links_pinned(const tess_card_links *links, size_t exchange_bytes)
{
    return links->by_nccl ? 0 : tess_block_granted(exchange_bytes);
}

tess_status tess_card_links_join(const tess_card_links *links, tess_device *device, size_t exchange_bytes,
                                 tess_neighbours *n, tess_error *error)
{
    n->nccl = links->nccl;
    return exchange_bytes && !n->nccl ? tess_neighbours_relay(n, device, exchange_bytes, error) : TESS_OK;
}

tess_status tess_card_links_check(tess_dist *dist, const tess_neighbours *n, tess_status status,
                                  tess_error *error)
{
    if (n->nccl && (n->lost || status == TESS_DEVICE_LOST))
        tess_dist_lose(dist, n->lost ? n->error.text : error->text);
    return n->status == TESS_OK ? status : tess_fail(error, n->status, "%s", n->error.text);
}

void tess_card_links_close(tess_card_links *links)
{
    tess_nccl_close(links->nccl);
    links->nccl = NULL;
}
