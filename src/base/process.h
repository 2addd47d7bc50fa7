/* process.h: what the system says this process holds, and what it may still take. */
#ifndef TESS_BASE_PROCESS_H
#define TESS_BASE_PROCESS_H

#include <stdint.h>

uint64_t tess_process_resident(void); /* bytes now */
uint64_t tess_process_peak(void);     /* the highest since the start or the last reset */
void tess_process_reset_peak(void);   /* best effort */

/* What this process may still take: the least of what the machine has free, what each control group from the
 * process's own up to the root leaves, and what its resource limits leave. */
uint64_t tess_host_memory_left(void);

/* Its parts, for tests: every path is read below `root`, which is "" for the system's own. UINT64_MAX: no limit. */
uint64_t tess_groups_memory_left(const char *root);
/* Of RLIMIT_AS and RLIMIT_DATA, in bytes. */
uint64_t tess_limits_memory_left(const char *root, uint64_t address_space, uint64_t data);

#endif
