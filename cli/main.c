/* tessera: one verb for each job. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli.h"

const cli_verb *const cli_verbs[] = {&cli_denoise, &cli_reconstruct, &cli_fill,   &cli_detect,  &cli_train,
                                     &cli_plan,    &cli_bench,       &cli_report, &cli_convert, &cli_info,
                                     &cli_top,     &cli_help,        NULL};

const cli_verb *cli_find_verb(const char *name)
{
    for (int i = 0; cli_verbs[i]; i++)
        if (strcmp(name, cli_verbs[i]->name) == 0)
            return cli_verbs[i];
    return NULL;
}

/* If a standard file is closed, the next file that is opened gets its number, and messages would be written into an
 * image. The placeholder fails when it is used, as the closed file would. */
static void hold_standard_files(void)
{
    for (int i = 0; i < 3; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", i == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* The C library gives each thread a heap of its own: memory that one thread frees is of no use to another, and
 * each reserves 64 MiB of addresses: a decoder that allocates in one thread and frees in another would hold more than any
 * plan counts. So all threads use one heap; nothing is allocated where it matters for the time. */
static void use_one_heap(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
#endif
}

static int unknown(const char *word)
{
    if (word[0] != '-')
        return cli_unknown_verb(word, false);
    cli_guess guess = {NULL, 0};
    cli_guess_try(&guess, word, "--help");
    cli_guess_try(&guess, word, "--version");
    if (guess.best)
        return cli_complain("unknown option %s; did you mean %s?", word, guess.best);
    return cli_complain("%s: options follow the verb; see tessera help", word);
}

static int run(int argc, char **argv)
{
    const cli_verb *verb = argc > 1 ? cli_find_verb(argv[1]) : NULL;
    if (verb)
        return verb->run(argc - 2, argv + 2, false);
    if (argc < 2) {
        cli_print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        cli_print_overview(stdout);
    else if (strcmp(argv[1], "--version") == 0)
        cli_print(stdout, "%s\n", TESSERA_VERSION);
    else
        return unknown(argv[1]);
    return CLI_DONE;
}

int main(int argc, char **argv)
{
    hold_standard_files();
    use_one_heap();
    /* A reader that has closed the pipe gives a failed write, so that the job still removes its temporary files. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the same for a file that may not grow (ulimit -f) */
    cli_remember(argc, argv);
    int status = cli_join(argc, argv);
    if (status < 0)
        status = cli_close_output(cli_agree(run(argc, argv)));
    cli_leave();
    return status;
}
