/* tessera_fill.h: fills the voids of elevation maps with a diffusion model (the verb `fill`); docs/filling.md. */
#ifndef TESSERA_FILL_H
#define TESSERA_FILL_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tess_fill_sampler { TESS_FILL_DPMPP, TESS_FILL_DDIM, TESS_FILL_DDPM } tess_fill_sampler;
typedef enum tess_fill_voids {
    TESS_FILL_INNER, /* voids that touch the edge of the raster stay: sea, and the collar of a map */
    TESS_FILL_ALL
} tess_fill_voids;
typedef enum tess_fill_scaling {
    TESS_FILL_BY_TILE, /* heights are scaled to the range of each tile's valid pixels */
    TESS_FILL_GLOBAL   /* to the range of the whole map */
} tess_fill_scaling;
typedef enum tess_fill_world {
    TESS_FILL_NO_WORLD,
    TESS_FILL_WORLD,       /* the convention: centre of the upper left pixel */
    TESS_FILL_WORLD_CORNER /* as dem-fill writes it: its corner */
} tess_fill_world;

typedef struct tess_fill_settings {
    tess_common common;
    const char *input, *output; /* rasters that GDAL reads and writes */
    const char *model;          /* bundled name or weight file; NULL: the bundled one */
    const char *mask;           /* a raster that is not zero where pixels are to be filled; NULL: the voids */
    const char *truth;          /* a complete map to compare with; may be NULL */
    const char *second;         /* another elevation model, which fills by its differences; may be NULL */
    const char *deviation;      /* a raster for the standard deviation of the samples; may be NULL */
    const char *format;         /* GDAL's name of the output's format, e.g. COG; NULL: by its suffix */
    const char *const *creation; /* GDAL's creation options, ended by NULL; may be NULL */
    int64_t band;                /* from 1; 0: the only one */
    bool nodata_given, overwrite, resume;
    double nodata; /* the value of voids if it is given, whatever the file declares; NaN: no number is one */
    tess_fill_sampler sampler;
    int64_t steps;         /* 0: the usual number of the sampler */
    const char *schedule;  /* of ddpm: "linear:1e-4:0.09" and so on; NULL: that */
    double eta;            /* of ddim: 0 is deterministic */
    int64_t tile, overlap; /* 0 and negative: the usual ones */
    int64_t batch;         /* 0: automatic */
    int64_t samples;       /* independent fills, whose mean is the result */
    tess_fill_scaling scaling;
    tess_fill_voids voids;
    double most_distance; /* px: pixels farther from a valid one stay void; 0: no limit */
    tess_fill_world world;
} tess_fill_settings;

TESS_API void tess_fill_settings_init(tess_fill_settings *settings);
/* Fills and writes. Valid pixels keep their bits. When the caller stops it, finished tiles are kept beside the output, and
 * a call with `resume` goes on. */
TESS_API tess_status tess_fill(tess_context *context, const tess_fill_settings *settings,
                               char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_fill(tess_context *context, const tess_fill_settings *settings,
                                    char **record) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
