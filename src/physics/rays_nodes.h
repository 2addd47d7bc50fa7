/* rays_nodes.h: ranks by the node that they run on. Links between nodes are slow, and the slabs of a node's ranks have shadows that overlap:
 * what they send to a rank of another node passes through one of them, its agent, which adds it up. The simulator of ranks
 * (plan/ranks/slabs.h) uses the same table. */
#ifndef TESS_PHYSICS_RAYS_NODES_H
#define TESS_PHYSICS_RAYS_NODES_H

#include "dist/dist.h"

typedef struct tess_ray_nodes {
    int ranks, count;
    int *of;      /* the node of each rank */
    int *members; /* ranks node by node, each in ascending order */
    int *from;    /* the members of node n begin at from[n] */
} tess_ray_nodes;

/* By hosts. On failure there is nothing to clear. */
tess_status tess_ray_nodes_open(const tess_dist *dist, tess_ray_nodes *nodes,
                                tess_error *error) TESS_MUST_CHECK;
/* So many ranks on each. */
tess_status tess_ray_nodes_plan(int ranks, int per_node, tess_ray_nodes *nodes,
                                tess_error *error) TESS_MUST_CHECK;
void tess_ray_nodes_clear(tess_ray_nodes *nodes);

/* The rank of `node` through which its ranks and rank `owner` speak: `owner` itself on its own node, otherwise they take turns. */
int tess_ray_nodes_agent(const tess_ray_nodes *nodes, int node, int owner);

static inline int tess_ray_nodes_members(const tess_ray_nodes *nodes, int node)
{
    return nodes->from[node + 1] - nodes->from[node];
}

/* Member `index` of a node. */
static inline int tess_ray_nodes_member(const tess_ray_nodes *nodes, int node, int index)
{
    return nodes->members[nodes->from[node] + index];
}

#endif
