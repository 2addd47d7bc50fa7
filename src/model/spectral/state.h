/* state.h: the fitted parameters of a pipeline, fp64, and the maps that they make. */
#ifndef TESS_MODEL_SPECTRAL_STATE_H
#define TESS_MODEL_SPECTRAL_STATE_H

#include "base/mem.h"
#include "model/spectral/compile.h"

enum { TESS_NODE_PARTS = 5 };

/* A tensor of a node's parameters. */
typedef struct tess_node_part {
    const char *name;
    int rank;
    int64_t dims[2];
    size_t offset; /* in values, from the node's first */
} tess_node_part;

/* How many a node has. `values`, which may be NULL: all of them together. */
int tess_node_parts(const tess_spectral_plan *plan, int node, tess_node_part parts[TESS_NODE_PARTS],
                    size_t *values);

typedef struct tess_spectral_state {
    const tess_spectral_plan *plan; /* outlives the state */
    tess_block block;
    double *of[TESS_PIPELINE_NODES]; /* in `block`; NULL: the node has no parameters */
} tess_spectral_state;

size_t tess_spectral_state_bytes(const tess_spectral_plan *plan);
tess_status tess_spectral_state_create(tess_memory *memory, const tess_spectral_plan *plan,
                                       tess_spectral_state *state, tess_error *error) TESS_MUST_CHECK;
void tess_spectral_state_free(tess_spectral_state *state);
/* First values of what phase 1 does not fit, which a new state has: drawn by the seed of each node. */
void tess_spectral_start(tess_spectral_state *state);
/* A part of a node's parameters by its name; NULL: it has none. */
double *tess_spectral_part(const tess_spectral_state *state, int node, const char *name);

/* The most channels of any node or the data. */
int tess_spectral_widest(const tess_spectral_plan *plan);
/* The place behind the last node that is not affine, before `node`. */
int tess_spectral_cut_before(const tess_spectral_plan *plan, int node);

/* The matrix (channels given x channels read) and the vector of one affine node. */
void tess_node_affine(const tess_spectral_state *state, int node, double *a, double *b);
/* The factor of a component. A direction without variance has nothing to be divided by, and becomes 0. */
double tess_pca_scale(const tess_node *node, const double *variances, int k, int channels);
/* c (m x n) = a (m x k) b (k x n). The loops skip zeros: most factors are diagonal or banded. */
void tess_multiply(const double *a, const double *b, int m, int k, int n, double *c);
/* Values of workspace for the two functions below. */
size_t tess_spectral_fold_workspace(const tess_spectral_plan *plan);
/* The map from the pixels behind `at` to those behind `to`, all nodes between them being affine: outputs x inputs, with room
 * for widest^2 values. */
void tess_spectral_fold(const tess_spectral_state *state, int at, int to, double *a, double *b, double *work);

/* Rows of Savitzky and Golay's filter, as scipy.signal.savgol_filter: bands x bands. */
void tess_savitzky_golay(int window, int order, int derivative, tess_filter_ends ends, int bands, double *a);
/* A selector's factors, of the temperature of now. */
void tess_selector_factors(const tess_spectral_state *state, int node, double *factors);
/* LAD's Laplacian of a mean spectrum. */
void tess_lad_laplacian(const double *mean, int channels, bool normalised, double *laplacian);

/* The (pseudo-)inverse of an RX node's covariance with its eps and cutoff. `factor` has room for c x c values, `work` as for
 * tess_spectral_quadratic; the covariance is overwritten. */
tess_status tess_spectral_inverse(const tess_spectral_state *state, int node, double *covariance,
                                  double *inverse, double *factor, double *work,
                                  tess_error *error) TESS_MUST_CHECK;
/* The score node as sum_k (F (x - centre))_k^2 of pixels behind tess_spectral_cut_before(score). `factor` has room for channels read by
 * the node x channels there. Not for RX over windows. */
size_t tess_spectral_quadratic_workspace(const tess_spectral_plan *plan);
tess_status tess_spectral_quadratic(const tess_spectral_state *state, float *centre, float *factor, int *rank,
                                    double *work, tess_error *error) TESS_MUST_CHECK;

#endif
