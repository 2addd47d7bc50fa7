/* tessera_ranks.h: one job by several processes, the ranks 0 to N - 1, which mpirun or srun has started with the same
 * arguments. docs/ranks.md says which jobs can be shared.
 *
 * A program joins first, and then makes the same calls on all ranks: jobs are collective, return the same status and
 * message on all of them, and a record on rank 0 alone. Only rank 0 should print. A process that was not started as one
 * of several is rank 0 of 1, with or without joining, and needs no MPI. */
#ifndef TESSERA_RANKS_H
#define TESSERA_RANKS_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called by another thread when a rank has died or does not answer, before this process ends. `text` is one line to
 * print, or NULL if another rank reports it. A job that is under way may fail after it, because of it: its message
 * should not be printed too. */
typedef void (*tess_lost_fn)(const char *text);

/* Collective. `words` are the arguments of the program, which must be the same on all ranks; `lost` may be NULL. Fails on
 * all ranks if one of them runs another version, or if this build cannot join ranks; tess_context_rank is then still
 * right. */
TESS_API tess_status tess_context_join(tess_context *context, const char *const *words, int count,
                                       tess_lost_fn lost) TESS_MUST_CHECK;
TESS_API int tess_context_rank(const tess_context *context);
TESS_API int tess_context_ranks(const tess_context *context); /* how many there are */
/* Collective. Returns TESS_OK if `mine` is that on all ranks. Otherwise all ranks get the status of the lowest rank that
 * failed, and its `message` as tess_context_error. */
TESS_API tess_status tess_context_agree(tess_context *context, tess_status mine,
                                        const char *message) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
