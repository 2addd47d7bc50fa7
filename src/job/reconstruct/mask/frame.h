/* frame.h: a frame of one value around a blurred picture: bars, a round field of view, the corners of a turned picture. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_FRAME_H
#define TESS_JOB_RECONSTRUCT_MASK_FRAME_H

#include "job/reconstruct/mask/jump.h"

/* Initialize with {.problem = ...}; close it. */
typedef struct tess_frames {
    const tess_problem *problem;
    double low, high; /* of all values */
    bool any;
    float *corners;       /* of each blur: the values of its four corners, pixel by pixel; owned */
    float *last;          /* the last four rows; owned */
    int64_t *runs;        /* see tess_hidden; owned, as is `value` */
    float *value;         /* of the first blur's frame */
    tess_jumps jumps;     /* of the blur that is looked at */
    int64_t rim, steep;   /* of it: values beside the frame; those that the kernel does not allow */
    int64_t pairs, equal; /* of it: neighbours in a row outside of the frame; those that are alike */
    int64_t inner, still; /* the same inside of the frame */
    int64_t bends[2],
        turns
            [2]; /* of it, along rows and columns: bends side by side outside of the frame; those with different signs */
    int64_t found; /* blurs that have a frame */
} tess_frames;

/* First look: each row of the file. Close it also if this fails. */
tess_status tess_frames_open(tess_frames *frames, tess_error *error) TESS_MUST_CHECK;
void tess_frames_add(tess_frames *frames, int64_t y, const float *values);
/* Whether a second look at each row can find something. */
bool tess_frames_possible(const tess_frames *frames);
tess_status tess_frames_row(tess_frames *frames, int64_t y, const float *values,
                            tess_error *error) TESS_MUST_CHECK;
/* Moves what was found to `hidden`. */
void tess_frames_end(tess_frames *frames, tess_hidden *hidden);
void tess_frames_close(tess_frames *frames);

/* Whether the frame of problem->hidden, with one more pixel at its rim, covers a pixel of row `y` of the file. */
bool tess_frame_covers(const tess_problem *problem, int64_t y, int64_t column);

#endif
