/* clock.h: seconds since a fixed but arbitrary time, for measuring durations. */
#ifndef TESS_BASE_CLOCK_H
#define TESS_BASE_CLOCK_H

double tess_clock(void);

#endif
