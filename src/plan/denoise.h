/* denoise.h: how one image will be denoised: tile, halo, batch, bytes and seconds, chosen within a memory
 * limit. Bytes are asked from the very functions that the run allocates with. */
#ifndef TESS_PLAN_DENOISE_H
#define TESS_PLAN_DENOISE_H

#include "model/model.h"
#include "net/plan.h"
#include "plan/rates.h"
#include "tile/ring.h"

typedef struct tess_denoise_wish {
    int64_t height, width; /* of the image */
    int64_t
        planes; /* runs of the network for each window: 1, or the channels when a gray model takes colours */
    size_t in_row_bytes, out_row_bytes;
    size_t row_scratch_bytes; /* host scratch that one column of a window needs, all threads together */
    size_t fixed_io_bytes;    /* what the job holds besides, in its io block */
    size_t held_bytes;        /* what readers and writers hold on their own */
    uint64_t others;          /* in place of rows: images and measurements of a solver, within the limit */
    uint64_t other_weights;   /* of the job's other models, within the limit */
    /* A device with memory of its own: rows stay on the host, and stages on the device take the samples of a
     * window and of a tile. */
    bool apart;
    size_t in_pixel_bytes, out_pixel_bytes;
    uint64_t host_limit;                          /* for the rows, when apart */
    int64_t tile_height, tile_width, halo, batch; /* as in tess_denoise_settings */
    int64_t halo_times;                           /* --halo auto takes so many times the model's; 0 is 1 */
    bool least;                                   /* the cut that takes the least bytes, whatever the limit */
    uint64_t limit;
    uint64_t asked_limit; /* what the user set, for messages; 0 = nothing */
    uint64_t job_needs;   /* the least limit for all of the job, where that is more than this image's */
} tess_denoise_wish;

typedef struct tess_denoise_choice {
    tess_axis rows, cols;
    int64_t halo, batch;                                       /* halo: the larger one of rows and columns */
    tess_mem_bytes bytes;                                      /* by category, as they will be counted */
    size_t io_block, ring_bytes, arena_bytes, workspace_bytes; /* as they will be asked for */
    size_t in_stage, out_stage;                                /* 0 unless apart */
    double seconds;
    bool calibrated;
    char reason[280];
    tess_axis depth; /* of a volume; an image has one tile of one slice */
    int64_t halo_depth;
} tess_denoise_choice;

/* A limit is accepted exactly when the cut that takes the least fits it, so the number that a refusal names (this cut's
 * bytes, rounded up) is accepted too. A refusal leaves that cut in `choice`. */
tess_status tess_denoise_choose(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                                const tess_denoise_wish *wish, tess_denoise_choice *choice,
                                tess_error *error) TESS_MUST_CHECK;

/* Bytes that are kept free below every limit. */
uint64_t tess_denoise_reserve(bool apart);
/* Whether a choice is within its limits. */
bool tess_denoise_fits(const tess_denoise_wish *wish, const tess_denoise_choice *choice);
/* The refusal of a choice that does not fit. */
tess_status tess_denoise_refuse(const tess_denoise_wish *wish, const tess_denoise_choice *choice,
                                tess_error *error);

#endif
