#include "train/init.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/orthogonal.h"

static bool ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* A kernel as a matrix of rows x columns, with PyTorch's count of inputs and outputs. */
typedef struct kernel {
    int64_t rows, columns; /* the first size, and the product of the others */
    int64_t inputs, outputs;
} kernel;

static kernel kernel_of(const tess_parameter *p)
{
    int64_t taps = 1;
    for (int i = 2; i < p->rank; i++)
        taps *= p->dims[i];
    return (kernel){p->dims[0], p->elements / p->dims[0], p->dims[1] * taps, p->dims[0] * taps};
}

/* The start of bench/peers/train_drunet_small.py: the signal keeps its size, residual branches start small. */
static double drunet_deviation(const tess_parameter *p)
{
    const kernel k = kernel_of(p);
    /* Transposed: one tap per output; its input is a sum of two nearly equal maps, hence the half. */
    const bool up = p->dims[p->rank - 1] == 2 && strstr(p->name, "up");
    double deviation = up ? 0.5 / sqrt((double)k.rows) : 1 / sqrt((double)k.columns);
    if (strstr(p->name, ".res.0."))
        deviation *= sqrt(2);
    if (strstr(p->name, ".res.2.") || strstr(p->name, "tail"))
        deviation *= 0.1;
    return deviation;
}

/* The first steps change the result little: layers whose result is added start small, and the last one is 0, as in
 * guided-diffusion. */
static double diffusion_deviation(const tess_parameter *p)
{
    const double deviation = 1 / sqrt((double)kernel_of(p).inputs);
    if (ends_in(p->name, "out.2.weight"))
        return 0;
    return strstr(p->name, ".out_layers.") || strstr(p->name, ".proj_out.") ? 0.1 * deviation : deviation;
}

static void fill_normal(tess_rng_key key, double deviation, int64_t count, float *values)
{
    tess_rng_normal(key, 0, count, values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(deviation * values[i]);
}

static void fill_uniform(tess_rng_key key, double bound, int64_t count, float *values)
{
    tess_rng_uniform(key, 0, count, values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(bound * (2.0 * values[i] - 1));
}

static void fill(float value, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
}

static tess_status fill_kernel(const tess_parameter *p, tess_train_init kind, tess_rng_key key, float *values,
                               tess_error *error)
{
    const kernel k = kernel_of(p);
    switch (kind) {
    case TESS_INIT_KAIMING:
        fill_normal(key, sqrt(2.0 / (double)k.inputs), p->elements, values);
        return TESS_OK;
    case TESS_INIT_XAVIER:
        fill_uniform(key, sqrt(6.0 / (double)(k.inputs + k.outputs)), p->elements, values);
        return TESS_OK;
    case TESS_INIT_ORTHOGONAL:
        tess_rng_normal(key, 0, p->elements, values);
        return tess_orthogonal(k.rows, k.columns, values, error);
    case TESS_INIT_PYTORCH: /* kaiming_uniform_ with a = sqrt(5): gain sqrt(1/3), bound gain * sqrt(3 / inputs) */
        fill_uniform(key, 1 / sqrt((double)k.inputs), p->elements, values);
        return TESS_OK;
    case TESS_INIT_DRUNET:
        fill_normal(key, drunet_deviation(p), p->elements, values);
        return TESS_OK;
    case TESS_INIT_DIFFUSION:
        fill_normal(key, diffusion_deviation(p), p->elements, values);
        return TESS_OK;
    }
    return tess_fail(error, TESS_INTERNAL, "%s: unknown start", p->name);
}

/* The kernel to which a bias belongs: the parameter before it, of the same layer. */
static const tess_parameter *kernel_before(const tess_parameters *parameters, int index)
{
    const tess_parameter *p = &parameters->list[index], *before = p - 1;
    return index > 0 && before->layer == p->layer && !before->running && before->rank >= 2 ? before : NULL;
}

static tess_status fill_parameter(const tess_parameters *parameters, int index, tess_train_init kind,
                                  uint64_t seed, float *values, tess_error *error)
{
    const tess_parameter *p = &parameters->list[index];
    const tess_rng_key key = {seed, (uint32_t)index, 0};
    const tess_parameter *own = ends_in(p->name, ".bias") ? kernel_before(parameters, index) : NULL;
    if (p->elements < 1)
        return TESS_OK;
    if (p->running)
        fill(ends_in(p->name, ".running_var") ? 1 : 0, p->elements, values);
    else if (p->rank >= 2)
        TESS_TRY(fill_kernel(p, kind, key, values, error));
    else if (own && kind == TESS_INIT_PYTORCH)
        fill_uniform(key, 1 / sqrt((double)kernel_of(own).inputs), p->elements, values);
    else
        fill(ends_in(p->name, ".weight") ? 1 : 0, p->elements, values);
    for (int64_t i = 0; p->factor != 1 && !p->running && i < p->elements; i++)
        values[i] *= p->factor; /* the block holds the negative of the file's value */
    return TESS_OK;
}

tess_status tess_train_init_values(const tess_parameters *parameters, tess_train_init kind, uint64_t seed,
                                   float *trained, float *running, tess_error *error)
{
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *p = &parameters->list[i];
        float *values = (p->running ? running : trained) + p->offset;
        TESS_TRY(fill_parameter(parameters, i, kind, seed, values, error));
    }
    return TESS_OK;
}
