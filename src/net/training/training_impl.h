/* training_impl.h: the struct of a training step, shared by training.c (its plan), training_run.c and
 * training_exchange.c. */
#ifndef TESS_NET_TRAINING_IMPL_H
#define TESS_NET_TRAINING_IMPL_H

#include "net/training.h"
#include "net/training/update.h"

/* What host and device exchange about a step. The device reads and writes it until the step is complete, so each step that may be
 * queued has its own. */
typedef struct tess_step_exchange {
    double *control, *results; /* pinned, as the keys: CONTROL_VALUES each */
    int64_t *keys;             /* of DROPOUT, for each micro-batch; NULL: none */
    double loss_scale;
    int64_t step;
    tess_event *ended; /* the results are there */
} tess_step_exchange;

struct tess_training {
    tess_training_settings settings;
    tess_device *device;
    tess_bound *bound;
    tess_parameters parameters;
    tess_program program;
    tess_update update;
    tess_cell inputs[TESS_NET_ENDS], target, mask, keys; /* keys: of DROPOUT; -1: none */
    int recomputed;                                      /* blocks */
    size_t place_bytes[TESS_PLACES];
    tess_block blocks[TESS_PLACES], workspace;
    void *data[TESS_PLACES]; /* of the blocks */
    tess_graph *graphs[TESS_SECTIONS];
    tess_stream *side;   /* graphs are captured on it, and it waits for results */
    int64_t *final_from; /* for each step of the pass: gradients from this value on are final after it */
    tess_block pinned;   /* of the exchanges */
    tess_step_exchange
        exchange[TESS_STEPS_QUEUED]; /* step i of those that were ended has i % TESS_STEPS_QUEUED */
    int64_t ended, taken;            /* steps; those whose results were taken */
};

/* training_exchange.c: pinned bytes, as counted; allocates them, the events and the side stream. */
size_t tess_training_exchange_bytes(const tess_training *training);
tess_status tess_training_exchange_prepare(tess_training *training, tess_error *error) TESS_MUST_CHECK;
void tess_training_exchange_free(tess_training *training);
/* Queues the keys of a micro-batch, if there are dropouts. */
void tess_training_set_keys(tess_training *training, int index, tess_stream *stream);
/* training_run.c: memory of a tensor of the step's data. */
void *tess_training_data(const tess_training *training, tess_cell cell, tess_tensor *tensor);
/* Captures all sections on a device with graphs, so that a run allocates nothing. */
tess_status tess_training_capture(tess_training *training, tess_error *error) TESS_MUST_CHECK;
/* Finds when gradients are final. */
tess_status tess_training_find_final(tess_training *training, tess_error *error) TESS_MUST_CHECK;

#endif
