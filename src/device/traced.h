/* traced.h: an open device of a context that records (base/trace.h). Its tables of functions are replaced by ones that
 * call the device's own and add spans, so that a device that is not recorded costs nothing, and every op is seen, whoever
 * runs it. The sums of each layer's times are its profile.
 *
 * A device with separate memory computes later than its functions return: there a span is the time of the call. For a profile its ops
 * are timed by the device itself, one by one: it then has no graphs, and a job takes longer. */
#ifndef TESS_DEVICE_TRACED_H
#define TESS_DEVICE_TRACED_H

#include "device/device.h"

enum { TESS_PROFILE_NAME = 96 };

/* All runs of ops of one kind under one label: a layer. */
typedef struct tess_profile_row {
    char name[TESS_PROFILE_NAME]; /* the label, or the name of the kind */
    tess_op op;                   /* the first of them; others may have another size */
    int64_t calls;
    double seconds, flops, bytes; /* bytes: read and written at least once */
} tess_profile_row;

/* Records if the device's counter has a trace; otherwise does nothing. */
tess_status tess_device_record(tess_device *device, tess_error *error) TESS_MUST_CHECK;
void tess_device_record_end(tess_device *device);
/* The rows so far, in any order, valid until the next op; returns their number. */
int tess_device_profile(const tess_device *device, const tess_profile_row **rows);

#endif
