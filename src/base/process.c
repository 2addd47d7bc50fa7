#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t status_bytes(const char *key)
{
    FILE *file = fopen("/proc/self/status", "r");
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
    return status_bytes("VmRSS:");
}

uint64_t tess_process_peak(void)
{
    return status_bytes("VmHWM:");
}

void tess_process_reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}
