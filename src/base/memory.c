/* Uses compiler builtins rather than C11's _Atomic because C++ compilers read the header too. */
#include "base/memory.h"

#include <stdbool.h>

const char *tess_mem_category_name(tess_mem_category category)
{
    static const char *const names[TESS_MEM_CATEGORIES] = {
        [TESS_MEM_WEIGHTS] = "weights",
        [TESS_MEM_ACTIVATIONS] = "activations",
        [TESS_MEM_GRADIENTS] = "gradients",
        [TESS_MEM_OPTIMIZER] = "optimizer",
        [TESS_MEM_WORKSPACE] = "workspace",
        [TESS_MEM_HALO] = "halo",
        [TESS_MEM_IO] = "io",
        [TESS_MEM_HOST] = "host",
    };
    return names[category];
}

uint64_t tess_mem_total(const tess_mem_bytes *bytes)
{
    uint64_t total = 0;
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        total += c == TESS_MEM_HOST ? 0 : bytes->by[c];
    return total;
}

void tess_mem_usage_raise(tess_mem_usage *most, const tess_mem_usage *other)
{
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        if (other->bytes.by[c] > most->bytes.by[c])
            most->bytes.by[c] = other->bytes.by[c];
    if (other->total > most->total)
        most->total = other->total;
}

static uint64_t load(const uint64_t *value)
{
    return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static void add(tess_mem_count *count, int64_t bytes)
{
    /* Unsigned arithmetic wraps, so adding a negative count subtracts. */
    const uint64_t now = __atomic_add_fetch(&count->live, (uint64_t)bytes, __ATOMIC_RELAXED);
    if (bytes <= 0)
        return;
    uint64_t peak = load(&count->peak);
    while (peak < now &&
           !__atomic_compare_exchange_n(&count->peak, &peak, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void tess_memory_count(tess_memory *memory, tess_mem_category category, int64_t bytes)
{
    add(&memory->by[category], bytes);
    if (category == TESS_MEM_IO || category == TESS_MEM_HOST)
        add(&memory->io_and_host, bytes);
    if (category != TESS_MEM_HOST)
        add(&memory->device, bytes);
    add(&memory->process, bytes);
}

static void read_counts(const tess_memory *memory, tess_mem_scope scope, bool peak, tess_mem_usage *usage)
{
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        usage->bytes.by[c] = load(peak ? &memory->by[c].peak : &memory->by[c].live);
    const tess_mem_count *total = scope == TESS_MEM_OF_PROCESS ? &memory->process : &memory->device;
    usage->total = load(peak ? &total->peak : &total->live);
    if (scope != TESS_MEM_OF_PROCESS)
        return;
    usage->bytes.by[TESS_MEM_IO] = load(peak ? &memory->io_and_host.peak : &memory->io_and_host.live);
    usage->bytes.by[TESS_MEM_HOST] = 0;
}

void tess_memory_held(const tess_memory *memory, tess_mem_scope scope, tess_mem_usage *held)
{
    read_counts(memory, scope, false, held);
}

void tess_memory_peak(const tess_memory *memory, tess_mem_scope scope, tess_mem_usage *peak)
{
    read_counts(memory, scope, true, peak);
}

void tess_memory_plan(tess_memory *memory, tess_mem_scope scope, uint64_t bytes)
{
    __atomic_store_n(&memory->planned[scope], bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&memory->planned[!scope], 0, __ATOMIC_RELAXED);
}

uint64_t tess_memory_planned(const tess_memory *memory, tess_mem_scope *scope)
{
    const uint64_t device = load(&memory->planned[TESS_MEM_OF_DEVICE]);
    *scope = device ? TESS_MEM_OF_DEVICE : TESS_MEM_OF_PROCESS;
    return device ? device : load(&memory->planned[TESS_MEM_OF_PROCESS]);
}

static void reset(tess_mem_count *count)
{
    __atomic_store_n(&count->peak, load(&count->live), __ATOMIC_RELAXED);
}

void tess_memory_reset_peak(tess_memory *memory)
{
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        reset(&memory->by[c]);
    reset(&memory->io_and_host);
    reset(&memory->device);
    reset(&memory->process);
}
