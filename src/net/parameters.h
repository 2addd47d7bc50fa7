/* parameters.h: the parameters of a network that is trained, as named pieces of flat fp32 blocks. An optimizer updates
 * the whole block in one op; a checkpoint writes it as it is; a weight file gets the pieces under their names.
 *
 * A layer whose factor is -1 (it predicts noise to subtract) has its parameters negated in the block, so that no op
 * needs the factor; optimizers treat a parameter and its negative alike. */
#ifndef TESS_NET_PARAMETERS_H
#define TESS_NET_PARAMETERS_H

#include "net/net.h"
#include "weights/weights.h"

enum {
    TESS_PARAMETER_ALIGN = 64
}; /* values: layers start at multiples of this, and so does the block's end */

typedef struct tess_parameter {
    char name[TESS_LAYER_NAME + 16]; /* as in the weight file */
    int rank;
    int64_t dims[TESS_WEIGHT_RANK], elements;
    int64_t offset; /* of its first value in its block, in values */
    int layer;
    float factor; /* the file's value is factor * the block's: 1 or -1 */
    bool
        running; /* running statistics of a batch norm, and what is frozen: in the second block, not trained */
} tess_parameter;

typedef struct tess_parameters {
    tess_parameter
        *list; /* in the order of the layers; a layer's parameters are next to each other in the block */
    int count;
    int64_t trained, running; /* values in each block */
} tess_parameters;

/* Lists the parameters of a network that was finished for training (tess_net_train). */
tess_status tess_parameters_list(const tess_net *net, tess_parameters *out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_parameters_clear(tess_parameters *parameters);
/* The first parameter of a layer, or NULL. */
const tess_parameter *tess_parameters_of(const tess_parameters *parameters, int layer, bool running);
/* Reads all of them from a weight file into host memory. Refuses missing tensors and wrong shapes by name. */
tess_status tess_parameters_read(const tess_parameters *parameters, tess_weights *weights, float *trained,
                                 float *running, tess_error *error) TESS_MUST_CHECK;

#endif
