#define _GNU_SOURCE
#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/checked.h"
#include "base/help.h"
#include "base/stop.h"

enum { PAGE = 4096 };
static const size_t HUGE_PAGE = (size_t)2 << 20;
static const size_t WATCHED = (size_t)16 << 20; /* bytes made resident between two checks of `stop` */

static _Atomic uint64_t calls, fail_at;

static bool may_allocate(void)
{
    uint64_t call = atomic_fetch_add(&calls, 1) + 1;
    return call != atomic_load(&fail_at);
}

size_t tess_block_granted(size_t bytes)
{
    return tess_align_size(bytes, PAGE);
}

tess_status tess_block_alloc(tess_memory *memory, tess_block *block, tess_mem_category category, size_t bytes,
                             tess_error *error)
{
    return tess_block_alloc_watched(memory, block, category, bytes, NULL, error);
}

/* A `memory_limit` above what the process may have at all is not what is wrong, so the other limit is named. */
static tess_status refuse(size_t bytes, tess_mem_category category, tess_error *error)
{
    static const struct {
        int which;
        char letter;
    } limits[] = {{RLIMIT_AS, 'v'}, {RLIMIT_DATA, 'd'}};
    char may[96] = "";
    struct rlimit limit;
    for (int i = 0; i < 2 && !may[0]; i++)
        if (getrlimit(limits[i].which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            snprintf(may, sizeof may, "; ulimit -%c allows the process %lluM in all: raise it, or",
                     limits[i].letter, (unsigned long long)limit.rlim_cur >> 20);
    return tess_fail(error, TESS_NO_MEMORY,
                     "cannot allocate %zu bytes of %s memory%s set a smaller `memory_limit`", bytes,
                     tess_mem_category_name(category), may[0] ? may : ";");
}

tess_status tess_block_alloc_watched(tess_memory *memory, tess_block *block, tess_mem_category category,
                                     size_t bytes, tess_stop *stop, tess_error *error)
{
    return tess_block_alloc_shared(memory, NULL, block, category, bytes, stop, error);
}

static void release(tess_block *block)
{
    if (block->shared)
        tess_help_release(block->shared, block->data);
    else
        munmap(block->data, block->bytes);
}

tess_status tess_block_alloc_shared(tess_memory *memory, struct tess_help *help, tess_block *block,
                                    tess_mem_category category, size_t bytes, tess_stop *stop,
                                    tess_error *error)
{
    *block = (tess_block){.category = category, .memory = memory};
    if (bytes == 0)
        return TESS_OK;
    size_t granted = tess_block_granted(bytes);
    if (granted < bytes || !may_allocate())
        return tess_fail(error, TESS_NO_MEMORY,
                         "cannot allocate %zu bytes of %s memory; set a smaller `memory_limit`", bytes,
                         tess_mem_category_name(category));
    tess_block made = {.bytes = granted, .category = category, .memory = memory, .shared = help};
    made.data = help ? tess_help_alloc(help, granted) : NULL;
    if (!made.data) {
        made.shared = NULL;
        made.data = mmap(NULL, granted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (made.data == MAP_FAILED)
        return refuse(bytes, category, error);
    /* Huge pages reduce TLB misses in large blocks. Touching every page makes the block resident. */
    if (granted >= HUGE_PAGE)
        madvise(made.data, granted, MADV_HUGEPAGE);
    for (size_t at = 0; at < granted; at += PAGE) {
        const tess_status status = at % WATCHED == 0 ? tess_stop_check(stop, error) : TESS_OK;
        if (status != TESS_OK) {
            release(&made);
            return status;
        }
        ((volatile char *)made.data)[at] = 0;
    }
    *block = made;
    tess_memory_count(memory, category, (int64_t)granted);
    return TESS_OK;
}

void tess_block_free(tess_block *block)
{
    if (!block || !block->data)
        return;
    release(block);
    tess_memory_count(block->memory, block->category, -(int64_t)block->bytes);
    *block = (tess_block){.category = block->category, .memory = block->memory};
}

void *tess_small_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (!tess_mul_size(count, size, &bytes) || !may_allocate())
        return NULL;
    return calloc(1, bytes ? bytes : 1);
}

void *tess_small_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (!tess_mul_size(count, size, &bytes) || !may_allocate())
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

char *tess_small_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tess_small_alloc(bytes, 1);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void tess_small_free(void *data)
{
    free(data);
}

uint64_t tess_mem_calls(void)
{
    return atomic_load(&calls);
}

void tess_mem_fail_at(uint64_t n)
{
    atomic_store(&fail_at, n ? atomic_load(&calls) + n : 0);
}
