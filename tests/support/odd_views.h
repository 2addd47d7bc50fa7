/* odd_views.h: geometries that no scanner has, because rays must not depend on usual ones. */
#ifndef TESS_TESTS_ODD_VIEWS_H
#define TESS_TESTS_ODD_VIEWS_H

#include "geometry/ray3.h"

/* Views from all sides, above included, with shifted, turned and tilted detectors. */
static inline void odd_views(int64_t views, bool cone, double distance, double pitch, double *vectors)
{
    const double full_turn = 2 * 3.14159265358979323846;
    for (int64_t i = 0; i < views; i++) {
        const double turn = full_turn * (double)i / (double)views + 0.1,
                     lift = i % 3 == 2 ? 1.2 : 0.2 * (double)(i % 3);
        const double to[3] = {cos(turn) * cos(lift), sin(turn) * cos(lift), sin(lift)};
        const double u[3] = {-sin(turn), cos(turn), 0.1};
        double v[3], *view = vectors + i * TESS_VIEW3_NUMBERS;
        tess_cross3(to, u, v);
        for (int k = 0; k < 3; k++) {
            view[k] = cone ? -distance * to[k] : -to[k];
            view[3 + k] = 0.6 * distance * to[k] + pitch * (0.3 * u[k] - 0.2 * v[k]);
            view[6 + k] = pitch * u[k];
            view[9 + k] = pitch * (v[k] + 0.05 * to[k]);
        }
    }
}

#endif
