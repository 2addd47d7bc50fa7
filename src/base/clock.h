/* clock.h: seconds since some fixed point, for durations. */
#ifndef TESS_BASE_CLOCK_H
#define TESS_BASE_CLOCK_H

double tess_clock(void);

#endif
