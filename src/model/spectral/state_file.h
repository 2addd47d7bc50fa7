/* state_file.h: a fitted pipeline as a file: safetensors, with the graph, the bands and their wavelengths in its metadata and
 * the parameters as float64, so that a loaded pipeline gives the scores of the saved one, bit for bit. */
#ifndef TESS_MODEL_SPECTRAL_STATE_FILE_H
#define TESS_MODEL_SPECTRAL_STATE_FILE_H

#include "model/spectral/state.h"

#define TESS_SPECTRAL_METADATA "tessera_pipeline"

/* A text that the file holds beside the pipeline. */
typedef struct tess_spectral_note {
    const char *key, *text;
} tess_spectral_note;

/* Messages contain the path. */
tess_status tess_spectral_save(tess_memory *memory, const char *path, const tess_spectral_state *state,
                               const tess_spectral_note *notes, int count, tess_error *error) TESS_MUST_CHECK;
/* The caller frees both; the state points to the plan. */
tess_status tess_spectral_load(tess_memory *memory, const char *path, tess_spectral_plan **plan,
                               tess_spectral_state *state, tess_error *error) TESS_MUST_CHECK;
/* Only the plan, from the header of the file. */
tess_status tess_spectral_load_plan(const char *path, tess_spectral_plan **plan,
                                    tess_error *error) TESS_MUST_CHECK;

#endif
