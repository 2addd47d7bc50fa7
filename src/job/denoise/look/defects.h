/* defects.h: finds hot and dead pixels: samples that stand alone, far from their surroundings.
 *
 * A network that was trained on white noise takes an impulse of many noise levels for an edge and spoils its
 * surroundings, so that 60 of 65536 pixels are worse than no denoising. Such samples are hidden from the network as holes
 * are, and from the range, and keep their values in the result: a star of one pixel cannot be told from a hot pixel, so
 * nothing is removed. */
#ifndef TESS_JOB_DENOISE_LOOK_DEFECTS_H
#define TESS_JOB_DENOISE_LOOK_DEFECTS_H

#include "base/status.h"

enum { TESS_DEFECTS_REACH = 2, TESS_DEFECTS_ROWS = 2 * TESS_DEFECTS_REACH + 1 };

typedef struct tess_defect {
    int64_t index; /* of the sample in the file, alpha not counted */
    float value, distance;
    bool cluster; /* it has others beside it */
} tess_defect;

/* Differences between neighbours, which give the noise. */
typedef struct tess_defect_steps {
    float *sizes; /* owned */
    int64_t count, room, stride, seen;
} tess_defect_steps;

typedef struct tess_defects {
    int64_t width, channels, height; /* of a slice */
    float *rows;                     /* the last TESS_DEFECTS_ROWS rows, a ring */
    float *row;                      /* a row without its candidates */
    int64_t read, given;             /* rows of all slices */
    tess_defect *list;               /* candidates in the order of the file */
    int64_t count, room;
    double steps; /* sum of the differences so far, and their number */
    int64_t step_count;
    tess_defect_steps all, slice; /* of the file, and of the slice that is read */
    double *slice_least;          /* owned; of each slice that was read; NULL: there is one */
    bool many;                    /* the list is full: the rest of the file is not looked at */
} tess_defects;

/* `rows` is the number of all slices' rows. Release also after a failure. */
tess_status tess_defects_begin(tess_defects *d, int64_t width, int64_t channels, int64_t height, int64_t rows,
                               tess_error *error) TESS_MUST_CHECK;
void tess_defects_release(tess_defects *d);
/* Takes the next row, holes as NaN. */
void tess_defects_put(tess_defects *d, const float *values);
/* The next row whose surroundings are known, candidates as NaN; NULL: put another one first. Valid until the next call. */
const float *tess_defects_next(tess_defects *d);
/* The distance from the surroundings beyond which a candidate may be a defect; INFINITY: none is. */
double tess_defects_least(tess_defects *d);
/* The same in a slice of several: noise and exposure may differ between them. */
double tess_defects_slice_least(const tess_defects *d, int64_t slice);
/* Whether a candidate is that far from its surroundings, and far beyond the range of the others. Within it a lone sample
 * does no harm, and may be a highlight. */
bool tess_defects_is_far(const tess_defect *one, double least, double low, double high);

/* Members of clusters (defect_clusters.c): a cheap test that rejects almost every sample, by its four neighbours; and the distance
 * from the surroundings, or 0. */
bool tess_defects_may_cluster(const tess_defects *d, float value, float left, float right, float up,
                              float down);
float tess_defects_cluster(const tess_defects *d, int64_t y, int64_t x, int64_t c);

#endif
