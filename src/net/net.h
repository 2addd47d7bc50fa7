/* net.h: a network as a list of layers over values. A model adds layers; finish() folds and fuses them (batch
 * norm into the convolution before it, activations and additions into its end, concatenation into shared
 * storage). The remaining layers are the ops of a device. Shapes, memory and weights come later, for any image
 * size: see bound.h and plan.h.
 *
 * The kind of a layer is that of its op. Two kinds exist only in networks: CONCAT, which becomes shared storage
 * or copies, and BATCH_NORM, which is folded. Builder calls return the number of a value. A failed call (no
 * memory) returns -1 and makes every later call fail too, so a model checks once, at finish(). */
#ifndef TESS_NET_NET_H
#define TESS_NET_NET_H

#include "base/status.h"
#include "op/op.h"

typedef struct tess_net tess_net; /* owned by the caller: tess_net_destroy */
typedef int tess_value;

enum { TESS_LAYER_NAME = 96, TESS_NET_ENDS = 4 }; /* most inputs of a network, and most outputs */

/* The window of its first input that a layer reads, along depth, height and width. */
typedef struct tess_layer_window {
    int32_t kernel[TESS_SPATIAL], stride[TESS_SPATIAL];
    int32_t pad_before[TESS_SPATIAL], pad_after[TESS_SPATIAL];
} tess_layer_window;

/* The same in height and width; in depth one slice at a time (2D), or the same as well (3D). */
#define TESS_WINDOW_2D(kernel, stride, pad)                                                                  \
    {                                                                                                        \
        {1, kernel, kernel}, {1, stride, stride}, {0, pad, pad},                                             \
        {                                                                                                    \
            0, pad, pad                                                                                      \
        }                                                                                                    \
    }
#define TESS_WINDOW_3D(kernel, stride, pad)                                                                  \
    {                                                                                                        \
        {kernel, kernel, kernel}, {stride, stride, stride}, {pad, pad, pad},                                 \
        {                                                                                                    \
            pad, pad, pad                                                                                    \
        }                                                                                                    \
    }

typedef struct tess_layer {
    tess_op_kind kind;
    char name[TESS_LAYER_NAME]; /* name of its weights: name.weight, name.bias */
    char norm[TESS_LAYER_NAME]; /* name of the batch norm folded into it; empty: none */
    int inputs, outputs;
    tess_value in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS]; /* in the order of the op's inputs and outputs */
    tess_layer_window window;
    tess_activation activation;
    bool bias, mapped; /* mapped: the last input is added to every channel of a convolution */
    int slices;  /* depth of the file's kernel; if more than the window's, only the middle slice is used */
    int rank;    /* of the file's kernel; 0: as many as its window has axes */
    double side; /* SIDE_SUM: the constant of the side slices */
    tess_value sums; /* SIDE_SUM: 1 + the sums of channels, which slabs compute first and exchange; 0: none */
    tess_op_group_norm group_norm;
    tess_op_attention attention;
    double rate; /* DROPOUT: the part of the values that become zero */
    tess_op_channel_map channel_map;
    tess_op_channel_dot channel_dot;
    bool frozen; /* its parameters are not trained; gradients pass through */
    double
        follows; /* CHANNEL_MAP, frozen: in training its weight p follows the mean m of its input: p += follows (m - p) */
    float scale;  /* factor of the weights: -1 turns predicted noise into a correction */
    bool dropped; /* fused into another layer */
} tess_layer;

typedef struct tess_value_info {
    int64_t channels;
    int down[TESS_SPATIAL]; /* log2 of the reduction relative to the image, along each axis */
    int producer;           /* layer that computes it; -1: an input of the network */
    tess_value root;        /* the value whose storage contains it; usually itself */
    int64_t offset;         /* first channel in the root's storage */
    bool wide;              /* fp32 in every precision */
    bool vector;            /* one value per channel, whatever the image's size */
    bool shared;            /* a vector that all images of a batch share: n = 1 */
    bool view;              /* a slice: channels of another value's storage, never computed itself */
    bool kept;              /* its storage is used for nothing else: see tess_net_keep */
} tess_value_info;

typedef struct tess_conv_settings {
    const char *name;
    int64_t channels; /* of the output */
    tess_layer_window window;
    bool bias;
    float scale; /* 0 means 1 */
    int rank; /* of the kernel in the weight file; 0: one size for each axis of the window. 2: a linear layer */
    bool frozen; /* see tess_layer */
} tess_conv_settings;

tess_net *tess_net_create(void);
void tess_net_destroy(tess_net *net);

/* Inputs are numbered in the order of these calls. A vector has no spatial size: a noise level, an embedding. */
tess_value tess_net_input(tess_net *net, int64_t channels);
tess_value tess_net_input_vector(tess_net *net, int64_t channels);
/* The same with one vector for all images of a batch. Layers over it are computed once; of the others, only a group norm
 * takes it, as scales and shifts. */
tess_value tess_net_input_shared(tess_net *net, int64_t channels);
/* Channels [first, first + channels) of a vector, without a copy. A network with slices cannot be trained. */
tess_value tess_net_slice(tess_net *net, tess_value vector, int64_t first, int64_t channels);
/* After a run an input still holds what it held before: for networks that run again on nearly the same input. */
void tess_net_keep(tess_net *net, tess_value input);
tess_value tess_net_conv(tess_net *net, tess_value in, tess_conv_settings settings);
tess_value tess_net_conv_transpose(tess_net *net, tess_value in, tess_conv_settings settings);
tess_value tess_net_batch_norm(tess_net *net, tess_value in, const char *name);
tess_value tess_net_activate(tess_net *net, tess_value in, tess_activation activation);
tess_value tess_net_add(tess_net *net, tess_value a, tess_value b);
tess_value tess_net_max_pool(tess_net *net, tess_value in);
tess_value tess_net_average_pool(tess_net *net, tess_value in);
tess_value tess_net_upsample(tess_net *net, tess_value in);
tess_value tess_net_concat(tess_net *net, tess_value first, tess_value second);
/* In training, makes the part `rate` of all values zero, from 0 to below 1, and divides the others by 1 - rate. A network
 * that is not trained has no such layer after finish. */
tess_value tess_net_dropout(tess_net *net, tess_value in, double rate);
/* Adds any other layer: a value of `channels` at the resolution of its first input. Builders of new ops use
 * this. */
tess_value tess_net_layer_add(tess_net *net, const tess_layer *layer, int64_t channels);
/* Adds an output besides the one of finish. Outputs are numbered in the order of these calls; the output of
 * finish is the last. */
void tess_net_output(tess_net *net, tess_value value);
/* To be called before finish for a network that will be trained: batch norms are not folded, concatenations copy, and
 * dropouts stay. */
void tess_net_train(tess_net *net);
bool tess_net_is_trained(const tess_net *net);
/* Folds and fuses; `out` becomes the last output. */
tess_status tess_net_finish(tess_net *net, tess_value out, tess_error *error) TESS_MUST_CHECK;

/* For a finished 3-D network: convolutions whose side slices hold one constant become 2-D ones, see
 * fold_slices.c. The weights do not change; loading uses their middle slices. */
struct tess_weights;
tess_status tess_net_fold_slices(tess_net *net, struct tess_weights *weights,
                                 tess_error *error) TESS_MUST_CHECK;

int tess_net_layer_count(const tess_net *net);
const tess_layer *tess_net_layer(const tess_net *net, int index);
int tess_net_value_count(const tess_net *net);
const tess_value_info *tess_net_value(const tess_net *net, tess_value value);
int tess_net_input_count(const tess_net *net);
int tess_net_output_count(const tess_net *net);
tess_value tess_net_input_value(const tess_net *net, int index);
tess_value tess_net_output_value(const tess_net *net, int index);
/* True for inputs and outputs, which are fp32 in every precision. */
bool tess_net_is_end(const tess_net *net, tess_value value);
/* Image sizes are padded to multiples of this, along each axis. */
int64_t tess_net_grid(const tess_net *net, int axis);
/* True when any layer reads several slices. */
bool tess_net_is_volume(const tess_net *net);

#endif
