/* host.h: facts of this machine, read from the system. */
#ifndef TESS_CPU_HOST_H
#define TESS_CPU_HOST_H

#include <stddef.h>
#include <stdint.h>

/* A line of /proc/meminfo, e.g. "MemTotal:", in bytes; 0 when there is none. */
uint64_t tess_host_memory(const char *key);
/* What may still be taken: of the machine, and of the container or batch job that this process is in. */
uint64_t tess_host_memory_free(void);
void tess_host_cpu_name(char *text, size_t size);

#endif
