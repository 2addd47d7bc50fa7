#include "smooth.h"

#include "smooth_impl.h"
#include <string.h>
#include <stdlib.h>
#include <stdio.h>
size_t tess_smooth_bytes(int64_t h, int64_t w)
{
    tess_smooth_system s;
    return tess_smooth_place(&s, h, w, NULL);
}
tess_status tess_smooth_fill_tension(const tess_smooth_window *window, double tension, tess_error *error)
{
    (void)error;
    tess_smooth_system s;
    const int64_t n = window->h * window->w;
    tess_smooth_place(&s, window->h, window->w, window->scratch);
    double mean = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!window->flags[i])
            mean += window->values[i], count++;
    mean /= count;
    s.plate = isinf(tension) ? 0 : 1;
    for (int64_t i = 0; i < n; i++) {
        s.levels[0].active[i] = window->flags[i] != 0;
        s.levels[0].tension[i] = isinf(tension) ? 1 : tension;
        s.u[i] = window->flags[i] ? 0 : window->values[i] - mean;
    }
    tess_smooth_prepare(&s);
    int k = tess_smooth_solve(&s, 1e-4);
    if (getenv("VERBOSE"))
        fprintf(stderr, "iterations %d\n", k);
    for (int64_t i = 0; i < n; i++)
        if (window->flags[i])
            window->values[i] = (float)(s.u[i] + mean);
    return TESS_OK;
}
tess_status tess_smooth_fill(const tess_smooth_window *window, tess_smooth_kind kind, tess_error *error){ (void)kind; return tess_smooth_fill_tension(window, 0, error);}
