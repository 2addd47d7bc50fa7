/* workspace.h: the operator of a reconstruction and the memory that it and the solver work in: images and residual of
 * the solver, measurements until the operator absorbs them, what the data term works in, and what only the host reads. */
#ifndef TESS_JOB_WORKSPACE_H
#define TESS_JOB_WORKSPACE_H

#include "job/common/engine.h"
#include "physics/operator.h"
#include "solve/pnp.h"

enum { TESS_PIECE = 65536 }; /* floats that pass between host and device at a time */

/* What it takes, decided by the plan. */
typedef struct tess_layout {
    /* images and measurements are the host's: a volume too large for the device goes through it in slabs */
    bool hosted;
    int vectors; /* images of the solver */
    size_t term_bytes, residual_bytes;
    int64_t image_values; /* of the truth, and of the picture that is shown beside the result */
    bool has_truth, is_shown;
    int64_t row_values; /* of the longest row or strip of rows that is read, written or compared */
    size_t line_bytes;  /* that the comparison with the truth works in */
} tess_layout;

/* The host's part, in one block. */
typedef struct tess_host_part {
    float *truth, *shown; /* NULL: not needed */
    float *piece, *rows[2];
    void *lines;
    float truth_peak; /* its largest value: of PSNR where the range is an estimate */
} tess_host_part;

typedef struct tess_workspace {
    tess_engine *engine; /* the job's */
    tess_operator *op;   /* owned */
    tess_layout layout;
    tess_block solver, measurement, work, io;
    tess_data_term term;
    void *scratch;                        /* for the operator while the measurements are there */
    void *vectors[TESS_PNP_MOST_VECTORS]; /* images in the solver's block */
    tess_host_part host;
} tess_workspace;

/* Of the host's block; and of the measurements' block: them, and scratch that the operator needs only as long. */
size_t tess_layout_host_bytes(const tess_layout *layout);
size_t tess_layout_measurement_bytes(const tess_operator *op);

/* All blocks of the layout. Close it also when this failed. */
tess_status tess_workspace_take(tess_workspace *workspace, tess_error *error) TESS_MUST_CHECK;
/* The operator has absorbed the measurements. */
void tess_workspace_drop_measurement(tess_workspace *workspace);
/* The blocks alone; it can be taken again. */
void tess_workspace_release(tess_workspace *workspace);
void tess_workspace_close(tess_workspace *workspace);

int64_t tess_workspace_values(const tess_tensor *tensor);
/* Between a vector of the workspace and the host, in pieces; `back`: what `fn` made of them is written back. */
typedef void (*tess_piece_fn)(void *user, int64_t first, int64_t count, float *values);
tess_status tess_workspace_pieces(tess_workspace *workspace, void *vector, int64_t count, bool back,
                                  tess_piece_fn fn, void *user, tess_error *error) TESS_MUST_CHECK;

/* What there is in a vector. */
typedef struct tess_extremes {
    double low, high;          /* of all values */
    double negative, positive; /* sums of absolute values */
    int64_t count;
    int64_t bad;     /* not finite */
    int64_t outside; /* of what an image of [0, 1] with noise holds, which is -0.2 to 1.5 */
} tess_extremes;

tess_status tess_workspace_extremes(tess_workspace *workspace, void *vector, int64_t count,
                                    tess_extremes *extremes, tess_error *error) TESS_MUST_CHECK;

#endif
