/* The segment of a rank: a file without a name in memory, as large as the memory of the host. Only the pages that a block has are there.
 * It is mapped by all ranks when they join, once and for all, so that a place in it means the same to all of them and nothing is mapped
 * while a network runs. Others open it through /proc, which the system allows to processes of the same user that could also debug each
 * other; where it does not, ranks do not help. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/help_impl.h"
#include "base/mem.h"

static const size_t ALIGN = (size_t)2
                            << 20; /* of a block, for huge pages where the system gives them to files */
static const size_t ADDRESSES = (size_t)1 << 45; /* bytes of addresses for all segments of a process */

/* A limit of addresses or of files would be met by what is only mapped, and not used. */
static bool limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* TESSERA_HELP: 0: never; 1: also where there are more ranks than processors, of which one that waits leaves its own to another. */
static bool wanted(int locals)
{
    const char *text = getenv("TESSERA_HELP");
    const bool asked = text && strcmp(text, "1") == 0, refused = text && strcmp(text, "0") == 0;
    return locals > 1 && !refused && (asked || locals <= sysconf(_SC_NPROCESSORS_ONLN));
}

static size_t segment_bytes(int locals)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (!wanted(locals) || pages <= 0 || page <= 0 || limited(RLIMIT_AS) || limited(RLIMIT_FSIZE))
        return 0;
    const size_t most = ADDRESSES / (size_t)locals / ALIGN * ALIGN;
    const size_t all = tess_align_size((size_t)pages * (size_t)page, ALIGN);
    return all < most ? all : most;
}

static char *map(int file, size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (data == MAP_FAILED)
        return NULL;
    madvise(data, bytes, MADV_DONTDUMP);
    madvise(data, bytes, MADV_HUGEPAGE);
    return data;
}

static bool make_segment(tess_help *help)
{
    uint64_t secret;
    help->file = memfd_create("tessera", MFD_CLOEXEC);
    if (help->file < 0 || ftruncate(help->file, (off_t)help->bytes) != 0 ||
        fallocate(help->file, 0, 0, (off_t)HELP_BOARD) != 0 ||
        getrandom(&secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return false;
    help->segment[help->here] = map(help->file, help->bytes);
    if (!help->segment[help->here])
        return false;
    help_board_of(help, help->here)->secret = secret;
    return true;
}

tess_help *tess_help_create(int here, int locals)
{
    const size_t bytes = segment_bytes(locals);
    tess_help *help = bytes ? tess_small_alloc(1, sizeof *help) : NULL;
    if (!help)
        return NULL;
    *help = (tess_help){.here = here,
                        .locals = locals,
                        .file = -1,
                        .bytes = bytes,
                        .before_owner = -1,
                        .segment = tess_small_alloc((size_t)locals, sizeof(char *))};
    if (help->segment && make_segment(help))
        return help;
    tess_help_destroy(help);
    return NULL;
}

void tess_help_destroy(tess_help *help)
{
    if (!help)
        return;
    for (int r = 0; help->segment && r < help->locals; r++)
        if (help->segment[r])
            munmap(help->segment[r], help->bytes);
    if (help->file >= 0)
        close(help->file);
    tess_small_free(help->segment);
    tess_small_free(help);
}

tess_help_address tess_help_address_of(const tess_help *help)
{
    if (!help)
        return (tess_help_address){.bytes = 0};
    return (tess_help_address){getpid(), help->file, help_board_of(help, help->here)->secret, help->bytes};
}

bool tess_help_join(tess_help *help, int local, const tess_help_address *address)
{
    char path[64];
    struct stat found;
    if (help->segment[local])
        return true;
    if (address->bytes != help->bytes)
        return false;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)address->pid, (long long)address->file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    /* A process number may mean another process here than there. */
    if (fstat(file, &found) == 0 && (uint64_t)found.st_size == address->bytes)
        help->segment[local] = map(file, help->bytes);
    close(file);
    return help->segment[local] && help_board_of(help, local)->secret == address->secret;
}

static bool overlaps(const tess_help *help, size_t from, size_t bytes, size_t *behind)
{
    for (int i = 0; i < HELP_BLOCKS; i++) {
        const help_range *r = &help->used[i];
        if (r->bytes && from < r->from + r->bytes && r->from < from + bytes) {
            *behind = tess_align_size(r->from + r->bytes, ALIGN);
            return true;
        }
    }
    return false;
}

void *tess_help_alloc(tess_help *help, size_t bytes)
{
    help_range *entry = NULL;
    size_t from = ALIGN;
    for (int i = 0; i < HELP_BLOCKS && !entry; i++)
        entry = help->used[i].bytes ? NULL : &help->used[i];
    if (!entry)
        return NULL;
    while (overlaps(help, from, bytes, &from))
        ;
    if (bytes > help->bytes || from > help->bytes - bytes ||
        fallocate(help->file, 0, (off_t)from, (off_t)bytes) != 0)
        return NULL;
    *entry = (help_range){from, bytes};
    return help->segment[help->here] + from;
}

void tess_help_release(tess_help *help, void *data)
{
    const uint64_t from = tess_help_place(help, data);
    for (int i = 0; i < HELP_BLOCKS; i++)
        if (help->used[i].bytes && help->used[i].from == from) {
            (void)!fallocate(help->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                             (off_t)help->used[i].bytes);
            help->used[i].bytes = 0;
        }
}

uint64_t tess_help_place(const tess_help *help, const void *data)
{
    const uintptr_t start = (uintptr_t)help->segment[help->here], at = (uintptr_t)data;
    return at >= start && at - start < help->bytes ? at - start : 0;
}

void *tess_help_at(const tess_help *help, int owner, uint64_t place)
{
    return help->segment[owner] + place;
}
