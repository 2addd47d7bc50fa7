#include "cli.h"

static const char help[] =
    "tessera convert IN OUT.safetensors    weights from PyTorch's .pth (or safetensors) to safetensors;\n"
    "                                      names, types and shapes are kept\n\n"
    "Example: tessera convert dncnn_25.pth dncnn_25.safetensors\n";

int cli_convert(int argc, char **argv)
{
    const cli_verb verb = {.name = "convert", .help = help, .positional_least = 2, .positional_most = 2};
    tess_common common;
    tess_common_init(&common);
    cli_shared shared = {.common = &common};
    const char *words[2];
    int count, status = cli_parse(&verb, argc, argv, &shared, NULL, words, &count);
    if (status < 0)
        status = cli_json_ready(&shared, words, 2);
    if (status >= 0)
        return status;
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        return CLI_FAILED;
    char *record = NULL;
    tess_status result = tess_convert(context, words[0], words[1], &record);
    return cli_finish(context, result, record, &shared);
}
