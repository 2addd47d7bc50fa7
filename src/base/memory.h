/* memory.h: the memory counter; each context has one.
 *
 * The counter is passed to whatever opens a device or a file, and every block is counted in it. Two contexts in
 * one process, on one device or two, never see each other's bytes. All functions may be called from any thread.
 *
 * Each category is counted separately. Host memory (rows of files, pinned memory) is part of what a job on the
 * CPU uses, but comes in addition to what a job on a GPU uses. So the counter keeps both sums, and the caller
 * chooses one by its scope. */
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
    TESS_MEM_IO,   /* pixels being moved, in the device's memory */
    TESS_MEM_HOST, /* memory that only the host uses, and pinned memory */
    TESS_MEM_CATEGORIES
} tess_mem_category;

/* Bytes by category, for plans, counters and records. */
typedef struct tess_mem_bytes {
    uint64_t by[TESS_MEM_CATEGORIES];
} tess_mem_bytes;

/* Which memory a sum includes. */
typedef enum tess_mem_scope {
    TESS_MEM_OF_DEVICE,  /* the total excludes host memory */
    TESS_MEM_OF_PROCESS, /* the device computes in host memory, which is counted in io and in the total */
} tess_mem_scope;

/* Peaks of the categories and of the total may occur at different times, so the total is not the sum of the
 * categories. */
typedef struct tess_mem_usage {
    tess_mem_bytes bytes;
    uint64_t total;
} tess_mem_usage;

typedef struct tess_mem_count {
    uint64_t live, peak;
} tess_mem_count;

/* An all-zero struct is an empty counter: there is no create or destroy. It must outlive every block, device
 * and file that counts in it. The members are accessed atomically: use only the functions below. */
typedef struct tess_memory {
    tess_mem_count by[TESS_MEM_CATEGORIES];
    tess_mem_count io_and_host;     /* sum of IO and HOST */
    tess_mem_count device, process; /* the totals of both scopes */
    uint64_t planned[2];            /* of the running job, by scope; 0: not known */
    struct tess_trace *trace;       /* of the same context: records what it does; NULL: nothing does */
} tess_memory;

const char *tess_mem_category_name(tess_mem_category category);
/* Sum of all categories except HOST, which is 0 in a plan for the CPU. */
uint64_t tess_mem_total(const tess_mem_bytes *bytes);
/* Sets each figure of `most` to the maximum of itself and that of `other`. */
void tess_mem_usage_raise(tess_mem_usage *most, const tess_mem_usage *other);

/* Adds `bytes`, which may be negative, to the count: for a block, or for memory that a library holds for us
 * within a bound that we set (GDAL's block cache). */
void tess_memory_count(tess_memory *memory, tess_mem_category category, int64_t bytes);
/* Returns the bytes held now and the peaks since the last reset. */
void tess_memory_held(const tess_memory *memory, tess_mem_scope scope, tess_mem_usage *held);
void tess_memory_peak(const tess_memory *memory, tess_mem_scope scope, tess_mem_usage *peak);
/* Sets the peaks to what is held now. */
void tess_memory_reset_peak(tess_memory *memory);
/* The total that the job's plan predicts, for whoever watches the job; the other scope is then 0. */
void tess_memory_plan(tess_memory *memory, tess_mem_scope scope, uint64_t bytes);
uint64_t tess_memory_planned(const tess_memory *memory, tess_mem_scope *scope);

#endif
