/* launch.h: whether a launcher has started this process as one of several, and the module that joins them. */
#ifndef TESS_DIST_LAUNCH_H
#define TESS_DIST_LAUNCH_H

#include "dist/ops.h"

typedef struct tess_launch {
    int rank, size;
    const char *variable; /* of the environment, that gave the size; NULL: alone */
} tess_launch;

tess_launch tess_launch_find(void);
/* Opens the module for MPI; the error says which package or build is missing. */
tess_status tess_launch_module(const tess_launch *launch, const tess_dist_ops **ops,
                               tess_error *error) TESS_MUST_CHECK;

#endif
