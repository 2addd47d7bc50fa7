/* process.h: the memory that this process uses according to the system, and how much more it may use. */
#ifndef TESS_BASE_PROCESS_H
#define TESS_BASE_PROCESS_H

#include <stdint.h>

uint64_t tess_process_resident(void); /* bytes now */
uint64_t tess_process_peak(void);     /* the highest since the start or the last reset */
void tess_process_reset_peak(void);   /* best effort */

/* Bytes that this process may still allocate: the least of the machine's free memory, what every control group
 * from the process's own up to the root allows, and what the resource limits allow. */
uint64_t tess_host_memory_left(void);

/* The two parts of it, for tests. Every path is read below `root`, which is "" for the real system. UINT64_MAX:
 * no limit. */
uint64_t tess_groups_memory_left(const char *root);
/* `address_space` and `data` are RLIMIT_AS and RLIMIT_DATA in bytes. */
uint64_t tess_limits_memory_left(const char *root, uint64_t address_space, uint64_t data);

#endif
