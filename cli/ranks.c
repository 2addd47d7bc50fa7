/* Several processes do one job, and the user sees one program: one line for an error, one summary, one record. All ranks
 * have the same arguments, but one may lack a file that the others have, so each keeps its first message until all
 * ranks have come to the same point. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static tess_context *context;
static bool agreed;
static char kept[CLI_MESSAGE];

/* Whose error line this is. When a rank is lost, the work of this one fails too, because its temporary files are removed
 * and MPI returns errors: the first of both speaks, and the other is silent. */
typedef enum speaker { NOBODY, THE_WORK, THE_WATCH } speaker;
static atomic_int speaks;

static bool take_voice(speaker who)
{
    int nobody = NOBODY;
    return atomic_compare_exchange_strong(&speaks, &nobody, who);
}

/* Called by another thread, and the process ends afterwards: no locks of stdio. */
static void on_lost(const char *text)
{
    char line[CLI_MESSAGE + 16];
    const bool first = take_voice(THE_WATCH);
    cli_record_cleanup();
    cli_live_cleanup();
    if (!text || !first)
        return;
    const int length = snprintf(line, sizeof line, "tessera: %.*s\n", CLI_MESSAGE, text);
    (void)!write(STDERR_FILENO, line, (size_t)length);
}

int cli_join(int argc, char **argv)
{
    if (tess_context_create(&context) != TESS_OK) {
        fputs("tessera: no memory\n", stderr);
        return CLI_FAILED;
    }
    const tess_status status =
        tess_context_join(context, (const char *const *)argv + (argc > 0), argc - (argc > 0), on_lost);
    if (status == TESS_OK)
        return -1;
    if (!cli_speaks())
        return CLI_DONE; /* rank 0 reports it; a launcher would end it at the first failure that it sees */
    fprintf(stderr, "tessera: %s\n", tess_context_error(context));
    return CLI_FAILED;
}

void cli_leave(void)
{
    tess_context_destroy(context);
    context = NULL;
}

tess_context *cli_context(void)
{
    return context;
}

bool cli_speaks(void)
{
    return !context || tess_context_rank(context) == 0;
}

bool cli_keep_message(const char *text)
{
    if (!context || tess_context_ranks(context) == 1)
        return false;
    if (!agreed && !kept[0])
        snprintf(kept, sizeof kept, "%s", text);
    if (!agreed || !cli_speaks())
        return true;
    if (!take_voice(THE_WORK))
        while (atomic_load(&speaks) == THE_WATCH)
            pause(); /* the watch ends this process */
    return false;
}

int cli_agree(int status)
{
    if (agreed)
        return status;
    if (tess_context_ranks(context) == 1) {
        agreed = true;
        return status;
    }
    const tess_status mine = status <= 0 ? TESS_OK : status == CLI_USAGE ? TESS_BAD_OPTION : TESS_IO_FAILED;
    const tess_status all = tess_context_agree(context, mine, kept);
    agreed = true;
    if (all == TESS_OK)
        return status;
    if (tess_context_error(context)[0])
        cli_complain("%s", tess_context_error(context));
    return all == TESS_BAD_OPTION ? CLI_USAGE : CLI_FAILED;
}
