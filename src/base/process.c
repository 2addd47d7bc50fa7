#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the kilobytes after `key` at the start of a line, in bytes; 0 when there is no such line. */
static uint64_t bytes_in(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t number = 0;
    while (file && number == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            number = strtoull(line + strlen(key), NULL, 10);
    if (file)
        fclose(file);
    return 1024 * number;
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
