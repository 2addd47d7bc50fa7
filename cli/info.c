#include "cli.h"

static const cli_option options[] = {
    {"--calibrate", NULL, cli_flag, 0,
     "measure the op rates of this machine now; plans predict seconds from them"},
};

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    cli_shared shared;
    bool calibrate = false;
    tess_context *context = NULL;
    int count, status = cli_parse(&cli_info, argc, argv, &shared, &calibrate, &count);
    if (status < 0)
        status = cli_begin(&shared, false, NULL, &context);
    if (status >= 0)
        return status;
    char *record = NULL;
    const tess_status result = tess_info(context, &shared.common, calibrate, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_info = {
    .name = "info",
    .what = "devices, libraries, models, calibration",
    .usage = "",
    .text = "Lists devices and their memory, libraries, bundled models and the measured rates.",
    .example = "tessera info --calibrate",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
