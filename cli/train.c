#include <stddef.h>

#include "cli.h"
#include "tessera_train.h"

static const cli_option options[] = {
    {"--resume", NULL, cli_flag, offsetof(tess_train_settings, resume),
     "go on from the newest checkpoint of this configuration"},
};

static int run(int argc, char **argv, bool plan)
{
    cli_shared shared;
    tess_train_settings settings;
    tess_context *context = NULL;
    tess_train_settings_init(&settings);
    int count, status = cli_parse(&cli_train, argc, argv, &shared, &settings, &count);
    if (status < 0)
        status = cli_record_apart(&shared, (const char *const *)argv, count);
    if (status < 0)
        status = cli_begin(&shared, true, NULL, &context);
    if (status >= 0)
        return status;
    shared.steps = true;
    settings.common = shared.common;
    cli_progress_connect(&settings.common, &shared);
    settings.config = argv[0];
    settings.seed_given = shared.seed_given;
    char *record = NULL;
    const tess_status result =
        plan ? tess_plan_train(context, &settings, &record) : tess_train(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_train = {
    .name = "train",
    .what = "a denoiser, a model for fill, or a pipeline for detect",
    .usage = "CONFIG.json [options]",
    .text = "Trains a network as the configuration file says, and writes its weights as safetensors for "
            "denoise --model, fill --model or detect --pipeline. "
            "A run that is stopped writes a checkpoint; --resume goes on with the same result, bit for bit. "
            "docs/training.md describes the file.",
    .example = "tessera train denoiser.json",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .watched = 3,
    .least = 1,
    .most = 1,
    .plans = true,
    .run = run,
};
