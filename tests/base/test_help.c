/* test_help.c: parts of a job are computed once each, by its owner or by a helper in another process, and the owner sees all results; a job
 * that has ended gives no part; a helper needs the same kind and enough scratch; a helper that dies keeps its owner waiting, as the
 * watch of ranks expects; memory of the segment is given back. */
#define _GNU_SOURCE
#include "base/help.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/help_impl.h"
#include "base/mem.h"
#include "support.h"

enum { PARTS = 200, JOBS = 300, KIND = 7, SCRATCH = 256 };

/* What the two processes share beside the segments. */
typedef struct meeting {
    tess_help_address address[2];
    atomic_int ready[2], stop, helped;
} meeting;

typedef struct work {
    uint64_t in, out;
    int factor;
} work;

static void compute(const int *in, int *out, int part, int factor)
{
    for (volatile int spin = 0; spin < 200; spin++)
        ;
    out[part] = in[part] * factor + part;
}

static void compute_for_other(void *user, const tess_help *help, const tess_help_part *part)
{
    (void)user;
    const work *w = part->text;
    memset(part->scratch, part->part, SCRATCH);
    compute(tess_help_at(help, part->owner, w->in), tess_help_at(help, part->owner, w->out), part->part,
            w->factor);
}

static void die(void *user, const tess_help *help, const tess_help_part *part)
{
    (void)user, (void)help, (void)part;
    raise(SIGKILL);
}

static meeting *meet(void)
{
    return mmap(NULL, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Both processes: makes the segment of `here` and joins the other's. NULL: this system does not let them. */
static tess_help *join(meeting *m, int here)
{
    tess_help *help = tess_help_create(here, 2);
    m->address[here] = tess_help_address_of(help);
    atomic_store(&m->ready[here], 1);
    while (!atomic_load(&m->ready[!here]))
        sched_yield();
    if (help && tess_help_join(help, !here, &m->address[!here]))
        return help;
    tess_help_destroy(help);
    return NULL;
}

static void help_on(meeting *m, tess_help_fn fn, uint64_t kind, size_t scratch_bytes)
{
    static char scratch[SCRATCH];
    tess_help *help = join(m, 1);
    if (!help)
        _exit(2);
    tess_help_serve(help, kind, fn, NULL);
    tess_help_lend(help, scratch, scratch_bytes);
    while (!atomic_load(&m->stop))
        if (tess_help_once(help) == 0)
            atomic_fetch_add(&m->helped, 1);
    tess_help_destroy(help);
    _exit(0);
}

/* Jobs of rank 0, with the same memory again and again; every third one stops early. */
static void own_jobs(tess_help *help)
{
    int *in = tess_help_alloc(help, PARTS * sizeof *in), *out = tess_help_alloc(help, PARTS * sizeof *out);
    int wrong = 0, most = PARTS;
    CHECK(in && out && tess_help_place(help, &wrong) == 0);
    for (int j = 0; j < JOBS && in && out; j++) {
        const work w = {tess_help_place(help, in), tess_help_place(help, out), j};
        const tess_help_job job = {KIND, SCRATCH, PARTS, &w, sizeof w};
        for (int i = 0; i < PARTS; i++) {
            in[i] = i + j;
            out[i] = -1;
        }
        most = j % 3 ? PARTS : 5;
        tess_help_begin(help, &job);
        for (int part, taken = 0; taken < most && (part = tess_help_take(help)) >= 0; taken++)
            compute(in, out, part, j);
        tess_help_end(help);
        CHECK(tess_help_take(help) < 0);
        for (int i = 0; i < PARTS; i++)
            wrong += out[i] != in[i] * j + i && (most == PARTS || out[i] != -1);
    }
    CHECK_MSG(wrong == 0, "%d parts have other values", wrong);
    tess_help_release(help, in);
    CHECK(tess_help_alloc(help, PARTS * sizeof *in) == in && in[1] == 0);
    tess_help_release(help, in);
    tess_help_release(help, out);
}

/* Runs own jobs beside a helper; how many parts that computed. */
static int with_helper(uint64_t kind, size_t scratch)
{
    meeting *m = meet();
    const pid_t child = fork();
    if (child == 0)
        help_on(m, compute_for_other, kind, scratch);
    tess_help *help = join(m, 0);
    if (help)
        for (int round = 0; round < 20 && (round == 0 || (atomic_load(&m->helped) == 0 && kind == KIND));
             round++)
            own_jobs(help);
    atomic_store(&m->stop, 1);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    tess_help_destroy(help);
    const int helped = help ? atomic_load(&m->helped) : -1;
    munmap(m, sizeof *m);
    return helped;
}

/* A part whose helper was killed is never done: the owner waits, until the watch of ranks ends it. */
static void test_death(void)
{
    meeting *m = meet();
    const pid_t helper = fork();
    if (helper == 0)
        help_on(m, die, KIND, SCRATCH);
    const pid_t owner = fork();
    if (owner == 0) {
        tess_help *help = join(m, 0);
        const work w = {0};
        const tess_help_job job = {KIND, SCRATCH, PARTS, &w, sizeof w};
        tess_help_begin(help, &job);
        while ((atomic_load(&help_board_of(help, 0)->word) & 0xffff) ==
               0) /* the helper takes the first part */
            sched_yield();
        tess_help_end(help);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(helper, &status, 0) == helper && WIFSIGNALED(status));
    usleep(200000);
    CHECK(waitpid(owner, &status, WNOHANG) == 0);
    kill(owner, SIGKILL);
    CHECK(waitpid(owner, &status, 0) == owner);
    munmap(m, sizeof *m);
}

/* A word that was read before a job ended takes no part of the next one. */
static void test_stale(void)
{
    tess_help *help = tess_help_create(0, 2);
    const work w = {0};
    const tess_help_job job = {KIND, SCRATCH, PARTS, &w, sizeof w};
    if (!help)
        return;
    tess_help_begin(help, &job);
    uint64_t old = atomic_load(&help_board_of(help, 0)->word);
    tess_help_end(help);
    tess_help_begin(help, &job);
    CHECK(!atomic_compare_exchange_strong(&help_board_of(help, 0)->word, &old, old + 1));
    CHECK(tess_help_take(help) == 0 && tess_help_take(help) == 1);
    tess_help_end(help);
    for (int i = 0; i < HELP_BLOCKS; i++)
        CHECK(tess_help_alloc(help, 1) != NULL);
    CHECK(tess_help_alloc(help, 1) == NULL);
    for (int i = 0; i < HELP_BLOCKS; i++)
        tess_help_release(help, help->segment[0] + help->used[i].from);
    CHECK(tess_help_alloc(help, help->bytes) == NULL);
    tess_help_destroy(help);
}

int main(void)
{
    setenv("TESSERA_HELP", "0", 1);
    CHECK(tess_help_create(0, 2) == NULL);
    setenv("TESSERA_HELP", "1", 1);
    CHECK(tess_help_create(0, 1) == NULL && tess_help_once(NULL) < 0 && tess_help_parts(NULL) == 0);
    test_stale();
    const int helped = with_helper(KIND, SCRATCH);
    if (helped < 0) {
        printf("processes cannot share memory here\n");
        return check_end();
    }
    CHECK_MSG(helped > 0, "no part was computed by the helper");
    CHECK(with_helper(KIND + 1, SCRATCH) == 0);
    CHECK(with_helper(KIND, SCRATCH - 1) == 0);
    test_death();
    return check_end();
}
