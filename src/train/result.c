#include "train/result.h"

#include <stdio.h>

#include "base/mem.h"

static tess_status fetch(void *user, int64_t tensor, int64_t first, int64_t count, void *to,
                         tess_error *error)
{
    float *values = to;
    const tess_train_source *source = user;
    const tess_parameter *p = &source->parameters->list[tensor];
    const tess_training_state state = p->running ? TESS_STATE_RUNNING : source->state;
    TESS_TRY(source->blocks.get(source->blocks.user, state, p->offset + first, count, values, error));
    for (int64_t i = 0; p->factor != 1 && i < count; i++)
        values[i] *= p->factor;
    return TESS_OK;
}

static tess_status add_all(tess_weights *weights, const tess_parameters *parameters, tess_dtype dtype,
                           tess_error *error)
{
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *p = &parameters->list[i];
        TESS_TRY(tess_weights_add_fetched(weights, p->name, p->rank, p->dims, dtype, error));
    }
    return tess_weights_drawn(weights, error);
}

tess_status tess_train_weights(tess_train_source *source, tess_dtype dtype, tess_weights **out,
                               tess_error *error)
{
    TESS_TRY(tess_weights_fetched("training", fetch, source, out, error));
    const tess_status status = add_all(*out, source->parameters, dtype, error);
    if (status != TESS_OK) {
        tess_weights_close(*out);
        *out = NULL;
    }
    return status;
}

static tess_status set_record(tess_weights *weights, const char *key, const tess_json *record,
                              tess_error *error)
{
    char *text = tess_json_dump(record, false);
    const tess_status status = text ? tess_weights_set_metadata(weights, key, text, error)
                                    : tess_fail(error, TESS_NO_MEMORY, "no memory for the metadata");
    tess_small_free(text);
    return status;
}

tess_status tess_train_write_result(tess_memory *memory, const tess_train_config *config,
                                    tess_weights *weights, const tess_json *figures, tess_error *error)
{
    tess_json *complete = tess_train_config_json(config);
    tess_status status = set_record(weights, "config", complete, error);
    tess_json_free(complete);
    if (status == TESS_OK && config->data.sigma[1] > 0) {
        char most[32]; /* denoise warns of higher levels */
        snprintf(most, sizeof most, "%.9g", config->data.sigma[1]);
        status = tess_weights_set_metadata(weights, "sigma_max", most, error);
    }
    if (status == TESS_OK && figures)
        status = set_record(weights, "training", figures, error);
    return status == TESS_OK ? tess_safetensors_write(memory, config->output.path, weights, error) : status;
}
