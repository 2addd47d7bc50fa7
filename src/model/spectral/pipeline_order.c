/* pipeline_order.c: puts each node behind the one that it reads. A node reads one other, so the graph is a forest, and
 * what cannot be placed is on a circle or behind one. */
#include <stdio.h>
#include <string.h>

#include "model/spectral/pipeline.h"

/* Follows the inputs from a node that was not placed, until one comes again: "a -> b -> a". */
static tess_status name_circle(const tess_pipeline *pipeline, int start, tess_error *error)
{
    char text[512];
    size_t used = 0;
    int at = start;
    for (int i = 0; i < pipeline->count; i++) /* from behind the circle onto it */
        at = pipeline->nodes[at].from;
    const int first = at;
    int circle[TESS_PIPELINE_NODES], length = 0;
    do {
        circle[length++] = at;
        at = pipeline->nodes[at].from;
    } while (at != first);
    for (int i = length - 1; i >= -1 && used < sizeof text; i--)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " -> " : "",
                                 pipeline->nodes[circle[i < 0 ? length - 1 : i]].name);
    return tess_fail(error, TESS_BAD_INPUT,
                     "connections: %s is a circle; a pipeline leads from the data to decisions", text);
}

tess_status tess_pipeline_order(tess_pipeline *pipeline, tess_error *error)
{
    static const int not_placed = -1;
    tess_pipeline sorted = {0};
    int place[TESS_PIPELINE_NODES];
    for (int i = 0; i < pipeline->count; i++)
        place[i] = not_placed;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < pipeline->count; i++) {
            const int from = pipeline->nodes[i].from;
            if (place[i] != not_placed || (from != TESS_NODE_DATA && place[from] == not_placed))
                continue;
            place[i] = sorted.count++;
            sorted.nodes[place[i]] = pipeline->nodes[i];
            sorted.nodes[place[i]].from = from == TESS_NODE_DATA ? from : place[from];
            moved = true;
        }
    }
    for (int i = 0; i < pipeline->count; i++)
        if (place[i] == not_placed)
            return name_circle(pipeline, i, error);
    for (int i = 0; i < sorted.count; i++)
        if (sorted.nodes[i].target >= 0)
            sorted.nodes[i].target = place[sorted.nodes[i].target];
    *pipeline = sorted;
    return TESS_OK;
}
