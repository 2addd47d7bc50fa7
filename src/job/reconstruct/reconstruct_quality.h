/* reconstruct_quality.h: how near an image in the device's memory is to the truth. */
#ifndef TESS_JOB_RECONSTRUCT_QUALITY_H
#define TESS_JOB_RECONSTRUCT_QUALITY_H

#include "job/reconstruct/problem.h"
#include "job/reconstruct/workspace.h"

/* A problem, and the workspace that holds its truth and the images to compare with it. */
typedef struct tess_judge {
    const tess_problem *problem;
    tess_workspace *workspace;
    bool saturating; /* PSNR with 1e-8 added to the error */
} tess_judge;

/* PSNR and, where `ssim` is not NULL, SSIM; NaN without a truth. */
tess_status tess_judge_image(const tess_judge *judge, const void *image, double *psnr, double *ssim,
                             tess_error *error) TESS_MUST_CHECK;
/* What it works in: rows of image and truth, and for SSIM. */
int64_t tess_judge_rows(const tess_problem *problem);
size_t tess_judge_bytes(const tess_problem *problem);

#endif
