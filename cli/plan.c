#include <string.h>

#include "cli.h"

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    cli_shared shared;
    int count;
    /* The options belong to the verb that is planned, so the verb must come first. */
    if (argc == 0 || argv[0][0] == '-') {
        const int status = cli_parse(&cli_plan, argc, argv, &shared, NULL, &count);
        return status >= 0 ? status : cli_complain("plan: the verb comes first; see tessera help plan");
    }
    const cli_verb *verb = cli_find_verb(argv[0]);
    if (!verb || !verb->plans)
        return cli_unknown_verb(argv[0], true);
    const int status = cli_refuse_watching(argc - 1, argv + 1);
    return status >= 0 ? status : verb->run(argc - 1, argv + 1, true);
}

const cli_verb cli_plan = {
    .name = "plan",
    .what = "what a verb would do: tile, bytes, seconds",
    .usage = "denoise|reconstruct|fill|detect|train ... [options]",
    .text = "Prints what the verb would do with the same words and options, and runs nothing: device, tile, "
            "batch, "
            "bytes and seconds. It takes all options of the verb: see tessera help denoise, tessera help "
            "reconstruct, tessera help fill, tessera help detect and tessera help train.",
    .example = "tessera plan denoise big.png out.png --sigma 0.1 --memory 300M",
    .choices = CLI_PLANS,
    .least = 1,
    .most = -1,
    .run = run,
};
