/* card_sum.h: adds an array of all ranks in the memory of their cards, element by element in the order of the ranks, with the bits of rank_sum.h:
 * each rank gets its part of the array from all others by NCCL, its card adds it, and all get the sums. Everything is queued on the device; the
 * host waits for nothing. The array moves in pieces, because the parts that a rank receives need memory of their own. */
#ifndef TESS_TRAIN_CARD_SUM_H
#define TESS_TRAIN_CARD_SUM_H

#include "device/device.h"
#include "dist/nccl.h"

typedef struct tess_card_sum tess_card_sum; /* owned by the caller: tess_card_sum_close */

/* Memory of the device that open allocates, as workspace and as counted. */
size_t tess_card_sum_bytes(tess_device *device, int64_t count, int ranks);
/* Not collective. `values`: `count` values in the device's memory, the same number on all ranks, which outlive this, as `nccl` does. */
tess_status tess_card_sum_open(tess_dist *dist, tess_nccl *nccl, tess_device *device, float *values,
                               int64_t count, tess_card_sum **out, tess_error *error) TESS_MUST_CHECK;
void tess_card_sum_close(tess_card_sum *sum); /* accepts NULL; its work on the device must be done */
/* Collective. Queues the sum, in the order of the stream. After a failure the other ranks may wait for ever: see tess_dist_lose. */
tess_status tess_card_sum_run(tess_card_sum *sum, tess_stream *stream, tess_error *error) TESS_MUST_CHECK;

#endif
