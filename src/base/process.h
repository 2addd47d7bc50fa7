/* process.h: what the system says this process holds. */
#ifndef TESS_BASE_PROCESS_H
#define TESS_BASE_PROCESS_H

#include <stdint.h>

uint64_t tess_process_resident(void); /* bytes now */
uint64_t tess_process_peak(void);     /* the highest since the start or the last reset */
void tess_process_reset_peak(void);   /* best effort */
/* What the machine, or the control group that this process is in, has left. */
uint64_t tess_host_memory_left(void);

#endif
