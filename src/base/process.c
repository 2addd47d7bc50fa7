#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bytes_in(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t bytes = 0;
    while (file && bytes == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            bytes = strtoull(line + strlen(key), NULL, 10) * 1024;
    if (file)
        fclose(file);
    return bytes;
}

uint64_t tess_process_resident(void)
{
    return bytes_in("/proc/self/status", "VmRSS:");
}

uint64_t tess_process_peak(void)
{
    return bytes_in("/proc/self/status", "VmHWM:");
}

void tess_process_reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

static uint64_t file_number(const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned long long value = 0;
    if (file && fscanf(file, "%llu", &value) != 1)
        value = 0; /* "max": no limit */
    if (file)
        fclose(file);
    return value;
}

uint64_t tess_host_memory_left(void)
{
    static const char *const groups[][2] = {
        {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
    uint64_t left = bytes_in("/proc/meminfo", "MemAvailable:");
    for (int i = 0; i < 2; i++) {
        uint64_t limit = file_number(groups[i][0]), used = file_number(groups[i][1]);
        if (limit && limit - (used < limit ? used : limit) < left)
            left = limit - (used < limit ? used : limit);
    }
    return left;
}
