/* nccl.h: messages between the cards of ranks, by NCCL: from the memory of one card into that of another, without the host. The library
 * is opened at run time. MPI starts the ranks and carries everything else (dist.h).
 *
 * NCCL takes one rank per card. It is used where each rank has a card of its own and all ranks find the same version of the library;
 * elsewhere messages pass through pinned memory (net/relay.h). TESSERA_NCCL chooses: see docs/ranks.md.
 *
 * Messages are work of the device: they are queued on a stream of their own, after what computes them, and a stream that needs what
 * they bring waits for them. The calling thread waits for nothing. One exchange is under way at a time. */
#ifndef TESS_DIST_NCCL_H
#define TESS_DIST_NCCL_H

#include "device/device.h"
#include "dist/dist.h"
#include "dist/nccl_api.h"

/* Whether NCCL can be used, the same on all ranks. */
typedef struct tess_nccl_found {
    bool usable, required;
    char words[160]; /* "NCCL 2.27.7", or why not: "pinned memory: ranks share a card" */
    tess_nccl_api api;
} tess_nccl_found;

/* Collective. Opens the library, and nothing on the device. `shares`: another rank uses this rank's card. Fails, with the same message
 * on all ranks, if NCCL is required and cannot be used. */
tess_status tess_nccl_find(tess_dist *dist, tess_device *device, bool shares, tess_nccl_found *found,
                           tess_error *error) TESS_MUST_CHECK;

/* Owned by the caller, who closes it before the device. */
typedef struct tess_nccl tess_nccl;
/* Collective. Joins the cards of all ranks, and sends first messages, because the library connects two cards, and takes memory for it, at
 * their first message: between all of up to nine ranks, else between each and the next. Further ones are connected when they are used. If it fails on one rank, it fails on all, and nothing is left of it. */
tess_status tess_nccl_open(tess_dist *dist, tess_device *device, const tess_nccl_api *api, tess_nccl **out,
                           tess_error *error) TESS_MUST_CHECK;
/* Collective, unless something has failed; then this rank leaves without the others. Accepts NULL. */
void tess_nccl_close(tess_nccl *nccl);
/* Memory of the card that the library had taken when it was open. */
uint64_t tess_nccl_bytes(const tess_nccl *nccl);

/* Sends and receives, after the work that is queued on `stream`; the list points into the device's memory. Peers match the transfers
 * of a list by their order. Until the end, `send` must not change and `receive` is undefined. After a failure the other ranks may wait
 * for ever: see tess_dist_lose. */
tess_status tess_nccl_begin(tess_nccl *nccl, const tess_dist_transfer *list, int count, tess_stream *stream,
                            tess_error *error) TESS_MUST_CHECK;
/* Makes `stream` wait for what is received. */
tess_status tess_nccl_end(tess_nccl *nccl, tess_stream *stream, tess_error *error) TESS_MUST_CHECK;
/* Collective: sums in place, in the order of `stream`. The order of a sum is the library's. */
tess_status tess_nccl_sum_f32(tess_nccl *nccl, float *values, int64_t count, tess_stream *stream,
                              tess_error *error) TESS_MUST_CHECK;

#endif
