/* radon.h: shared by the two directions of the 2-D Radon transform. Neither stores a sampling grid: computing
 * positions is cheaper than loading them. */
#ifndef TESS_CPU_RADON_H
#define TESS_CPU_RADON_H

#include "cpu/core/cpu.h"
#include "geometry/ray2.h"

/* Detectors or pixels that are processed together: enough to fill vectors and hide the latency of loads. */
enum { TESS_RADON_LANES = 8 };

typedef struct tess_radon_job {
    const float *in;
    float *out;
    const double *table; /* TESS_RAY2_NUMBERS of each view */
    int64_t size, views, columns, along, image_row, view_row;
    int64_t first, rows; /* of the image, to backproject */
    bool circle;
} tess_radon_job;

static inline float tess_radon_distance(int64_t fixed)
{
    return (float)fixed * TESS_RAY2_UNIT;
}

static inline tess_ray2 tess_radon_view(const tess_radon_job *job, int64_t k)
{
    return tess_ray2_of(job->table + TESS_RAY2_NUMBERS * k, job->size, job->along);
}

void tess_cpu_radon_project(const tess_cpu *cpu, tess_radon_job *job);
void tess_cpu_radon_backproject(const tess_cpu *cpu, tess_radon_job *job);

#endif
