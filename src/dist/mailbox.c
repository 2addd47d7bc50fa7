#define _GNU_SOURCE
#include "dist/mailbox.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/mem.h"

/* MOST, LEAST: bytes of a data area; PART: of the free shared memory, that all ranks of a host take together. */
enum { SLOTS = 2, LINE = 64, PEERS = 8, NAME = 48, LEAST = 256 << 10, MOST = 2 << 20, PART = 4 };

/* Messages from one rank to another; in the segment of the sender, on a line of the cache of its own. */
typedef struct channel {
    _Alignas(LINE) atomic_uint posted; /* written by the sender */
    uint32_t offset[SLOTS];            /* of message k: offset[k % SLOTS], in the data area */
    _Alignas(LINE) atomic_uint taken;  /* written by the receiver */
} channel;

struct tess_mailboxes {
    const tess_dist *dist;
    int here;       /* this rank's number on its host */
    int locals;     /* ranks of this host */
    char **segment; /* of each of them */
    size_t area, bytes;
    bool in_use, drained;
    size_t slot;      /* bytes */
    int peers[PEERS]; /* of the exchange that has the segment; each has its own slots */
    int peer_count, most;
};

/* What ranks tell each other. */
typedef struct offer {
    char name[NAME];
    uint64_t area; /* 0: this rank has no memory to share */
} offer;

static bool is_local(const tess_mailboxes *boxes, int rank)
{
    const tess_dist_place *places = boxes->dist->places;
    return strcmp(places[rank].host, places[boxes->dist->rank].host) == 0;
}

static channel *channel_of(const tess_mailboxes *boxes, int from, int to)
{
    return (channel *)(void *)boxes->segment[from] + to;
}

static size_t data_at(const tess_mailboxes *boxes)
{
    return tess_align_size((size_t)boxes->locals * sizeof(channel), LINE);
}

/* As much as may be taken of the memory that is shared, without knowing what others take. */
static uint64_t area_to_offer(const tess_mailboxes *boxes, int file)
{
    const char *wish = getenv("TESSERA_SHARED_MEMORY");
    struct statvfs system;
    if ((wish && strcmp(wish, "0") == 0) || fstatvfs(file, &system) != 0)
        return 0;
    const uint64_t free = (uint64_t)system.f_bavail * system.f_frsize / PART / (uint64_t)boxes->locals;
    return free < LEAST ? 0 : free < MOST ? free / LINE * LINE : MOST;
}

static int create_file(char *name)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -1;
    snprintf(name, NAME, "/tessera-%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    return shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
}

static char *map_file(int file, size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return data == MAP_FAILED ? NULL : data;
}

/* The segment of a rank, as it described it. */
static char *map_peer(const char *name, size_t bytes)
{
    struct stat found;
    const int file = shm_open(name, O_RDWR, 0);
    char *data = NULL;
    if (file >= 0 && fstat(file, &found) == 0 && found.st_uid == geteuid() && (size_t)found.st_size == bytes)
        data = map_file(file, bytes);
    if (file >= 0)
        close(file);
    return data;
}

static bool map_all(tess_mailboxes *boxes, const offer *offers)
{
    for (int r = 0; r < boxes->dist->size; r++) {
        const int local = boxes->dist->places[r].local;
        if (is_local(boxes, r) && !boxes->segment[local])
            boxes->segment[local] = map_peer(offers[r].name, boxes->bytes);
        if (is_local(boxes, r) && !boxes->segment[local])
            return false;
    }
    return true;
}

/* The size that all ranks can have; 0: none. */
static size_t least_area(const offer *offers, int ranks)
{
    uint64_t least = MOST;
    for (int r = 0; r < ranks; r++)
        least = offers[r].area < least ? offers[r].area : least;
    return (size_t)least;
}

/* Collective: *shared is whether all ranks share memory. */
static tess_status share(tess_mailboxes *boxes, int file, offer *offers, offer *mine, bool *shared,
                         tess_error *error)
{
    tess_dist *dist = (tess_dist *)boxes->dist;
    *shared = false;
    TESS_TRY(tess_dist_gather(dist, mine, sizeof *mine, offers, error));
    boxes->area = least_area(offers, dist->size);
    if (boxes->area == 0)
        return TESS_OK;
    boxes->bytes = data_at(boxes) + boxes->area;
    /* Memory that is promised and not there would end the process when it is first used. */
    if (file >= 0 && posix_fallocate(file, 0, (off_t)boxes->bytes) == 0)
        boxes->segment[boxes->here] = map_file(file, boxes->bytes);
    TESS_TRY(tess_dist_barrier(dist, error));
    mine->area = boxes->locals == 1 || (boxes->segment[boxes->here] && map_all(boxes, offers));
    TESS_TRY(tess_dist_gather(dist, mine, sizeof *mine, offers, error));
    *shared = least_area(offers, dist->size) > 0;
    return TESS_OK;
}

tess_status tess_mailboxes_open(tess_dist *dist, tess_error *error)
{
    const tess_dist_place *place = &dist->places[dist->rank];
    tess_mailboxes *boxes = tess_small_alloc(1, sizeof *boxes);
    offer *offers = tess_small_alloc((size_t)dist->size, sizeof *offers), mine = {""};
    char **segment = tess_small_alloc((size_t)place->locals, sizeof *segment);
    tess_status status = TESS_OK;
    if (!boxes || !offers || !segment)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for %d ranks", dist->size);
    status = tess_dist_agree(dist, status, error);
    bool shared = false;
    int file = -1;
    if (status == TESS_OK) {
        *boxes =
            (tess_mailboxes){.dist = dist, .here = place->local, .locals = place->locals, .segment = segment};
        dist->mailboxes = boxes;
        file = place->locals > 1 ? create_file(mine.name) : -1;
        mine.area = file >= 0 ? area_to_offer(boxes, file) : place->locals > 1 ? 0 : LEAST;
        status = share(boxes, file, offers, &mine, &shared, error);
    } else {
        tess_small_free(segment);
        tess_small_free(boxes);
    }
    if (file >= 0) {
        close(file);
        shm_unlink(mine.name);
    }
    if (!shared)
        tess_mailboxes_close(dist);
    tess_small_free(offers);
    return status;
}

void tess_mailboxes_close(tess_dist *dist)
{
    tess_mailboxes *boxes = dist->mailboxes;
    if (!boxes)
        return;
    for (int r = 0; r < boxes->locals; r++)
        if (boxes->segment[r])
            munmap(boxes->segment[r], boxes->bytes);
    tess_small_free(boxes->segment);
    tess_small_free(boxes);
    dist->mailboxes = NULL;
}

bool tess_mailboxes_take(tess_mailboxes *boxes, int most)
{
    if (!boxes || boxes->in_use || most > PEERS)
        return false;
    boxes->in_use = true;
    boxes->drained = false;
    boxes->peer_count = 0;
    boxes->most = most;
    boxes->slot = boxes->area / (size_t)(most * SLOTS) / LINE * LINE;
    return true;
}

void tess_mailboxes_leave(tess_mailboxes *boxes)
{
    boxes->in_use = false;
}

bool tess_mailboxes_carry(const tess_mailboxes *boxes, int peer, size_t bytes)
{
    return peer != boxes->dist->rank && bytes > 0 && bytes <= boxes->slot && is_local(boxes, peer);
}

/* The messages of the exchange before this one lie where this one would write. */
static bool drain(tess_mailboxes *boxes)
{
    for (int r = 0; r < boxes->locals && !boxes->drained; r++) {
        channel *c = channel_of(boxes, boxes->here, r);
        if (atomic_load(&c->posted) != atomic_load_explicit(&c->taken, memory_order_acquire))
            return false;
    }
    boxes->drained = true;
    return true;
}

/* Which of the exchange's peers it is. There are never more than `most`. */
static int number_of(tess_mailboxes *boxes, int peer)
{
    for (int i = 0; i < boxes->peer_count; i++)
        if (boxes->peers[i] == peer)
            return i;
    boxes->peers[boxes->peer_count] = peer;
    return boxes->peer_count++;
}

bool tess_mailboxes_post(tess_mailboxes *boxes, int peer, const void *data, size_t bytes)
{
    channel *c = channel_of(boxes, boxes->here, boxes->dist->places[peer].local);
    const unsigned posted = atomic_load_explicit(&c->posted, memory_order_relaxed);
    if (!drain(boxes) || posted - atomic_load_explicit(&c->taken, memory_order_acquire) == SLOTS)
        return false;
    const size_t at = ((size_t)number_of(boxes, peer) * SLOTS + posted % SLOTS) * boxes->slot;
    memcpy(boxes->segment[boxes->here] + data_at(boxes) + at, data, bytes);
    c->offset[posted % SLOTS] = (uint32_t)at;
    atomic_store_explicit(&c->posted, posted + 1, memory_order_release);
    return true;
}

bool tess_mailboxes_fetch(tess_mailboxes *boxes, int peer, void *data, size_t bytes)
{
    const int from = boxes->dist->places[peer].local;
    channel *c = channel_of(boxes, from, boxes->here);
    const unsigned taken = atomic_load_explicit(&c->taken, memory_order_relaxed);
    if (atomic_load_explicit(&c->posted, memory_order_acquire) == taken)
        return false;
    memcpy(data, boxes->segment[from] + data_at(boxes) + c->offset[taken % SLOTS], bytes);
    atomic_store_explicit(&c->taken, taken + 1, memory_order_release);
    return true;
}
