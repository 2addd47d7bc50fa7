/* rays_job.h: the arguments of the ray kernels, filled in one place. */
#ifndef TESS_CUDA_RAYS_JOB_H
#define TESS_CUDA_RAYS_JOB_H

#include "cuda/rays/rays.h"
#include "op/scan3.h"

typedef struct tess_rays_job {
    tess_scan3 scan;
    tess_tensor volume, views; /* RAY_COSINE has no volume: this is then the weighted views */
    const double *table;       /* of views */
    const float *from;
    float *to;
    double scale;
    bool accumulate;
} tess_rays_job;

static inline tess_rays_job tess_rays_job_of(const tess_op *op, const tess_op_buffers *buffers)
{
    const bool forward = op->kind == TESS_OP_PROJECT;
    tess_rays_job job;
    job.volume = forward ? op->in[0] : op->out[0];
    job.views = forward ? op->out[0] : op->in[0];
    job.scan = tess_scan3_of(&op->rays, &job.volume, &job.views);
    job.table = (const double *)buffers->weights;
    job.from = (const float *)buffers->in[0];
    job.to = (float *)buffers->out[0];
    job.scale = op->rays.scale;
    job.accumulate = op->rays.accumulate;
    return job;
}

/* The arguments of the Radon kernels. */
typedef struct tess_radon_job {
    const float *from;
    float *to;
    const double *table;
    int64_t image_row, view_row;
    int size, views, columns, along;
    bool circle;
} tess_radon_job;

static inline tess_radon_job tess_radon_job_of(const tess_op *op, const tess_op_buffers *buffers)
{
    const bool forward = op->kind == TESS_OP_PROJECT;
    const tess_tensor *image = forward ? &op->in[0] : &op->out[0],
                      *views = forward ? &op->out[0] : &op->in[0];
    tess_radon_job job;
    job.from = (const float *)buffers->in[0];
    job.to = (float *)buffers->out[0];
    job.table = (const double *)buffers->weights;
    job.image_row = image->stride_h;
    job.view_row = views->stride_h;
    job.size = (int)image->h;
    job.views = (int)views->h;
    job.columns = (int)views->w;
    job.along = (int)(op->rays.along ? op->rays.along : image->h);
    job.circle = op->rays.circle;
    return job;
}

static inline unsigned tess_rays_pieces(int64_t side, int64_t piece)
{
    return (unsigned)((side + piece - 1) / piece);
}

/* Number of blocks for a grid dimension limited to 65535; a kernel loops over the pieces beyond it. */
static inline unsigned tess_rays_turns(int64_t side, int64_t piece)
{
    const unsigned pieces = tess_rays_pieces(side, piece);
    return pieces < 65535 ? pieces : 65535;
}

#endif
