#include <math.h>
#include <stddef.h>
#include <strings.h>

#include "cli.h"
#include "tessera_detect.h"

#define AT(field) offsetof(tess_detect_settings, field)

static bool nodata(const cli_option *option, const char *text, void *target)
{
    tess_detect_settings *s = target;
    s->nodata_given = cli_read_number(text, &s->nodata);
    if (strcasecmp(text, "nan") == 0) {
        s->nodata = (double)NAN;
        s->nodata_given = true;
    }
    return s->nodata_given || cli_refuse(option, text, "a number such as -9999, or nan");
}

static const cli_option options[] = {
    {"--pipeline", "P", cli_text, AT(pipeline),
     "rx (default), rx-trimmed, rx-local, lad, selector, svdd, a graph (.json) or a fitted pipeline "
     "(.safetensors)",
     "rx rx-trimmed rx-local lad selector svdd " CLI_FILES},
    {"--fit", "CUBES", cli_text, AT(fit),
     "a cube or folder whose statistics are used (default: the input itself)", CLI_FILES},
    {"--truth", "MASK", cli_text, AT(truth),
     "a mask of the anomalies, or a folder of masks NAME_mask: AUROC, average precision and the rest are "
     "reported",
     CLI_FILES},
    {"--mask-out", "FILE", cli_text, AT(mask_out), "an image of the decisions, 255 for an anomaly",
     CLI_FILES},
    {"--overlay", "F.png", cli_text, AT(overlay), "the cube in false colours, with the anomalies in red",
     CLI_FILES},
    {"--detections", "FILE", cli_text, AT(detections),
     "a list of the anomalies (position, size, score), .csv or .geojson", CLI_FILES},
    {"--save", "FILE", cli_text, AT(save), "the fitted pipeline, .safetensors", CLI_FILES},
    {"--axes", "A", cli_text, AT(axes), "of NPY arrays: HWC, BHWC, CHW and so on (default: HWC or BHWC)",
     "HWC BHWC CHW"},
    {"--nodata", "V", nodata, 0,
     "the value of missing pixels, besides what the file says; nan: only what it says (default: usual marks "
     "such as -9999 are found)"},
};

static int run(int argc, char **argv, bool plan)
{
    cli_shared shared;
    tess_detect_settings settings;
    tess_context *context = NULL;
    tess_detect_settings_init(&settings);
    int count, status = cli_parse(&cli_detect, argc, argv, &shared, &settings, &count);
    if (status >= 0)
        return status;
    settings.common = shared.common;
    settings.input = argv[0];
    settings.output = argv[1];
    const char *const files[] = {settings.input,   settings.output,     settings.pipeline,
                                 settings.fit,     settings.truth,      settings.mask_out,
                                 settings.overlay, settings.detections, settings.save};
    status = cli_record_apart(&shared, files, sizeof files / sizeof files[0]);
    if (status < 0)
        status = cli_begin(&shared, true, NULL, &context);
    if (status >= 0)
        return status;
    cli_progress_connect(&settings.common, &shared);
    char *record = NULL;
    const tess_status result =
        plan ? tess_plan_detect(context, &settings, &record) : tess_detect(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_detect = {
    .name = "detect",
    .what = "anomalies in hyperspectral cubes",
    .usage = "CUBE OUT [options]",
    .text = "Scores every pixel of a cube (NPY, ENVI, another raster) or of a folder of cubes by how unlike "
            "the others it is, "
            "and writes the scores as NPY or GeoTIFF. A pipeline of nodes says how. "
            "docs/detection.md describes pipelines and files.",
    .example = "tessera detect scene.npy scores.npy --truth scene_mask.npy --overlay found.png",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .watched = 3,
    .least = 2,
    .most = 2,
    .plans = true,
    .run = run,
};
