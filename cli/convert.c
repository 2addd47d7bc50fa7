#include "cli.h"

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    cli_shared shared;
    tess_context *context = NULL;
    int count, status = cli_parse(&cli_convert, argc, argv, &shared, NULL, &count);
    if (status < 0)
        status = cli_record_apart(&shared, (const char *const *)argv, count);
    if (status < 0)
        status = cli_begin(&shared, false, NULL, &context);
    if (status >= 0)
        return status;
    char *record = NULL;
    const tess_status result = tess_convert(context, argv[0], argv[1], &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_convert = {
    .name = "convert",
    .what = "PyTorch weights to safetensors",
    .usage = "IN OUT.safetensors",
    .text = "Writes the weights of PyTorch's .pth, or of safetensors, as safetensors. Names, types, "
            "shapes and metadata are kept.",
    .example = "tessera convert dncnn_25.pth dncnn_25.safetensors",
    .choices = CLI_FILES,
    .least = 2,
    .most = 2,
    .run = run,
};
