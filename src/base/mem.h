/* mem.h: all memory is allocated here.
 *
 * Blocks (weights, activations, workspace, rows) are what a plan predicts. They are whole pages, made resident
 * at once, so that the counted bytes are the bytes that the system sees, and a run has no page faults. Each
 * block is counted in the caller's tess_memory (base/memory.h). Small pieces (descriptions, names, lists) come
 * from tess_small_alloc, which counts only the calls. */
#ifndef TESS_BASE_MEM_H
#define TESS_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct tess_block {
    void *data;
    size_t bytes; /* as granted: a multiple of the page size */
    tess_mem_category category;
    tess_memory *memory;      /* the counter that includes this block */
    struct tess_help *shared; /* in the segment of this rank, for others to help with; NULL: private */
} tess_block;

/* The number of bytes that a block of `bytes` is counted as. Planning and allocation both use this function. */
size_t tess_block_granted(size_t bytes);
/* Allocates a zeroed, resident block, aligned to the page. Zero bytes give an empty block. */
tess_status tess_block_alloc(tess_memory *memory, tess_block *block, tess_mem_category category, size_t bytes,
                             tess_error *error) TESS_MUST_CHECK;
/* The same, but returns TESS_INTERRUPTED when `stop` (base/stop.h) is set: making gigabytes resident takes
 * seconds. */
typedef struct tess_stop tess_stop;
tess_status tess_block_alloc_watched(tess_memory *memory, tess_block *block, tess_mem_category category,
                                     size_t bytes, tess_stop *stop, tess_error *error) TESS_MUST_CHECK;
/* The same in memory that the ranks of the host share (base/help.h), as long as there is room; NULL: in private memory. */
struct tess_help;
tess_status tess_block_alloc_shared(tess_memory *memory, struct tess_help *help, tess_block *block,
                                    tess_mem_category category, size_t bytes, tess_stop *stop,
                                    tess_error *error) TESS_MUST_CHECK;
void tess_block_free(tess_block *block);

/* Returns zeroed memory, or NULL when there is none. Free with tess_small_free. */
void *tess_small_alloc(size_t count, size_t size);
void *tess_small_realloc(void *old, size_t count, size_t size);
char *tess_small_strdup(const char *text);
void tess_small_free(void *data);

/* For tests. Both work on the whole process, since small pieces belong to no context. The first returns the
 * number of allocations of both kinds so far; the second makes the n-th allocation from now fail (0: none). */
uint64_t tess_mem_calls(void);
void tess_mem_fail_at(uint64_t n);

#endif
