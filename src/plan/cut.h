/* cut.h: plans how an image or a volume runs through a network within a memory limit: tiles, halo, batch, bytes
 * and seconds. There are always three axes. A 3-D network may be cut along each of them. A 2-D network takes an
 * image, of depth 1, or the slices of a volume one by one. The planned bytes come from the same functions that
 * the run allocates with. */
#ifndef TESS_PLAN_CUT_H
#define TESS_PLAN_CUT_H

#include "model/model.h"
#include "net/plan.h"
#include "plan/rates.h"
#include "tile/ring.h"
#include "window/cut.h"

typedef struct tess_cut_request {
    int64_t size[TESS_SPATIAL]; /* depth, height and width; the depth of an image is 1 */
    bool above, below; /* the image is a strip of a larger one, as in tess_plan_shape: its rows are not cut */
    bool left, right;  /* or a block of one, of which nothing is cut */
    bool slices;       /* or the volume is a slab, whose slices are not cut */
    tess_level_rows levels; /* of a strip: see tess_plan_shape */
    /* The largest tile along each axis; 0: not cut. A height of 0: the planner chooses; TESS_TILE_WHOLE:
     * nothing is cut. The depth is for 3-D networks. */
    int64_t tile[TESS_SPATIAL];
    int64_t halo[TESS_SPATIAL]; /* in pixels, or TESS_HALO_AUTO or TESS_HALO_EXACT; depth: for 3-D networks */
    int64_t halo_times;         /* factor for the model's halo with TESS_HALO_AUTO; 0 means 1 */
    int64_t batch;              /* windows in one run; 0: the planner chooses */
    int64_t planes;             /* runs for each window: 1, or the channels when a gray model takes colours */
    size_t in_row_bytes, out_row_bytes; /* 0: the image is in the device's memory */
    size_t row_scratch_bytes; /* host scratch for one column of a window, for all threads together */
    size_t fixed_io_bytes;    /* other memory of the job, in its io block */
    size_t held_bytes;        /* memory held by readers and writers */
    uint64_t others; /* instead of rows: images, volumes and measurements of a solver, within the limit */
    uint64_t other_weights; /* weights of the job's other models, within the limit */
    /* The device has separate memory: rows stay on the host, and stages on the device hold the samples of a
     * window and of a tile. */
    bool separate_memory;
    size_t in_pixel_bytes, out_pixel_bytes;
    uint64_t host_limit; /* limit for the rows, with separate memory */
    bool least;          /* choose the cut that needs the fewest bytes, whatever the limit */
    uint64_t limit;
    uint64_t asked_limit; /* the limit that the user set, for messages; 0: none */
    uint64_t job_needs;   /* the least limit for the whole job, if that is more than this request needs */
} tess_cut_request;

_Static_assert(TESS_DEPTH == 0 && TESS_HEIGHT == 1 && TESS_WIDTH == 2, "the names below follow the axes");

typedef struct tess_cut_plan {
    union {
        tess_axis axis[TESS_SPATIAL];
        struct {
            tess_axis depth, rows, cols;
        };
    };
    int64_t halo, halo_depth; /* of the axes that are cut; halo: the larger of rows and columns */
    int64_t batch;
    bool above, below, left, right, slices;                    /* as requested */
    tess_level_rows levels;                                    /* the same */
    bool volume;                                               /* the network is 3-D */
    tess_mem_bytes bytes;                                      /* by category, as they will be counted */
    size_t io_block, ring_bytes, arena_bytes, workspace_bytes; /* as they will be allocated */
    size_t in_stage, out_stage;                                /* 0 unless the device has separate memory */
    size_t exchange_bytes; /* pinned, for the exchanges of a part with neighbours on such a device; else 0 */
    double seconds;
    bool calibrated;
    char reason[320];
} tess_cut_plan;

/* The windows of the plan, in the form that the room `window` uses. */
static inline tess_cut tess_cut_of(const tess_cut_plan *plan)
{
    return (tess_cut){.axis = {plan->depth, plan->rows, plan->cols},
                      .batch = plan->batch,
                      .above = plan->above,
                      .below = plan->below,
                      .left = plan->left,
                      .right = plan->right,
                      .slices = plan->slices,
                      .levels = plan->levels};
}

/* Accepts a limit exactly when the cut that needs the least memory fits. So the limit that the error message
 * gives (this cut's bytes, rounded up) is always accepted. On failure, `plan` is that cut. */
tess_status tess_cut_choose(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                            const tess_cut_request *request, tess_cut_plan *plan,
                            tess_error *error) TESS_MUST_CHECK;

/* Bytes kept free below every limit. */
uint64_t tess_cut_reserve(bool separate_memory);
/* True when the plan is within its limits. */
bool tess_cut_fits(const tess_cut_request *request, const tess_cut_plan *plan);
/* Reports that a plan does not fit. */
tess_status tess_cut_refuse(const tess_cut_request *request, const tess_cut_plan *plan, tess_error *error);

#endif
