/* fill_prepare.h: one tile as the network sees it. Models of ours take the channels of tensor/terrain/conditions.h; published
 * ones take heights, scaled so that the valid pixels span [-1, 1], with -1 in the voids. */
#ifndef TESS_JOB_FILL_PREPARE_H
#define TESS_JOB_FILL_PREPARE_H

#include "job/fill/fill_job.h"
#include "tensor/terrain/conditions.h"

/* Heights are y * scale + centre (+ smooth, for models of ours). */
typedef struct tess_fill_prepared {
    tess_fill_job *job;
    int64_t tile;            /* its number; -1: none yet */
    bool guided;             /* starts from the coarser level's result, or is conditioned by it */
    tess_fill_window window; /* its level, and its pixels */
    float *guess;
    tess_conditions conditions;
    void *scratch;
    double centre, scale;
} tess_fill_prepared;

/* A place in a batch, to be filled. `guess` and `smooth` may be NULL. */
typedef struct tess_fill_place {
    float *cond, *known, *guess, *smooth;
} tess_fill_place;

enum { TESS_FILL_AHEAD = 16 };

/* The next tiles that are needed, prepared together by the host's threads: a smooth fill takes milliseconds, which one thread
 * would make the device wait for. */
typedef struct tess_fill_ahead {
    tess_fill_prepared list[TESS_FILL_AHEAD];
    int count;       /* that are prepared at a time */
    int ready, used; /* prepared, and given to the caller */
    tess_status status[TESS_FILL_AHEAD];
    tess_error errors[TESS_FILL_AHEAD];
} tess_fill_ahead;

size_t tess_fill_ahead_bytes(const tess_fill_job *job);
/* `memory` has that size. At most `most` tiles are taken at a time. */
void tess_fill_ahead_open(tess_fill_ahead *ahead, tess_fill_job *job, int level, bool guided, int64_t most,
                          char *memory);
/* The next tile that this rank takes of the level and group (fill_tile.c), prepared; NULL: there is no more. Valid until the next
 * call. */
tess_status tess_fill_ahead_next(tess_fill_ahead *ahead, const tess_fill_prepared **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Copies the prepared tile. */
void tess_fill_put(const tess_fill_prepared *prepared, const tess_fill_place *to);

#endif
