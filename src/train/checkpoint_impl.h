/* checkpoint_impl.h: the format of a checkpoint and the open folder, shared by checkpoint*.c.
 *
 *   8 bytes   magic
 *   8 bytes   version (little-endian, as all numbers)
 *   8 bytes   length of the header, a multiple of 64 minus 24, so that the blocks are aligned
 *   header    JSON, padded with spaces
 *   blocks    fp32, those that the header lists, one after another
 *   8 bytes   XXH64 of all bytes before it */
#ifndef TESS_TRAIN_CHECKPOINT_IMPL_H
#define TESS_TRAIN_CHECKPOINT_IMPL_H

#include "base/mem.h"
#include "train/checkpoint.h"
#include "train/checksum.h"

#define TESS_CHECKPOINT_MAGIC "TESSCKPT"
enum {
    TESS_CHECKPOINT_VERSION = 1,
    TESS_CHECKPOINT_HEAD = 24,
    TESS_CHECKPOINT_TAIL = 8,
    TESS_CHECKPOINT_HEADER_MOST = 64 << 20,
    TESS_CHECKPOINT_KEPT = 2
};

struct tess_checkpoints {
    char *folder;
    int lock; /* descriptor of the folder: holds the lock, and syncs its names */
    tess_block buffer;
};

/* Steps of the checkpoints in the folder, newest first. The caller frees *steps. */
tess_status tess_checkpoints_list(const tess_checkpoints *checkpoints, int64_t **steps, int *count,
                                  tess_error *error) TESS_MUST_CHECK;
/* Path of the checkpoint of a step, which the caller frees; NULL: no memory. */
char *tess_checkpoint_path(const tess_checkpoints *checkpoints, int64_t step);
/* "first_moment" */
const char *tess_checkpoint_block_name(tess_training_state state);

#endif
