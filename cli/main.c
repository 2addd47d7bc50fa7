/* tessera: one verb a job. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} verbs[] = {
    {"denoise", cli_denoise, "remove noise from an image or a folder of images"},
    {"reconstruct", cli_reconstruct, "an image from blurred copies or projections"},
    {"plan", cli_plan, "what a verb would do: tile, bytes, seconds"},
    {"bench", cli_bench, "studies of speed and memory, as JSON lines"},
    {"convert", cli_convert, "PyTorch weights to safetensors"},
    {"info", cli_info, "devices, libraries, models, calibration"},
};

static int usage(FILE *to)
{
    fputs("tessera " TESSERA_VERSION ": restores images that are too large for one pass on one device\n\n",
          to);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        fprintf(to, "  tessera %-12s %s\n", verbs[i].name, verbs[i].what);
    fputs("\ntessera VERB --help tells more, with an example.\n", to);
    return to == stdout ? CLI_DONE : CLI_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        puts(TESSERA_VERSION);
        return CLI_DONE;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 2, argv + 2);
    return cli_complain("unknown verb %s; use denoise, reconstruct, plan, bench, convert or info", argv[1]);
}
