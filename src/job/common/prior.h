/* prior.h: a network as the denoiser of a solver, for a dense fp32 image or volume in the device's memory, or in the host's beside it. A 2-D
 * network denoises a volume slice by slice, a 3-D one in windows that are also cut in depth. Ranks that share an image
 * have a strip of its rows each, which is not cut, and exchange rows inside the network; those that share a volume have some of its
 * slices, which a 3-D network exchanges likewise, and which do not depend on each other for a 2-D one. */
#ifndef TESS_JOB_PRIOR_H
#define TESS_JOB_PRIOR_H

#include "dist/share.h"
#include "job/common/card_links.h"
#include "plan/cut.h"
#include "window/window.h"

typedef struct tess_prior {
    tess_engine *engine;
    tess_engine_model *model;
    tess_tensor image;    /* (1, d, h, w, c) */
    tess_cut_plan choice; /* how it is cut; for a 2-D network into single slices */
    tess_windows *windows;
    tess_share *share; /* NULL: alone; else `image` is this rank's part */
    bool slices;       /* ranks share the slices of a volume */
    /* Not NULL: the image is in host memory, and passes through a stage in that of the device. How ranks exchange rows of it. */
    const tess_card_links *links;
    tess_block stage;
    tess_stream *stream; /* of copies and network; NULL: the device's own */
    tess_neighbours neighbours;
} tess_prior;

/* The user's settings for the cut, as in tess_denoise_settings, and the bytes. */
typedef struct tess_prior_request {
    int64_t tile_depth, tile_height, tile_width, halo, batch;
    uint64_t limit;       /* of the device, for the whole job */
    uint64_t others;      /* bytes used besides weights, activations and workspace */
    uint64_t asked_limit; /* what the user set, for messages; 0: nothing */
    uint64_t job_needs;   /* the least limit for the rest of the job */
} tess_prior_request;

/* Fills `choice`; engine, model and image must be set. */
tess_status tess_prior_choose(tess_prior *prior, const tess_prior_request *request,
                              tess_error *error) TESS_MUST_CHECK;
/* Allocates the blocks of the choice and prepares every window shape; the model's weights must be loaded. Close it
 * also if this fails. */
tess_status tess_prior_open(tess_prior *prior, tess_error *error) TESS_MUST_CHECK;
void tess_prior_close(tess_prior *prior);
/* A tess_denoise_fn; user: a tess_prior. */
tess_status tess_prior_denoise(void *user, const void *in, void *out, double sigma,
                               tess_error *error) TESS_MUST_CHECK;

/* Whether the image is a strip or slab, whose rows or slices at the edges are exchanged. */
bool tess_prior_in_strips(const tess_prior *prior);
/* Bytes of the stage: one image if it is one window, whose result replaces it; else one for the result as well. */
enum { TESS_STAGE_ALIGN = 256 };
size_t tess_prior_stage_bytes(const tess_prior *prior);
/* Runs of the network per window: a gray network processes colours one by one. */
int64_t tess_prior_planes(const tess_prior *prior);

#endif
