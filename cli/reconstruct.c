#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char help[] =
    "tessera reconstruct OUT --problem P [options]    an image from its measurements, with a denoiser as "
    "prior\n\n"
    "  --problem P         deblur: several anisotropic blurs of one image, with noise\n"
    "                      tomo2d: parallel-beam views of Shepp and Logan's head\n"
    "                      tomo3d: cone-beam views of the same in 3-D\n"
    "                      FILE.json: measured data (see below)\n"
    "  --size N            pixels of the longer side (default 256, in 3-D 96, or the image's own); deblur "
    "without\n"
    "                      --image: or HxW\n"
    "  --image F           deblur: the image to blur instead of a synthetic one\n"
    "  --operators N       deblur: number of blurs (default 8)\n"
    "  --angles N          tomo2d, tomo3d: number of views (default 100, 50)\n"
    "  --noise S           of the measurements (default 0.1 for deblur, else 0.01)\n"
    "  --preset P          default, or deepinv: the settings of its published benchmark\n"
    "  --model M           a bundled model (tessera info lists them) or a weight file\n"
    "  --prior P           of a volume: slices (one by one), or volume: a 3-D network, which is the model's "
    "own or\n"
    "                      made from a 2-D one\n"
    "  --inflate I         how it is made: halves (all 2x2 kernels, as deepinv's benchmark does) or level "
    "(only those\n"
    "                      that reduce: slices that are all alike give what the 2-D network gives; denoises "
    "better)\n"
    "  --sigma S           noise level for the denoiser; FROM:TO changes it over the iterations\n"
    "  --step X            auto (from the operator's norm) or a number; one that is too long is halved\n"
    "  --init I            zero, adjoint, filtered or cg\n"
    "  --relax L           between the step and the denoiser: x = (1-a) z + a d, a = step L / (1 + step L)\n"
    "  --inner N           tomography: up to N steps of conjugate gradients towards the data (default 6); "
    "0: one gradient\n"
    "                      step, which blurs can take too\n"
    "  --iterations N      at most\n"
    "  --tolerance X       stop when an iteration changes the image by less than X of its norm\n"
    "  --max-seconds X     stop after this time\n"
    "  --save-measurement F.npy  what the solver is given, laid out as for a problem file\n"
    "  --side-by-side F    measurement (FBP or FDK in tomography), result and truth in one picture\n"
    "  --tile T, --halo H, --batch B   of the denoiser, as in tessera denoise; a volume takes --tile DxHxW "
    "too\n\n"
    "A volume is written as NPY (depth, height, width); a picture shows the slice in its middle.\n\n"
    "Measured data (FILE.json), one of\n"
    "  {\"operator\":\"blur\",\"angles\":[0,45],\"sigma\":[3,1.5],\"measurement\":\"y.npy\"}\n"
    "  {\"operator\":\"radon\",\"angles\":[0,1.8],\"circle\":true,\"measurement\":\"sinogram.npy\"}\n"
    "  {\"operator\":\"cone\",\"vectors\":\"vectors.npy\",\"volume\":[D,H,W],\"spacing\":0.1,\"measurement\":"
    "\"views.npy\"}\n"
    "with \"truth\", \"noise\" and \"range\" ([0,1]) where they are known. Arrays are laid out as "
    "--save-measurement\n"
    "writes them: blurs one above another, a sinogram (views, width), projections (views, rows, columns). "
    "Angles\n"
    "are in degrees. Vectors have 12 numbers a view, as ASTRA's cone_vec: source, detector centre, step "
    "between\n"
    "columns, step between rows, (x, y, z) each; for \"parallel3d\" the rays' direction in place of the "
    "source.\n\n"
    "Example: tessera reconstruct sharp.png --problem deblur --size 512 --side-by-side compare.png\n";

/* A, or A:B. */
static bool sigma_option(tess_reconstruct_settings *s, const char *value)
{
    char first[64];
    const char *colon = strchr(value, ':');
    const size_t length = colon ? (size_t)(colon - value) : strlen(value);
    if (length >= sizeof first) {
        cli_complain("--sigma %s: expected a number, or FROM:TO", value);
        return false;
    }
    memcpy(first, value, length);
    first[length] = '\0';
    if (!cli_number("--sigma", first, &s->sigma))
        return false;
    s->last_sigma = s->sigma;
    if (colon && !cli_number("--sigma", colon + 1, &s->last_sigma))
        return false;
    if (s->sigma < 0 || s->last_sigma < 0 || (colon && !(s->sigma > 0 && s->last_sigma > 0))) {
        cli_complain("--sigma %s: a noise level is not negative, and FROM:TO are "
                     "both above 0",
                     value);
        return false;
    }
    return true;
}

/* N, or HxW. */
static bool size_option(tess_reconstruct_settings *s, const char *value)
{
    const long long least = 16, most = 1 << 16;
    long long height = 0, width = 0;
    int end = 0;
    s->size_width = 0;
    if (!strchr(value, 'x'))
        return cli_integer("--size", value, least, most, &s->size);
    if (sscanf(value, "%5lldx%5lld%n", &height, &width, &end) != 2 || value[end] || height < least ||
        width < least || height > most || width > most) {
        cli_complain("--size %s: expected N, or HxW such as 480x640, of %lld to %lld each", value, least,
                     most);
        return false;
    }
    s->size = height;
    s->size_width = width;
    return true;
}

static bool positive(const char *name, const char *value, bool zero, double *number)
{
    if (!cli_number(name, value, number))
        return false;
    if (*number < 0 || (!zero && *number == 0)) {
        cli_complain("%s %s: expected a number %s", name, value, zero ? "from 0 up" : "above 0");
        return false;
    }
    return true;
}

static bool text_option(tess_reconstruct_settings *s, const char *name, const char *value)
{
    const struct {
        const char *name, **to;
    } texts[] = {
        {"--problem", &s->problem},
        {"--image", &s->image},
        {"--preset", &s->preset},
        {"--model", &s->model},
        {"--init", &s->init},
        {"--prior", &s->prior},
        {"--inflate", &s->inflate},
        {"--save-measurement", &s->save_measurement},
        {"--side-by-side", &s->side_by_side},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].to = value;
            return true;
        }
    return false;
}

static bool option(void *target, const char *name, const char *value, bool *known)
{
    tess_reconstruct_settings *s = target;
    *known = true;
    if (text_option(s, name, value))
        return true;
    if (strcmp(name, "--size") == 0)
        return size_option(s, value);
    if (strcmp(name, "--operators") == 0)
        return cli_integer(name, value, 1, 1024, &s->operators);
    if (strcmp(name, "--angles") == 0)
        return cli_integer(name, value, 1, 100000, &s->angles);
    if (strcmp(name, "--iterations") == 0)
        return cli_integer(name, value, 1, 1000000, &s->iterations);
    if (strcmp(name, "--inner") == 0)
        return cli_integer(name, value, 0, 1000, &s->inner);
    if (strcmp(name, "--noise") == 0)
        return positive(name, value, true, &s->noise);
    if (strcmp(name, "--sigma") == 0)
        return sigma_option(s, value);
    if (strcmp(name, "--relax") == 0)
        return positive(name, value, true, &s->relax);
    if (strcmp(name, "--tolerance") == 0)
        return positive(name, value, true, &s->tolerance);
    if (strcmp(name, "--max-seconds") == 0)
        return positive(name, value, false, &s->max_seconds);
    if (strcmp(name, "--step") == 0) {
        s->step = TESS_STEP_AUTO;
        return strcmp(value, "auto") == 0 || positive(name, value, false, &s->step);
    }
    if (strcmp(name, "--tile") == 0)
        return cli_tile_3d(name, value, &s->tile_depth, &s->tile_height, &s->tile_width);
    if (strcmp(name, "--halo") == 0)
        return cli_halo(name, value, &s->halo);
    if (strcmp(name, "--batch") == 0) {
        s->batch = 0;
        return strcmp(value, "auto") == 0 || cli_integer(name, value, 1, 4096, &s->batch);
    }
    *known = false;
    return true;
}

int cli_reconstruct_like(int argc, char **argv, bool plan)
{
    const cli_verb verb = {
        .name = "reconstruct", .help = help, .positional_least = 1, .positional_most = 1, .option = option};
    tess_reconstruct_settings settings;
    tess_reconstruct_settings_init(&settings);
    cli_shared shared = {.common = &settings.common};
    int count, status = cli_parse(&verb, argc, argv, &shared, &settings, &settings.output, &count);
    if (status >= 0)
        return status;
    const char *const files[] = {settings.output,  settings.side_by_side, settings.save_measurement,
                                 settings.problem, settings.image,        settings.model};
    if ((status = cli_json_ready(&shared, files, sizeof files / sizeof files[0])) >= 0)
        return status;
    settings.common.progress = cli_progress;
    settings.common.progress_user = &shared;
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        return CLI_FAILED;
    cli_watch_interrupts();
    char *record = NULL;
    tess_status result = plan ? tess_plan_reconstruct(context, &settings, &record)
                              : tess_reconstruct(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

int cli_reconstruct(int argc, char **argv)
{
    return cli_reconstruct_like(argc, argv, false);
}
