/* quality.h: compares an image in the device's memory with the truth. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_QUALITY_H
#define TESS_JOB_RECONSTRUCT_RUN_QUALITY_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"
#include "tensor/quality.h"

enum { TESS_JUDGE_BEFORE = TESS_SSIM_TAPS - 1 }; /* rows above that a window of SSIM needs */

/* A problem, and the workspace that holds its truth and the images to compare. */
typedef struct tess_judge {
    const tess_problem *problem;
    tess_workspace *workspace;
    bool saturating; /* PSNR with 1e-8 added to the error */
} tess_judge;

/* Computes PSNR and, if `ssim` is not NULL, SSIM; NaN without a truth. Collective: ranks compare their parts. */
tess_status tess_judge_image(const tess_judge *judge, const void *image, double *psnr, double *ssim,
                             tess_error *error) TESS_MUST_CHECK;
/* Memory it needs: rows of image and truth, and lines for SSIM. */
int64_t tess_judge_rows(const tess_problem *problem);
/* Rows above a rank's part of an image that are compared with it. */
int64_t tess_judge_above(const tess_problem *problem);
size_t tess_judge_bytes(const tess_problem *problem);

#endif
