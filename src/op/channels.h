/* channels.h: the attributes of ops that treat each channel of a pixel by parameters of its own, and of penalties on
 * parameters, for pipelines that are trained.
 *
 * CHANNEL_MAP: out = f(in[0]), of the same shape. Parameters: weight p (c values) and, for SCALE and DIVIDE, bias m (c values).
 *     SHIFT: x - p.  SCALE: p (x - m).  DIVIDE: (x - m) / (p + epsilon).
 *     SOFTMAX: count softmax(p / T)_c x, with the temperature T = max(least, start decay^epoch); in[1] is `control`, which
 *     has the epoch.
 *     BOUNDARY: R^2 + max(x - R^2, 0) / epsilon with R = log(1 + exp(10 p)) / 10: the soft boundary of Deep SVDD.
 *
 * CHANNEL_MAP_GRAD, in: gradient of the output, in[0], the parameters as one fp32 vector, and `control` for SOFTMAX. out:
 * gradient of in[0]; gradient of the parameters, if wanted, added to what is there with `accumulate`. Sums are fp64, in an
 * order that the sizes alone fix.
 *
 * CHANNEL_DOT: out, one channel, = factor * the sum over channels of in[0] in[1]. CHANNEL_DOT_GRAD, in: gradient of the
 * output, the other input; out: gradient of an input.
 *
 * PENALTY: in: parameters as one fp32 vector, `control`. out[0], fp32: the gradient of the penalty, times the loss scale,
 * added to what is there; out[1], one F64: the penalty, likewise.
 *     ORTHOGONALITY: weight |W W' - I|^2 of W, rows x columns.
 *     DISTINCTNESS: weight times the mean of the cosines between two rows of W.
 *     ENTROPY, DIVERSITY: of the factors w of a SOFTMAX whose parameters are in[0]: -weight H, or weight (H - target)^2, with the
 *     entropy H of w / (sum + epsilon); -weight times the variance of w. */
#ifndef TESS_OP_CHANNELS_H
#define TESS_OP_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tess_channel_form {
    TESS_CHANNEL_SHIFT,
    TESS_CHANNEL_SCALE,
    TESS_CHANNEL_DIVIDE,
    TESS_CHANNEL_SOFTMAX,
    TESS_CHANNEL_BOUNDARY
} tess_channel_form;

/* Factors of channels that sum up to `count`. */
typedef struct tess_op_softmax {
    double count, start, least, decay;
} tess_op_softmax;

typedef struct tess_op_channel_map {
    tess_channel_form form;
    double epsilon;
    tess_op_softmax softmax;
    bool accumulate;
} tess_op_channel_map;

typedef struct tess_op_channel_dot {
    double factor;
} tess_op_channel_dot;

typedef enum tess_penalty {
    TESS_ORTHOGONALITY,
    TESS_DISTINCTNESS,
    TESS_ENTROPY,
    TESS_DIVERSITY
} tess_penalty;

typedef struct tess_op_penalty {
    tess_penalty kind;
    double weight, epsilon;
    double target; /* ENTROPY: below 0: none */
    int64_t rows, columns;
    tess_op_softmax softmax;
} tess_op_penalty;

static inline bool tess_channel_has_bias(tess_channel_form form)
{
    return form == TESS_CHANNEL_SCALE || form == TESS_CHANNEL_DIVIDE;
}

#endif
