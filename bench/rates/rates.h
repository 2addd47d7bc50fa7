/* rates.h: functions that the timing programs of this folder share. */
#ifndef TESS_BENCH_RATES_H
#define TESS_BENCH_RATES_H

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"

/* A bench has nothing to save: it says why and ends. */
static inline void need(tess_status status, const tess_error *error)
{
    if (status == TESS_OK)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static inline int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
