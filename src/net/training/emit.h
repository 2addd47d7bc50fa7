/* emit.h: what the files that emit a training step share. */
#ifndef TESS_NET_TRAINING_EMIT_H
#define TESS_NET_TRAINING_EMIT_H

#include "net/bound_impl.h"
#include "net/parameters.h"
#include "net/training.h"
#include "net/training/update.h"

/* What is known of a value of the network while steps are emitted. */
typedef struct tess_emitted {
    tess_cell cell;     /* its activation, from the forward pass; -1: not computed */
    tess_cell again;    /* the same, computed again for the backward pass */
    tess_cell gradient; /* what has arrived so far; -1: nothing */
    bool dropped;       /* not kept after the forward pass */
    bool wanted;        /* a parameter before it needs its gradient */
    bool masked;        /* the gradient already includes the ReLU that made this value */
} tess_emitted;

typedef struct tess_emitter {
    tess_program *program;
    const tess_bound *bound;
    const tess_net *net;
    const tess_parameters *parameters;
    const tess_training_settings *settings;
    const tess_update *update;
    tess_plan_shape shape;
    tess_emitted *values;
    tess_cell *stats, *stats_again; /* for each layer: the statistics of its batch norm */
    tess_cell keys;                 /* item and step of each image, for DROPOUT; -1: no layer needs them */
    bool recomputing;
    int recomputed; /* segments whose inner values are dropped */
} tess_emitter;

/* forward.c: the op that computes a layer in training. */
tess_op tess_emit_op(const tess_emitter *e, int layer);
/* Emits one layer. Its inputs must be there. */
void tess_emit_layer(tess_emitter *e, int layer);
/* The cell of a value for a backward op: kept, or computed again now. */
tess_cell tess_emit_activation(tess_emitter *e, tess_value value);
/* The statistics of a batch norm, likewise. */
tess_cell tess_emit_statistics(tess_emitter *e, int layer);
/* Packs the parameters of an op. `turned`: the kernel of a stride-1 convolution's input gradient. */
tess_cell tess_emit_weights(tess_emitter *e, const tess_op *op, int layer, bool turned);
/* The whole of a layer's parameters (or their gradients), or one of them, as a flat fp32 vector. */
tess_cell tess_emit_piece(tess_emitter *e, tess_place place, int layer, int first, int count);
/* backward.c: emits the backward pass, given the gradient of the output. */
void tess_emit_backward(tess_emitter *e, tess_cell gradient);
/* segments.c: decides which values are computed again. */
void tess_choose_dropped(tess_emitter *e);

#endif
