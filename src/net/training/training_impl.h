/* training_impl.h: the struct of a training step, shared by training.c (its plan) and training_run.c. */
#ifndef TESS_NET_TRAINING_IMPL_H
#define TESS_NET_TRAINING_IMPL_H

#include "net/training.h"
#include "net/training/update.h"

struct tess_training {
    tess_training_settings settings;
    tess_device *device;
    tess_bound *bound;
    tess_parameters parameters;
    tess_program program;
    tess_update update;
    tess_cell inputs[TESS_NET_ENDS], target, mask, keys; /* keys: of DROPOUT; -1: none */
    int recomputed;                                      /* blocks */
    int64_t *key_values, step;                           /* for the keys of the next pass */
    size_t place_bytes[TESS_PLACES];
    tess_block blocks[TESS_PLACES], workspace;
    void *data[TESS_PLACES]; /* of the blocks */
    tess_graph *graphs[TESS_SECTIONS];
    tess_stream *capture;
    double loss_scale;
    int64_t *final_from; /* for each step of the pass: gradients from this value on are final after it */
    tess_block results;  /* pinned: loss and norm on their way back */
};

/* training_run.c: captures all sections on a device with graphs, so that a run allocates nothing. */
tess_status tess_training_capture(tess_training *training, tess_error *error) TESS_MUST_CHECK;
/* Finds when gradients are final. */
tess_status tess_training_find_final(tess_training *training, tess_error *error) TESS_MUST_CHECK;

#endif
