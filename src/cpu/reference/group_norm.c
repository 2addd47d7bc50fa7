/* Group norm as plain loops in fp64: the mean first, then the variance around it. */
#include "cpu/norm/group_norm.h"
#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"

/* One group of one image: its channels are [first, first + width). */
typedef struct group {
    int64_t n, first, width;
    double mean, deviation;
} group;

static double sum_around(const tess_op *op, const void *data, const group *g, double centre, int power)
{
    const tess_tensor *in = &op->in[0];
    double sum = 0;
    for (int64_t d = 0; d < in->d; d++)
        for (int64_t y = 0; y < in->h; y++)
            for (int64_t x = 0; x < in->w; x++)
                for (int64_t c = g->first; c < g->first + g->width; c++) {
                    const double value =
                        tess_reference_load(in, data, tess_reference_place(in, g->n, d, y, x) + c) - centre;
                    sum += power == 2 ? value * value : value;
                }
    return sum;
}

static void write_channel(const tess_op *op, const tess_op_buffers *buffers, const group *g, int64_t c,
                          double weight, double bias)
{
    const tess_tensor *in = &op->in[0], *out = &op->out[0], *more = &op->in[1];
    double scale = 0, shift = 0;
    if (op->inputs > 1) {
        const int64_t at = (more->n > 1 ? g->n * more->stride_n : 0) + c;
        scale = tess_reference_load(more, buffers->in[1], at);
        shift = tess_reference_load(more, buffers->in[1], at + in->c);
    }
    for (int64_t d = 0; d < in->d; d++)
        for (int64_t y = 0; y < in->h; y++)
            for (int64_t x = 0; x < in->w; x++) {
                const double value =
                    tess_reference_load(in, buffers->in[0], tess_reference_place(in, g->n, d, y, x) + c);
                const double normed = (value - g->mean) / g->deviation * weight + bias;
                tess_reference_store(out, buffers->out[0], tess_reference_place(out, g->n, d, y, x) + c,
                                     tess_reference_activated(op->activation, normed * (1 + scale) + shift));
            }
}

void tess_reference_group_norm(const tess_op *op, const tess_op_buffers *buffers, const float *weight,
                               const float *bias)
{
    const tess_tensor *in = &op->in[0];
    const int64_t width = in->c / op->group_norm.groups;
    const double count = (double)(in->d * in->h * in->w * width);
    for (int64_t n = 0; n < in->n; n++)
        for (int64_t first = 0; first < in->c; first += width) {
            group g = {.n = n, .first = first, .width = width};
            g.mean = sum_around(op, buffers->in[0], &g, 0, 1) / count;
            g.deviation =
                sqrt(sum_around(op, buffers->in[0], &g, g.mean, 2) / count + op->group_norm.epsilon);
            for (int64_t c = first; c < first + width; c++)
                write_channel(op, buffers, &g, c, weight[c], bias[c]);
        }
}

static void reference_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.block = 1, .weights = tess_cpu_group_norm_weights(op)};
}

static void reference_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)device, (void)state, (void)stream;
    const float *weights = buffers->weights;
    tess_reference_group_norm(op, buffers, weights, weights + op->in[0].c);
}

const tess_kernel tess_cpu_group_norm_reference = {.name = "group norm reference",
                                                   .refuses = tess_cpu_group_norm_refuses,
                                                   .needs = reference_needs,
                                                   .pack = tess_cpu_group_norm_pack,
                                                   .run = reference_run};
