/* channels.h: the softmax over channels, for CHANNEL_MAP and PENALTY. */
#ifndef TESS_CPU_CHANNELS_H
#define TESS_CPU_CHANNELS_H

#include "cpu/core/cpu.h"

double tess_cpu_temperature(const tess_op_softmax *softmax, const double *control);
/* softmax(values / temperature), which sums up to 1. */
void tess_cpu_softmax(const float *values, int64_t count, double temperature, double *shares);

#endif
