/* prior.h: a network as the denoiser of a solver: a dense fp32 image in the
 * device's memory goes through windows into the network's input and back, by
 * the import and export ops, so that nothing passes through the host. */
#ifndef TESS_JOB_PRIOR_H
#define TESS_JOB_PRIOR_H

#include "job/engine.h"
#include "plan/denoise.h"

typedef struct tess_prior {
    tess_engine *engine;
    tess_engine_model *model;
    tess_tensor image;          /* (1, d, h, w, c): slice by slice */
    tess_denoise_choice choice; /* how it is cut */
    tess_block arena, workspace;
    tess_net_plan **plans; /* one for each shape of a window */
    tess_plan_shape *shapes;
    int shape_count;
} tess_prior;

/* What it asks of the plan. `limit`: bytes for weights, activations and
 * workspace. */
tess_denoise_wish tess_prior_wish(const tess_tensor *image, const tess_model *model, uint64_t limit);
/* Takes the blocks of the choice and plans every shape of window; the model's
 * weights are loaded already. Close it also when this failed. */
tess_status tess_prior_open(tess_prior *prior, tess_error *error) TESS_MUST_CHECK;
void tess_prior_close(tess_prior *prior);
/* A tess_denoise_fn; user: a tess_prior. */
tess_status tess_prior_denoise(void *user, const void *in, void *out, double sigma,
                               tess_error *error) TESS_MUST_CHECK;

#endif
