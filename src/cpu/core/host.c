#include "cpu/core/host.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"

/* Reads the text after "key :" in a file of /proc. */
static bool proc_value(const char *path, const char *key, char *value, size_t size)
{
    FILE *file = fopen(path, "r");
    char line[512];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        char *text = line + strlen(key) + strspn(line + strlen(key), " \t:");
        text[strcspn(text, "\n")] = '\0';
        snprintf(value, size, "%s", text);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

uint64_t tess_host_memory(const char *key)
{
    char value[64];
    return proc_value("/proc/meminfo", key, value, sizeof value) ? strtoull(value, NULL, 10) * 1024 : 0;
}

uint64_t tess_host_memory_free(void)
{
    return tess_host_memory_left();
}

/* ARM kernels report numbers where x86 reports a name. */
static const struct {
    unsigned long part;
    const char *name;
} arm_parts[] = {{0xd03, "Cortex-A53"},  {0xd08, "Cortex-A72"},    {0xd0b, "Cortex-A76"},
                 {0xd0c, "Neoverse-N1"}, {0xd40, "Neoverse-V1"},   {0xd49, "Neoverse-N2"},
                 {0xd4f, "Neoverse-V2"}, {0xd83, "Neoverse-V3AE"}, {0xd84, "Neoverse-V3"},
                 {0xd8e, "Neoverse-N3"}};

void tess_host_cpu_name(char *text, size_t size)
{
    char value[128];
    if (proc_value("/proc/cpuinfo", "model name", value, sizeof value)) {
        snprintf(text, size, "%s", value);
        return;
    }
    snprintf(text, size, "CPU");
    if (!proc_value("/proc/cpuinfo", "CPU part", value, sizeof value))
        return;
    unsigned long part = strtoul(value, NULL, 16);
    snprintf(text, size, "ARM part 0x%lx", part);
    for (size_t i = 0; i < sizeof arm_parts / sizeof arm_parts[0]; i++)
        if (arm_parts[i].part == part)
            snprintf(text, size, "%s", arm_parts[i].name);
}
