/* cluster.h: the machine of a file for predictions over ranks: its links, its rates, and a network bound to a device that is not
 * there. */
#ifndef TESS_PLAN_CLUSTER_H
#define TESS_PLAN_CLUSTER_H

#include "model/model.h"
#include "plan/ranks/links.h"
#include "plan/ranks/scaling.h"

typedef struct tess_cluster {
    char name[96];
    char checked[256]; /* what its figures were compared with */
    double memory;     /* of a rank; 0: not known */
    tess_links links;
    tess_rates *rates;  /* NULL: the file has no "flops", so that times are those of the device at hand */
    tess_device device; /* a sketch */
} tess_cluster;

/* Close it also if this fails. */
tess_status tess_cluster_open(tess_cluster *cluster, const char *path, tess_error *error) TESS_MUST_CHECK;
void tess_cluster_close(tess_cluster *cluster);

typedef struct tess_cluster_net {
    tess_weights *file;
    tess_model_net model;
    tess_bound *bound;
} tess_cluster_net;

/* `path` as tess_model_open takes it; `inflation` makes a 3-D network of it, NULL: as it is. The cluster must not move afterwards.
 * Close it also if this fails. */
tess_status tess_cluster_net_open(tess_cluster_net *net, const char *path, const tess_inflation *inflation,
                                  tess_cluster *cluster, tess_dtype dtype, tess_error *error) TESS_MUST_CHECK;
void tess_cluster_net_close(tess_cluster_net *net);

#endif
