/* order.h: values by their rank (medians, quantiles) of streams that do not fit into memory, exactly.
 *
 * The bits of an fp32 value, with the sign handled, order as an integer. Each reading of the stream counts the values by one
 * more digit of that integer, among those whose digits so far are those of the value sought, so that two readings (of 16
 * bits) or three (of 11) find it, in a memory that does not depend on the number of values, and in any order. */
#ifndef TESS_TRAIN_STATISTICS_ORDER_H
#define TESS_TRAIN_STATISTICS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tess_order_kind {
    TESS_ORDER_QUANTILE, /* one channel, 2 readings; linear between two neighbours */
    TESS_ORDER_MEDIAN /* many channels, 3 readings; of an even number of values the lower of the middle two */
} tess_order_kind;

typedef struct tess_order {
    tess_order_kind kind;
    int channels, digit;
    double quantile;
    uint64_t count;       /* values of each channel, known after the first reading */
    double fraction;      /* between the two values */
    uint64_t *histograms; /* channels x targets x bins */
    uint64_t *ranks;      /* channels x targets: among the values with these digits */
    uint32_t *prefixes;   /* channels x targets: the digits found */
} tess_order;

size_t tess_order_bytes(tess_order_kind kind, int channels);
/* `memory` has tess_order_bytes, zeroed or not. */
void tess_order_begin(tess_order *order, tess_order_kind kind, int channels, double quantile, void *memory);
/* Pixels with a value that is not finite, or with keep[i] = 0, are left out. `keep` may be NULL. */
void tess_order_add(tess_order *order, const float *values, int64_t pixels, const uint8_t *keep);
/* How many counts `histograms` has: those of several streams are added up before tess_order_next, and so is `count` in the first
 * reading. */
int64_t tess_order_counts(const tess_order *order);
/* After each reading. True: the values are known. */
bool tess_order_next(tess_order *order);
/* NaN if there were no values. */
double tess_order_value(const tess_order *order, int channel);

#endif
