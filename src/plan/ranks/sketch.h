/* sketch.h: a device of which only a machine file is known. Networks can be bound to it and planned, with the same functions
 * as for a device that is there; it runs nothing. It takes every op, needs no workspace, and packs weights as they are. */
#ifndef TESS_PLAN_SKETCH_H
#define TESS_PLAN_SKETCH_H

#include "device/device.h"

/* Needs no closing. */
void tess_sketch_open(tess_device *device);

#endif
