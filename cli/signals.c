#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t caught, waits_for_poll;

static void on_signal(int number)
{
    if (waits_for_poll && !caught && number != SIGQUIT) {
        caught = number;
        return;
    }
    tess_emergency_cleanup();
    cli_record_cleanup();
    cli_live_cleanup();
    _exit(CLI_SIGNAL + number);
}

void cli_watch_signals(bool polls)
{
    /* Batch systems announce the end of a job's time by SIGUSR1, SIGUSR2 or SIGXCPU. */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    waits_for_poll = polls;
    /* Signals that nohup or a background shell ignores stay ignored. */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &before) != 0 || before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

int cli_signal_caught(void)
{
    return caught;
}
