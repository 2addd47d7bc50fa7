#define _GNU_SOURCE
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/stop.h"

enum { PAGE = 4096 };
static const size_t HUGE_PAGE = (size_t)2 << 20;
static const size_t WATCHED = (size_t)16 << 20; /* pages made resident without looking at `stop` */

enum { COUNTERS = TESS_MEM_CATEGORIES + 1 }; /* the last: TESS_MEM_HOST, where it is counted apart */
static _Atomic uint64_t live[COUNTERS], peak_by[COUNTERS];
static _Atomic bool host_apart;
static _Atomic uint64_t live_total, peak_total, calls, fail_at;

const char *tess_mem_category_name(tess_mem_category category)
{
    static const char *const names[COUNTERS] = {"weights", "activations", "workspace", "io", "rows"};
    return names[category];
}

uint64_t tess_mem_total(const tess_mem_bytes *bytes)
{
    uint64_t total = 0;
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        total += bytes->by[c];
    return total;
}

static bool door_opens(void)
{
    uint64_t call = atomic_fetch_add(&calls, 1) + 1;
    return call != atomic_load(&fail_at);
}

static void raise_peak(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t old = atomic_load(peak);
    while (old < value && !atomic_compare_exchange_weak(peak, &old, value))
        ;
}

size_t tess_block_granted(size_t bytes)
{
    return tess_align_size(bytes, PAGE);
}

tess_status tess_block_alloc(tess_block *block, tess_mem_category category, size_t bytes, tess_error *error)
{
    return tess_block_alloc_watched(block, category, bytes, NULL, error);
}

tess_status tess_block_alloc_watched(tess_block *block, tess_mem_category category, size_t bytes,
                                     tess_stop *stop, tess_error *error)
{
    *block = (tess_block){.category = category};
    if (bytes == 0)
        return TESS_OK;
    size_t granted = tess_block_granted(bytes);
    if (granted < bytes || !door_opens())
        return tess_fail(error, TESS_NO_MEMORY, "cannot allocate %zu bytes for %s; set a smaller --memory",
                         bytes, tess_mem_category_name(category));
    void *data = mmap(NULL, granted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return tess_fail(error, TESS_NO_MEMORY, "cannot allocate %zu bytes for %s; set a smaller --memory",
                         bytes, tess_mem_category_name(category));
    /* Huge pages save TLB misses in the big blocks. Touching every page here makes the block resident. */
    if (granted >= HUGE_PAGE)
        madvise(data, granted, MADV_HUGEPAGE);
    for (size_t at = 0; at < granted; at += PAGE) {
        const tess_status status = at % WATCHED == 0 ? tess_stop_check(stop, error) : TESS_OK;
        if (status != TESS_OK) {
            munmap(data, granted);
            return status;
        }
        ((volatile char *)data)[at] = 0;
    }
    *block = (tess_block){.data = data, .bytes = granted, .category = category};
    tess_mem_account(category, (int64_t)granted);
    return TESS_OK;
}

void tess_mem_account(tess_mem_category category, int64_t bytes)
{
    if (category == TESS_MEM_HOST && !atomic_load(&host_apart))
        category = TESS_MEM_IO;
    uint64_t delta = (uint64_t)bytes; /* modular: a negative count subtracts */
    uint64_t now = atomic_fetch_add(&live[category], delta) + delta;
    if (bytes > 0)
        raise_peak(&peak_by[category], now);
    if (category == TESS_MEM_HOST)
        return;
    uint64_t now_total = atomic_fetch_add(&live_total, delta) + delta;
    if (bytes > 0)
        raise_peak(&peak_total, now_total);
}

void tess_mem_host_apart(bool apart)
{
    atomic_store(&host_apart, apart);
}

uint64_t tess_mem_host_peak(void)
{
    return atomic_load(&peak_by[TESS_MEM_HOST]);
}

void tess_block_free(tess_block *block)
{
    if (!block || !block->data)
        return;
    munmap(block->data, block->bytes);
    tess_mem_account(block->category, -(int64_t)block->bytes);
    *block = (tess_block){.category = block->category};
}

void *tess_small_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (!tess_mul_size(count, size, &bytes) || !door_opens())
        return NULL;
    return calloc(1, bytes ? bytes : 1);
}

void *tess_small_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (!tess_mul_size(count, size, &bytes) || !door_opens())
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

void tess_mem_peak(tess_mem_bytes *peak, uint64_t *total_peak)
{
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        peak->by[c] = atomic_load(&peak_by[c]);
    *total_peak = atomic_load(&peak_total);
}

void tess_mem_reset_peak(void)
{
    for (int c = 0; c < COUNTERS; c++)
        atomic_store(&peak_by[c], atomic_load(&live[c]));
    atomic_store(&peak_total, atomic_load(&live_total));
}

uint64_t tess_mem_calls(void)
{
    return atomic_load(&calls);
}

void tess_mem_fail_at(uint64_t n)
{
    atomic_store(&fail_at, n ? atomic_load(&calls) + n : 0);
}
