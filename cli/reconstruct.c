#include <stddef.h>
#include <string.h>

#include "cli.h"

#define AT(field) offsetof(tess_reconstruct_settings, field)

/* A, or A:B. */
static bool sigma(const cli_option *option, const char *text, void *target)
{
    tess_reconstruct_settings *s = target;
    char first[64];
    const size_t length = strcspn(text, ":");
    const bool two = text[length] == ':';
    snprintf(first, sizeof first, "%.*s", (int)length, text);
    bool good = length < sizeof first && cli_read_number(first, &s->sigma);
    s->last_sigma = s->sigma;
    if (good && two)
        good = cli_read_number(text + length + 1, &s->last_sigma) && s->sigma > 0 && s->last_sigma > 0;
    if (!good || s->sigma < 0)
        return cli_refuse(option, text,
                          "a number of 0 or more such as 0.05 or 25/255, or FROM:TO, both above 0");
    return true;
}

/* N, or HxW. */
static bool size(const cli_option *option, const char *text, void *target)
{
    tess_reconstruct_settings *s = target;
    const long long least = option->least, most = option->most;
    long long height = 0, width = 0;
    int end = 0;
    s->size_width = 0;
    if (!strchr(text, 'x'))
        return cli_integer(option, text, target);
    if (sscanf(text, "%5lldx%5lld%n", &height, &width, &end) != 2 || text[end] || height < least ||
        width < least || height > most || width > most) {
        char expected[96];
        snprintf(expected, sizeof expected, "N, or HxW such as 480x640, of %lld to %lld each", least, most);
        return cli_refuse(option, text, expected);
    }
    s->size = height;
    s->size_width = width;
    return true;
}

static bool step(const cli_option *option, const char *text, void *target)
{
    ((tess_reconstruct_settings *)target)->step = TESS_STEP_AUTO;
    return strcmp(text, "auto") == 0 || cli_above_0(option, text, target);
}

static bool tile(const cli_option *option, const char *text, void *target)
{
    tess_reconstruct_settings *s = target;
    return cli_read_tile(option, text, &s->tile_depth, &s->tile_height, &s->tile_width);
}

static const cli_option options[] = {
    {"--problem", "P", cli_text, AT(problem),
     "deblur: several anisotropic blurs of one image, with noise\n"
     "tomo2d: parallel-beam views of Shepp and Logan's head\n"
     "tomo3d: cone-beam views of the same in 3-D\n"
     "FILE.json: measured data, as described below",
     "deblur tomo2d tomo3d " CLI_FILES},
    {"--size", "N", size, AT(size),
     "pixels of the longer side (default 256, in 3-D 96, or the image's own); deblur without --image: or HxW",
     NULL, 16, 1 << 16},
    {"--image", "FILE", cli_text, AT(image), "deblur: the image to blur instead of a synthetic one",
     CLI_FILES},
    {"--operators", "N", cli_integer, AT(operators), "deblur: number of blurs (default 8)", NULL, 1, 1024},
    {"--angles", "N", cli_integer, AT(angles), "tomo2d, tomo3d: number of views (default 100, 50)", NULL, 1,
     100000},
    {"--noise", "S", cli_from_0, AT(noise),
     "standard deviation of the noise on the measurements (default 0.1 for deblur, else 0.01; of measured "
     "data, what the file says, or an estimate)"},
    {"--preset", "P", cli_text, AT(preset), "default, or deepinv: the settings of its published benchmark",
     "default deepinv"},
    {"--model", "M", cli_text, AT(model), "a bundled model (tessera info lists them) or a weight file",
     CLI_MODELS " " CLI_FILES},
    {"--prior", "P", cli_text, AT(prior),
     "of a volume: slices (one by one), or volume: a 3-D network, which is the model's own or made from a "
     "2-D "
     "one",
     "slices volume"},
    {"--inflate", "I", cli_text, AT(inflate),
     "how a 3-D network is made: halves (all 2x2 kernels, as deepinv's benchmark does) or level (only those "
     "that reduce: slices that are all alike give what the 2-D network gives; denoises better)",
     "halves level"},
    {"--sigma", "S|FROM:TO", sigma, 0,
     "noise level for the denoiser; FROM:TO changes it over the iterations"},
    {"--step", "X", step, AT(step),
     "auto (from the operator's norm) or a number; one that is too long is halved", "auto"},
    {"--init", "I", cli_text, AT(init),
     "the image to begin with: zero, adjoint, mean (of blurred measurements; the default where the boundary "
     "is unknown), filtered or cg",
     "zero adjoint mean filtered cg"},
    {"--relax", "L", cli_from_0, AT(relax),
     "between the step and the denoiser: x = (1-a) z + a d, a = step L / (1 + step L)"},
    {"--inner", "N", cli_integer, AT(inner),
     "tomography, and blurs with an unknown boundary: up to N steps of conjugate gradients towards the data "
     "(default 6); 0: one gradient step, which all blurs can take",
     NULL, 0, 1000},
    {"--iterations", "N", cli_integer, AT(iterations), "at most N iterations", NULL, 1, 1000000},
    {"--tolerance", "X", cli_from_0, AT(tolerance),
     "stop when an iteration changes the image by less than X of its norm"},
    {"--max-seconds", "X", cli_above_0, AT(max_seconds), "stop after this time"},
    {"--save-measurement", "F.npy", cli_text, AT(save_measurement),
     "write what the solver is given, laid out as for a problem file", CLI_FILES},
    {"--side-by-side", "FILE", cli_text, AT(side_by_side),
     "write measurement (FBP or FDK in tomography), result and truth in one picture", CLI_FILES},
    {"--tile", "T", tile, 0, "of the denoiser: auto, whole, N or HxW pixels; of a volume also DxHxW",
     "auto whole"},
    {"--halo", "H", cli_halo, AT(halo), "of the denoiser, as in tessera denoise: auto, exact or N pixels",
     "auto exact"},
    {"--batch", "B", cli_batch, AT(batch), "of the denoiser: auto, or N tiles at once", "auto"},
    {"--ranks", "P", cli_integer, AT(ranks),
     "with plan: also what P ranks would take on the machine of --machine", NULL, 1, 4096},
    {"--machine", "FILE", cli_text, AT(machine), "with plan: a machine file with \"network\"", CLI_FILES},
};

static int run(int argc, char **argv, bool plan)
{
    tess_reconstruct_settings s;
    tess_reconstruct_settings_init(&s);
    cli_shared shared;
    tess_context *context = NULL;
    int count, status = cli_parse(&cli_reconstruct, argc, argv, &shared, &s, &count);
    if (status >= 0)
        return status;
    s.common = shared.common;
    s.output = argv[0];
    cli_progress_connect(&s.common, &shared);
    const char *const files[] = {s.output, s.side_by_side, s.save_measurement, s.problem, s.image, s.model};
    status = cli_record_apart(&shared, files, sizeof files / sizeof files[0]);
    if (status < 0)
        status = cli_begin(&shared, true, NULL, &context);
    if (status >= 0)
        return status;
    char *record = NULL;
    const tess_status result =
        plan ? tess_plan_reconstruct(context, &s, &record) : tess_reconstruct(context, &s, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_reconstruct = {
    .name = "reconstruct",
    .what = "an image from blurred copies or projections",
    .usage = "OUT --problem P [options]",
    .text =
        "Makes an image from its measurements, with a denoiser as prior. OUT holds values if it is an array "
        "(.npy) or a raster (.tif, ENVI), and 8 bits if it is a picture (.png, .jpg, .bmp). A volume is "
        "written "
        "as NPY (depth, height, width); other files hold the slice in its middle.",
    .more =
        "Measured data (FILE.json) is one of\n"
        "  {\"operator\":\"blur\",\"kernels\":[\"psf1.npy\",\"psf2.npy\"],\"measurement\":\"y.npy\"}\n"
        "  {\"operator\":\"blur\",\"angles\":[0,45],\"sigma\":[3,1.5],\"measurement\":\"y.npy\"}\n"
        "  {\"operator\":\"radon\",\"angles\":[0,1.8],\"centre\":\"auto\",\"measurement\":\"sinogram.npy\"}\n"
        "  {\"operator\":\"cone\",\"vectors\":\"vectors.npy\",\"volume\":[D,H,W],\"spacing\":0.1,\n"
        "   \"measurement\":\"views.npy\"}\n"
        "with \"truth\", \"noise\" and \"range\" where they are known; docs/reconstruction.md has all "
        "entries, and a "
        "picture of a sinogram's geometry. Arrays are laid out as "
        "--save-measurement writes them: blurs one above another, a sinogram (views, width), projections "
        "(views, rows, columns). Angles are in degrees. Vectors have 12 numbers a view, as ASTRA's cone_vec: "
        "source, detector centre, step between columns, step between rows, (x, y, z) each; for "
        "\"parallel3d\" the rays' direction in place of the source.",
    .example = "tessera reconstruct sharp.png --problem deblur --size 512 --side-by-side compare.png",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .watched = 3,
    .least = 1,
    .most = 1,
    .plans = true,
    .run = run,
};
