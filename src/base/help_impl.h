/* help_impl.h: the board and the segment, shared by help.c (jobs) and help_memory.c (memory). */
#ifndef TESS_BASE_HELP_IMPL_H
#define TESS_BASE_HELP_IMPL_H

#include <stdatomic.h>

#include "base/help.h"

enum { HELP_LINE = 64, HELP_BLOCKS = 16 };
#define HELP_BOARD ((size_t)4096) /* bytes at the start of the segment */

/* Written by the owner while no part can be taken, but for `word` and `done`. */
typedef struct help_board {
    _Alignas(HELP_LINE) _Atomic uint64_t word; /* number << 32 | parts << 16 | next */
    _Alignas(HELP_LINE) _Atomic uint32_t done; /* parts of this job that others have computed */
    _Alignas(HELP_LINE) _Atomic uint64_t kind; /* these two are read before a part is taken */
    _Atomic uint64_t scratch;
    uint64_t secret;
    _Alignas(HELP_LINE) char text[TESS_HELP_TEXT];
} help_board;
_Static_assert(sizeof(help_board) <= HELP_BOARD, "a board is one page");

typedef struct help_range {
    size_t from, bytes; /* 0: not in use */
} help_range;

struct tess_help {
    int here, locals, file;
    size_t bytes;   /* of each segment */
    char **segment; /* of each rank; NULL: not mapped */
    help_range used[HELP_BLOCKS];
    uint32_t number; /* of this rank's last job */
    int taken;       /* parts of it that this rank took */
    uint64_t kind;   /* of the parts that this rank computes for others */
    tess_help_fn compute;
    void *user;
    char *scratch;
    size_t scratch_bytes, keep;
    int before_owner, before; /* the last part that the scratch was used for */
    uint32_t before_number;
    int64_t parts;
};

static inline help_board *help_board_of(const tess_help *help, int local)
{
    return (help_board *)(void *)help->segment[local];
}

#endif
