/* nccl_stand_in.c: a libnccl.so.2 for tests without cards: the device's memory is the host's, and ranks are processes of one host, which
 * find each other by a file in shared memory that the id names. Messages of a group are moved when it ends, in pieces through a mailbox for
 * each pair of ranks; a group returns when all are there.
 *
 * NCCL_STAND_IN says what it does wrong: "init": no communicator can be made; "alone": rank 1 makes none; "send": the third group fails, on rank 1; "hang": so, but it
 * does not return. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dist/nccl_api.h"

enum { MOST_RANKS = 16, MOST_MESSAGES = 64, PIECE = 1 << 16 };
enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_USAGE = 5, FLOAT32 = 7 };
enum { STAND_IN_VERSION = 29901 };

#define X(result, name, parameters) __attribute__((visibility("default"))) result name parameters;
TESS_NCCL_FUNCTIONS(X)
#undef X

typedef tess_nccl_comm comm;
typedef tess_nccl_id id; /* the file's name */

typedef struct mailbox {
    atomic_int full;
    char bytes[PIECE];
} mailbox;

typedef struct shared {
    atomic_int joined, left;
    mailbox to[MOST_RANKS][MOST_RANKS]; /* [sender][receiver] */
} shared;

struct tess_nccl_comm {
    int ranks, rank, groups;
    shared *memory;
    id name;
};

typedef struct message {
    comm *comm;
    const char *send; /* NULL: it is received */
    char *receive;
    size_t bytes, done;
    int peer;
} message;

static message list[MOST_MESSAGES];
static int count, depth;

static bool goes_wrong(const char *how)
{
    const char *wanted = getenv("NCCL_STAND_IN");
    return wanted && strcmp(wanted, how) == 0;
}

int ncclGetVersion(int *version)
{
    *version = STAND_IN_VERSION;
    return SUCCESS;
}

const char *ncclGetErrorString(int result)
{
    return result == SYSTEM_ERROR ? "stand-in: system error" : "stand-in: invalid usage";
}

int ncclGetUniqueId(id *out)
{
    static atomic_int made;
    memset(out, 0, sizeof *out);
    snprintf(out->internal, sizeof out->internal, "/nccl-stand-in-%d-%d", (int)getpid(),
             atomic_fetch_add(&made, 1));
    return SUCCESS;
}

int ncclCommInitRank(comm **out, int ranks, id name, int rank)
{
    *out = NULL;
    if (goes_wrong("init") || (goes_wrong("alone") && rank == 1) || ranks > MOST_RANKS)
        return SYSTEM_ERROR;
    const int file = shm_open(name.internal, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(shared)) != 0)
        return SYSTEM_ERROR;
    shared *memory = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    comm *c = calloc(1, sizeof *c);
    if (memory == MAP_FAILED || !c)
        return SYSTEM_ERROR;
    *c = (comm){.ranks = ranks, .rank = rank, .memory = memory, .name = name};
    atomic_fetch_add(&memory->joined, 1);
    while (atomic_load(&memory->joined) < ranks)
        sched_yield();
    if (rank == 0) /* all have it open */
        shm_unlink(name.internal);
    *out = c;
    return SUCCESS;
}

int ncclCommAbort(comm *c)
{
    munmap(c->memory, sizeof *c->memory);
    free(c);
    return SUCCESS;
}

/* As the library does, waits for the others. */
int ncclCommDestroy(comm *c)
{
    atomic_fetch_add(&c->memory->left, 1);
    while (atomic_load(&c->memory->left) < c->ranks)
        sched_yield();
    return ncclCommAbort(c);
}

int ncclCommGetAsyncError(comm *c, int *result)
{
    (void)c;
    *result = SUCCESS;
    return SUCCESS;
}

/* One piece, if its mailbox is ready. Between two ranks, messages go one after another. */
static bool move_on(message *m)
{
    comm *c = m->comm;
    mailbox *box = m->send ? &c->memory->to[c->rank][m->peer] : &c->memory->to[m->peer][c->rank];
    const size_t left = m->bytes - m->done, bytes = left < PIECE ? left : PIECE;
    if (atomic_load(&box->full) == (m->send != NULL))
        return false;
    memcpy(m->send ? box->bytes : m->receive + m->done, m->send ? m->send + m->done : box->bytes, bytes);
    m->done += bytes;
    atomic_store(&box->full, m->send != NULL);
    return true;
}

static bool has_turn(int index)
{
    for (int i = 0; i < index; i++)
        if (list[i].peer == list[index].peer && !list[i].send == !list[index].send &&
            list[i].done < list[i].bytes)
            return false;
    return true;
}

static void move_all(void)
{
    for (bool done = false; !done;) {
        bool moved = false;
        done = true;
        for (int i = 0; i < count; i++)
            if (list[i].done < list[i].bytes) {
                moved = (has_turn(i) && move_on(&list[i])) || moved;
                done = false;
            }
        if (!moved)
            sched_yield();
    }
}

int ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}

int ncclGroupEnd(void)
{
    if (--depth > 0 || count == 0)
        return SUCCESS;
    comm *c = list[0].comm;
    const bool wrong = ++c->groups == 3 && c->rank == 1;
    if (wrong && goes_wrong("hang"))
        pause();
    if (!wrong || !goes_wrong("send"))
        move_all();
    count = 0;
    return wrong && goes_wrong("send") ? SYSTEM_ERROR : SUCCESS;
}

static int add(message m, int type)
{
    if (type != 1 || depth == 0 || count == MOST_MESSAGES || m.peer < 0 || m.peer >= m.comm->ranks)
        return INVALID_USAGE;
    list[count++] = m;
    return SUCCESS;
}

int ncclSend(const void *data, size_t bytes, int type, int peer, comm *c, tess_stream *stream)
{
    (void)stream;
    return add((message){.comm = c, .send = data, .bytes = bytes, .peer = peer}, type);
}

int ncclRecv(void *data, size_t bytes, int type, int peer, comm *c, tess_stream *stream)
{
    (void)stream;
    return add((message){.comm = c, .receive = data, .bytes = bytes, .peer = peer}, type);
}

#ifndef WITHOUT_SUM
/* The values of one rank after the other. */
int ncclAllReduce(const void *from, void *to, size_t values, int type, int how, comm *c, tess_stream *stream)
{
    const size_t bytes = values * sizeof(float);
    if (type != FLOAT32 || how != 0 || depth > 0)
        return INVALID_USAGE;
    float *all = malloc(bytes * (size_t)c->ranks);
    if (!all)
        return SYSTEM_ERROR;
    ncclGroupStart();
    for (int r = 0; r < c->ranks; r++) {
        (void)ncclSend(from, bytes, 1, r, c, stream);
        (void)ncclRecv(all + (size_t)r * values, bytes, 1, r, c, stream);
    }
    const int result = ncclGroupEnd();
    for (size_t i = 0; i < values; i++) {
        float sum = all[i];
        for (int r = 1; r < c->ranks; r++)
            sum += all[(size_t)r * values + i];
        ((float *)to)[i] = sum;
    }
    free(all);
    return result;
}
#endif
