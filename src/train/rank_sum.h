/* rank_sum.h: adds an array of all ranks, element by element in the order of the ranks, so that all get the same bits, whatever
 * the library does and however the array is divided. Each rank adds one part of the array and gives it to the others: it sends
 * and receives twice the array, whatever the number of ranks.
 *
 * The array moves in pieces, from its end to its start, as the backward pass makes gradients: a piece is on its way as soon as
 * the caller says that it is final. */
#ifndef TESS_TRAIN_RANK_SUM_H
#define TESS_TRAIN_RANK_SUM_H

#include "device/device.h"
#include "dist/dist.h"

typedef struct tess_rank_sum tess_rank_sum; /* owned by the caller: tess_rank_sum_close */

/* Host memory that open allocates, as counted; `staged`: the array is not in host memory. */
size_t tess_rank_sum_bytes(int64_t count, int ranks, bool staged);
/* Not collective. `values`: `count` values, the same number on all ranks, which outlive this. */
tess_status tess_rank_sum_open(tess_dist *dist, tess_device *device, float *values, int64_t count,
                               bool staged, tess_rank_sum **out, tess_error *error) TESS_MUST_CHECK;
void tess_rank_sum_close(tess_rank_sum *sum); /* accepts NULL */
/* Values from `from` on are final: begins to move the pieces that are. Called as often as possible: it also moves on what is
 * under way. Keeps a failure for tess_rank_sum_end. `sum` is a tess_rank_sum: this is a tess_gradients_fn. */
void tess_rank_sum_ready(void *sum, int64_t from);
/* Collective. All values are final: waits until they are added on all ranks. The next call begins the next sum. */
tess_status tess_rank_sum_end(tess_rank_sum *sum, tess_error *error) TESS_MUST_CHECK;

#endif
