/* training.h: the attributes of the ops of a training step: its numbers, losses, optimizers. */
#ifndef TESS_OP_TRAINING_H
#define TESS_OP_TRAINING_H

#include <stdbool.h>

/* Numbers that change from step to step are read from a vector on the device, F64, so that a step can be captured once
 * and replayed: `control`. */
enum {
    TESS_CONTROL_RATE,        /* learning rate */
    TESS_CONTROL_CORRECTION1, /* 1 - beta1^step, of Adam */
    TESS_CONTROL_CORRECTION2, /* 1 - beta2^step */
    TESS_CONTROL_LOSS_SCALE,  /* factor of all gradients before OPTIMIZE */
    TESS_CONTROL_DECAY,       /* of AVERAGE */
    TESS_CONTROL_STEP,        /* number of the step; the host puts it into the keys of DROPOUT */
    TESS_CONTROL_EPOCH,       /* whole passes over the data so far, for the temperature of a softmax */
    TESS_CONTROLS = 8
};

/* in: prediction, target, control, and, for MASKED_MSE, a mask of the same shape (or one channel). out[0]: gradient of
 * the loss by the prediction, times `share` and the loss scale; out[1]: one F64, the loss times `share`, added to what
 * is there with `accumulate`. The mean is over all values, or over the mask's weights; RMSE is the mean over images of
 * the root of each one's mean square error, so that images with much noise do not count more; PSNR is the mean over images of
 * 20 log10 of that root, the negative PSNR of values in [0,1], so that a per cent counts as much in each image; MEAN is the
 * prediction itself;
 * IOU is 1 - (I + epsilon) / (U + epsilon), I the sum of s t, U that of s + t - s t, s = sigmoid(prediction). Sums in
 * fp64, in an order that the size alone fixes. */
typedef enum tess_loss {
    TESS_MSE,
    TESS_L1,
    TESS_CHARBONNIER,
    TESS_MASKED_MSE,
    TESS_BCE_LOGITS,
    TESS_RMSE,
    TESS_MEAN,
    TESS_IOU,
    TESS_PSNR
} tess_loss;
typedef struct tess_op_loss {
    tess_loss kind;
    double epsilon; /* CHARBONNIER: sqrt(d^2 + epsilon^2), RMSE, PSNR: the same with the mean of d^2 */
    double share;   /* 1, or the part of the batch that this micro-batch is */
    bool accumulate;
    double positive; /* BCE_LOGITS: weight of targets that are 1; 0 means 1 */
} tess_op_loss;

/* True if it is a mean over images of what each one's error is. */
static inline bool tess_loss_by_image(tess_loss kind)
{
    return kind == TESS_RMSE || kind == TESS_PSNR;
}

/* in: gradients (flat, fp32, times the loss scale), control, the sum of their squares (one F64). out, read and written:
 * parameters, first and second moments (flat, fp32; SGD has only parameters and momentum). Gradients are divided by
 * the loss scale, and multiplied by clip / (norm + 1e-6) if that is below 1 (`clip` 0: never). If the sum of squares is not
 * finite, nothing changes. Formulas and order of operations are PyTorch's (SGD, Adam, AdamW). */
typedef enum tess_optimizer { TESS_SGD, TESS_ADAM, TESS_ADAMW } tess_optimizer;
typedef struct tess_op_optimize {
    tess_optimizer kind;
    double beta1, beta2, epsilon, weight_decay, momentum, clip;
    bool nesterov;
} tess_op_optimize;

#endif
