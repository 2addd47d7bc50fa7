/* network.h: the nodes behind the last one that is not trained or affine as layers of a network: for scores of pipelines whose
 * parameters gradients changed, and for changing them. Each layer is named NODE.WHAT, and its parameters are parts of the
 * pipeline's state, or made from them. */
#ifndef TESS_MODEL_SPECTRAL_NETWORK_H
#define TESS_MODEL_SPECTRAL_NETWORK_H

#include "model/spectral/state.h"
#include "net/parameters.h"

/* True if the scores need a network: a node before the score, or the score itself, is trainable or no quadratic form. */
bool tess_spectral_by_network(const tess_spectral_plan *plan);
/* The place whose pixels the network reads. */
int tess_spectral_network_at(const tess_spectral_plan *plan);
/* The place whose pixels are scored: the input of RX over windows or of the network, else the last cut. */
int tess_spectral_score_at(const tess_spectral_plan *plan);

/* A network that scores; `net` is the caller's. */
tess_status tess_spectral_scorer(const tess_spectral_plan *plan, tess_net **net,
                                 tess_error *error) TESS_MUST_CHECK;
/* A network that is trained by the pipeline's losses: `trained` has a flag for each node, of those that are trainable. *masks:
 * a loss needs to know which pixels are anomalies. */
tess_status tess_spectral_trainer(const tess_spectral_plan *plan, const bool *trained, tess_net **net,
                                  bool *masks, tess_error *error) TESS_MUST_CHECK;

/* The values of a parameter of such a network. `work` has tess_spectral_network_workspace values. */
size_t tess_spectral_network_workspace(const tess_spectral_plan *plan);
tess_status tess_spectral_get(const tess_spectral_state *state, const tess_parameter *parameter,
                              float *values, double *work, tess_error *error) TESS_MUST_CHECK;
/* Takes them back into the state, if they are a part of it. */
void tess_spectral_set(tess_spectral_state *state, const tess_parameter *parameter, const float *values);

/* The parameters of a scorer as weights, which read the state while they are open. */
typedef struct tess_spectral_weights {
    const tess_spectral_state *state;
    tess_parameters parameters;
    double *work;
    float *values; /* of the largest parameter */
    tess_weights *weights;
} tess_spectral_weights;
tess_status tess_spectral_weights_open(const tess_spectral_state *state, const tess_net *net, double *work,
                                       tess_spectral_weights *out, tess_error *error) TESS_MUST_CHECK;
void tess_spectral_weights_close(tess_spectral_weights *weights);

#endif
