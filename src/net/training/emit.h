/* emit.h: what the files that emit a training step share. */
#ifndef TESS_NET_TRAINING_EMIT_H
#define TESS_NET_TRAINING_EMIT_H

#include "net/bound_impl.h"
#include "net/channels.h"
#include "net/parameters.h"
#include "net/training.h"
#include "net/training/update.h"

/* What is known of a value of the network while steps are emitted. */
typedef struct tess_emitted {
    tess_cell cell;     /* its activation, from the forward pass; -1: not computed */
    tess_cell again;    /* the same, computed again for the backward pass */
    tess_cell gradient; /* what has arrived so far; -1: nothing */
    bool dropped;       /* not kept after the forward pass */
    bool needed;        /* by a loss, or kept up to date by its layer */
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
    tess_cell control;
    bool recomputing;
    bool accumulate; /* gradients of parameters are added to what is there */
    int recomputed;  /* segments whose inner values are dropped */
} tess_emitter;

/* True for a layer whose op has the numbers of the step as its last input. */
static inline bool tess_takes_control(const tess_layer *layer)
{
    return layer->kind == TESS_OP_CHANNEL_MAP && layer->channel_map.form == TESS_CHANNEL_SOFTMAX;
}

/* Steps that are emitted from now on are this layer's; returns the label before, for whoever restores it. */
static inline const char *tess_emit_label(tess_emitter *e, const tess_layer *layer)
{
    const char *before = e->program->label;
    e->program->label = layer->name[0] ? layer->name : NULL;
    return before;
}

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
/* backward.c: finds the values whose gradients are needed, before any gradient arrives. */
void tess_emit_wanted(tess_emitter *e);
/* A contribution to the gradient of a value is there. */
void tess_emit_arrive(tess_emitter *e, tess_value value, tess_cell contribution);
/* Emits the backward pass, when the gradients of all losses have arrived. */
void tess_emit_backward(tess_emitter *e);
/* segments.c: decides which values are computed again. */
void tess_choose_dropped(tess_emitter *e);

#endif
