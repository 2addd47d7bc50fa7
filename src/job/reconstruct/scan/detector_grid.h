/* detector_grid.h: resamples the views of a volume to a detector that fits its voxels.
 *
 * A ray between two slices takes half of each, so a pattern that alternates from slice to slice is invisible to rows
 * that lie between the slices, and a denoiser that works slice by slice does not object to it either: the misfit of
 * every flat top ends in stripes. A ray through pixels that are smaller than the voxels sees a voxel's value only at
 * its middle and a mixture elsewhere; the data, means over parts of voxels, do not agree, and the fit overshoots at
 * edges. Both vanish if rows lie before slices and pixels are as large as voxels, as seen at the axis. A new pixel is
 * the mean over its area: the integral over the pixels, which is known at their edges and interpolated by a cubic
 * (Keys 1981) between them. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_DETECTOR_GRID_H
#define TESS_JOB_RECONSTRUCT_SCAN_DETECTOR_GRID_H

#include "job/reconstruct/problem/problem.h"

/* Chooses the grid and changes rows, columns and vectors of the problem, which are in voxels. Nothing is changed if
 * the detector fits, or if its rows are not parallel to the slices. */
tess_status tess_detector_grid_choose(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;

/* Memory for the weights of one view. */
typedef struct tess_detector_resampler {
    const tess_problem *problem;
    float *line;     /* a row of the file */
    double *weights; /* of the new columns */
    double *row_weights;
} tess_detector_resampler;

/* Close it also if this fails. */
tess_status tess_detector_resampler_open(const tess_problem *problem, tess_detector_resampler *resampler,
                                         tess_error *error) TESS_MUST_CHECK;
/* `from` is a view of the file, `to` has rows x columns of the problem. */
void tess_detector_resample(const tess_detector_resampler *resampler, int64_t view, const float *from,
                            float *to);
void tess_detector_resampler_close(tess_detector_resampler *resampler);

#endif
