/* checkpoint.h: the state of a run in a file, so that a run can be continued after it was killed at any moment.
 *
 * A file holds a magic number, a JSON header (configuration, state, names and shapes of all parameters, sizes of the
 * blocks), the blocks as fp32, and the XXH64 of everything before it. It is written under a temporary name, synced and
 * renamed, and its folder is synced: the name step-N.ckpt is always a whole file, unless the disk damages it. The
 * last two are kept. Values move through a small buffer; no block is held a second time. */
#ifndef TESS_TRAIN_CHECKPOINT_H
#define TESS_TRAIN_CHECKPOINT_H

#include "base/memory.h"
#include "net/training.h"
#include "train/data_images.h"
#include "train/schedule.h"

enum { TESS_CHECKPOINT_BUFFER = 1 << 20 }; /* bytes of host memory that an open folder holds */

/* The blocks of a run, by tess_training_state, fetched and stored in pieces. `sizes`: values of each; 0: none. */
typedef struct tess_checkpoint_blocks {
    int64_t sizes[TESS_STATES];
    void *user;
    tess_status (*get)(void *user, tess_training_state state, int64_t first, int64_t count, float *values,
                       tess_error *error);
    tess_status (*set)(void *user, tess_training_state state, int64_t first, int64_t count,
                       const float *values, tess_error *error);
} tess_checkpoint_blocks;

typedef struct tess_checkpoints tess_checkpoints; /* owned by the caller: tess_checkpoints_close */

/* Opens a folder of checkpoints for one run, and makes it if it is missing. A folder that another run uses is refused.
 * Temporary files of runs that were killed are removed. `memory` counts the buffer and outlives this. */
tess_status tess_checkpoints_open(tess_memory *memory, const char *folder, tess_checkpoints **out,
                                  tess_error *error) TESS_MUST_CHECK;
void tess_checkpoints_close(tess_checkpoints *checkpoints);
/* For a run that starts at step 0: refuses a folder with checkpoints, which it would mix with its own. */
tess_status tess_checkpoints_check_empty(const tess_checkpoints *checkpoints,
                                         tess_error *error) TESS_MUST_CHECK;

/* What a checkpoint describes. */
typedef struct tess_checkpoint_contents {
    const tess_train_config *config;
    const tess_parameters *parameters;
    tess_checkpoint_blocks blocks;
    const tess_images
        *images; /* that the run draws from: must be the same when it continues; NULL: not compared */
} tess_checkpoint_contents;

/* Writes step-N.ckpt for state->step, then removes all others but the one before it. */
tess_status tess_checkpoint_write(tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents,
                                  const tess_train_state *state, tess_error *error) TESS_MUST_CHECK;

/* Continues from the newest checkpoint that is whole. Damaged ones are skipped, with a line for each through `note` (may be
 * NULL). A checkpoint of another network is refused by the first parameter that differs, a changed configuration
 * by its key, and other images by the name of one. On failure no block was changed, unless reading failed in the middle of them. */
tess_status tess_checkpoint_read(tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents,
                                 tess_note_fn note, void *user, tess_train_state *state,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
