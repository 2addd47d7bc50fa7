/* MPI, as a module that is opened at run time (launch.c): the program itself does not depend on an MPI library, which
 * differs from cluster to cluster. The module is linked with its own copy of base/status.c.
 *
 * Errors are returned, not fatal, and every call goes through check(). MPI counts in int: large messages are sent as
 * blocks of 1 MiB and a rest, large arrays in pieces. One thread makes all calls (MPI_THREAD_FUNNELED), except that the
 * thread that watches the others may call abort(). */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dist/mpi_keep.h"
#include "dist/ops.h"

enum { PIECE = 1 << 28, BLOCK = 1 << 20, REQUESTS = 4 }; /* elements; bytes; requests of a transfer */
enum { ABORT_SECONDS = 3 };

static MPI_Comm ranks = MPI_COMM_NULL; /* our own, so that no message of others can meet ours */
static MPI_Datatype block = MPI_DATATYPE_NULL;

static tess_status check(int code, const char *call, tess_error *error)
{
    if (code == MPI_SUCCESS)
        return TESS_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    return tess_fail(error, TESS_DEVICE_LOST, "%s failed: %s", call, text);
}

static tess_status open_mpi(int *rank, int *size, char *described, size_t bytes, tess_error *error)
{
    int there = 0, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    TESS_TRY(check(MPI_Initialized(&there), "MPI_Initialized", error));
    if (there)
        return tess_fail(error, TESS_UNSUPPORTED, "MPI is in use by the calling program already");
    TESS_TRY(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &there), "MPI_Init_thread", error));
    tess_mpi_keep_components();
    TESS_TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &ranks), "MPI_Comm_dup", error));
    TESS_TRY(check(MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", error));
    TESS_TRY(
        check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", error));
    TESS_TRY(check(MPI_Type_contiguous(BLOCK, MPI_BYTE, &block), "MPI_Type_contiguous", error));
    TESS_TRY(check(MPI_Type_commit(&block), "MPI_Type_commit", error));
    TESS_TRY(check(MPI_Comm_rank(ranks, rank), "MPI_Comm_rank", error));
    TESS_TRY(check(MPI_Comm_size(ranks, size), "MPI_Comm_size", error));
    TESS_TRY(check(MPI_Get_library_version(text, &length), "MPI_Get_library_version", error));
    text[strcspn(text, ",\n")] = '\0'; /* "Open MPI v4.1.4, package: ..." */
    snprintf(described, bytes, "%s", text);
    return TESS_OK;
}

static void close_mpi(void)
{
    int done = 0;
    if (MPI_Finalized(&done) != MPI_SUCCESS || done)
        return;
    if (block != MPI_DATATYPE_NULL)
        MPI_Type_free(&block);
    if (ranks != MPI_COMM_NULL)
        MPI_Comm_free(&ranks);
    MPI_Finalize();
}

/* The library may wait for a rank that hangs: then a signal ends the process, and the launcher ends the others, as it
 * does when a process ends with another status than 0. */
static void abort_mpi(void)
{
    int done = 0;
    signal(SIGALRM, SIG_DFL);
    alarm(ABORT_SECONDS);
    if (MPI_Finalized(&done) == MPI_SUCCESS && !done)
        MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

static tess_status gather(const void *mine, size_t bytes, void *all, tess_error *error)
{
    if (bytes > PIECE)
        return tess_fail(error, TESS_INTERNAL, "a gather of %zu bytes a rank; %d are the most", bytes, PIECE);
    return check(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, ranks), "MPI_Allgather",
                 error);
}

static tess_status broadcast(int root, void *data, size_t bytes, tess_error *error)
{
    for (char *at = data; bytes > 0;) {
        const size_t part = bytes < PIECE ? bytes : PIECE;
        TESS_TRY(check(MPI_Bcast(at, (int)part, MPI_BYTE, root, ranks), "MPI_Bcast", error));
        at += part;
        bytes -= part;
    }
    return TESS_OK;
}

static tess_status sum(char *values, int64_t count, MPI_Datatype type, size_t size, tess_error *error)
{
    for (int64_t at = 0; at < count; at += PIECE) {
        const int part = (int)(count - at < PIECE ? count - at : PIECE);
        TESS_TRY(check(MPI_Allreduce(MPI_IN_PLACE, values + (size_t)at * size, part, type, MPI_SUM, ranks),
                       "MPI_Allreduce", error));
    }
    return TESS_OK;
}

static tess_status sum_f32(float *values, int64_t count, tess_error *error)
{
    return sum((char *)values, count, MPI_FLOAT, sizeof *values, error);
}

static tess_status sum_f64(double *values, int64_t count, tess_error *error)
{
    return sum((char *)values, count, MPI_DOUBLE, sizeof *values, error);
}

static tess_status barrier(tess_error *error)
{
    return check(MPI_Barrier(ranks), "MPI_Barrier", error);
}

static size_t request_bytes(int most)
{
    return (size_t)most * REQUESTS * sizeof(MPI_Request);
}

/* Starts the requests of one direction of a transfer. `send` is NULL to receive. */
static tess_status start(tess_dist_requests *requests, int peer, const char *send, char *receive,
                         size_t bytes, tess_error *error)
{
    MPI_Request *all = requests->memory;
    const size_t blocks = bytes / BLOCK, parts[2] = {blocks * BLOCK, bytes % BLOCK};
    for (int i = 0; i < 2; i++) {
        if (parts[i] == 0)
            continue;
        MPI_Request *request = &all[requests->started];
        const size_t at = i ? parts[0] : 0;
        const int count = (int)(i ? parts[1] : blocks);
        const MPI_Datatype type = i ? MPI_BYTE : block;
        TESS_TRY(
            send ? check(MPI_Isend(send + at, count, type, peer, 0, ranks, request), "MPI_Isend", error)
                 : check(MPI_Irecv(receive + at, count, type, peer, 0, ranks, request), "MPI_Irecv", error));
        requests->started++;
    }
    return TESS_OK;
}

static tess_status begin(tess_dist_requests *requests, const tess_dist_transfer *list, int count,
                         tess_error *error)
{
    for (int i = 0; i < count; i++)
        TESS_TRY(start(requests, list[i].peer, NULL, list[i].receive, list[i].receive_bytes, error));
    for (int i = 0; i < count; i++)
        TESS_TRY(start(requests, list[i].peer, list[i].send, NULL, list[i].send_bytes, error));
    return TESS_OK;
}

/* Requests that are done become null, which MPI_Waitall accepts. */
static tess_status poll_mpi(tess_dist_requests *requests, tess_error *error)
{
    int done = 0;
    if (requests->started == 0)
        return check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ranks, &done, MPI_STATUS_IGNORE), "MPI_Iprobe",
                     error);
    TESS_TRY(check(MPI_Testall(requests->started, requests->memory, &done, MPI_STATUSES_IGNORE),
                   "MPI_Testall", error));
    requests->started = done ? 0 : requests->started;
    return TESS_OK;
}

static tess_status end(tess_dist_requests *requests, tess_error *error)
{
    const int started = requests->started;
    requests->started = 0;
    return check(MPI_Waitall(started, requests->memory, MPI_STATUSES_IGNORE), "MPI_Waitall", error);
}

__attribute__((visibility("default"))) extern const tess_dist_ops tess_dist_module;
const tess_dist_ops tess_dist_module = TESS_DIST_TABLE(mpi);
