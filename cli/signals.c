#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

/* Signals often come in pairs: a launcher passes on what the terminal has sent already, a supervisor sends SIGTERM after
 * SIGINT. Only one that comes later than this asks to end at once. */
enum { PAIR_MILLISECONDS = 100 };

static atomic_int caught, waits_for_poll; /* a handler may run in any thread */
static _Atomic int64_t caught_at;         /* milliseconds */
static atomic_int leaving, held;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void leave(int number)
{
    static const char text[] = "tessera: ended at once; no half-written output is left\n";
    cli_record_cleanup();
    cli_live_cleanup();
    if (atomic_load(&caught) && cli_speaks())
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
    tess_emergency_cleanup();
    _exit(CLI_SIGNAL + number);
}

static void on_signal(int number)
{
    const int why = errno;
    int none = 0;
    const bool polls = atomic_load(&waits_for_poll) && number != SIGQUIT;
    if (polls && atomic_load(&caught) == 0) {
        atomic_store(&caught_at, now());
        if (atomic_compare_exchange_strong(&caught, &none, number))
            return;
    }
    if (polls && now() - atomic_load(&caught_at) < PAIR_MILLISECONDS)
        return;
    atomic_store(&leaving, number);
    if (!atomic_load(&held))
        leave(number);
    errno = why;
}

void cli_hold_signals(bool hold)
{
    atomic_store(&held, hold);
    if (atomic_load(&leaving)) {
        atomic_store(&held, false);
        leave(atomic_load(&leaving));
    }
}

void cli_watch_signals(bool polls)
{
    /* Batch systems announce the end of a job's time by SIGUSR1, SIGUSR2 or SIGXCPU. */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    atomic_store(&waits_for_poll, polls);
    /* Signals that nohup or a background shell ignores stay ignored. */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &before) != 0 || before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

int cli_signal_caught(void)
{
    return atomic_load(&caught);
}
