/* memory.h: the counter of memory, one object for each context.
 *
 * Whoever opens a device or a file passes the object along, and every block is counted there: two contexts in one
 * process, on one device or two, never see each other's bytes. All functions may be called from any thread.
 *
 * Each category is counted for itself. Host memory (rows of files, pinned memory) is part of what a job on the CPU
 * takes, and lies beside what a job on a card takes; so the counter keeps both sums, and the reader of it says which
 * one is meant. */
#ifndef TESS_BASE_MEMORY_H
#define TESS_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

typedef enum tess_mem_category {
    TESS_MEM_WEIGHTS,
    TESS_MEM_ACTIVATIONS,
    TESS_MEM_GRADIENTS,
    TESS_MEM_OPTIMIZER,
    TESS_MEM_WORKSPACE,
    TESS_MEM_HALO,
    TESS_MEM_IO,   /* pixels on their way, in the memory of the device */
    TESS_MEM_HOST, /* what only the host works with, and pinned memory */
    TESS_MEM_CATEGORIES
} tess_mem_category;

/* Bytes by category; a plan, a count and a record share this shape. */
typedef struct tess_mem_bytes {
    uint64_t by[TESS_MEM_CATEGORIES];
} tess_mem_bytes;

/* What a sum is of. */
typedef enum tess_mem_scope {
    TESS_MEM_OF_DEVICE,  /* the total leaves host memory out */
    TESS_MEM_OF_PROCESS, /* the device computes in host memory: that is part of io, and of the total */
} tess_mem_scope;

/* Of peaks, each category and the total have theirs at another time: the total is not their sum. */
typedef struct tess_mem_usage {
    tess_mem_bytes bytes;
    uint64_t total;
} tess_mem_usage;

typedef struct tess_mem_count {
    uint64_t live, peak;
} tess_mem_count;

/* All zero is a counter that has counted nothing: there is no create nor destroy. It outlives all blocks, devices and
 * files that count there. The members are read and written atomically: use the functions below. */
typedef struct tess_memory {
    tess_mem_count by[TESS_MEM_CATEGORIES];
    tess_mem_count io_and_host;     /* IO and HOST together */
    tess_mem_count device, process; /* the totals of both scopes */
} tess_memory;

const char *tess_mem_category_name(tess_mem_category category);
/* Of all categories but HOST, which a plan for the CPU leaves at 0. */
uint64_t tess_mem_total(const tess_mem_bytes *bytes);
/* Each figure of `most` becomes at least that of `other`. */
void tess_mem_usage_raise(tess_mem_usage *most, const tess_mem_usage *other);

/* Counts `bytes` more, or less when negative: for a block, or for what a library holds on our behalf within a bound
 * that we set (GDAL's block cache). */
void tess_memory_count(tess_memory *memory, tess_mem_category category, int64_t bytes);
/* What is held now, and the most that was held since the last reset. */
void tess_memory_held(const tess_memory *memory, tess_mem_scope scope, tess_mem_usage *held);
void tess_memory_peak(const tess_memory *memory, tess_mem_scope scope, tess_mem_usage *peak);
/* Peaks begin anew, at what is held. */
void tess_memory_reset_peak(tess_memory *memory);

#endif
