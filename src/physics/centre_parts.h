/* centre_parts.h: the two ways to find the axis of a scan without opposite views (centre.h). */
#ifndef TESS_PHYSICS_CENTRE_PARTS_H
#define TESS_PHYSICS_CENTRE_PARTS_H

#include "physics/centre.h"

/* What the centres of mass show. */
typedef struct tess_centre_mass {
    double column, error; /* one standard error, in columns */
    double spread;        /* of the views' sums, of their mean */
    double noisy;         /* the part of `spread` that noise explains */
} tess_centre_mass;

/* Fits the wave of the centres of mass; `moments` holds `count` values. Returns TESS_BAD_INPUT where there is no wave to
 * fit. */
tess_status tess_centre_from_mass(const tess_centre_views *v, double *moments, tess_centre_mass *out,
                                  tess_error *error) TESS_MUST_CHECK;

/* The radius about the column `near` in which the object is; `noise` holds a value for each column. */
double tess_centre_radius(const tess_centre_views *v, double near, double *noise);

/* Searches `reach` columns on both sides of `near`. Returns false when stopped, and where all of these columns fit about as well as each
 * other, or the best one is the last. Otherwise `within` is one standard error, and `uneven` whether columns have errors
 * that are the same in all views. `memory` holds tess_centre_waves_bytes(). */
bool tess_centre_from_waves(const tess_centre_views *v, double near, double reach, void *memory,
                            double *column, double *within, bool *uneven);
size_t tess_centre_waves_bytes(int64_t count, int64_t columns);

/* One frequency along the columns, of which mean + cosine cos(2 w a) + sine sin(2 w a) is left if the axis is off by a. */
typedef struct tess_centre_wave {
    double frequency, mean, cosine, sine;
    double left;     /* number of values less that of fitted harmonics */
    double variance; /* by which the sums are divided; set by the search */
    int64_t highest; /* harmonic that is fitted */
} tess_centre_wave;

/* What is left if the axis is off by `off`. */
double tess_centre_left(const tess_centre_wave *waves, int64_t count, double off);
/* Searches `reach` columns on both sides for the least. Returns false where another minimum is about as low, or the least
 * is at the end, and when stopped. `error` is one standard error if noise is white, `curvature` the second derivative. */
bool tess_centre_search(tess_centre_wave *waves, int64_t count, double reach, tess_stop *stop, double *off,
                        double *error, double *curvature);

#endif
