/* net.h: a network as a list of layers over values. A model emits layers; finish() folds and fuses them
 * (batch norm into the convolution before it, ReLU and additions into its end, concatenation into shared
 * storage); what is left are the ops of a device. Shapes, memory and weights come later, for any image size:
 * see plan.h.
 *
 * Builder calls return a value's number. A failed call (no memory) returns -1 and makes every later call fail
 * too, so a model checks once, at finish(). */
#ifndef TESS_NET_NET_H
#define TESS_NET_NET_H

#include "base/status.h"
#include "op/op.h"

typedef struct tess_net tess_net; /* owned by the caller: tess_net_destroy */
typedef int tess_value;

typedef enum tess_layer_kind {
    TESS_LAYER_INPUT,
    TESS_LAYER_CONV,
    TESS_LAYER_CONV_TRANSPOSE,
    TESS_LAYER_BATCH_NORM,
    TESS_LAYER_RELU,
    TESS_LAYER_ADD,
    TESS_LAYER_MAX_POOL,
    TESS_LAYER_UPSAMPLE,
    TESS_LAYER_CONCAT,
    TESS_LAYER_SIDE_SUM /* made by tess_net_lighten alone */
} tess_layer_kind;

enum { TESS_LAYER_NAME = 96 };

typedef struct tess_layer {
    tess_layer_kind kind;
    char name[TESS_LAYER_NAME]; /* of its weights: name.weight, name.bias */
    char norm[TESS_LAYER_NAME]; /* of the batch norm folded into it; empty = none */
    tess_value in, out;
    tess_value
        residual[TESS_OP_RESIDUALS]; /* second input of ADD and CONCAT; added at the end of a convolution */
    int residuals;
    int kernel, stride, pad;
    int kernel_d, stride_d, pad_d; /* in depth; 1, 1, 0: every slice by itself */
    int slices;     /* the file's kernel in depth; more than kernel_d: only its middle slice is taken */
    tess_value map; /* added to every channel of a convolution; -1: none */
    double side;    /* SIDE_SUM: the constant of the side slices */
    bool bias, relu;
    float scale;                  /* of the weights: -1 turns a predicted noise into a correction */
    bool dropped;                 /* fused into another layer */
    bool keep_input, keep_output; /* what its backward pass will need */
} tess_layer;

typedef struct tess_value_info {
    int64_t channels;
    int down;        /* log2 of the reduction against the input */
    int producer;    /* layer */
    tess_value root; /* the value whose storage it is part of; itself mostly */
    int64_t offset;  /* first channel in the root's storage */
    int down_d;      /* as `down`, in depth */
    bool wide;       /* fp32 in every precision */
} tess_value_info;

typedef struct tess_conv_settings {
    const char *name;
    int64_t channels; /* of the output */
    int kernel, stride, pad;
    bool bias;
    float scale;                   /* 0 means 1 */
    int kernel_d, stride_d, pad_d; /* in depth; kernel_d 0: a layer of 2-D images, or of slices one by one */
} tess_conv_settings;

tess_net *tess_net_create(void);
void tess_net_destroy(tess_net *net);

tess_value tess_net_input(tess_net *net, int64_t channels);
tess_value tess_net_conv(tess_net *net, tess_value in, tess_conv_settings settings);
tess_value tess_net_conv_transpose(tess_net *net, tess_value in, tess_conv_settings settings);
tess_value tess_net_batch_norm(tess_net *net, tess_value in, const char *name);
tess_value tess_net_relu(tess_net *net, tess_value in);
tess_value tess_net_add(tess_net *net, tess_value a, tess_value b);
tess_value tess_net_max_pool(tess_net *net, tess_value in);
tess_value tess_net_upsample(tess_net *net, tess_value in);
tess_value tess_net_concat(tess_net *net, tess_value first, tess_value second);
/* Folds and fuses; `out` becomes the output. */
tess_status tess_net_finish(tess_net *net, tess_value out, tess_error *error) TESS_MUST_CHECK;

/* Of a finished 3-D network: convolutions whose side slices hold one constant become 2-D ones, see lighten.c. The
 * weights stay as they are; loading takes their middle slices. */
struct tess_weights;
tess_status tess_net_lighten(tess_net *net, struct tess_weights *weights, tess_error *error) TESS_MUST_CHECK;

int tess_net_layer_count(const tess_net *net);
const tess_layer *tess_net_layer(const tess_net *net, int index);
int tess_net_value_count(const tess_net *net);
const tess_value_info *tess_net_value(const tess_net *net, tess_value value);
tess_value tess_net_input_value(const tess_net *net);
tess_value tess_net_output_value(const tess_net *net);
/* Image sides are padded to multiples of this. */
int64_t tess_net_grid(const tess_net *net);
/* And a volume's depth to multiples of this; 1 for a 2-D network. */
int64_t tess_net_grid_depth(const tess_net *net);
/* Does any layer look across slices? */
bool tess_net_is_volume(const tess_net *net);

#endif
