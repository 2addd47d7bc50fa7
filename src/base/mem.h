/* mem.h: all memory comes from here.
 *
 * Blocks (weights, activations, workspace, rows) are what a plan predicts: page-granular mappings, made resident at once,
 * so that the bytes counted are the bytes that the system sees, and a run meets no page fault. Each is counted in the
 * caller's tess_memory (base/memory.h). Small pieces (descriptions, names, lists) go through tess_small_alloc, which
 * counts calls alone. */
#ifndef TESS_BASE_MEM_H
#define TESS_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct tess_block {
    void *data;
    size_t bytes; /* as granted: a multiple of the page */
    tess_mem_category category;
    tess_memory *memory; /* where it is counted */
} tess_block;

/* What a block of `bytes` will be counted as: the size function that planning and allocation share. */
size_t tess_block_granted(size_t bytes);
/* Zeroed, resident, aligned to the page. Zero bytes give an empty block. */
tess_status tess_block_alloc(tess_memory *memory, tess_block *block, tess_mem_category category, size_t bytes,
                             tess_error *error) TESS_MUST_CHECK;
/* The same, given up with TESS_INTERRUPTED when `stop` (base/stop.h) says so: making gigabytes resident takes seconds. */
typedef struct tess_stop tess_stop;
tess_status tess_block_alloc_watched(tess_memory *memory, tess_block *block, tess_mem_category category,
                                     size_t bytes, tess_stop *stop, tess_error *error) TESS_MUST_CHECK;
void tess_block_free(tess_block *block);

/* Zeroed; NULL when there is none. Free with tess_small_free. */
void *tess_small_alloc(size_t count, size_t size);
void *tess_small_realloc(void *old, size_t count, size_t size);
char *tess_small_strdup(const char *text);
void tess_small_free(void *data);

/* For tests, and of the whole process, since small pieces belong to no context: the number of allocations of both kinds so
 * far; and the n-th from now fails (0 = never). */
uint64_t tess_mem_calls(void);
void tess_mem_fail_at(uint64_t n);

#endif
