#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "tessera_fill.h"

#define AT(field) offsetof(tess_fill_settings, field)

typedef struct word {
    const char *name;
    int value;
} word;

/* Stores the value of one of the words, which end with NULL. */
static bool choose(const cli_option *option, const char *text, void *target, const word *words,
                   const char *expected)
{
    for (; words->name; words++)
        if (strcmp(text, words->name) == 0) {
            *(int *)cli_field(option, target) = words->value;
            return true;
        }
    return cli_refuse(option, text, expected);
}

static bool sampler(const cli_option *option, const char *text, void *target)
{
    static const word words[] = {
        {"dpmpp", TESS_FILL_DPMPP}, {"ddim", TESS_FILL_DDIM}, {"ddpm", TESS_FILL_DDPM}, {NULL, 0}};
    return choose(option, text, target, words, "dpmpp, ddim or ddpm");
}

static bool voids(const cli_option *option, const char *text, void *target)
{
    static const word words[] = {{"inner", TESS_FILL_INNER}, {"all", TESS_FILL_ALL}, {NULL, 0}};
    return choose(option, text, target, words, "inner or all");
}

static bool scaling(const cli_option *option, const char *text, void *target)
{
    static const word words[] = {{"tile", TESS_FILL_BY_TILE}, {"global", TESS_FILL_GLOBAL}, {NULL, 0}};
    return choose(option, text, target, words, "tile or global");
}

static bool world(const cli_option *option, const char *text, void *target)
{
    static const word words[] = {{"centre", TESS_FILL_WORLD}, {"corner", TESS_FILL_WORLD_CORNER}, {NULL, 0}};
    return choose(option, text, target, words, "centre or corner");
}

static bool nodata(const cli_option *option, const char *text, void *target)
{
    tess_fill_settings *s = target;
    s->nodata_given = cli_read_number(text, &s->nodata);
    if (strcasecmp(text, "nan") == 0) {
        s->nodata = (double)NAN;
        s->nodata_given = true;
    }
    return s->nodata_given || cli_refuse(option, text, "a number such as -9999, or nan");
}

enum { MOST_CREATION = 32 };
static const char *creation[MOST_CREATION + 1];

static bool create(const cli_option *option, const char *text, void *target)
{
    tess_fill_settings *s = target;
    int count = 0;
    while (creation[count])
        count++;
    if (!strchr(text, '=') || count == MOST_CREATION)
        return cli_refuse(option, text, "NAME=VALUE, at most 32 times");
    creation[count] = text;
    s->creation = creation;
    return true;
}

static const cli_option options[] = {
    {"--model", "M", cli_text, AT(model),
     "a bundled model or a weight file, .safetensors or .pth (default: the bundled dem-fill)",
     CLI_MODELS " " CLI_FILES},
    {"--mask", "FILE", cli_text, AT(mask),
     "a raster of the same size that is not 0 where pixels are to be filled (default: the voids of the map)",
     CLI_FILES},
    {"--voids", "inner|all", voids, AT(voids),
     "inner (default): voids that touch the edge of the raster stay as they are; all: these too",
     "inner all"},
    {"--max-distance", "PX", cli_above_0, AT(most_distance),
     "pixels that are farther from a valid one stay void"},
    {"--sampler", "S", sampler, AT(sampler), "dpmpp (default), ddim or ddpm", "dpmpp ddim ddpm"},
    {"--steps", "N", cli_integer, AT(steps), "steps of the sampler (default: 20, ddim 50, ddpm 512)", NULL, 1,
     100000},
    {"--schedule", "S", cli_text, AT(schedule),
     "noise of ddpm: linear, quad, const, warmup10, warmup50, jsd or cosine, with first and last beta, e.g. "
     "linear:1e-4:0.09"},
    {"--eta", "X", cli_share, AT(eta), "of ddim: 0 (default) takes no new noise, 1 as much as ddpm"},
    {"--samples", "K", cli_integer, AT(samples), "fills, whose mean is the result (default 1)", NULL, 1,
     1024},
    {"--deviation", "FILE", cli_text, AT(deviation), "a GeoTIFF for the standard deviation of the samples",
     CLI_FILES},
    {"--tile", "N", cli_integer, AT(tile), "side of a tile in pixels (default 128)", NULL, 16, 1024},
    {"--overlap", "N", cli_integer, AT(overlap), "least overlap of tiles in pixels (default 12)", NULL, 0,
     512},
    {"--batch", "B", cli_batch, AT(batch), "auto, or N tiles at once", "auto"},
    {"--scaling", "tile|global", scaling, AT(scaling),
     "heights are scaled to the range of each tile (default) or of the whole map", "tile global"},
    {"--second", "DEM", cli_text, AT(second),
     "another elevation map, of any resolution and projection: the difference to it is filled", CLI_FILES},
    {"--truth", "DEM", cli_text, AT(truth), "the complete map: errors inside the filled voids are reported",
     CLI_FILES},
    {"--band", "N", cli_integer, AT(band), "the band to fill, if there are several", NULL, 1, 65535},
    {"--nodata", "V", nodata, 0, "the value of voids, instead of what the file says; nan: only NaN"},
    {"--format", "F", cli_text, AT(format),
     "GDAL's name of the output's format, e.g. COG (default: by its suffix)"},
    {"--create", "NAME=VALUE", create, 0, "an option of that format, e.g. COMPRESS=ZSTD; may be repeated"},
    {"--world", "centre|corner", world, AT(world),
     "also write a world file; corner: as dem-fill writes it, half a pixel off", "centre corner"},
    {"--overwrite", NULL, cli_flag, AT(overwrite), "allow the output to replace the input"},
    {"--resume", NULL, cli_flag, AT(resume), "go on with the finished tiles of a run that was stopped"},
};

static int run(int argc, char **argv, bool plan)
{
    cli_shared shared;
    tess_fill_settings settings;
    tess_context *context = NULL;
    tess_fill_settings_init(&settings);
    int count, status = cli_parse(&cli_fill, argc, argv, &shared, &settings, &count);
    if (status >= 0)
        return status;
    settings.common = shared.common;
    settings.input = argv[0];
    settings.output = argv[1];
    const char *const files[] = {settings.input, settings.output, settings.mask,     settings.truth,
                                 settings.model, settings.second, settings.deviation};
    status = cli_record_apart(&shared, files, sizeof files / sizeof files[0]);
    if (status < 0)
        status = cli_begin(&shared, true, NULL, &context);
    if (status >= 0)
        return status;
    shared.steps = true;
    cli_progress_connect(&settings.common, &shared);
    char *record = NULL;
    const tess_status result =
        plan ? tess_plan_fill(context, &settings, &record) : tess_fill(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_fill = {
    .name = "fill",
    .what = "the voids of an elevation map, with a diffusion model",
    .usage = "IN.tif OUT.tif [options]",
    .text = "Fills pixels without a value in a raster that GDAL reads: its nodata value, NaN, a mask band, "
            "or --mask. Valid "
            "pixels keep their bits, and the output keeps everything else of the file. Voids wider than a "
            "tile are filled "
            "coarse to fine. docs/filling.md tells more.",
    .example = "tessera fill srtm.tif filled.tif --samples 8 --deviation uncertainty.tif",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .watched = 3,
    .least = 2,
    .most = 2,
    .plans = true,
    .run = run,
};
