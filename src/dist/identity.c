/* Ranks must run the same program with the same arguments in the same folder: otherwise each would do another job, and
 * collective calls would meet by accident. They also learn who else is on their host, to share its cores and cards. */
#define _GNU_SOURCE
#include "dist/identity.h"

#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

typedef struct identity {
    char host[TESS_DIST_HOST];
    char version[32], folder[256]; /* the end of a long folder */
    uint64_t words, folder_hash;
    int64_t program_bytes; /* these two tell builds of one version apart */
    uint64_t build;
    int32_t pid;
    cpu_set_t cores; /* that it may use */
} identity;

/* FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u; /* so that "a", "b" is not "ab" */
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, (const unsigned char *)text, strlen(text));
}

/* The linker's note about the program or library that this function is in: builds differ in it. */
static int find_build(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    const ElfW(Addr) here = (ElfW(Addr))(uintptr_t)&find_build;
    bool mine = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        mine = mine || (part->p_type == PT_LOAD && here - object->dlpi_addr - part->p_vaddr < part->p_memsz);
    }
    for (int i = 0; i < object->dlpi_phnum && mine; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const unsigned char *at = (const unsigned char *)(uintptr_t)(object->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE)
            *(uint64_t *)user = hash_bytes(*(uint64_t *)user, at, part->p_memsz);
    }
    return mine;
}

static void describe(const tess_dist_settings *settings, identity *mine)
{
    static const uint64_t START = 0xcbf29ce484222325u;
    struct stat about;
    char folder[4096] = "";
    memset(mine, 0, sizeof *mine);
    gethostname(mine->host, sizeof mine->host - 1);
    snprintf(mine->version, sizeof mine->version, "%s", settings->version);
    mine->words = START;
    for (int i = 0; i < settings->word_count; i++)
        mine->words = hash_text(mine->words, settings->words[i]);
    if (getcwd(folder, sizeof folder)) {
        const size_t length = strlen(folder), most = sizeof mine->folder - 1;
        snprintf(mine->folder, sizeof mine->folder, "%s", folder + (length > most ? length - most : 0));
    }
    mine->folder_hash = hash_text(START, folder);
    mine->program_bytes = stat("/proc/self/exe", &about) == 0 ? (int64_t)about.st_size : 0;
    mine->build = START;
    (void)dl_iterate_phdr(find_build, &mine->build);
    mine->pid = (int32_t)getpid();
    if (sched_getaffinity(0, sizeof mine->cores, &mine->cores) != 0)
        CPU_SET(0, &mine->cores);
}

static tess_status compare(const identity *all, int count, tess_error *error)
{
    const identity *first = &all[0];
    for (int r = 1; r < count; r++) {
        const identity *one = &all[r];
        if (strcmp(one->version, first->version) != 0)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "rank %d (%s) runs version %s and rank 0 (%s) version %s; start the same program "
                "on all hosts",
                r, one->host, one->version, first->host, first->version);
        if (one->program_bytes != first->program_bytes || one->build != first->build)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "rank %d (%s) runs another build of the program than rank 0 (%s); start the same "
                "on all hosts",
                r, one->host, first->host);
        if (one->words != first->words)
            return tess_fail(error, TESS_BAD_INPUT,
                             "rank %d was started with other arguments than rank 0; give all ranks the same, "
                             "or set TESSERA_RANKS=off to make each process a job of its own",
                             r);
        if (one->folder_hash != first->folder_hash)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "rank %d (%s) runs in the folder %s and rank 0 (%s) in %s; start all ranks in the "
                "same folder",
                r, one->host, one->folder, first->host, first->folder);
    }
    return TESS_OK;
}

/* A rank's part of the cores of its host: a core that several ranks may use counts for each of them in parts. */
static double share_of_cores(const identity *all, int count, int rank)
{
    double share = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        int users = 0;
        if (!CPU_ISSET(core, &all[rank].cores))
            continue;
        for (int r = 0; r < count; r++)
            users += strcmp(all[r].host, all[rank].host) == 0 && CPU_ISSET(core, &all[r].cores);
        share += 1.0 / users;
    }
    return share;
}

static void set_places(tess_dist *dist, const identity *all)
{
    dist->threads = CPU_SETSIZE;
    for (int r = 0; r < dist->size; r++) {
        tess_dist_place *place = &dist->places[r];
        memcpy(place->host, all[r].host, sizeof place->host);
        place->host[sizeof place->host - 1] = '\0';
        place->pid = all[r].pid;
        for (int other = 0; other < dist->size; other++)
            if (strcmp(all[other].host, all[r].host) == 0) {
                place->local += other < r;
                place->locals++;
            }
        const int cores = (int)(share_of_cores(all, dist->size, r) + 1e-6);
        dist->threads = cores < dist->threads ? cores : dist->threads;
    }
    dist->threads = dist->threads > 1 ? dist->threads : 1;
}

tess_status tess_identity_compare(tess_dist *dist, const tess_dist_settings *settings, tess_error *error)
{
    identity mine, *all = tess_small_alloc((size_t)dist->size, sizeof *all);
    dist->places = tess_small_alloc((size_t)dist->size, sizeof *dist->places);
    if (!all || !dist->places) {
        tess_small_free(all);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d ranks", dist->size);
    }
    describe(settings, &mine);
    tess_status status = tess_dist_gather(dist, &mine, sizeof mine, all, error);
    if (status == TESS_OK)
        status = compare(all, dist->size, error);
    if (status == TESS_OK)
        set_places(dist, all);
    tess_small_free(all);
    return status;
}
