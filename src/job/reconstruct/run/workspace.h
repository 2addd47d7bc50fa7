/* workspace.h: the operator of a reconstruction and the memory for it and the solver: images and residual of the
 * solver, measurements until the operator absorbs them, memory of the data term, and host memory. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_WORKSPACE_H
#define TESS_JOB_RECONSTRUCT_RUN_WORKSPACE_H

#include "job/common/engine.h"
#include "physics/operator.h"
#include "solve/pnp.h"

enum { TESS_PIECE = 65536 }; /* floats copied between host and device at a time */

/* Sizes of the workspace, chosen by the plan. */
typedef struct tess_layout {
    /* images and measurements are in host memory: a volume too large for the device passes through it in slabs */
    bool hosted;
    int vectors; /* images of the solver */
    size_t term_bytes, residual_bytes;
    int64_t image_values; /* of the truth, and of the picture shown beside the result */
    int64_t above_values; /* of rows above a rank's part, of the truth and of an image */
    bool has_truth, is_shown;
    int64_t row_values;   /* of the longest row or strip of rows that is read, written or compared */
    size_t line_bytes;    /* for the comparison with the truth */
    int64_t ring_values;  /* for errors of the detector's pixels */
    int64_t start_values; /* of a first estimate that a second run may need; 0: it is not kept */
} tess_layout;

/* Host memory, in one block. */
typedef struct tess_host_part {
    float *truth, *shown; /* NULL: not needed; the rows above a rank's part lie before those of its truth */
    float *above;
    float *piece, *rows[2];
    void *lines;
    double *rings;    /* rings.h */
    float *start;     /* the first estimate, if the layout keeps it (begin.h) */
    float truth_peak; /* the truth's largest value: PSNR is relative to it if the range is estimated */
} tess_host_part;

typedef struct tess_workspace {
    tess_engine *engine;     /* the job's */
    tess_device *device;     /* of the operator and the images: the engine's, or the CPU beside a card */
    const tess_rates *rates; /* of that device */
    tess_operator *op;       /* owned */
    tess_layout layout;
    tess_block solver, measurement, work, io;
    tess_data_term term;
    void *scratch;                        /* for the operator while the measurements exist */
    void *vectors[TESS_PNP_MOST_VECTORS]; /* images in the solver's block */
    tess_host_part host;
    tess_dist_exchange *exchange; /* of rows between ranks; NULL: alone */
} tess_workspace;

/* Bytes of the host's block, and of the measurements' block: the measurements, and scratch that the operator needs
 * only as long as they exist. */
size_t tess_layout_host_bytes(const tess_layout *layout);
size_t tess_layout_measurement_bytes(const tess_operator *op);

/* Allocates all blocks of the layout. Close it also if this fails. */
tess_status tess_workspace_take(tess_workspace *workspace, tess_error *error) TESS_MUST_CHECK;
/* Releases the measurements after the operator has absorbed them. */
void tess_workspace_drop_measurement(tess_workspace *workspace);
/* Releases only the blocks; they can be allocated again. */
void tess_workspace_release(tess_workspace *workspace);
void tess_workspace_close(tess_workspace *workspace);

int64_t tess_workspace_values(const tess_tensor *tensor);
/* Pixels that the prior sees in one iteration, margins included: the unit of the progress. */
int64_t tess_workspace_pixels(const tess_workspace *workspace);
/* Values of the whole image, of which ranks have parts. */
int64_t tess_workspace_all_values(const tess_workspace *workspace);
/* Copies a vector of the workspace to the host in pieces and calls `fn`; with `back` the changed pieces are written
 * back. */
typedef void (*tess_piece_fn)(void *user, int64_t first, int64_t count, float *values);
tess_status tess_workspace_pieces(tess_workspace *workspace, void *vector, int64_t count, bool back,
                                  tess_piece_fn fn, void *user, tess_error *error) TESS_MUST_CHECK;

/* Statistics of a vector; of all its parts, if ranks share it. */
typedef struct tess_extremes {
    double low, high;          /* of all values */
    double negative, positive; /* sums of absolute values */
    int64_t count;
    int64_t bad;     /* not finite */
    int64_t outside; /* values outside -0.2 to 1.5, the range of an image of [0, 1] with noise */
} tess_extremes;

/* Collective. */
tess_status tess_workspace_extremes(tess_workspace *workspace, void *vector, int64_t count,
                                    tess_extremes *extremes, tess_error *error) TESS_MUST_CHECK;

#endif
