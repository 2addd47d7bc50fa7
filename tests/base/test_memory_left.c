/* test_memory_left.c: memory limits of control groups, in file trees that imitate the kernel's: version 1, version 2,
 * both at once, nested groups, containers; and the resource limits of a process. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "support.h"

static const uint64_t MIB = 1 << 20;
static const uint64_t NONE = UINT64_MAX;

static char root[64];

/* Writes a file below the root, with the folders above it. */
static void write_file(const char *path, const char *format, ...)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = strchr(full + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(full, 0777);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    CHECK(file != NULL);
    if (!file)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
}

static void begin(void)
{
    snprintf(root, sizeof root, "/tmp/tess-groups-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK(system(command) == 0);
}

/* A group of version 2 in MiB; 0 for `limit` or `high`: "max". */
static void group2(const char *folder, int limit, int high, int used, int cached)
{
    char path[256];
    const int values[] = {limit, high};
    const char *const names[] = {"memory.max", "memory.high"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (values[i])
            write_file(path, "%llu\n", (unsigned long long)values[i] << 20);
        else
            write_file(path, "max\n");
    }
    snprintf(path, sizeof path, "%s/memory.current", folder);
    write_file(path, "%llu\n", (unsigned long long)used << 20);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    write_file(path, "anon 1\nfile 99999999999\ninactive_file %llu\nactive_file %llu\n",
               (unsigned long long)cached << 19, (unsigned long long)cached << 19);
}

/* A group of version 1; 0 for `limit`: none, as the kernel writes it. */
static void group1(const char *folder, int limit, int used, int cached)
{
    char path[256];
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", folder);
    write_file(path, "%llu\n", limit ? (unsigned long long)limit << 20 : 9223372036854771712ull);
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", folder);
    write_file(path, "%llu\n", (unsigned long long)used << 20);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    write_file(path, "active_file 1\ninactive_file 1\ntotal_inactive_file %llu\ntotal_active_file 0\n",
               (unsigned long long)cached << 20);
}

static void mounts(const char *cgroup, const char *mountinfo)
{
    write_file("/proc/self/cgroup", "%s", cgroup);
    write_file("/proc/self/mountinfo", "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n%s",
               mountinfo);
}

static const char V2[] = "30 21 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

static void test_nested_v2(void)
{
    begin();
    mounts("0::/user.slice/run-1.scope/job\n", V2);
    write_file("/sys/fs/cgroup/memory.stat", "anon 1\n"); /* the root has no limits */
    group2("/sys/fs/cgroup/user.slice", 0, 0, 5000, 0);
    group2("/sys/fs/cgroup/user.slice/run-1.scope", 0, 0, 300, 0);
    group2("/sys/fs/cgroup/user.slice/run-1.scope/job", 0, 0, 100, 0);
    CHECK(tess_groups_memory_left(root) == NONE);
    group2("/sys/fs/cgroup/user.slice/run-1.scope/job", 200, 0, 50, 10); /* files' pages are given up */
    CHECK(tess_groups_memory_left(root) == 160 * MIB);
    group2("/sys/fs/cgroup/user.slice/run-1.scope", 400, 0, 380, 0); /* the parent has less left */
    CHECK(tess_groups_memory_left(root) == 20 * MIB);
    group2("/sys/fs/cgroup/user.slice", 0, 5010, 5000, 0); /* the slice is slowed down sooner still */
    CHECK(tess_groups_memory_left(root) == 10 * MIB);
    group2("/sys/fs/cgroup/user.slice", 4000, 0, 5000, 0); /* nothing left is not less than nothing */
    CHECK(tess_groups_memory_left(root) == 0);
    end();
}

static void test_nested_v1(void)
{
    begin();
    mounts("9:name=systemd:/\n4:cpu,cpuacct:/x\n3:memory:/slurm/uid_0/job_7/step_0\n",
           "33 21 0:30 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
           "34 33 0:31 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
           "37 33 0:34 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n");
    group1("/sys/fs/cgroup/memory", 0, 9000, 0);
    group1("/sys/fs/cgroup/memory/slurm", 0, 8000, 0);
    group1("/sys/fs/cgroup/memory/slurm/uid_0/job_7", 1000, 700, 200);
    group1("/sys/fs/cgroup/memory/slurm/uid_0/job_7/step_0", 0, 700, 0);
    CHECK(tess_groups_memory_left(root) == 500 * MIB);
    group1("/sys/fs/cgroup/memory/slurm/uid_0/job_7/step_0", 200, 50, 0);
    CHECK(tess_groups_memory_left(root) == 150 * MIB);
    end();
}

/* Version 2 is mounted for the process tree only, memory is still controlled by version 1. */
static void test_hybrid(void)
{
    begin();
    mounts("5:memory:/a\n0::/b\n", "37 21 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                   "43 21 0:40 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_file("/sys/fs/cgroup/unified/b/cgroup.procs", "1\n");
    group1("/sys/fs/cgroup/memory", 0, 100, 0);
    group1("/sys/fs/cgroup/memory/a", 300, 100, 0);
    CHECK(tess_groups_memory_left(root) == 200 * MIB);
    end();
}

static void test_containers(void)
{
    /* The mount begins at the container's group; the path is still the host's. */
    begin();
    mounts("4:memory:/docker/0123/inner\n",
           "37 21 0:34 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    group1("/sys/fs/cgroup/memory", 500, 100, 0);
    group1("/sys/fs/cgroup/memory/inner", 0, 100, 0);
    CHECK(tess_groups_memory_left(root) == 400 * MIB);
    group1("/sys/fs/cgroup/memory/inner", 150, 100, 0);
    CHECK(tess_groups_memory_left(root) == 50 * MIB);
    end();
    /* A separate namespace: both paths begin at "/". */
    begin();
    mounts("0::/\n", V2);
    group2("/sys/fs/cgroup", 256, 0, 56, 0);
    CHECK(tess_groups_memory_left(root) == 200 * MIB);
    /* Outside of that namespace: only the mount point is known. */
    mounts("0::/../other\n", V2);
    CHECK(tess_groups_memory_left(root) == 200 * MIB);
    /* A second mount shows another group, whose limit does not apply; a name with a space. */
    mounts("0::/ours here\n",
           "31 21 0:26 /theirs /mnt/theirs rw - cgroup2 cgroup2 rw\n"
           "30 21 0:26 / /sys/fs/my\\040groups rw shared:4 master:2 - cgroup2 cgroup2 rw\n");
    group2("/mnt/theirs", 10, 0, 5, 0);
    group2("/sys/fs/my groups/ours here", 90, 0, 5, 0);
    CHECK(tess_groups_memory_left(root) == 85 * MIB);
    /* A name that only begins like ours. */
    mounts("0::/ours here\n", "31 21 0:26 /ours /mnt/theirs rw - cgroup2 cgroup2 rw\n"
                              "30 21 0:26 / /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n");
    CHECK(tess_groups_memory_left(root) == 85 * MIB);
    end();
}

static void test_no_groups(void)
{
    begin();
    CHECK(tess_groups_memory_left(root) == NONE);
    mounts("nonsense\n::\n0\n1:memory\n", "also nonsense - cgroup2\n - - -\n1 2 3 - cgroup cgroup memory\n");
    CHECK(tess_groups_memory_left(root) == NONE);
    mounts("0::/a/b/c\n", V2); /* no files at all */
    CHECK(tess_groups_memory_left(root) == NONE);
    end();
}

static void test_limits(void)
{
    begin();
    write_file("/proc/self/status", "Name:\tx\nVmSize:\t  102400 kB\nVmData:\t   51200 kB\n");
    CHECK(tess_limits_memory_left(root, NONE, NONE) == NONE);
    const uint64_t space = tess_limits_memory_left(root, 400 * MIB, NONE),
                   data = tess_limits_memory_left(root, NONE, 300 * MIB);
    CHECK(space <= 300 * MIB && space >= 200 * MIB); /* room stays for stacks and libraries */
    CHECK(data <= 250 * MIB && data >= 150 * MIB);
    CHECK(tess_limits_memory_left(root, 400 * MIB, 300 * MIB) == (space < data ? space : data));
    CHECK(tess_limits_memory_left(root, 50 * MIB, NONE) == 0);
    end();
    /* This very process. */
    const uint64_t before = tess_host_memory_left();
    struct rlimit old, less;
    CHECK(before > 0 && getrlimit(RLIMIT_DATA, &old) == 0);
    less = old;
    less.rlim_cur = 120 * MIB;
    if (setrlimit(RLIMIT_DATA, &less) != 0)
        return;
    CHECK(tess_host_memory_left() < 120 * MIB);
    CHECK(setrlimit(RLIMIT_DATA, &old) == 0);
}

int main(void)
{
    test_nested_v2();
    test_nested_v1();
    test_hybrid();
    test_containers();
    test_no_groups();
    test_limits();
    return check_end();
}
