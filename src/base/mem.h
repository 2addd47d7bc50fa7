/* mem.h: the one door for memory, counted.
 *
 * Blocks (weights, activations, workspace, io) are what a plan predicts: page-granular mappings, made
 * resident at once, so that the bytes counted here are the bytes the system sees, and a run meets no page
 * fault. Small pieces (descriptions, names, lists) go through tess_small_alloc: counted as calls, not
 * planned.
 *
 * The counters belong to the process: that is the scope in which the system counts too. */
#ifndef TESS_BASE_MEM_H
#define TESS_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum tess_mem_category {
    TESS_MEM_WEIGHTS,
    TESS_MEM_ACTIVATIONS,
    TESS_MEM_WORKSPACE,
    TESS_MEM_IO,
    TESS_MEM_CATEGORIES,
    TESS_MEM_HOST = TESS_MEM_CATEGORIES /* rows on the host: io, unless the device has memory of its own */
} tess_mem_category;

/* Bytes by category; a plan, a count and a record share this shape. */
typedef struct tess_mem_bytes {
    uint64_t by[TESS_MEM_CATEGORIES];
} tess_mem_bytes;

typedef struct tess_block {
    void *data;
    size_t bytes; /* as granted: a multiple of the page */
    tess_mem_category category;
} tess_block;

const char *tess_mem_category_name(tess_mem_category category);
uint64_t tess_mem_total(const tess_mem_bytes *bytes);

/* What a block of `bytes` will be counted as: the size function that planning and allocation share. */
size_t tess_block_granted(size_t bytes);
/* Zeroed, resident, aligned to the page. Zero bytes give an empty block. */
tess_status tess_block_alloc(tess_block *block, tess_mem_category category, size_t bytes,
                             tess_error *error) TESS_MUST_CHECK;
/* The same, given up with TESS_INTERRUPTED when `stop` (base/stop.h) says so: making gigabytes resident takes seconds. */
typedef struct tess_stop tess_stop;
tess_status tess_block_alloc_watched(tess_block *block, tess_mem_category category, size_t bytes,
                                     tess_stop *stop, tess_error *error) TESS_MUST_CHECK;
void tess_block_free(tess_block *block);

/* Bytes that a library holds on our behalf within a bound that we set (GDAL's block cache): counted like a
 * block. Negative gives them back. */
void tess_mem_account(tess_mem_category category, int64_t bytes);

/* From now on TESS_MEM_HOST is counted apart, outside the categories and their total: the device that computes
 * has memory of its own. Set while nothing of that category is held. */
void tess_mem_host_apart(bool apart);
uint64_t tess_mem_host_peak(void); /* since the last reset */

/* Zeroed; NULL when there is none. Free with tess_small_free. */
void *tess_small_alloc(size_t count, size_t size);
void *tess_small_realloc(void *old, size_t count, size_t size);
char *tess_small_strdup(const char *text);
void tess_small_free(void *data);

/* Peaks since the last reset, and the number of calls of the door so far (both kinds). */
void tess_mem_peak(tess_mem_bytes *peak, uint64_t *total_peak);
void tess_mem_reset_peak(void);
uint64_t tess_mem_calls(void);
/* For tests: the n-th call from now fails (0 = never). */
void tess_mem_fail_at(uint64_t n);

#endif
