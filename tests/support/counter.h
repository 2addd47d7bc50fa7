/* counter.h: the memory counter of a test program that needs only one, and its usual queries. */
#ifndef TESS_TESTS_COUNTER_H
#define TESS_TESTS_COUNTER_H

#include "base/memory.h"

static tess_memory test_counter __attribute__((unused));

/* Bytes of all categories now, and at most since the last reset. */
static inline uint64_t counted_now(void)
{
    tess_mem_usage held;
    tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &held);
    return held.total;
}

static inline uint64_t counted_peak(void)
{
    tess_mem_usage peak;
    tess_memory_peak(&test_counter, TESS_MEM_OF_PROCESS, &peak);
    return peak.total;
}

/* Of readers and writers alone. */
static inline uint64_t io_peak(void)
{
    tess_mem_usage peak;
    tess_memory_peak(&test_counter, TESS_MEM_OF_PROCESS, &peak);
    return peak.bytes.by[TESS_MEM_IO];
}

#endif
