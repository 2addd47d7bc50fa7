/* gradient_point.h: a function and a point where its gradient is taken, both in fp64. The function is the sum of the
 * results of a forward op, each times a random factor, so that its gradient by a variable is what the backward op
 * returns when the factors are the gradient of its output. */
#ifndef TESS_TESTS_GRADIENT_POINT_H
#define TESS_TESTS_GRADIENT_POINT_H

#include "base/rng.h"
#include "check.h"
#include "op/op.h"

typedef struct gradient_case {
    const char *name;
    tess_op_kind kind;     /* of the backward op */
    int64_t n, d, h, w, c; /* of the forward op's input; attention: channels of its output */
    int parts;             /* stride of a window, groups, heads, kind of loss, size of a kernel */
    tess_activation activation;
    bool more; /* a tensor to add, scale and shift, heads' channels together, a mask */
    int gap;   /* channels between pixels that belong to somebody else */
    bool over; /* out[0] lies over in[0] */
    bool accumulate;
} gradient_case;

enum { VARIABLES = 3 };

typedef struct point point;
struct point {
    const gradient_case *c;
    int variables;
    double *variable[VARIABLES]; /* dense */
    int64_t size[VARIABLES];
    double *constant; /* an input that is not differentiated */
    int64_t constants;
    double *factor; /* of each result */
    int64_t results;
    void (*forward)(const point *, double *results);
};

static inline int64_t pixels_of(const point *p)
{
    return p->c->d * p->c->h * p->c->w;
}

/* Normal values that a kernel of that type can hold. */
static inline double *normal_values(int64_t count, uint32_t item, tess_dtype dtype)
{
    float *drawn = malloc((size_t)count * sizeof *drawn);
    double *values = malloc((size_t)count * sizeof *values);
    tess_rng_normal((tess_rng_key){23, item, 0}, 0, count, drawn);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)(dtype == TESS_BF16  ? tess_bf16_to_float(tess_float_to_bf16(drawn[i]))
                             : dtype == TESS_F16 ? tess_half_to_float(tess_float_to_half(drawn[i]))
                                                 : drawn[i]);
    free(drawn);
    return values;
}

static inline double point_value(const point *p)
{
    double *results = calloc((size_t)p->results, sizeof *results), sum = 0;
    p->forward(p, results);
    for (int64_t i = 0; i < p->results; i++)
        sum += p->factor[i] * results[i];
    free(results);
    return sum;
}

/* Central difference along `direction`; NULL: along coordinate `at`. */
static inline double central_difference(const point *p, int variable, const double *direction, int64_t at)
{
    const double step = 1e-5;
    double *values = p->variable[variable], ends[2];
    const size_t bytes = (size_t)p->size[variable] * sizeof(double);
    double *kept = malloc(bytes);
    memcpy(kept, values, bytes);
    for (int side = 0; side < 2; side++) {
        const double by = side ? -step : step;
        for (int64_t i = 0; direction && i < p->size[variable]; i++)
            values[i] = kept[i] + by * direction[i];
        if (!direction)
            values[at] = kept[at] + by;
        ends[side] = point_value(p);
        memcpy(values, kept, bytes);
    }
    free(kept);
    return (ends[0] - ends[1]) / (2 * step);
}

static inline double activated(tess_activation activation, double x)
{
    return activation == TESS_SILU ? x / (1 + exp(-x)) : activation == TESS_RELU && x < 0 ? 0 : x;
}

static inline void forward_activate(const point *p, double *out)
{
    for (int64_t i = 0; i < p->results; i++)
        out[i] = activated(p->c->activation, p->variable[0][i]);
}

static inline void forward_pool(const point *p, double *out)
{
    const gradient_case *c = p->c;
    const int64_t s = c->parts, h = c->h / s, w = c->w / s;
    for (int64_t i = 0; i < p->results; i++) {
        const int64_t ch = i % c->c, x = i / c->c % w, y = i / c->c / w % h, n = i / c->c / w / h;
        out[i] = -INFINITY;
        for (int64_t k = 0; k < s * s; k++)
            out[i] =
                fmax(out[i], p->variable[0][((n * c->h + y * s + k / s) * c->w + x * s + k % s) * c->c + ch]);
    }
}

static inline void forward_average(const point *p, double *out)
{
    const gradient_case *c = p->c;
    const int64_t s = c->parts, h = c->h / s, w = c->w / s;
    for (int64_t i = 0; i < p->results; i++) {
        const int64_t ch = i % c->c, x = i / c->c % w, y = i / c->c / w % h, n = i / c->c / w / h;
        for (int64_t k = 0; k < s * s; k++)
            out[i] += p->variable[0][((n * c->h + y * s + k / s) * c->w + x * s + k % s) * c->c + ch] /
                      (double)(s * s);
    }
}

/* AVERAGE_POOL: what each value gives to its window is divided by the window's size. */
static inline void forward_upsample(const point *p, double *out)
{
    const gradient_case *c = p->c;
    const int64_t s = c->parts, h = c->h * s, w = c->w * s;
    const double shares = c->kind == TESS_OP_AVERAGE_POOL ? (double)(s * s) : 1;
    for (int64_t i = 0; i < p->results; i++) {
        const int64_t ch = i % c->c, x = i / c->c % w, y = i / c->c / w % h, n = i / c->c / w / h;
        out[i] = p->variable[0][((n * c->h + y / s) * c->w + x / s) * c->c + ch] / shares;
    }
}

static inline double mean_of(const double *values, int64_t count, int64_t step, double centre, int power)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += power == 1 ? values[i * step] - centre
                          : (values[i * step] - centre) * (values[i * step] - centre);
    return sum / (double)count;
}

/* Variables: values, then weights and biases. */
static inline void forward_batch_norm(const point *p, double *out)
{
    const int64_t c = p->c->c, count = p->c->n * pixels_of(p);
    const double *params = p->variable[1];
    for (int64_t ch = 0; ch < c; ch++) {
        const double *values = p->variable[0] + ch, mean = mean_of(values, count, c, 0, 1),
                     factor = 1 / sqrt(mean_of(values, count, c, mean, 2) + 1e-5);
        for (int64_t i = 0; i < count; i++)
            out[i * c + ch] = (values[i * c] - mean) * factor * params[ch] + params[c + ch];
    }
}

/* Variables: values, weights and biases, scales and shifts. */
static inline void forward_group_norm(const point *p, double *out)
{
    const int64_t c = p->c->c, pixels = pixels_of(p), width = c / p->c->parts;
    for (int64_t g = 0; g < p->c->n * p->c->parts; g++) {
        const int64_t n = g / p->c->parts, first = g % p->c->parts * width;
        const double *values = p->variable[0] + n * pixels * c + first, *params = p->variable[1];
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++)
            mean += mean_of(values + i, pixels, c, 0, 1) / (double)width;
        for (int64_t i = 0; i < width; i++)
            variance += mean_of(values + i, pixels, c, mean, 2) / (double)width;
        for (int64_t i = 0; i < pixels * width; i++) {
            const int64_t ch = first + i % width;
            double y = (values[i / width * c + i % width] - mean) / sqrt(variance + 1e-5) * params[ch] +
                       params[c + ch];
            if (p->c->more)
                y = y * (1 + p->variable[2][n * 2 * c + ch]) + p->variable[2][n * 2 * c + c + ch];
            out[(n * pixels + i / width) * c + ch] = activated(p->c->activation, y);
        }
    }
}

static inline void forward_attention(const point *p, double *out)
{
    const int64_t c = p->c->c, heads = p->c->parts, own = c / heads, pixels = pixels_of(p);
    double *score = malloc((size_t)pixels * sizeof *score);
    for (int64_t i = 0; i < p->c->n * heads * pixels; i++) {
        const int64_t n = i / pixels / heads, head = i / pixels % heads, q = i % pixels;
        const int64_t first = head * own * (p->c->more ? 3 : 1), step = p->c->more ? own : c;
        const double *in = p->variable[0] + n * pixels * 3 * c + first;
        double most = -INFINITY, total = 0;
        for (int64_t k = 0; k < pixels; k++) {
            score[k] = 0;
            for (int64_t ch = 0; ch < own; ch++)
                score[k] += in[q * 3 * c + ch] * in[k * 3 * c + step + ch] / sqrt((double)own);
            most = fmax(most, score[k]);
        }
        for (int64_t k = 0; k < pixels; k++)
            total += score[k] = exp(score[k] - most);
        for (int64_t ch = 0; ch < own; ch++) {
            double sum = 0;
            for (int64_t k = 0; k < pixels; k++)
                sum += score[k] / total * in[k * 3 * c + 2 * step + ch];
            out[(n * pixels + q) * c + head * own + ch] = sum;
        }
    }
    free(score);
}

static inline double mean_root(const point *p)
{
    const int64_t count = p->size[0] / p->c->n;
    double sum = 0;
    for (int64_t n = 0; n < p->c->n; n++) {
        double squares = 0;
        for (int64_t i = n * count; i < (n + 1) * count; i++)
            squares += (p->variable[0][i] - p->constant[i]) * (p->variable[0][i] - p->constant[i]);
        const double root = sqrt(squares / (double)count + 0.01);
        sum += p->c->parts == TESS_PSNR ? 20 * log10(root) : root;
    }
    return sum / (double)p->c->n;
}

/* Constants: targets, then the mask if there is one. */
static inline void forward_loss(const point *p, double *out)
{
    const int64_t count = p->size[0];
    double sum = 0, weights = 0;
    if (tess_loss_by_image((tess_loss)p->c->parts)) {
        out[0] = mean_root(p);
        return;
    }
    if (p->c->parts == TESS_IOU) {
        for (int64_t i = 0; i < count; i++) {
            const double s = 1 / (1 + exp(-p->variable[0][i])), t = p->constant[i];
            sum += s * t;
            weights += s + t - s * t;
        }
        out[0] = 1 - (sum + 0.1) / (weights + 0.1);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double x = p->variable[0][i], t = p->constant[i], d = x - t,
                     weight = p->c->more ? p->constant[count + i] : 1;
        const double losses[] = {[TESS_MSE] = d * d,
                                 [TESS_L1] = fabs(d),
                                 [TESS_CHARBONNIER] = sqrt(d * d + 0.01),
                                 [TESS_MASKED_MSE] = d * d,
                                 [TESS_BCE_LOGITS] = (1 - t) * x + (1 + 2 * t) * log1p(exp(-x)),
                                 [TESS_MEAN] = x};
        sum += weight * losses[p->c->parts];
        weights += weight;
    }
    out[0] = sum / weights;
}

/* CHANNEL_MAP: variables are values, then weights (and biases). */
static inline tess_op_channel_map channel_map_of(const gradient_case *c)
{
    return (tess_op_channel_map){.form = (tess_channel_form)c->parts,
                                 .epsilon = c->parts == TESS_CHANNEL_BOUNDARY ? 0.05 : 3,
                                 .softmax = {3, 5, 0.1, 0.9},
                                 .accumulate = c->accumulate};
}

enum { MAP_EPOCH = 4 };

static inline void softmax_factors(const double *values, int64_t count, double *factors)
{
    const double temperature = fmax(0.1, 5 * pow(0.9, MAP_EPOCH));
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += factors[i] = exp(values[i] / temperature);
    for (int64_t i = 0; i < count; i++)
        factors[i] *= 3 / sum;
}

static inline void forward_channel_map(const point *p, double *out)
{
    const tess_op_channel_map map = channel_map_of(p->c);
    const int64_t c = p->c->c;
    double *factors = malloc((size_t)c * sizeof *factors);
    softmax_factors(p->variable[1], c, factors);
    for (int64_t i = 0; i < p->results; i++) {
        const double x = p->variable[0][i], w = p->variable[1][i % c],
                     m = tess_channel_has_bias(map.form) ? p->variable[1][c + i % c] : 0,
                     radius = log1p(exp(10 * w)) / 10;
        const double all[] = {[TESS_CHANNEL_SHIFT] = x - w,
                              [TESS_CHANNEL_SCALE] = w * (x - m),
                              [TESS_CHANNEL_DIVIDE] = (x - m) / (w + map.epsilon),
                              [TESS_CHANNEL_SOFTMAX] = factors[i % c] * x,
                              [TESS_CHANNEL_BOUNDARY] =
                                  radius * radius + fmax(x - radius * radius, 0) / map.epsilon};
        out[i] = all[map.form];
    }
    free(factors);
}

/* The gradient of one input is the other times the gradient of the result. */
static inline void forward_channel_dot(const point *p, double *out)
{
    for (int64_t i = 0; i < p->size[0]; i++)
        out[i / p->c->c] += 1.5 * p->variable[0][i] * p->constant[i];
}

static inline tess_op_penalty penalty_of(const gradient_case *c)
{
    return (tess_op_penalty){
        (tess_penalty)c->parts, c->parts < TESS_ENTROPY ? 0.3 : 300, 1e-6, c->more ? 1.5 : -1, c->h, c->c,
        {3, 5, 0.1, 0.9}};
}

static inline double penalty_of_rows(const point *p, bool cosines)
{
    const int64_t rows = p->c->h, columns = p->c->c;
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++) {
            double products[3] = {0};
            for (int64_t k = 0; k < columns; k++) {
                const double a = p->variable[0][i * columns + k], b = p->variable[0][j * columns + k];
                products[0] += a * b, products[1] += a * a, products[2] += b * b;
            }
            const double gram = products[0] - (i == j);
            sum += !cosines ? gram * gram : i < j ? products[0] / sqrt(products[1] * products[2]) : 0;
        }
    return cosines ? sum / ((double)(rows * (rows - 1)) / 2) : sum;
}

static inline void forward_penalty(const point *p, double *out)
{
    const tess_op_penalty penalty = penalty_of(p->c);
    const int64_t count = p->size[0];
    double *w = malloc((size_t)count * sizeof *w), entropy = 0, variance = 0;
    softmax_factors(p->variable[0], count, w);
    for (int64_t i = 0; i < count; i++) {
        const double q = w[i] / (3 + 1e-6), far = w[i] - 3 / (double)count;
        entropy -= q * log(q + 1e-6);
        variance += far * far / (double)count;
    }
    free(w);
    switch (penalty.kind) {
    case TESS_ORTHOGONALITY:
    case TESS_DISTINCTNESS:
        out[0] = penalty_of_rows(p, penalty.kind == TESS_DISTINCTNESS);
        break;
    case TESS_ENTROPY:
        out[0] = p->c->more ? (entropy - 1.5) * (entropy - 1.5) : -entropy;
        break;
    case TESS_DIVERSITY:
        out[0] = -variance;
        break;
    }
    out[0] *= penalty.weight;
}

/* The seed, item and step of image n. */
static inline tess_rng_key dropout_key(int64_t n)
{
    return (tess_rng_key){91, (uint32_t)(5 + n), (uint32_t)(3 * n)};
}

enum { DROPOUT_PERCENT = 30 };

static inline void forward_dropout(const point *p, double *out)
{
    const int64_t image = p->results / p->c->n;
    float *uniform = malloc((size_t)image * sizeof *uniform);
    for (int64_t n = 0; n < p->c->n; n++) {
        tess_rng_uniform(dropout_key(n), 0, image, uniform);
        for (int64_t i = 0; i < image; i++)
            out[n * image + i] = (double)uniform[i] < DROPOUT_PERCENT / 100.0
                                     ? 0
                                     : p->variable[0][n * image + i] / (1 - DROPOUT_PERCENT / 100.0);
    }
    free(uniform);
}

/* A convolution of kernel `parts`: 3 with padding 1, or 2 with stride 2. Variables: kernel, bias; constants: input. */
enum { CONV_OUT = 5 };

static inline void forward_conv(const point *p, double *out)
{
    const gradient_case *c = p->c;
    const int64_t k = c->parts, s = k == 2 ? 2 : 1, pad = k / 3, h = c->h / s, w = c->w / s;
    for (int64_t i = 0; i < p->results; i++) {
        const int64_t o = i % CONV_OUT, x = i / CONV_OUT % w, y = i / CONV_OUT / w % h,
                      n = i / CONV_OUT / w / h;
        out[i] = p->variable[1][o];
        for (int64_t t = 0; t < k * k; t++) {
            const int64_t yy = y * s + t / k - pad, xx = x * s + t % k - pad;
            for (int64_t ch = 0; yy >= 0 && yy < c->h && xx >= 0 && xx < c->w && ch < c->c; ch++)
                out[i] += p->variable[0][(o * c->c + ch) * k * k + t] *
                          p->constant[((n * c->h + yy) * c->w + xx) * c->c + ch];
        }
    }
}

#endif
