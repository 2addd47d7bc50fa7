/* tessera_study.h: studies of speed and memory (the verb `bench`). This interface may change from one version to the
 * next. */
#ifndef TESSERA_STUDY_H
#define TESSERA_STUDY_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with each point as soon as it is measured: one JSON object on one line, valid during the call. Return false
 * to stop (TESS_INTERRUPTED). */
typedef bool (*tess_line_fn)(void *user, const char *line);

typedef struct tess_bench_settings {
    tess_common common;
    const char *study; /* "size": whole images of growing width; "batch": patches of one image;
                          "dem": the diffusion sampler of `fill` on made-up tiles; "device": jobs of all verbs on
                          each device, and what `device` auto makes of them; "stats": both phases of hyperspectral
                          pipelines over made-up cubes, on each device (`device` auto) or one; "scaling": one iteration of
                          reconstruction over ranks, measured or simulated */
    const char *const
        *models; /* NULL: random:drunet, random:unet and random:dncnn; for "batch" random:drunet, for
                    "dem" random:diffusion */
    int model_count;
    const int64_t *widths; /* size; NULL: 1024 to 2048 in steps of 64 and of 68 */
    int width_count;
    const int64_t *patches; /* batch; NULL: 128, 256, 512 */
    int patch_count;
    const int64_t *batches; /* batch; NULL: 1, 2, 4, ... 64; for "dem" 1, 4, 16, 64, on the CPU 1, 4 */
    int batch_count;
    int64_t height; /* of the images; for "batch", side of the square image that is cut into patches */
    int64_t halo;   /* size, if a memory limit requires tiles */
    int repeats; /* timed passes over the image, after a warm-up; the median is reported. dem: least batches */
    const char *const *
        precisions; /* dem, phase 2 of stats; NULL: those that the device is made for, or `common.precision` if
                                      that is not "auto" */
    int precision_count;
    const char *const *samplers; /* dem: "dpmpp", "ddim", "ddpm"; NULL: all */
    int sampler_count;
    int64_t steps;       /* dem: of each sampler */
    int64_t tile;        /* dem: side */
    double seconds;      /* dem: batches are timed for at least this long; stats: runs, for at most */
    const char *program; /* device: the program `tessera`, which is run for every job */
    const char *only;    /* device, stats: only workloads whose name has this in it; NULL: all */
    const char *phase;   /* stats: "1": fitting statistics; "2": an epoch of training; "both" */
    const char *const
        *machines; /* device: machine files; jobs are then predicted, and nothing is run. scaling: one */
    int machine_count;
    /* scaling */
    const char *const *problems; /* "deblur", "tomo2d", "tomo3d"; NULL: all */
    int problem_count;
    const int64_t *sizes; /* longest sides; NULL: 1024, 2048 and 4096; of volumes 512 */
    int size_count;
    const int64_t *ranks; /* how many of the ranks that were launched share an image; NULL: 1, 2, 4 ... all */
    int rank_count;
    const int64_t *simulate; /* numbers of ranks to simulate, on the machine of `machines`; NULL: measure */
    int simulate_count;
    const char
        *scheme;   /* "strips": as Tessera does it; "deepinv": whole images on every rank, tiles with halos
                           (`patches`, `halo`, `batches`) */
    int64_t avoid; /* the most convolutions that may share one exchange; 1: as the plans are */
    bool slabs;    /* simulated: volumes may be divided by slices, which is not built yet */
    bool square;   /* deblur: square images; else photographs of 3:2 */
    int copies; /* measured, with all ranks: how often between the passes every rank denoises a whole image by itself; 0: never */
    const char *slurm; /* a folder for the scripts of jobs, which is made; nothing is run. NULL: none */
    int per_node;      /* slurm: ranks, or cards, of a node */
    tess_line_fn line;
    void *line_user;
} tess_bench_settings;

TESS_API void tess_bench_settings_init(tess_bench_settings *settings);
TESS_API tess_status tess_bench(tess_context *context, const tess_bench_settings *settings) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
