/* How much more memory this process may use. Four things can limit it: the machine's memory, any control group
 * between the process's own and the root (systemd, Slurm and containers nest them), the address space (ulimit
 * -v) and the writable data (ulimit -d). The lowest limit counts.
 *
 * /proc says where the groups are mounted and which one is ours: /proc/self/cgroup has the group's path in its
 * hierarchy, /proc/self/mountinfo has the part of that hierarchy that is mounted and its mount point. In a
 * container the mount begins at the container's own group, so the path is taken relative to the mount. See
 * cgroups(7). */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/process.h"

enum { PATH_ROOM = 4096 };

/* Address space used after the plan's blocks are allocated: thread stacks, heaps of threads, tables of
 * libraries. */
static const uint64_t ADDRESS_ROOM = (uint64_t)32 << 20;

/* The names of a group's files, which depend on the version of control groups. */
typedef struct version {
    const char *filesystem;
    const char *limit, *high; /* above `high` the kernel slows a process down until it hardly runs */
    const char *used, *active, *inactive;
} version;

static const version versions[] = {
    {"cgroup2", "memory.max", "memory.high", "memory.current", "active_file", "inactive_file"},
    {"cgroup", "memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "total_active_file",
     "total_inactive_file"}};

/* Reads one line without its newline and drops what exceeds the buffer. Returns false at the end of the file. */
static bool next_line(FILE *file, char *line, int size)
{
    if (!file || !fgets(line, size, file))
        return false;
    if (!strchr(line, '\n'))
        for (int c = 0; c != '\n' && c != EOF;)
            c = fgetc(file);
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static FILE *open_below(const char *folder, const char *name)
{
    char path[2 * PATH_ROOM];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
}

/* Reads the number after `key`, or the first number of the file when `key` is NULL. Returns false when there is
 * none: the text is "max", or the file does not exist. */
static bool number_of(const char *folder, const char *name, const char *key, uint64_t *number)
{
    FILE *file = open_below(folder, name);
    char line[256];
    bool found = false;
    const size_t length = key ? strlen(key) : 0;
    while (!found && next_line(file, line, sizeof line)) {
        if (key && (strncmp(line, key, length) != 0 || !strchr(": \t", line[length])))
            continue;
        char *from = line + length + strspn(line + length, ": \t"), *end;
        *number = strtoull(from, &end, 10);
        found = end != from;
        if (!key)
            break;
    }
    if (file)
        fclose(file);
    return found;
}

/* Bytes still available in one group. Pages of files count as used there, but the kernel reclaims them on
 * demand. */
static uint64_t group_left(const char *group, const version *v)
{
    uint64_t limit = UINT64_MAX, high, used = 0, cached = 0, part;
    if (!number_of(group, v->limit, NULL, &limit))
        limit = UINT64_MAX;
    if (v->high && number_of(group, v->high, NULL, &high) && high < limit)
        limit = high;
    if (limit == UINT64_MAX || !number_of(group, v->used, NULL, &used))
        return limit;
    if (number_of(group, "memory.stat", v->active, &part))
        cached += part;
    if (number_of(group, "memory.stat", v->inactive, &part))
        cached += part;
    used -= cached < used ? cached : used;
    return limit - (used < limit ? used : limit);
}

/* True when `word` is in the comma-separated list. */
static bool listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* Finds the process's own group: a line "number:controllers:path", with no controllers in version 2. */
static bool own_group(const char *root, const version *v, char path[PATH_ROOM])
{
    FILE *file = open_below(root, "proc/self/cgroup");
    char line[PATH_ROOM];
    bool found = false;
    while (!found && next_line(file, line, sizeof line)) {
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        found = v == &versions[0] ? list[1] == '\0' : listed(list + 1, "memory");
        if (found)
            snprintf(path, PATH_ROOM, "%s", group);
    }
    if (file)
        fclose(file);
    return found;
}

/* Decodes escapes: mountinfo writes a space as \040. */
static void decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        unsigned code = 0;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1 && strspn(from + 1, "01234567") >= 3) {
            *to++ = (char)code;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* Parses one line of mountinfo: "id parent device root point options ... - type source options". */
static bool is_mount(char *line, const version *v, const char **from, const char **point)
{
    char *fields[5], *save = NULL, *rest = strstr(line, " - ");
    if (!rest)
        return false;
    *rest = '\0';
    char *type = strtok_r(rest + 3, " ", &save), *source = strtok_r(NULL, " ", &save),
         *options = strtok_r(NULL, " ", &save);
    if (!type || strcmp(type, v->filesystem) != 0 || !source)
        return false;
    if (v != &versions[0] && !(options && listed(options, "memory")))
        return false;
    for (int i = 0; i < 5; i++)
        if (!(fields[i] = strtok_r(i ? NULL : line, " ", &save)))
            return false;
    decode(fields[3]);
    decode(fields[4]);
    *from = fields[3];
    *point = fields[4];
    return true;
}

/* Returns the part of the group's path below the mount's root, or NULL when the mount does not contain the
 * group. */
static const char *below(const char *group, const char *from)
{
    const size_t length = strcmp(from, "/") == 0 ? 0 : strlen(from);
    if (strstr(group, "/..") || strncmp(group, from, length) != 0 ||
        (group[length] != '/' && group[length] != '\0'))
        return NULL;
    return strcmp(group + length, "/") == 0 ? "" : group + length;
}

/* Returns the least that is available in any group from `path` up to the mount point. */
static uint64_t walk(const char *root, const char *point, const char *path, const version *v)
{
    char folder[2 * PATH_ROOM];
    uint64_t left = UINT64_MAX;
    const int length = snprintf(folder, sizeof folder, "%s%s%s", root, point, path);
    if (length < 0 || (size_t)length >= sizeof folder)
        return left;
    const size_t top = strlen(root) + strlen(point);
    for (;;) {
        const uint64_t here = group_left(folder, v);
        left = here < left ? here : left;
        char *last = strrchr(folder, '/');
        if (strlen(folder) <= top || !last)
            return left;
        *last = '\0';
    }
}

uint64_t tess_groups_memory_left(const char *root)
{
    uint64_t left = UINT64_MAX;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        const version *v = &versions[i];
        char group[PATH_ROOM], line[2 * PATH_ROOM];
        if (!own_group(root, v, group))
            continue;
        /* A mount may show other groups than ours. When no mount shows ours, the mount point itself is the best
         * estimate. */
        uint64_t inside = UINT64_MAX, outside = UINT64_MAX;
        bool found = false;
        FILE *file = open_below(root, "proc/self/mountinfo");
        while (next_line(file, line, sizeof line)) {
            const char *from, *point;
            if (!is_mount(line, v, &from, &point))
                continue;
            const char *path = below(group, from);
            const uint64_t here = walk(root, point, path ? path : "", v);
            uint64_t *least = path ? &inside : &outside;
            *least = here < *least ? here : *least;
            found |= path != NULL;
        }
        if (file)
            fclose(file);
        const uint64_t here = found ? inside : outside;
        left = here < left ? here : left;
    }
    return left;
}

static uint64_t beyond(uint64_t limit, uint64_t used)
{
    return limit > used ? limit - used : 0;
}

uint64_t tess_limits_memory_left(const char *root, uint64_t address_space, uint64_t data)
{
    uint64_t left = UINT64_MAX, used;
    if (address_space != UINT64_MAX && number_of(root, "proc/self/status", "VmSize", &used))
        left = beyond(address_space, 1024 * used + ADDRESS_ROOM);
    if (data != UINT64_MAX && number_of(root, "proc/self/status", "VmData", &used)) {
        const uint64_t here = beyond(data, 1024 * used + ADDRESS_ROOM);
        left = here < left ? here : left;
    }
    return left;
}

static uint64_t limit_of(int which)
{
    struct rlimit limit;
    return getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

uint64_t tess_host_memory_left(void)
{
    uint64_t left;
    struct sysinfo machine;
    if (number_of("", "proc/meminfo", "MemAvailable", &left))
        left *= 1024;
    else /* /proc is missing or could not be opened: free memory is unknown, not zero */
        left = sysinfo(&machine) == 0 ? (uint64_t)machine.totalram * machine.mem_unit : UINT64_MAX;
    const uint64_t groups = tess_groups_memory_left(""),
                   limits = tess_limits_memory_left("", limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA));
    left = groups < left ? groups : left;
    return limits < left ? limits : left;
}
