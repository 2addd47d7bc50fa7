/* tessera_detect.h: anomalies of hyperspectral cubes (the verb `detect`); docs/detection.md describes pipelines and files. */
#ifndef TESSERA_DETECT_H
#define TESSERA_DETECT_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_detect_settings {
    tess_common common;
    const char *input;  /* a cube (NPY, ENVI, another raster), or a folder of cubes */
    const char *output; /* scores: NPY or GeoTIFF; a folder for a folder */
    const char
        *pipeline;   /* a name (docs/detection.md), a .json file, or a fitted one (.safetensors); NULL: rx */
    const char *fit; /* a cube or folder whose statistics are used; NULL: the input itself */
    const char *truth;      /* a mask, or a folder of masks NAME_mask: metrics are reported; may be NULL */
    const char *mask_out;   /* an image for the decisions, 255 for an anomaly; may be NULL */
    const char *overlay;    /* a PNG: false colours with the anomalies in red; may be NULL */
    const char *detections; /* a list of the anomalies, .csv or .geojson; may be NULL */
    const char *save;       /* the fitted pipeline, .safetensors; may be NULL */
    const char *axes;       /* of NPY arrays: "HWC", "BHWC", "CHW" and so on; NULL: HWC or BHWC */
    /* pixels with this sample in any band have no value, besides what the files declare, and nothing else is looked for; NaN:
     * only what they declare */
    bool nodata_given;
    double nodata;
} tess_detect_settings;

TESS_API void tess_detect_settings_init(tess_detect_settings *settings);
TESS_API tess_status tess_detect(tess_context *context, const tess_detect_settings *settings,
                                 char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_detect(tess_context *context, const tess_detect_settings *settings,
                                      char **record) TESS_MUST_CHECK;

/* Converts a pipeline of cuvis.ai: its YAML and, for a fitted one, its .pt. Nodes that scores do not need are left out and
 * named in a note and the record; a needed node that we don't have is an error that names its class. */
typedef struct tess_import_settings {
    tess_common common;
    const char *input;   /* .yaml or .yml */
    const char *output;  /* .json: the graph; .safetensors: the fitted pipeline */
    const char *weights; /* NULL: the .pt beside the input; not read for a .json */
    const char
        *cube; /* a cube whose bands and wavelengths the pipeline is for; may be NULL if no node needs them */
    const char *axes; /* of the cube, as in tess_detect_settings */
} tess_import_settings;

TESS_API void tess_import_settings_init(tess_import_settings *settings);
TESS_API tess_status tess_import_pipeline(tess_context *context, const tess_import_settings *settings,
                                          char **record) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
