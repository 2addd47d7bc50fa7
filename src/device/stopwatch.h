/* stopwatch.h: how long ops take on a device that computes later than its functions return: an event of the device before and
 * after each op. Times are added to a sum when the device is known to be done, at the latest when all slots are taken. */
#ifndef TESS_DEVICE_STOPWATCH_H
#define TESS_DEVICE_STOPWATCH_H

#include "device/device.h"

typedef struct tess_stopwatch tess_stopwatch;

/* Uses the device's functions of this moment from then on. */
tess_status tess_stopwatch_create(tess_device *device, tess_stopwatch **out,
                                  tess_error *error) TESS_MUST_CHECK;
void tess_stopwatch_destroy(tess_stopwatch *watch); /* accepts NULL */

/* Returns a slot for what is queued on the stream until tess_stopwatch_end. Any thread; the lock that protects the sums must be held. */
int tess_stopwatch_begin(tess_stopwatch *watch, tess_stream *stream);
/* The time will be added to *sum. */
void tess_stopwatch_end(tess_stopwatch *watch, int slot, tess_stream *stream, double *sum);
/* Waits for all that was timed, and adds it. */
void tess_stopwatch_settle(tess_stopwatch *watch);

#endif
