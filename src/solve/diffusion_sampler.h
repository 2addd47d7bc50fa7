/* diffusion_sampler.h: runs a diffusion network over batches of windows, all steps of a sampler, on a device.
 *
 * Scales and shifts of all steps are computed once, as a table; the factors of the steps are a second table. A step is then the
 * same ops on the same memory (select both rows, run the network, DIFFUSE), captured as one graph where the device has
 * graphs. Windows are independent, and noise belongs to a pixel of the map, so that results do not depend on batches.
 *
 * Batches are submitted to one of two slots. Submitting queues all steps and returns when at most TESS_SAMPLER_AHEAD of them are
 * left to compute, so that the caller prepares the next batch meanwhile, and a request to stop is heard between steps. On the
 * host's own device it returns when all is computed. Nothing is allocated after prepare. One thread uses a sampler. */
#ifndef TESS_SOLVE_DIFFUSION_SAMPLER_H
#define TESS_SOLVE_DIFFUSION_SAMPLER_H

#include "model/diffusion.h"
#include "net/plan.h"
#include "solve/diffusion_steps.h"

enum { TESS_SAMPLER_SLOTS = 2, TESS_SAMPLER_AHEAD = 64 };

typedef struct tess_sampler_settings {
    tess_device *device;
    const tess_diffusion_net *net;
    const tess_bound *embedding, *step; /* the networks of `net`, bound to the device */
    tess_steps_settings steps;          /* the schedule is needed only during create */
    uint64_t seed;
    int64_t height, width; /* of a window: multiples of the network's grid */
    int64_t batch;         /* most windows at once */
    /* Plans only whole batches, so that fewer windows cost as much as a batch; else also halves of it, quarters, ... */
    bool one_size;
} tess_sampler_settings;

typedef struct tess_sampler tess_sampler; /* owned by the caller: tess_sampler_destroy */

/* Plans. No device memory is allocated. Keeps pointers to device and bound networks. */
tess_status tess_sampler_create(const tess_sampler_settings *settings, tess_sampler **out,
                                tess_error *error) TESS_MUST_CHECK;
void tess_sampler_destroy(tess_sampler *sampler);
/* What prepare allocates, by category, as the device counts it (on the host's own device in the scope of the process); without
 * the packed weights of the networks. */
tess_mem_bytes tess_sampler_bytes(const tess_sampler *sampler);
const tess_sampler_steps *tess_sampler_steps_of(const tess_sampler *sampler);
/* The plan of one step of a whole batch, for predictions of time. */
const tess_net_plan *tess_sampler_net_plan(const tess_sampler *sampler);
/* Operations of all steps for n windows. */
double tess_sampler_flops(const tess_sampler *sampler, int64_t n);

/* Allocates, computes the tables and captures. The packed weights must stay where they are. */
tess_status tess_sampler_prepare(tess_sampler *sampler, const void *embedding_weights,
                                 const void *step_weights, tess_error *error) TESS_MUST_CHECK;

/* Windows in host memory, channels last. All values are finite, except known values where the mask is 1. */
typedef struct tess_sampler_batch {
    int64_t n;            /* 1 to the settings' batch */
    const float *cond;    /* (n, h, w, channels - 1): the network's input beside y */
    const float *known;   /* (n, h, w, 2): clean value in [-1, 1], mask; as DIFFUSE takes them */
    const float *guess;   /* (n, h, w): with start_gamma; else NULL */
    const int64_t *items; /* (n, 5): sample, row, column, pixels from row to row of the map, sign; as DIFFUSE */
} tess_sampler_batch;

/* The batch is copied before the call returns. Each finished step adds n units to the progress of the device's `stop`; when that
 * asks to stop, TESS_INTERRUPTED. */
tess_status tess_sampler_submit(tess_sampler *sampler, int slot, const tess_sampler_batch *batch,
                                tess_error *error) TESS_MUST_CHECK;
/* Waits for the slot's batch; result: (n, h, w). Values that are not finite are an error, not a result. */
tess_status tess_sampler_wait(tess_sampler *sampler, int slot, float *result,
                              tess_error *error) TESS_MUST_CHECK;
/* Both, in slot 0. */
tess_status tess_sampler_run(tess_sampler *sampler, const tess_sampler_batch *batch, float *result,
                             tess_error *error) TESS_MUST_CHECK;

#endif
