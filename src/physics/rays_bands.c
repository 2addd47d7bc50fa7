#include "physics/rays_bands.h"

#include <string.h>

#include "physics/rays_bands_impl.h"

typedef enum motion { TAKE, PUT, ADD } motion;

/* Moves some rows of each view of a portion between `frame`, which has the rows of another part, and `packed`, which has them one after
 * another. Returns the end of those. */
static char *move(const tess_bands *b, tess_bands_portion p, tess_bands_part outer, tess_bands_part inner,
                  motion how, float *frame, char *packed)
{
    for (int64_t view = p.first; view < p.first + p.count; view++) {
        const tess_shadow_rows around = tess_bands_rows(b, outer, view),
                               rows = tess_bands_rows(b, inner, view);
        const int64_t count = (rows.end - rows.first) * b->columns;
        float *here = frame + (count ? rows.first - around.first : 0) * b->columns,
              *there = (float *)(void *)packed;
        if (how == TAKE)
            memcpy(there, here, (size_t)count * sizeof *there);
        else if (how == PUT)
            memcpy(here, there, (size_t)count * sizeof *there);
        else
            for (int64_t i = 0; i < count; i++)
                here[i] += there[i];
        frame += (around.end - around.first) * b->columns;
        packed += (size_t)count * sizeof *there;
    }
    return packed;
}

char *tess_bands_take(const tess_bands *b, tess_bands_portion p, float *views, char *packed)
{
    return move(b, p, (tess_bands_part){TESS_BANDS_ALL}, tess_bands_mine(b), TAKE, views, packed);
}

char *tess_bands_put(const tess_bands *b, tess_bands_portion p, char *packed, float *views)
{
    memset(views, 0, (size_t)(p.count * b->rows * b->columns) * sizeof *views);
    return move(b, p, (tess_bands_part){TESS_BANDS_ALL}, tess_bands_mine(b), PUT, views, packed);
}

/* After a failure the others still wait for this rank: it goes on, and the first failure counts. */
static tess_status exchange(tess_bands *b, int count, tess_status before, tess_error *error)
{
    tess_error later, *text = before == TESS_OK ? error : &later;
    tess_status status = tess_dist_exchange_begin(b->exchange, b->list, count, text);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(b->exchange, text);
    return before == TESS_OK ? status : before;
}

static tess_dist_transfer transfer(int peer, char *at, size_t bytes, bool send)
{
    return send ? (tess_dist_transfer){.peer = peer, .send = at, .send_bytes = bytes}
                : (tess_dist_transfer){.peer = peer, .receive = at, .receive_bytes = bytes};
}

/* Bands of this rank, and those of all ranks of this node for the owners that it serves. */
static int list_inside(tess_bands *b, int64_t round, char *own, char *all, bool to_agents)
{
    int count = 0;
    for (int owner = 0; owner < b->dist->size; owner++) {
        const size_t bytes = tess_bands_bytes(b, tess_bands_portion_of(b, owner, round), tess_bands_mine(b));
        const int agent = tess_ray_nodes_agent(&b->nodes, b->node, owner);
        b->list[count++] = transfer(agent, own, bytes, to_agents);
        own += bytes;
    }
    for (int i = 0; i < b->serving; i++)
        for (int m = 0; m < b->members; m++) {
            const tess_bands_portion p = tess_bands_portion_of(b, b->served[i], round);
            const size_t bytes = tess_bands_bytes(b, p, (tess_bands_part){TESS_BANDS_MEMBER, m});
            b->list[count++] = transfer(tess_ray_nodes_member(&b->nodes, b->node, m), all, bytes, !to_agents);
            all += bytes;
        }
    return count;
}

/* Bands of this node for the owners that this rank serves, and those of all nodes in its own views. */
static int list_between(tess_bands *b, int64_t round, char *node, char *all, bool to_owners)
{
    int count = 0;
    for (int i = 0; i < b->serving; i++) {
        const size_t bytes = tess_bands_bytes(b, tess_bands_portion_of(b, b->served[i], round),
                                              (tess_bands_part){TESS_BANDS_NODE});
        b->list[count++] = transfer(b->served[i], node, bytes, to_owners);
        node += bytes;
    }
    for (int n = 0; n < b->nodes.count; n++) {
        const tess_bands_portion own = tess_bands_portion_of(b, b->dist->rank, round);
        const size_t bytes = tess_bands_bytes(b, own, (tess_bands_part){TESS_BANDS_OTHER, n});
        b->list[count++] =
            transfer(tess_ray_nodes_agent(&b->nodes, n, b->dist->rank), all, bytes, !to_owners);
        all += bytes;
    }
    return count;
}

/* Between the bands of the ranks of this node and those of the node. */
static void join(tess_bands *b, int64_t round, motion how, char *node, char *members)
{
    for (int i = 0; i < b->serving; i++) {
        const tess_bands_portion p = tess_bands_portion_of(b, b->served[i], round);
        const size_t bytes = tess_bands_bytes(b, p, (tess_bands_part){TESS_BANDS_NODE});
        if (how == ADD)
            memset(node, 0, bytes);
        for (int m = 0; m < b->members; m++)
            members = move(b, p, (tess_bands_part){TESS_BANDS_NODE}, (tess_bands_part){TESS_BANDS_MEMBER, m},
                           how, (float *)(void *)node, members);
        node += bytes;
    }
}

tess_status tess_bands_to_owners(tess_bands *b, int64_t round, char *const buffer[2], float *views,
                                 tess_error *error)
{
    const tess_bands_portion own = tess_bands_portion_of(b, b->dist->rank, round);
    char *at = buffer[1];
    tess_status status = exchange(b, list_inside(b, round, buffer[0], buffer[1], true), TESS_OK, error);
    join(b, round, ADD, buffer[0], buffer[1]);
    status = exchange(b, list_between(b, round, buffer[0], buffer[1], true), status, error);
    memset(views, 0, (size_t)(own.count * b->rows * b->columns) * sizeof *views);
    for (int n = 0; n < b->nodes.count; n++)
        at = move(b, own, (tess_bands_part){TESS_BANDS_ALL}, (tess_bands_part){TESS_BANDS_OTHER, n}, ADD,
                  views, at);
    return status;
}

tess_status tess_bands_from_owners(tess_bands *b, int64_t round, float *views, char *const buffer[2],
                                   tess_error *error)
{
    const tess_bands_portion own = tess_bands_portion_of(b, b->dist->rank, round);
    char *at = buffer[1];
    for (int n = 0; n < b->nodes.count; n++)
        at = move(b, own, (tess_bands_part){TESS_BANDS_ALL}, (tess_bands_part){TESS_BANDS_OTHER, n}, TAKE,
                  views, at);
    const tess_status status =
        exchange(b, list_between(b, round, buffer[0], buffer[1], false), TESS_OK, error);
    join(b, round, TAKE, buffer[0], buffer[1]);
    return exchange(b, list_inside(b, round, buffer[0], buffer[1], false), status, error);
}

static tess_dist_transfer some_rows(int peer, char *rows, size_t row_bytes, tess_shadow_rows band, bool send)
{
    return transfer(peer, rows + (size_t)band.first * row_bytes, (size_t)(band.end - band.first) * row_bytes,
                    send);
}

tess_status tess_bands_spread(tess_bands *b, int owner, int64_t view, size_t row_bytes, char *rows,
                              tess_error *error)
{
    const int rank = b->dist->rank, agent = tess_ray_nodes_agent(&b->nodes, b->node, owner);
    int count = 0;
    if (rank != owner)
        memset(rows, 0, (size_t)b->rows * row_bytes);
    for (int n = 0; n < b->nodes.count && rank == owner; n++)
        if (n != b->node)
            b->list[count++] =
                some_rows(tess_ray_nodes_agent(&b->nodes, n, owner), rows, row_bytes,
                          tess_bands_rows(b, (tess_bands_part){TESS_BANDS_OTHER, n}, view), true);
    if (rank == agent && rank != owner)
        b->list[count++] = some_rows(owner, rows, row_bytes,
                                     tess_bands_rows(b, (tess_bands_part){TESS_BANDS_NODE}, view), false);
    const tess_status status = exchange(b, count, TESS_OK, error);
    count = 0;
    for (int m = 0; m < b->members && rank == agent; m++) {
        const int peer = tess_ray_nodes_member(&b->nodes, b->node, m);
        if (peer != rank)
            b->list[count++] =
                some_rows(peer, rows, row_bytes,
                          tess_bands_rows(b, (tess_bands_part){TESS_BANDS_MEMBER, m}, view), true);
    }
    if (rank != agent)
        b->list[count++] =
            some_rows(agent, rows, row_bytes, tess_bands_rows(b, tess_bands_mine(b), view), false);
    return exchange(b, count, status, error);
}
