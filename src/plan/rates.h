/* rates.h: the speed of this device for each class of op: seconds = overhead + per_pixel * output pixels. Rates
 * are measured once and kept in the cache; a class that was never measured is estimated from the device's
 * built-in rates. */
#ifndef TESS_PLAN_RATES_H
#define TESS_PLAN_RATES_H

#include "device/device.h"
#include "net/plan.h"

typedef struct tess_rates tess_rates; /* owned by the caller: tess_rates_destroy */

/* Reads the cache of this device, if there is one. */
tess_status tess_rates_open(tess_device *device, tess_rates **out, tess_error *error) TESS_MUST_CHECK;
/* From now on these are the rates of one of `busy` processes that compute on this host at the same time: they share caches and the
 * memory's bandwidth, and each is slower than one alone. They have a cache file of their own. */
void tess_rates_among(tess_rates *rates, int busy);
void tess_rates_destroy(tess_rates *rates);
const char *tess_rates_path(const tess_rates *rates);
int64_t tess_rates_count(const tess_rates *rates);

const tess_device_facts *tess_rates_facts(const tess_rates *rates);
const char *tess_rates_kind(const tess_rates *rates); /* "cpu", "cuda" */

enum { TESS_RATES_CLASS = 64 }; /* bytes of a class's name */

/* How much of a class is to be done. */
typedef struct tess_op_amount {
    double runs, pixels; /* of all runs together */
    double flops, bytes; /* for a class that was not measured */
} tess_op_amount;

/* The output pixels that the device computes for this op, or the pixels that a statistic reads. A kernel that computes
 * several columns at a time also computes those beyond the end of a row. */
double tess_rates_pixels(const tess_rates *rates, const tess_op *op);
tess_op_amount tess_rates_amount(const tess_rates *rates, const tess_op *op);
/* Seconds of so much of a class; clears *measured when a built-in rate was used. */
double tess_rates_class_seconds(const tess_rates *rates, const char *op_class, const tess_op_amount *amount,
                                bool *measured);
/* Seconds of one op; clears *measured when a built-in rate was used. */
double tess_rates_op_seconds(const tess_rates *rates, const tess_op *op, bool *measured);
double tess_rates_plan_seconds(const tess_rates *rates, const tess_net_plan *plan, bool *measured);

typedef struct tess_run_cost {
    double overhead, per_pixel; /* seconds */
} tess_run_cost;

/* The measured cost of a class; zeros when it was not measured. */
tess_run_cost tess_rates_cost(const tess_rates *rates, const char *op_class);
/* The class of what a run of this network costs beyond the sum of its ops. */
void tess_rates_run_class(const tess_bound *bound, char text[TESS_RATES_CLASS]);
/* What a run of this network costs beyond the sum of its ops; zeros until it was measured. */
tess_run_cost tess_rates_run_cost(const tess_rates *rates, const tess_bound *bound);

typedef struct tess_rates_budget {
    double seconds; /* total time */
    size_t bytes;   /* most memory at any time */
    bool again;     /* also measure classes that have a rate; the better rate is kept */
} tess_rates_budget;

/* Measures the classes of the plan that have no rate yet, within the budget, and writes the cache if possible. */
tess_status tess_rates_measure(tess_rates *rates, const tess_net_plan *plan, tess_rates_budget budget,
                               tess_error *error) TESS_MUST_CHECK;
/* Measures the class of one op of statistics, if it has no rate yet; does not write the cache. */
tess_status tess_rates_measure_op(tess_rates *rates, const tess_op *op, tess_rates_budget budget,
                                  tess_error *error) TESS_MUST_CHECK;
/* Measures runs of the network at a small and at a larger size and compares them with their ops, whose rates must be
 * known. `grid` is the network's (both sides are multiples of it). The weights must be loaded. Host only: does
 * nothing on other devices. */
tess_status tess_rates_measure_run(tess_rates *rates, const tess_bound *bound, int64_t grid,
                                   const void *weights, tess_rates_budget budget,
                                   tess_error *error) TESS_MUST_CHECK;
/* Lets the device choose among its engines for the ops of the plan at their sizes, within the budget. */
tess_status tess_rates_tune(tess_rates *rates, const tess_net_plan *plan, tess_rates_budget budget,
                            tess_error *error) TESS_MUST_CHECK;
/* Writes the cache atomically. A job may ignore the status: only the predicted seconds of later jobs are less
 * exact. */
tess_status tess_rates_save(const tess_rates *rates, tess_error *error);
/* Stores a rate measured now. Other work on the machine can only slow a measurement down, so the faster of two
 * rates is kept. */
void tess_rates_set(tess_rates *rates, const char *op_class, double overhead, double per_pixel);
bool tess_rates_has(const tess_rates *rates, const char *op_class);

/* The factor between the measured time of the operator `name` and its prediction from operations and built-in
 * rates; 1, with *measured cleared, when it was not measured yet. */
double tess_rates_operator(const tess_rates *rates, const char *name, bool *measured);
void tess_rates_set_operator(tess_rates *rates, const char *name, double factor);
tess_device *tess_rates_device(const tess_rates *rates); /* NULL: rates of a machine, see plan/machine.h */

#endif
