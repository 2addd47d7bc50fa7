#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char help[] = "tessera plan VERB ...                 what VERB would do with the same "
                           "arguments: device, tile, batch,\n"
                           "                                      bytes and seconds; runs nothing\n\n"
                           "VERB: denoise or reconstruct\n\n"
                           "Example: tessera plan denoise big.png out.png --sigma 0.1 --memory 300M\n";

int cli_plan(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "denoise") == 0)
        return cli_denoise_like(argc - 1, argv + 1, true);
    if (argc > 0 && strcmp(argv[0], "reconstruct") == 0)
        return cli_reconstruct_like(argc - 1, argv + 1, true);
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        printf("%s%s", help, cli_shared_help);
        return CLI_DONE;
    }
    return cli_complain("plan: expected the verb denoise or reconstruct; see "
                        "tessera plan --help");
}
