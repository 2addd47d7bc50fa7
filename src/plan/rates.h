/* rates.h: how fast this device does each class of op: seconds = overhead + per_pixel * output pixels.
 * Measured once and kept in the cache; a class that was never measured is estimated from the device's
 * built-in rates. */
#ifndef TESS_PLAN_RATES_H
#define TESS_PLAN_RATES_H

#include "device/device.h"
#include "net/plan.h"

typedef struct tess_rates tess_rates; /* owned by the caller: tess_rates_destroy */

/* Reads the cache of this device, if there is one. */
tess_status tess_rates_open(tess_device *device, tess_rates **out, tess_error *error) TESS_MUST_CHECK;
void tess_rates_destroy(tess_rates *rates);
const char *tess_rates_path(const tess_rates *rates);
int64_t tess_rates_count(const tess_rates *rates);

/* Seconds of one op; *measured is cleared when a built-in rate had to serve. */
double tess_rates_op_seconds(const tess_rates *rates, const tess_op *op, bool *measured);
double tess_rates_plan_seconds(const tess_rates *rates, const tess_net_plan *plan, bool *measured);

/* What a class costs whatever the size of the image; 0 when it was not measured. */
double tess_rates_overhead(const tess_rates *rates, const char *op_class);
/* Seconds that a run of this network takes beyond the sum of its ops; 0 until it was measured. */
double tess_rates_run_overhead(const tess_rates *rates, const tess_bound *bound);

typedef struct tess_rates_budget {
    double seconds; /* in all */
    size_t bytes;   /* at any time */
    bool again;     /* measure what has a rate already, too; the better of the two is kept */
} tess_rates_budget;

/* Measures the classes of the plan that have no rate yet, as far as the budget goes, and writes the cache if it can. */
tess_status tess_rates_measure(tess_rates *rates, const tess_net_plan *plan, tess_rates_budget budget,
                               tess_error *error) TESS_MUST_CHECK;
/* Measures a run of the network at this shape against its ops, whose rates must be known, with weights that are loaded.
 * Host only: elsewhere it does nothing. */
tess_status tess_rates_measure_run(tess_rates *rates, const tess_bound *bound, tess_plan_shape shape,
                                   const void *weights, tess_rates_budget budget,
                                   tess_error *error) TESS_MUST_CHECK;
/* Lets the device choose among its engines for the ops of the plan at their sizes, as far as the budget goes. */
tess_status tess_rates_tune(tess_rates *rates, const tess_net_plan *plan, tess_rates_budget budget,
                            tess_error *error) TESS_MUST_CHECK;
/* Writes the cache atomically. A job may ignore the answer: only its successors' seconds are rougher. */
tess_status tess_rates_save(const tess_rates *rates, tess_error *error);
/* A rate measured now. Other work on the machine only ever makes a measurement slower, so the faster one of two is
 * kept. */
void tess_rates_set(tess_rates *rates, const char *op_class, double overhead, double per_pixel);
bool tess_rates_has(const tess_rates *rates, const char *op_class);

/* How many times longer an operator of this name takes than its operations and the device's built-in rates say; 1, and
 * *measured cleared, when it was not measured yet. */
double tess_rates_operator(const tess_rates *rates, const char *name, bool *measured);
void tess_rates_set_operator(tess_rates *rates, const char *name, double factor);
tess_device *tess_rates_device(const tess_rates *rates);

#endif
