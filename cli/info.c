#include <string.h>

#include "cli.h"

static const char help[] =
    "tessera info [--calibrate]            devices, memory, libraries, bundled models, measured rates\n\n"
    "  --calibrate         measure the op rates of this machine now, for the seconds of plans\n\n"
    "Example: tessera info --calibrate\n";

static bool option(void *target, const char *name, const char *value, bool *known)
{
    (void)value;
    *known = strcmp(name, "--calibrate") == 0;
    if (*known)
        *(bool *)target = true;
    return true;
}

int cli_info(int argc, char **argv)
{
    const cli_verb verb = {.name = "info", .help = help, .option = option, .flags = "--calibrate"};
    tess_common common;
    tess_common_init(&common);
    cli_shared shared = {.common = &common};
    bool calibrate = false;
    int count, status = cli_parse(&verb, argc, argv, &shared, &calibrate, NULL, &count);
    if (status < 0)
        status = cli_json_ready(&shared, NULL, 0);
    if (status >= 0)
        return status;
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        return CLI_FAILED;
    char *record = NULL;
    tess_status result = tess_info(context, &common, calibrate, &record);
    return cli_finish(context, result, record, &shared);
}
