#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "tessera_detect.h"

#define AT(field) offsetof(tess_import_settings, field)

static const cli_option options[] = {
    {"--weights", "FILE", cli_text, AT(weights), "weights of a pipeline (default: the .pt beside the .yaml)",
     CLI_FILES},
    {"--cube", "CUBE", cli_text, AT(cube),
     "a cube of the kind that a pipeline is for: its bands and wavelengths, where nodes need them",
     CLI_FILES},
    {"--axes", "A", cli_text, AT(axes), "of the cube, if it is NPY: HWC, BHWC, CHW and so on",
     "HWC BHWC CHW"},
};

static bool is_yaml(const char *path)
{
    const char *point = strrchr(path, '.');
    return point && (strcasecmp(point, ".yaml") == 0 || strcasecmp(point, ".yml") == 0);
}

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    cli_shared shared;
    tess_import_settings settings;
    tess_context *context = NULL;
    tess_import_settings_init(&settings);
    int count, status = cli_parse(&cli_convert, argc, argv, &shared, &settings, &count);
    if (status >= 0)
        return status;
    const bool pipeline = is_yaml(argv[0]);
    if (!pipeline && (settings.weights || settings.cube || settings.axes))
        return cli_complain("--weights, --cube and --axes are for pipelines (.yaml), and %s is none",
                            argv[0]);
    settings.common = shared.common;
    settings.input = argv[0];
    settings.output = argv[1];
    const char *const files[] = {settings.input, settings.output, settings.weights, settings.cube};
    status = cli_record_apart(&shared, files, sizeof files / sizeof files[0]);
    if (status < 0)
        status = cli_begin(&shared, false, NULL, &context);
    if (status >= 0)
        return status;
    cli_progress_connect(&settings.common, &shared);
    char *record = NULL;
    const tess_status result = pipeline ? tess_import_pipeline(context, &settings, &record)
                                        : tess_convert(context, argv[0], argv[1], &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_convert = {
    .name = "convert",
    .what = "PyTorch weights to safetensors, and pipelines of cuvis.ai",
    .usage = "IN OUT.safetensors|OUT.json [options]",
    .text =
        "Writes the weights of PyTorch's .pth, or of safetensors, as safetensors. Names, types, "
        "shapes and metadata are kept. "
        "A pipeline of cuvis.ai (.yaml) becomes a graph for detect (.json) or, with the weights beside it "
        "(.pt), a fitted pipeline (.safetensors).",
    .example = "tessera convert dncnn_25.pth dncnn_25.safetensors",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .least = 2,
    .most = 2,
    .run = run,
};
