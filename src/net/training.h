/* training.h: one optimizer step of a network as a list of device ops: pack the weights, forward, loss, backward, update.
 * Every layer of the forward pass is an op of the table, and the op's row describes its backward pass. Values are
 * written once; lifetimes give their places in one arena, as for inference: what a backward op reads is kept.
 *
 * A step is micro_batches times the same passes on different data, then one update. On a device with graphs, each
 * of the two parts is captured by prepare and replayed. Nothing is allocated after prepare. */
#ifndef TESS_NET_TRAINING_H
#define TESS_NET_TRAINING_H

#include "base/memory.h"
#include "net/bound.h"
#include "net/parameters.h"

typedef enum tess_recompute {
    TESS_RECOMPUTE_NONE,   /* every activation that a backward op reads is kept */
    TESS_RECOMPUTE_BLOCKS, /* only activations at the ends of blocks are kept; the others are computed again */
    TESS_RECOMPUTE_ALL     /* fewer and longer blocks: the least memory */
} tess_recompute;

enum { TESS_RECOMPUTE_EVERYWHERE = 1 << 20 };

typedef struct tess_training_settings {
    tess_dtype dtype;   /* of activations and their gradients: F32, BF16, F16 */
    int64_t n, h, w, d; /* a micro-batch; d 0 means 1 */
    int micro_batches;
    /* The part of the step's batch that is computed here, if ranks share it: 0 means 1, all of it; and the place of its
     * first image in the batch. Gradients and loss are this part's of those of the batch: ranks add theirs. */
    double share;
    int64_t first;
    tess_recompute recompute;
    /* The most blocks that are computed again: first those that free the most bytes for their work. */
    int recompute_blocks;
    tess_op_loss
        loss; /* of the last output, for a network without losses of its own; share and accumulate are set here */
    tess_op_optimize optimize;
    bool average; /* keeps an exponential moving average of the parameters */
    bool tf32;
    bool pair_gradients; /* of two convolutions that are alike by one op, if the device has one */
    uint64_t seed;       /* of dropouts; a dropout also depends on the step and on the place in the batch */
    /* Not 0: where nothing needs all gradients at once (clipping, micro-batches, fp16), a pass also updates the
     * parameters: the first time as soon as at least so many bytes of gradients are there, and uses their memory again. */
    size_t update_bytes;
} tess_training_settings;

typedef struct tess_training tess_training; /* owned by the caller: tess_training_destroy */

/* Plans a step. No device memory is allocated. The network must be finished for training. */
tess_status tess_training_create(const tess_net *net, tess_device *device,
                                 const tess_training_settings *settings, tess_training **out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_training_destroy(tess_training *training);
/* Bytes that prepare will allocate, by category: as counted by the device. */
tess_mem_bytes tess_training_bytes(const tess_training *training);
/* The number of blocks that are computed again. */
int tess_training_recomputed(const tess_training *training);
double tess_training_flops(const tess_training *training); /* of one step, all micro-batches */
const tess_parameters *tess_training_parameters(const tess_training *training);

/* True if loss and gradients are functions of the mean and the covariance of each image's pixels: all layers that a loss depends
 * on are affine maps of a pixel, and losses are mean squared differences of two values. */
bool tess_net_is_quadratic(const tess_net *net);

/* Allocates all blocks and prepares all kernels. Parameters and moments are zero after it. */
tess_status tess_training_prepare(tess_training *training, tess_error *error) TESS_MUST_CHECK;

/* The state that a checkpoint holds. Blocks of `trained` values each, except RUNNING. */
typedef enum tess_training_state {
    TESS_STATE_PARAMETERS,
    TESS_STATE_FIRST_MOMENT,
    TESS_STATE_SECOND_MOMENT, /* none for SGD */
    TESS_STATE_AVERAGE,       /* if there is one */
    TESS_STATE_RUNNING,
    TESS_STATES
} tess_training_state;
/* Number of values of a state; 0: this training has none. */
int64_t tess_training_state_size(const tess_training *training, tess_training_state state);
/* Copies values [first, first + count) between host memory and the device, and waits. */
tess_status tess_training_get(tess_training *training, tess_training_state state, int64_t first,
                              int64_t count, float *values, tess_error *error) TESS_MUST_CHECK;
tess_status tess_training_set(tess_training *training, tess_training_state state, int64_t first,
                              int64_t count, const float *values, tess_error *error) TESS_MUST_CHECK;

/* The ops of a pass, for predictions of time. */
int tess_training_op_count(const tess_training *training);
const tess_op *tess_training_op(const tess_training *training, int index);

/* Device memory of the step's data: network inputs (fp32), the target and, for MASKED_MSE, the mask; NULL: no loss reads
 * it. The caller fills them before pass(), in the order of the stream. */
void *tess_training_input(const tess_training *training, int index, tess_tensor *tensor);
void *tess_training_target(const tess_training *training, tess_tensor *tensor);
void *tess_training_mask(const tess_training *training, tess_tensor *tensor);

/* A step: control, one pass for each micro-batch, update, end, result. All but the last only queue work; result reports
 * what failed. The next step may be queued before the result of the one before is taken: so many at most. */
enum { TESS_STEPS_QUEUED = 2 };
/* Sets the numbers of this step, before its first pass: TESS_CONTROLS values, read before the call returns. */
void tess_training_control(tess_training *training, const double *control, tess_stream *stream);
/* Forward and backward of micro-batch `index` of the step: the first one also starts the sums of the gradients. */
void tess_training_pass(tess_training *training, int index, tess_stream *stream);
/* The same for the last micro-batch of a step whose gradients ranks add up. `ready` is called between the ops of the pass:
 * gradients of the values from `from` on will not change any more. On a device with graphs the pass is one piece of work: it is
 * called once, when that is queued. */
typedef void (*tess_gradients_fn)(void *user, int64_t from);
void tess_training_last_pass(tess_training *training, int index, tess_gradients_fn ready, void *user,
                             tess_stream *stream);
/* Device memory of all gradients, `trained` values; NULL if the pass updates. */
float *tess_training_gradients(const tess_training *training);
/* The optimizer's step; nothing is left to do if the pass updates. */
void tess_training_update(tess_training *training, tess_stream *stream);
/* Queues the way of loss and norm back to the host. */
void tess_training_end(tess_training *training, tess_stream *stream);
/* Steps that were ended and whose result was not taken. */
int tess_training_queued(const tess_training *training);
/* Waits for the oldest of them, or ends a step and waits for it if there is none; if it is the only one, for all work of the stream. Returns its
 * loss (without the loss scale) and the norm of its gradients (likewise; not finite: the update was skipped; if the
 * pass updates, only that of some parameters was, and training cannot go on). */
tess_status tess_training_result(tess_training *training, tess_stream *stream, double *loss, double *norm,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
