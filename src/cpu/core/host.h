/* host.h: properties of this machine, read from the operating system. */
#ifndef TESS_CPU_HOST_H
#define TESS_CPU_HOST_H

#include <stddef.h>
#include <stdint.h>

/* A line of /proc/meminfo, e.g. "MemTotal:", in bytes; 0 if there is none. */
uint64_t tess_host_memory(const char *key);
/* Memory that is still available: in the machine, and in the container or batch job of this process. */
uint64_t tess_host_memory_free(void);
void tess_host_cpu_name(char *text, size_t size);

#endif
