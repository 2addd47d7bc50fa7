/* machine.h: a device that is not open, as rates and facts: the card that was open last, which the cache remembers, or the
 * machine that a file describes (docs/devices.md). Predicting its seconds must not cost what opening it costs.
 *
 * Costs that are no op's are classes of the same table, so that they are measured, kept and read like the others. */
#ifndef TESS_PLAN_MACHINE_H
#define TESS_PLAN_MACHINE_H

#include "base/json.h"
#include "plan/rates.h"

/* Opening the device, and its end with the process: seconds a run. Copies from and to the host: seconds a run and a byte. Reading and packing weights: a
 * byte. Preparing a shape of a network (kernels, graph): a run. */
#define TESS_COST_OPEN  "device open"
#define TESS_COST_CLOSE "device close"
#define TESS_COST_UP    "bus up"
#define TESS_COST_DOWN  "bus down"
#define TESS_COST_PACK  "weights"
#define TESS_COST_SHAPE "shape"
/* Host memory that is used for the first time: a byte. */
#define TESS_COST_FRESH "fresh memory"
/* Everything else of a job that is not its phases, followed by the verb: "job denoise". */
#define TESS_COST_JOB "job"

/* The device of this kind that was open last; guesses if none was. */
tess_status tess_machine_recall(const char *kind, tess_rates **out, tess_error *error) TESS_MUST_CHECK;
/* Stores the facts of an open device for tess_machine_recall. */
void tess_machine_remember(const tess_rates *rates);
/* The text of a machine file, for what is in it besides rates: plan/ranks/links.h. */
tess_status tess_machine_json(const char *path, tess_json **json, tess_error *error) TESS_MUST_CHECK;
/* Reads a machine file. */
tess_status tess_machine_read(const char *path, tess_rates **out, tess_error *error) TESS_MUST_CHECK;

/* False: nothing is known of this device, and its seconds are guesses. */
bool tess_machine_known(const tess_rates *rates);
/* The measured cost, or the built-in one of this kind of device; clears *measured then. */
tess_run_cost tess_machine_cost(const tess_rates *rates, const char *op_class, bool *measured);
/* Measures host memory that is new, if the device is the host and it was not measured yet. */
tess_status tess_machine_measure_fresh(tess_rates *rates, tess_error *error) TESS_MUST_CHECK;
/* Measures the bus, if the device has separate memory and it was not measured yet. */
tess_status tess_machine_measure_bus(tess_rates *rates, tess_error *error) TESS_MUST_CHECK;

#endif
