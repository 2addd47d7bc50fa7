#include "physics/rays_nodes.h"

#include <string.h>

#include "base/mem.h"

static tess_status make_room(int ranks, tess_ray_nodes *n, tess_error *error)
{
    *n = (tess_ray_nodes){.ranks = ranks,
                          .of = tess_small_alloc((size_t)ranks, sizeof *n->of),
                          .members = tess_small_alloc((size_t)ranks, sizeof *n->members),
                          .from = tess_small_alloc((size_t)ranks + 1, sizeof *n->from)};
    if (n->of && n->members && n->from)
        return TESS_OK;
    tess_ray_nodes_clear(n);
    return tess_fail(error, TESS_NO_MEMORY, "no memory for the nodes of %d ranks", ranks);
}

static void list_members(tess_ray_nodes *n)
{
    int at = 0;
    for (int node = 0; node < n->count; node++) {
        n->from[node] = at;
        for (int r = 0; r < n->ranks; r++)
            if (n->of[r] == node)
                n->members[at++] = r;
    }
    n->from[n->count] = at;
}

tess_status tess_ray_nodes_open(const tess_dist *dist, tess_ray_nodes *n, tess_error *error)
{
    TESS_TRY(make_room(dist->size, n, error));
    for (int r = 0; r < dist->size; r++) {
        int first = 0; /* rank on the same host */
        while (first < r && dist->places && strcmp(dist->places[first].host, dist->places[r].host) != 0)
            first++;
        n->of[r] = first < r ? n->of[first] : n->count++;
    }
    list_members(n);
    return TESS_OK;
}

tess_status tess_ray_nodes_plan(int ranks, int per_node, tess_ray_nodes *n, tess_error *error)
{
    TESS_TRY(make_room(ranks, n, error));
    for (int r = 0; r < ranks; r++)
        n->of[r] = r / per_node;
    n->count = n->of[ranks - 1] + 1;
    list_members(n);
    return TESS_OK;
}

void tess_ray_nodes_clear(tess_ray_nodes *n)
{
    tess_small_free(n->of);
    tess_small_free(n->members);
    tess_small_free(n->from);
    *n = (tess_ray_nodes){0};
}

int tess_ray_nodes_agent(const tess_ray_nodes *n, int node, int owner)
{
    return n->of[owner] == node ? owner
                                : tess_ray_nodes_member(n, node, owner % tess_ray_nodes_members(n, node));
}
