#include <string.h>

#include "cli.h"

static const char help[] = "tessera denoise IN OUT [options]      remove noise from an image, or from "
                           "every image of a folder\n\n"
                           "  --model M           a bundled model (tessera info lists them) or a "
                           "weight file (.safetensors, .pth)\n"
                           "  --sigma S           the noise level on the [0,1] scale: 0.098 or "
                           "25/255\n"
                           "  --truth T           the clean image or folder: PSNR and SSIM are "
                           "reported\n"
                           "  --add-noise S       add Gaussian noise of this level first (for "
                           "studies; not clipped, not rounded)\n"
                           "  --tile T            auto, whole, N or HxW pixels\n"
                           "  --halo H            auto (0.01 dB), exact (equal to the whole image bit "
                           "for bit) or N pixels\n"
                           "  --batch B           auto or N tiles at once\n\n"
                           "Example: tessera denoise noisy.png clean.png --sigma 25/255 --memory "
                           "512M\n";

static bool option(void *target, const char *name, const char *value, bool *known)
{
    tess_denoise_settings *s = target;
    *known = true;
    if (strcmp(name, "--model") == 0)
        s->model = value;
    else if (strcmp(name, "--truth") == 0)
        s->truth = value;
    else if (strcmp(name, "--sigma") == 0) {
        if (!cli_number(name, value, &s->sigma))
            return false;
        if (s->sigma < 0) {
            cli_complain("--sigma %s: a noise level is not negative", value);
            return false;
        }
    } else if (strcmp(name, "--add-noise") == 0)
        return cli_number(name, value, &s->add_noise);
    else if (strcmp(name, "--tile") == 0)
        return cli_tile(name, value, &s->tile_height, &s->tile_width);
    else if (strcmp(name, "--halo") == 0)
        return cli_halo(name, value, &s->halo);
    else if (strcmp(name, "--batch") == 0) {
        if (strcmp(value, "auto") == 0)
            s->batch = 0;
        else
            return cli_integer(name, value, 1, 4096, &s->batch);
    } else
        *known = false;
    return true;
}

int cli_denoise_like(int argc, char **argv, bool plan)
{
    const cli_verb verb = {
        .name = "denoise", .help = help, .positional_least = 2, .positional_most = 2, .option = option};
    tess_denoise_settings settings;
    tess_denoise_settings_init(&settings);
    cli_shared shared = {.common = &settings.common};
    const char *words[2];
    int count, status = cli_parse(&verb, argc, argv, &shared, &settings, words, &count);
    if (status >= 0)
        return status;
    settings.input = words[0];
    settings.output = words[1];
    const char *const files[] = {settings.input, settings.output, settings.truth, settings.model};
    if ((status = cli_json_ready(&shared, files, sizeof files / sizeof files[0])) >= 0)
        return status;
    settings.common.progress = cli_progress;
    settings.common.progress_user = &shared;
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        return CLI_FAILED;
    cli_watch_interrupts();
    char *record = NULL;
    tess_status result =
        plan ? tess_plan_denoise(context, &settings, &record) : tess_denoise(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

int cli_denoise(int argc, char **argv)
{
    return cli_denoise_like(argc, argv, false);
}
