/* path.h: pixels from the file to a place in the pipeline, for statistics and scores behind nodes that are not affine.
 *
 * A path is a list of steps: folded chains of affine nodes, and cuts. A pixel is computed in fp64 from the fp32 values of
 * the file to the fp32 values behind the last step, whatever block it is in. */
#ifndef TESS_MODEL_SPECTRAL_PATH_H
#define TESS_MODEL_SPECTRAL_PATH_H

#include "base/pool.h"
#include "model/spectral/state.h"

typedef struct tess_path_step {
    int cut; /* the node, or -1 for an affine map */
    int in, out;
    bool diagonal; /* only the diagonal of `a` is not zero */
    double *a, *b;
} tess_path_step;

typedef struct tess_path {
    const tess_spectral_state *state;
    int at, bands, out, count;
    tess_path_step steps[TESS_PIPELINE_NODES];
} tess_path;

/* Values of memory for the matrices of the path to `at`. */
size_t tess_path_values(const tess_spectral_plan *plan, int at);
/* Makes the path with the parameters of now; `memory` has tess_path_values, `work` tess_spectral_fold_workspace values. */
void tess_path_make(const tess_spectral_state *state, int at, double *memory, double *work, tess_path *path);
/* `to` has path->out values a pixel. With count 0 it is a copy. A pixel that is not finite becomes NaN. */
void tess_path_run(const tess_path *path, const float *from, int64_t pixels, float *to, tess_pool *pool);

/* Divides the spectrum by its upper convex hull over `at` (one position a band, ascending); 1 where the hull is not above 0. */
void tess_continuum(const double *at, int channels, double *spectrum, int *hull);

#endif
