/* slurm_scripts.h: a folder of scripts that run the study of many ranks on a cluster with Slurm, a job for each problem, size and number
 * of ranks, one process per card.
 *
 * `settings.sh` has what depends on the cluster and is to be edited; `points` is the table of jobs; `submit.sh` runs `check.sh`
 * and queues the jobs only if nothing is missing, because a job that fails for a missing file may have waited for hours. */
#ifndef TESS_JOB_SLURM_SCRIPTS_H
#define TESS_JOB_SLURM_SCRIPTS_H

#include <stdint.h>

#include "base/status.h"

typedef struct tess_slurm_study {
    const char *folder;           /* is made; must not have such scripts already */
    const char *program;          /* path of tessera */
    const char *device;           /* "cpu": no cards; else one card for each rank */
    const char *model;            /* NULL: each problem's own */
    const char *const *problems;  /* none: those of the published study */
    const int64_t *sizes, *ranks; /* none: those of the published study for each problem */
    int problem_count, size_count, rank_count;
    int per_node; /* most ranks, or cards, of a node */
} tess_slurm_study;

/* Nodes for so many ranks, all with the same number: the fewest that divide them. */
int64_t tess_slurm_nodes(int64_t ranks, int64_t per_node);
/* *jobs gets the number of points. */
tess_status tess_slurm_write(const tess_slurm_study *study, int *jobs, tess_error *error) TESS_MUST_CHECK;

#endif
