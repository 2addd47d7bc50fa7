/* PENALTY: parameters are few, so one thread computes in fp64. Used as the reference too. */
#include <math.h>
#include <string.h>

#include "cpu/core/lines.h"
#include "cpu/elementwise/channels.h"

typedef struct penalty {
    const tess_op_penalty *of;
    const float *values;
    double *gradient; /* of the values, without weight and scale */
    double *work;
    double loss; /* without weight */
} penalty;

/* The products of all pairs of rows, less the identity. */
static void orthogonality(penalty *p)
{
    const size_t rows = (size_t)p->of->rows, columns = (size_t)p->of->columns;
    double *gram = p->work;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++) {
            double sum = i == j ? -1 : 0;
            for (size_t k = 0; k < columns; k++)
                sum += (double)p->values[i * columns + k] * (double)p->values[j * columns + k];
            gram[i * rows + j] = sum;
            p->loss += sum * sum;
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++)
            for (size_t k = 0; k < columns; k++)
                p->gradient[i * columns + k] += 4 * gram[i * rows + j] * (double)p->values[j * columns + k];
}

/* The sum of the cosines of all pairs is half of what the square of the sum of all directions leaves beside each one's own. */
static void distinctness(penalty *p)
{
    const size_t rows = (size_t)p->of->rows, columns = (size_t)p->of->columns;
    const double pairs = (double)rows * (double)(rows - 1) / 2;
    double *lengths = p->work, *sum = lengths + rows;
    memset(sum, 0, columns * sizeof *sum);
    for (size_t i = 0; i < rows; i++) {
        double square = 0;
        for (size_t k = 0; k < columns; k++)
            square += (double)p->values[i * columns + k] * (double)p->values[i * columns + k];
        lengths[i] = fmax(sqrt(square), p->of->epsilon);
        for (size_t k = 0; k < columns; k++)
            sum[k] += (double)p->values[i * columns + k] / lengths[i];
    }
    for (size_t i = 0; i < rows && rows > 1; i++) {
        double along = 0; /* what the others have in this direction */
        for (size_t k = 0; k < columns; k++) {
            const double own = (double)p->values[i * columns + k] / lengths[i];
            along += own * (sum[k] - own);
        }
        p->loss += along / 2 / pairs;
        const bool short_one = lengths[i] <= p->of->epsilon;
        for (size_t k = 0; k < columns; k++) {
            const double own = (double)p->values[i * columns + k] / lengths[i];
            p->gradient[i * columns + k] =
                (sum[k] - own - (short_one ? 0 : along * own)) / lengths[i] / pairs;
        }
    }
}

/* Of the factors of a softmax: first by the factors, then by its parameters. */
static void of_factors(penalty *p, const double *control)
{
    const int64_t count = p->of->columns;
    const double temperature = tess_cpu_temperature(&p->of->softmax, control), all = p->of->softmax.count;
    double *shares = p->work, *slope = shares + count, inner = 0;
    tess_cpu_softmax(p->values, count, temperature, shares);
    if (p->of->kind == TESS_DIVERSITY) {
        const double mean = all / (double)count;
        for (int64_t i = 0; i < count; i++) {
            const double far = all * shares[i] - mean;
            p->loss -= far * far / (double)count;
            slope[i] = -2 * far / (double)count;
        }
    } else {
        const double divisor = all + p->of->epsilon;
        double entropy = 0, mixed = 0;
        for (int64_t i = 0; i < count; i++) {
            const double q = all * shares[i] / divisor;
            entropy -= q * log(q + p->of->epsilon);
            slope[i] = log(q + p->of->epsilon) + q / (q + p->of->epsilon); /* of -entropy */
            mixed += slope[i] * q;
        }
        const double outer = p->of->target < 0 ? 1 : -2 * (entropy - p->of->target);
        p->loss = p->of->target < 0 ? -entropy : (entropy - p->of->target) * (entropy - p->of->target);
        for (int64_t i = 0; i < count; i++)
            slope[i] = outer * (slope[i] - mixed) / divisor;
    }
    for (int64_t i = 0; i < count; i++)
        inner += shares[i] * slope[i];
    for (int64_t i = 0; i < count; i++)
        p->gradient[i] = all / temperature * shares[i] * (slope[i] - inner);
}

static size_t work_of(const tess_op_penalty *of)
{
    const size_t rows = (size_t)of->rows, columns = (size_t)of->columns;
    return rows * rows + rows + 2 * columns;
}

static void penalty_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    const size_t values = (size_t)tess_cpu_values(&op->in[0]);
    *needs = (tess_op_needs){.block = 1, .workspace = (values + work_of(&op->penalty)) * sizeof(double)};
}

static void penalty_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                        tess_stream *stream)
{
    (void)device, (void)state, (void)stream;
    const int64_t values = tess_cpu_values(&op->in[0]);
    const double *control = buffers->in[1];
    penalty p = {.of = &op->penalty, .values = buffers->in[0], .gradient = buffers->workspace};
    p.work = p.gradient + values;
    memset(p.gradient, 0, (size_t)values * sizeof *p.gradient);
    if (p.of->kind == TESS_ORTHOGONALITY)
        orthogonality(&p);
    else if (p.of->kind == TESS_DISTINCTNESS)
        distinctness(&p);
    else
        of_factors(&p, control);
    float *to = buffers->out[0];
    double *loss = buffers->out[1];
    for (int64_t i = 0; i < values; i++)
        to[i] = (float)((double)to[i] + p.of->weight * control[TESS_CONTROL_LOSS_SCALE] * p.gradient[i]);
    *loss += p.of->weight * p.loss;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    const tess_op_penalty *p = &op->penalty;
    if (op->kind != TESS_OP_PENALTY)
        return tess_kernel_refuse(why, NULL);
    const int64_t values = p->rows > 0 && p->columns > 0 ? p->rows * p->columns : 0;
    const bool factors = p->kind == TESS_ENTROPY || p->kind == TESS_DIVERSITY;
    if (!tess_cpu_is_vector(&op->in[0], TESS_F32, values) || op->outputs != 2 ||
        !tess_cpu_is_vector(&op->out[0], TESS_F32, values) ||
        !tess_cpu_is_vector(&op->in[1], TESS_F64, TESS_CONTROLS) ||
        !tess_cpu_is_vector(&op->out[1], TESS_F64, 1) || (factors && p->rows != 1))
        return tess_kernel_refuse(
            why, "a penalty takes rows x columns fp32 parameters and the control vector, and "
                 "gives their gradients and one fp64 value");
    return TESS_OK;
}

const tess_kernel tess_cpu_penalty = {
    .name = "penalty", .refuses = refuses, .needs = penalty_needs, .run = penalty_run};
