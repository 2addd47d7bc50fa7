#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind the key at the start of a line; 0 without one. */
static uint64_t number_in(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t number = 0;
    while (file && number == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            number = strtoull(line + strlen(key), NULL, 10);
    if (file)
        fclose(file);
    return number;
}

static uint64_t bytes_in(const char *path, const char *key)
{
    return 1024 * number_in(path, key);
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
    static const struct {
        const char *limit, *used, *stat, *active, *inactive;
    } groups[] = {{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
                   "active_file ", "inactive_file "},
                  {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                   "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
                   "total_active_file ", "total_inactive_file "}};
    uint64_t left = bytes_in("/proc/meminfo", "MemAvailable:");
    for (int i = 0; i < 2; i++) {
        uint64_t limit = file_number(groups[i].limit), used = file_number(groups[i].used);
        if (!limit)
            continue;
        /* Pages of files that were read or written count as used, but are given up when they are wanted. */
        const uint64_t cached =
            number_in(groups[i].stat, groups[i].active) + number_in(groups[i].stat, groups[i].inactive);
        used -= cached < used ? cached : used;
        if (limit - (used < limit ? used : limit) < left)
            left = limit - (used < limit ? used : limit);
    }
    return left;
}
