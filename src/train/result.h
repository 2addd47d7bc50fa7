/* result.h: the weight file that a run makes, and the weights of a run for other code while it trains. */
#ifndef TESS_TRAIN_RESULT_H
#define TESS_TRAIN_RESULT_H

#include "train/checkpoint.h"

/* Where the values of a run are. `state` is PARAMETERS or AVERAGE. */
typedef struct tess_train_source {
    const tess_parameters *parameters;
    tess_checkpoint_blocks blocks;
    tess_training_state state;
} tess_train_source;

/* The parameters of a run as weights: read in pieces from its blocks, under the names and with the signs of a weight
 * file. A network is loaded from them as from a file, e.g. for validation. `dtype` F32 or F16: the type in a file that
 * is written. `source` must outlive them. */
tess_status tess_train_weights(tess_train_source *source, tess_dtype dtype, tess_weights **out,
                               tess_error *error) TESS_MUST_CHECK;

/* Writes the safetensors file config->output. Its metadata holds `config`, the complete configuration, and `training`, the
 * caller's record of figures (may be NULL), both as JSON text, and `sigma_max`, the highest noise level. */
tess_status tess_train_write_result(tess_memory *memory, const tess_train_config *config,
                                    tess_weights *weights, const tess_json *figures,
                                    tess_error *error) TESS_MUST_CHECK;

#endif
