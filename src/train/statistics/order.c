#include "train/statistics/order.h"

#include <math.h>
#include <string.h>

typedef struct digits {
    int count, bits[3], targets;
} digits;

static const digits of_kind[] = {
    [TESS_ORDER_QUANTILE] = {2, {16, 16}, 2}, [TESS_ORDER_MEDIAN] = {3, {11, 11, 10}, 1}};

static size_t bins(const digits *d)
{
    return (size_t)1 << d->bits[0]; /* the first digit is the widest */
}

size_t tess_order_bytes(tess_order_kind kind, int channels)
{
    const digits *d = &of_kind[kind];
    const size_t targets = (size_t)channels * (size_t)d->targets;
    return targets * (bins(d) * sizeof(uint64_t) + sizeof(uint64_t) + sizeof(uint32_t));
}

int64_t tess_order_counts(const tess_order *order)
{
    const digits *d = &of_kind[order->kind];
    return (int64_t)((size_t)order->channels * (size_t)d->targets * bins(d));
}

void tess_order_begin(tess_order *order, tess_order_kind kind, int channels, double quantile, void *memory)
{
    const digits *d = &of_kind[kind];
    const size_t targets = (size_t)channels * (size_t)d->targets;
    memset(memory, 0, tess_order_bytes(kind, channels));
    *order = (tess_order){.kind = kind, .channels = channels, .quantile = quantile, .histograms = memory};
    order->ranks = order->histograms + targets * bins(d);
    order->prefixes = (uint32_t *)(order->ranks + targets);
}

/* Integers that are in the order of the values. */
static uint32_t key_of(float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {.f = value};
    return bits.u >> 31 ? ~bits.u : bits.u | 0x80000000u;
}

static double value_of(uint32_t key)
{
    union {
        uint32_t u;
        float f;
    } bits = {.u = key >> 31 ? key & 0x7fffffffu : ~key};
    return bits.f;
}

/* How many bits are below digit `digit`. */
static int shift_of(const digits *d, int digit)
{
    int shift = 32;
    for (int i = 0; i <= digit; i++)
        shift -= d->bits[i];
    return shift;
}

void tess_order_add(tess_order *order, const float *values, int64_t pixels, const uint8_t *keep)
{
    const digits *d = &of_kind[order->kind];
    const int shift = shift_of(d, order->digit), bits = d->bits[order->digit];
    const uint32_t low = (1u << bits) - 1;
    for (int64_t p = 0; p < pixels; p++) {
        const float *v = values + p * order->channels;
        bool finite = !keep || keep[p];
        for (int c = 0; c < order->channels && finite; c++)
            finite = isfinite(v[c]) != 0;
        if (!finite)
            continue;
        order->count += order->digit == 0;
        for (int c = 0; c < order->channels; c++) {
            const uint32_t key = key_of(v[c]) >> shift;
            for (int t = c * d->targets; t < (c + 1) * d->targets; t++)
                if (order->digit == 0 || key >> bits == order->prefixes[t])
                    order->histograms[(size_t)t * bins(d) + (key & low)]++;
        }
    }
}

/* The ranks sought, once the number of values is known. */
static void set_ranks(tess_order *order, const digits *d)
{
    const double place = order->count ? order->quantile * (double)(order->count - 1) : 0;
    const uint64_t lower = order->kind == TESS_ORDER_MEDIAN ? (order->count ? (order->count - 1) / 2 : 0)
                                                            : (uint64_t)floor(place);
    order->fraction = order->kind == TESS_ORDER_MEDIAN ? 0 : place - floor(place);
    for (int t = 0; t < order->channels * d->targets; t++)
        order->ranks[t] = lower + (uint64_t)(t % d->targets == 1 && order->fraction > 0);
}

bool tess_order_next(tess_order *order)
{
    const digits *d = &of_kind[order->kind];
    if (order->digit == 0)
        set_ranks(order, d);
    for (int t = 0; t < order->channels * d->targets && order->count; t++) {
        uint64_t *histogram = order->histograms + (size_t)t * bins(d);
        uint32_t bin = 0;
        while (order->ranks[t] >= histogram[bin])
            order->ranks[t] -= histogram[bin++];
        order->prefixes[t] = order->prefixes[t] << d->bits[order->digit] | bin;
        memset(histogram, 0, bins(d) * sizeof *histogram);
    }
    return ++order->digit == d->count;
}

double tess_order_value(const tess_order *order, int channel)
{
    const digits *d = &of_kind[order->kind];
    if (!order->count)
        return NAN;
    const double lower = value_of(order->prefixes[channel * d->targets]);
    const double upper = value_of(order->prefixes[channel * d->targets + d->targets - 1]);
    return lower + order->fraction * (upper - lower);
}
