/* dist_tool MODE: a program for tests of ranks, started by mpirun (tests/e2e/ranks.py).
 *   calls    makes every call of dist/dist.h, and checks what comes back
 *   wait     prints "RANK PID" of all ranks, then calls barriers until it is ended
 *   work     as wait, but each rank computes for a long time between its calls
 *   slow     as wait, but it catches SIGTERM, as jobs do, and a rank that reports a loss needs 3 seconds to end, as it
 *            does where MPI_Abort hangs
 *   version  joins with another version on the rank in FAULT_RANK
 *   fail     the rank in FAULT_RANK fails before a collective call
 * Prints one line "ok" or "error: ..." from rank 0. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "dist/dist.h"
#include "train/rank_sum.h"

static int problems;

#define EXPECT(condition, ...)                                                                               \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            problems++;                                                                                      \
            fprintf(stderr, "FAILED rank %d: %s: ", dist->rank, #condition);                                 \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
        }                                                                                                    \
    } while (0)

#define GOOD(call) EXPECT((call) == TESS_OK, "%s", error->text)

static int fault_rank(void)
{
    const char *text = getenv("FAULT_RANK");
    return text ? atoi(text) : -1;
}

static void check_agree(tess_dist *dist, tess_error *error)
{
    char expected[64];
    GOOD(tess_dist_agree(dist, TESS_OK, error));
    for (int first = 0; first < dist->size; first++)
        for (int second = first; second < dist->size; second++) {
            tess_status mine = TESS_OK;
            if (dist->rank == first || dist->rank == second)
                mine = tess_fail(error, dist->rank == first ? TESS_IO_FAILED : TESS_BAD_INPUT, "no %d",
                                 dist->rank);
            mine = tess_dist_agree(dist, mine, error);
            const bool all = dist->size == 1 || (dist->size == 2 && first != second);
            if (all)
                snprintf(expected, sizeof expected, "no %d", first);
            else
                snprintf(expected, sizeof expected, "rank %d: no %d", first, first);
            EXPECT(mine == TESS_IO_FAILED && strcmp(error->text, expected) == 0, "%d, %s", (int)mine,
                   error->text);
        }
}

static void check_gather(tess_dist *dist, tess_error *error)
{
    double *all = tess_small_alloc((size_t)dist->size * 3, sizeof *all);
    const double mine[3] = {dist->rank, 10 * dist->rank, 0.1 * dist->rank};
    GOOD(tess_dist_gather(dist, mine, sizeof mine, all, error));
    for (int r = 0; r < dist->size; r++)
        EXPECT(all[3 * r] == r && all[3 * r + 1] == 10 * r && all[3 * r + 2] == 0.1 * r, "of rank %d", r);
    tess_small_free(all);
    /* rank r gives r bytes of the value r */
    char bytes[64];
    void *pooled = NULL;
    size_t total = 0, at = 0;
    memset(bytes, dist->rank, sizeof bytes);
    GOOD(tess_dist_pool(dist, bytes, (size_t)dist->rank, &pooled, &total, error));
    EXPECT(total == (size_t)(dist->size * (dist->size - 1) / 2), "%zu bytes", total);
    for (int r = 0; r < dist->size; r++)
        for (int i = 0; i < r; i++)
            EXPECT(((char *)pooled)[at++] == r, "byte %zu", at);
    tess_small_free(pooled);
}

static void check_broadcast(tess_dist *dist, tess_error *error)
{
    enum { COUNT = 300000 };
    int *data = tess_small_alloc(COUNT, sizeof *data);
    for (int root = 0; root < dist->size; root++) {
        for (int i = 0; i < COUNT; i++)
            data[i] = dist->rank == root ? i * 7 + root : -1;
        GOOD(tess_dist_broadcast(dist, root, data, COUNT * sizeof *data, error));
        int wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += data[i] != i * 7 + root;
        EXPECT(wrong == 0, "%d of root %d", wrong, root);
    }
    GOOD(tess_dist_broadcast(dist, 0, NULL, 0, error));
    tess_small_free(data);
}

static void check_sum(tess_dist *dist, tess_error *error)
{
    enum { COUNT = 100000 };
    float *f = tess_small_alloc(COUNT, sizeof *f);
    double *d = tess_small_alloc(COUNT, sizeof *d);
    for (int i = 0; i < COUNT; i++) {
        f[i] = (float)(i % 97 + dist->rank);
        d[i] = i + dist->rank * 0.5;
    }
    GOOD(tess_dist_sum_f32(dist, f, COUNT, error));
    GOOD(tess_dist_sum_f64(dist, d, COUNT, error));
    const int n = dist->size, ranks = n * (n - 1) / 2;
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += f[i] != (float)(n * (i % 97) + ranks) || d[i] != (double)n * i + ranks * 0.5;
    EXPECT(wrong == 0, "%d wrong sums", wrong);
    GOOD(tess_dist_sum_f32(dist, NULL, 0, error));
    tess_small_free(f);
    tess_small_free(d);
}

/* Sizes around the blocks in which large messages are sent; pieces of different sizes; root in the middle. */
static void check_pieces(tess_dist *dist, tess_error *error)
{
    static const size_t sizes[] = {0, 5, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 77};
    const int root = dist->size / 2;
    size_t *bytes = tess_small_alloc((size_t)dist->size, sizeof *bytes), total = 0;
    for (int r = 0; r < dist->size; r++)
        total += bytes[r] = sizes[(size_t)(r + 3) % 6];
    unsigned char *mine = tess_small_alloc(bytes[dist->rank] + 1, 1), *all = tess_small_alloc(total + 1, 1),
                  *back = tess_small_alloc(bytes[dist->rank] + 1, 1);
    for (size_t i = 0; i < bytes[dist->rank]; i++)
        mine[i] = (unsigned char)(i * 31 + (size_t)dist->rank);
    GOOD(tess_dist_collect(dist, root, mine, bytes, dist->rank == root ? all : NULL, error));
    size_t wrong = 0, at = 0;
    for (int r = 0; r < dist->size && dist->rank == root; r++)
        for (size_t i = 0; i < bytes[r]; i++)
            wrong += all[at++] != (unsigned char)(i * 31 + (size_t)r);
    EXPECT(wrong == 0, "%zu bytes collected wrong", wrong);
    GOOD(tess_dist_scatter(dist, root, dist->rank == root ? all : NULL, bytes, back, error));
    EXPECT(memcmp(mine, back, bytes[dist->rank]) == 0, "scattered");
    tess_small_free(bytes);
    tess_small_free(mine);
    tess_small_free(all);
    tess_small_free(back);
}

/* An exchange of peers that are always the same: messages that pass through shared memory, and larger ones that do not; then another one
 * right behind it. */
static void check_near(tess_dist *dist, tess_error *error)
{
    enum { MOST = 700000 };
    static const size_t sizes[] = {1, 64, 4097, 300000, MOST, 0, 524288, 524289};
    const int up = (dist->rank + dist->size - 1) % dist->size, down = (dist->rank + 1) % dist->size;
    unsigned char *to = tess_small_alloc(2, MOST), *from = tess_small_alloc(2, MOST);
    for (int turn = 0; turn < 40; turn++) {
        tess_dist_exchange *x = NULL;
        GOOD(tess_dist_exchange_create_near(dist, turn % 2 ? 8 : 2, &x, error));
        for (int k = 0; k < 8; k++) {
            const size_t bytes = sizes[(turn + k) % 8];
            const tess_dist_transfer list[2] = {{down, to, bytes, from, bytes},
                                                {up, to + MOST, bytes, from + MOST, bytes}};
            for (size_t i = 0; i < bytes; i++) {
                to[i] = to[MOST + i] = (unsigned char)(i * 7 + (size_t)(31 * turn + k + 3 * dist->rank));
                from[i] = from[MOST + i] = 0;
            }
            GOOD(tess_dist_exchange_begin(x, list, 2, error));
            GOOD(tess_dist_exchange_end(x, error));
            size_t wrong = 0;
            for (size_t i = 0; i < bytes; i++) {
                const size_t base = i * 7 + (size_t)(31 * turn + k);
                wrong += from[i] != (unsigned char)(base + 3 * (size_t)down) ||
                         from[MOST + i] != (unsigned char)(base + 3 * (size_t)up);
            }
            EXPECT(wrong == 0, "%zu of %zu bytes in turn %d", wrong, bytes, turn);
        }
        tess_dist_exchange_destroy(x);
    }
    tess_small_free(to);
    tess_small_free(from);
}

/* A message through shared memory arrives while its sender stays away from all calls: until a file is there that the receiver makes. */
static void check_arrival(tess_dist *dist, tess_error *error)
{
    enum { BYTES = 200000, TENTHS = 300 };
    if (dist->size == 1 || !dist->mailboxes)
        return;
    char *data = tess_small_alloc(1, BYTES), name[64];
    const struct timespec tenth = {0, 100000000};
    tess_dist_exchange *x = NULL;
    int waited = 0;
    snprintf(name, sizeof name, "/tmp/dist-tool-%d", dist->places[0].pid);
    memset(data, dist->rank == 0 ? 7 : 0, BYTES);
    GOOD(tess_dist_exchange_create_near(dist, 2, &x, error));
    GOOD(tess_dist_barrier(dist, error));
    if (dist->rank == 0) {
        const tess_dist_transfer sent = {.peer = 1, .send = data, .send_bytes = BYTES};
        GOOD(tess_dist_exchange_begin(x, &sent, 1, error));
        while (access(name, F_OK) != 0 && waited++ < TENTHS)
            nanosleep(&tenth, NULL);
        EXPECT(waited < TENTHS, "nothing arrived");
        unlink(name);
        GOOD(tess_dist_exchange_end(x, error));
    } else if (dist->rank == 1) {
        const tess_dist_transfer received = {.peer = 0, .receive = data, .receive_bytes = BYTES};
        GOOD(tess_dist_exchange_begin(x, &received, 1, error));
        GOOD(tess_dist_exchange_end(x, error));
        EXPECT(data[0] == 7 && data[BYTES - 1] == 7, "other bytes");
        FILE *file = fopen(name, "w");
        EXPECT(file && fclose(file) == 0, "no file");
    }
    tess_dist_exchange_destroy(x);
    tess_small_free(data);
}

/* Two exchanges with both neighbours under way at once, many times, without allocation. */
static void check_exchange(tess_dist *dist, tess_error *error)
{
    enum { FIRST = 50000, SECOND = 3 };
    const int up = (dist->rank + dist->size - 1) % dist->size, down = (dist->rank + 1) % dist->size;
    static int to_up[2][FIRST], to_down[2][FIRST], from_up[2][FIRST], from_down[2][FIRST];
    tess_dist_exchange *x[2] = {NULL, NULL};
    GOOD(tess_dist_exchange_create(dist, 2, &x[0], error));
    GOOD(tess_dist_exchange_create(dist, 2, &x[1], error));
    const uint64_t calls = tess_mem_calls();
    for (int turn = 0; turn < 20; turn++) {
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < FIRST; i++) {
                to_up[k][i] = turn + 1000 * dist->rank + k + i;
                to_down[k][i] = -to_up[k][i];
            }
        for (int k = 0; k < 2; k++) {
            const size_t bytes = (k ? SECOND : FIRST) * sizeof(int);
            /* with two ranks, or one, both neighbours are the same: what went up comes from below */
            const tess_dist_transfer list[2] = {{up, to_up[k], bytes, from_down[k], bytes},
                                                {down, to_down[k], bytes, from_up[k], bytes}};
            const tess_dist_transfer many[2] = {{up, to_up[k], bytes, from_up[k], bytes},
                                                {down, to_down[k], bytes, from_down[k], bytes}};
            GOOD(tess_dist_exchange_begin(x[k], dist->size <= 2 ? list : many, 2, error));
        }
        for (int k = 0; k < turn; k++)
            GOOD(tess_dist_exchange_poll(x[k % 2], error));
        for (int k = 1; k >= 0; k--)
            GOOD(tess_dist_exchange_end(x[k], error));
        int wrong = 0;
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < (k ? SECOND : FIRST); i++)
                wrong += from_down[k][i] != turn + 1000 * down + k + i ||
                         from_up[k][i] != -(turn + 1000 * up + k + i);
        EXPECT(wrong == 0, "%d values exchanged wrong", wrong);
    }
    EXPECT(tess_mem_calls() == calls, "begin and end allocate");
    GOOD(tess_dist_exchange_poll(x[0], error)); /* nothing is under way */
    EXPECT(tess_dist_exchange_end(x[0], error) == TESS_INTERNAL, "an end without a begin");
    tess_dist_exchange_destroy(x[0]);
    tess_dist_exchange_destroy(x[1]);
}

/* Sums have the bits of a sum in the order of the ranks, for arrays of one piece and of many, that become final at once or bit by
 * bit, in place or through copies. */
static void check_rank_sum(tess_dist *dist, tess_error *error)
{
    tess_memory memory = {0};
    tess_device *device = NULL;
    const tess_device_options options = {.threads = 1, .memory = &memory};
    GOOD(tess_registry_open("cpu", &options, &device, error));
    static const int64_t sizes[] = {1, 5, 4096, 4097, 50001, 3000000};
    for (int i = 0; i < 12; i++) {
        const int64_t count = sizes[i / 2];
        float *values = tess_small_alloc((size_t)count, sizeof *values);
        tess_rank_sum *sum = NULL;
        GOOD(tess_rank_sum_open(dist, device, values, count, i % 2 == 1, &sum, error));
        for (int turn = 0; turn < 2; turn++) {
            for (int64_t k = 0; k < count; k++)
                values[k] = (float)(k % 1013 + turn) / (float)(7 * dist->rank + 3);
            for (int64_t from = count; turn && from > count / 3; from -= count / 11 + 1 + dist->rank)
                tess_rank_sum_ready(sum, from);
            GOOD(tess_rank_sum_end(sum, error));
            int64_t wrong = 0;
            for (int64_t k = 0; k < count; k++) {
                float expected = 0;
                for (int r = 0; r < dist->size; r++)
                    expected += (float)(k % 1013 + turn) / (float)(7 * r + 3);
                wrong += memcmp(&expected, &values[k], sizeof expected) != 0;
            }
            EXPECT(wrong == 0, "%lld of %lld sums", (long long)wrong, (long long)count);
        }
        tess_rank_sum_close(sum);
        tess_small_free(values);
    }
    tess_registry_close(device);
}

/* Every number goes to one rank, also when several counters are used, and none after a drain. */
static void check_next(tess_dist *dist, tess_error *error)
{
    enum { ITEMS = 500 };
    double taken[ITEMS];
    for (int turn = 0; turn < 3; turn++) {
        memset(taken, 0, sizeof taken);
        const uint32_t counter = tess_dist_counter(dist);
        for (int64_t i; (i = tess_dist_next(dist, counter)) < ITEMS;)
            taken[i]++;
        GOOD(tess_dist_sum_f64(dist, taken, ITEMS, error));
        int wrong = 0;
        for (int i = 0; i < ITEMS; i++)
            wrong += taken[i] != 1;
        EXPECT(wrong == 0, "%d items not done once", wrong);
    }
    const uint32_t counter = tess_dist_counter(dist);
    (void)tess_dist_next(dist, counter);
    GOOD(tess_dist_barrier(dist, error));
    if (dist->rank == dist->size - 1)
        tess_dist_drain(dist, counter);
    if (dist->rank == dist->size - 1) /* its own messages arrive in order */
        EXPECT(tess_dist_next(dist, counter) == INT64_MAX, "a number after the drain");
    GOOD(tess_dist_barrier(dist, error));
    EXPECT(tess_dist_next(dist, counter) == INT64_MAX, "a number after the drain");
}

static void check_report(tess_dist *dist, tess_error *error)
{
    const int others = dist->size * (dist->size - 1) / 2;
    tess_dist_report(dist, dist->rank);
    for (int i = 0; i < 50 && dist->rank == 0 && tess_dist_reported(dist) != others; i++)
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    GOOD(tess_dist_barrier(dist, error));
    EXPECT(dist->rank != 0 || tess_dist_reported(dist) == others, "%d", (int)tess_dist_reported(dist));
}

static void check_places(tess_dist *dist, tess_error *error)
{
    int pid = (int)getpid();
    for (int r = 0; r < dist->size; r++) {
        int theirs = pid;
        GOOD(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        const tess_dist_place *place = &dist->places[r];
        EXPECT(dist->size == 1 || (place->pid == theirs && place->host[0]), "place of rank %d", r);
        EXPECT(place->local == r && place->locals == dist->size, "local rank %d", place->local);
    }
    EXPECT(dist->size == 1 || dist->threads >= 1, "%d threads", dist->threads);
}

static void check_calls(tess_dist *dist, tess_error *error)
{
    check_agree(dist, error);
    check_gather(dist, error);
    check_broadcast(dist, error);
    check_sum(dist, error);
    check_pieces(dist, error);
    check_exchange(dist, error);
    check_near(dist, error);
    check_arrival(dist, error);
    check_rank_sum(dist, error);
    check_next(dist, error);
    check_report(dist, error);
    check_places(dist, error);
}

static void wait_for_end(tess_dist *dist, tess_error *error, bool works)
{
    for (int r = 0; r < dist->size && dist->rank == 0; r++)
        printf("%d %d\n", r, dist->places[r].pid);
    fflush(stdout);
    while (tess_dist_barrier(dist, error) == TESS_OK)
        nanosleep(&(struct timespec){works ? 60 : 0, 2000000}, NULL);
}

static void lost(void *user, const char *text)
{
    if (!text)
        return;
    fprintf(stderr, "lost: %s\n", text);
    if (strcmp(user, "slow") == 0)
        sleep(3);
}

static tess_status run(tess_dist *dist, const char *mode, tess_error *error)
{
    if (strcmp(mode, "calls") == 0)
        check_calls(dist, error);
    else if (strcmp(mode, "wait") == 0 || strcmp(mode, "work") == 0 || strcmp(mode, "slow") == 0)
        wait_for_end(dist, error, mode[1] == 'o');
    else if (strcmp(mode, "fail") == 0 && dist->rank == fault_rank())
        return tess_fail(error, TESS_BAD_INPUT, "no such file");
    return problems ? tess_fail(error, TESS_INTERNAL, "%d checks failed", problems) : TESS_OK;
}

/* Whether Open MPI's component for PMIx is in memory: its thread may call it until the process ends. */
static bool has_component(void)
{
    char line[4096];
    bool has = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !has && fgets(line, sizeof line, maps))
        has = strstr(line, "/mca_pmix_") != NULL;
    if (maps)
        fclose(maps);
    return has;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "calls", *named = getenv("OMPI_COMM_WORLD_RANK");
    const bool faulty = named && atoi(named) == fault_rank();
    tess_error error = {""};
    tess_dist *dist = NULL;
    int rank = 0;
    const tess_dist_settings settings = {.version = strcmp(mode, "version") == 0 && faulty ? "0.0.9"
                                                                                           : TESSERA_VERSION,
                                         .words = (const char *const *)argv + 1,
                                         .word_count = argc - 1,
                                         .lost = lost,
                                         .user = argc > 1 ? argv[1] : "calls"};
    if (strcmp(mode, "slow") == 0)
        signal(SIGTERM, SIG_IGN);
    tess_status status = tess_dist_open(&settings, &dist, &rank, &error);
    if (status == TESS_OK)
        status = tess_dist_agree(dist, run(dist, mode, &error), &error);
    if (rank == 0 && status != TESS_OK)
        printf("error: %s\n", error.text);
    else if (rank == 0)
        printf("ok %d %s\n", dist->size, dist->name);
    fflush(stdout);
    const bool had_component = has_component();
    tess_dist_close(dist);
    if (had_component && !has_component()) {
        fprintf(stderr, "FAILED rank %d: the component for PMIx was unloaded\n", rank);
        return 1;
    }
    return status != TESS_OK && rank == 0 ? 1 : 0;
}
