#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define AT(field) offsetof(tess_denoise_settings, field)

/* The last --sigma on the command line counts, in either form. */
static bool sigma(const cli_option *option, const char *text, void *target)
{
    tess_denoise_settings *s = target;
    double level = -1;
    const bool is_auto = strcmp(text, "auto") == 0, is_number = cli_read_number(text, &level);
    const bool is_file = !is_auto && !is_number && access(text, F_OK) == 0;
    if (!is_auto && !is_file && !(is_number && level >= 0))
        return cli_refuse(option, text,
                          "a number of 0 or more such as 0.098 or 25/255, auto, or an existing file of noise "
                          "levels");
    s->sigma = is_number ? level : is_auto ? TESS_SIGMA_AUTO : -1;
    s->sigma_map = is_file ? text : NULL;
    return true;
}

static bool range(const cli_option *option, const char *text, void *target)
{
    tess_denoise_settings *s = target;
    char low[64];
    const size_t length = strcspn(text, ",");
    if (strcmp(text, "auto") == 0)
        s->range = TESS_RANGE_AUTO;
    else if (strcmp(text, "type") == 0)
        s->range = TESS_RANGE_TYPE;
    else {
        snprintf(low, sizeof low, "%.*s", (int)length, text);
        if (length >= sizeof low || !text[length] || !cli_read_number(low, &s->range_low) ||
            !cli_read_number(text + length + 1, &s->range_high) || !(s->range_low < s->range_high))
            return cli_refuse(option, text, "auto, type, or LOW,HIGH such as -32,4310 with LOW below HIGH");
        s->range = TESS_RANGE_GIVEN;
    }
    return true;
}

static bool axes(const cli_option *option, const char *text, void *target)
{
    static const char *const known[] = {"HW", "HWC", "CHW", "DHW", "DHWC"};
    tess_denoise_settings *s = target;
    s->axes = NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i]) == 0)
            s->axes = known[i];
    return s->axes || strcmp(text, "auto") == 0 ||
           cli_refuse(option, text, "auto, HW, HWC, CHW, DHW or DHWC");
}

static bool tile(const cli_option *option, const char *text, void *target)
{
    tess_denoise_settings *s = target;
    return cli_read_tile(option, text, NULL, &s->tile_height, &s->tile_width);
}

static const cli_option options[] = {
    {"--model", "M", cli_text, AT(model),
     "a bundled model (tessera info lists them) or a weight file, .safetensors or .pth (default: a bundled "
     "one, by the image's channels)",
     CLI_MODELS " " CLI_FILES},
    {"--sigma", "S|auto|MAP", sigma, 0,
     "the noise level on the [0,1] scale: a number such as 0.098 or 25/255; auto: estimated from the image; "
     "or a file with one level for each pixel",
     "auto " CLI_FILES},
    {"--strength", "X", cli_share, AT(strength),
     "1: the denoised image (default), 0: the input, between them a blend"},
    {"--range", "LOW,HIGH|auto|type", range, 0,
     "the sample values that become 0 and 1, e.g. -32,4310; type: by the sample type, floats as they are; "
     "auto (default): as type for 8 and 16 bits and for floats that look like [0,1], else from the data",
     "auto type"},
    {"--axes", "AXES", axes, 0, "of arrays: auto (default), HW, HWC, CHW, DHW or DHWC",
     "auto HW HWC CHW DHW DHWC"},
    {"--recursive", NULL, cli_flag, AT(recursive), "take the images in the folders of a folder too"},
    {"--skip-existing", NULL, cli_flag, AT(skip_existing), "leave out images whose output is there already"},
    {"--overwrite", NULL, cli_flag, AT(overwrite), "allow an output to replace its input"},
    {"--dither", NULL, cli_flag, AT(dither), "add a dither before rounding to integers"},
    {"--zeros-are-data", NULL, cli_flag, AT(zeros_are_data),
     "zeros that stand apart from all other values are not taken for missing data"},
    {"--truth", "T", cli_text, AT(truth), "the clean image or folder: PSNR and SSIM are reported", CLI_FILES},
    {"--add-noise", "S", cli_from_0, AT(add_noise),
     "add Gaussian noise of this level first, for studies; not clipped, not rounded"},
    {"--tile", "T", tile, 0, "auto, whole, N or HxW pixels", "auto whole"},
    {"--halo", "H", cli_halo, AT(halo),
     "pixels around a tile: auto (within 0.01 dB), exact (equal to the whole image bit for bit) or N",
     "auto exact"},
    {"--batch", "B", cli_batch, AT(batch), "auto, or N tiles at once", "auto"},
    {"--ranks", "P", cli_integer, AT(ranks),
     "with plan: also what P ranks would take on the machine of --machine", NULL, 1, 4096},
    {"--machine", "FILE", cli_text, AT(machine), "with plan: a machine file with \"network\"", CLI_FILES},
};

/* The record must not overwrite any file of the job. */
static int check_files(const cli_shared *shared, const tess_denoise_settings *s, char **words, int count)
{
    struct stat about;
    const char *const others[] = {s->truth, s->model, s->sigma_map};
    if (count > 2 && stat(s->output, &about) == 0 && !S_ISDIR(about.st_mode))
        return cli_complain("denoise: %s: several inputs need a folder as the last word, and this is a file",
                            s->output);
    const int status = cli_record_apart(shared, (const char *const *)words, count);
    return status >= 0 ? status : cli_record_apart(shared, others, sizeof others / sizeof others[0]);
}

static int run(int argc, char **argv, bool plan)
{
    tess_denoise_settings settings;
    tess_denoise_settings_init(&settings);
    cli_shared shared;
    int count, status = cli_parse(&cli_denoise, argc, argv, &shared, &settings, &count);
    if (status >= 0)
        return status;
    settings.common = shared.common;
    settings.output = argv[count - 1];
    if (count == 2)
        settings.input = argv[0];
    else {
        settings.inputs = (const char *const *)argv;
        settings.input_count = count - 1;
    }
    cli_progress_connect(&settings.common, &shared);
    tess_context *context = NULL;
    status = check_files(&shared, &settings, argv, count);
    if (status < 0)
        status = cli_begin(&shared, true, settings.output, &context);
    if (status >= 0)
        return status;
    char *record = NULL;
    const tess_status result =
        plan ? tess_plan_denoise(context, &settings, &record) : tess_denoise(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_denoise = {
    .name = "denoise",
    .what = "remove noise from images, or from folders of images",
    .usage = "IN... OUT",
    .text =
        "Removes noise. With one image as IN, OUT is a file; with a folder or several INs, OUT is a folder, "
        "which is made if it is not there.",
    .example = "tessera denoise noisy.png clean.png --sigma 25/255 --memory 512M",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .watched = 3,
    .least = 2,
    .most = -1,
    .plans = true,
    .run = run,
};
