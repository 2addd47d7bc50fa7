/* tessera_train.h: training of denoisers and of models that fill elevation maps (the verb `train`); docs/training.md describes the configuration file. */
#ifndef TESSERA_TRAIN_H
#define TESSERA_TRAIN_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_train_settings {
    tess_common common; /* device, precision and memory_limit replace the file's, unless they are automatic */
    const char *config; /* a JSON file */
    bool resume;        /* continue from the newest checkpoint */
    bool seed_given;    /* common.seed replaces the file's */
} tess_train_settings;

TESS_API void tess_train_settings_init(tess_train_settings *settings);
/* Trains, and writes checkpoints and the resulting weight file. When the caller stops it, it writes a checkpoint and
 * returns TESS_INTERRUPTED. */
TESS_API tess_status tess_train(tess_context *context, const tess_train_settings *settings,
                                char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_train(tess_context *context, const tess_train_settings *settings,
                                     char **record) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
