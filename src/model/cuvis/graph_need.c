/* graph_need.c: which nodes scores and decisions need. It is found from the end: the decider, or without one the logits, or the
 * scores; and from each needed node to the one that it reads. */
#include <string.h>

#include "model/cuvis/graph_impl.h"

/* The connection to a port: -1 none, -2 several. */
int tess_cuvis_link_to(const tess_cuvis_wiring *g, int n, const char *port, size_t length)
{
    int found = -1;
    for (int i = 0; i < g->links; i++)
        if (g->to[i].node == n && strlen(g->to[i].port) == length && memcmp(g->to[i].port, port, length) == 0)
            found = found == -1 ? i : -2;
    return found;
}

static bool has_input(const tess_cuvis_wiring *g, int n)
{
    for (int i = 0; i < g->links; i++)
        if (g->to[i].node == n)
            return true;
    return false;
}

/* A node without inputs that gives a `cube` is data, whatever its class. */
static bool is_data(const tess_cuvis_wiring *g, const tess_cuvis_end *from)
{
    const tess_cuvis_class *class = g->node[from->node].class;
    return (!class || class->role == TESS_CUVIS_DATA) && !has_input(g, from->node) &&
           strcmp(from->port, "cube") == 0;
}

/* The data, or the node whose output comes in at the main port of `n`; nodes that change nothing are passed. */
static tess_status find_source(tess_cuvis_wiring *g, int n, int *out)
{
    for (int passed = 0; passed <= g->nodes; passed++) {
        const char *inputs = g->node[n].class->inputs;
        const size_t length = strcspn(inputs, " ");
        const int link = tess_cuvis_link_to(g, n, inputs, length);
        if (link < 0)
            return tess_fail(g->error, TESS_BAD_INPUT,
                             "connections: %s is connected to '%.60s.inputs.%.*s', which reads %s",
                             link == -1 ? "nothing" : "more than one node", g->node[n].name, (int)length,
                             inputs, link == -1 ? "one node" : "one");
        const tess_cuvis_end *from = &g->from[link];
        tess_cuvis_node *source = &g->node[from->node];
        *out = from->node;
        source->is_data |= is_data(g, from);
        if (source->is_data) {
            *out = TESS_NODE_DATA;
            return TESS_OK;
        }
        if (!source->class)
            return TESS_OK;
        const char *outputs = source->class->outputs;
        if (source->class->role == TESS_CUVIS_DATA || source->class->role == TESS_CUVIS_HELPER ||
            strcspn(outputs, " ") != strlen(from->port) ||
            memcmp(outputs, from->port, strlen(from->port)) != 0)
            return tess_fail(g->error, TESS_UNSUPPORTED,
                             "connections: '%.60s' reads '%.60s' of '%.60s'; only %.*s is passed on",
                             g->node[n].name, from->port, source->name, (int)strcspn(outputs, " "), outputs);
        if (source->class->role == TESS_CUVIS_KIND)
            return TESS_OK;
        n = from->node;
    }
    return tess_fail(g->error, TESS_BAD_INPUT, "connections: '%.60s' is on a circle", g->node[n].name);
}

/* The node that holds a parameter of `n`. One that we don't have is needed, so that it is named as missing. */
static tess_status find_helper(tess_cuvis_wiring *g, int n)
{
    const char *port = g->node[n].class->helper;
    const int link = port ? tess_cuvis_link_to(g, n, port, strlen(port)) : -1;
    if (!port)
        return TESS_OK;
    tess_cuvis_node *helper = link >= 0 ? &g->node[g->from[link].node] : NULL;
    if (!helper || (helper->class &&
                    (helper->class->role != TESS_CUVIS_HELPER || strcmp(g->from[link].port, port) != 0)))
        return tess_fail(g->error, TESS_BAD_INPUT,
                         "connections: '%.60s.inputs.%s' reads %s; expected a DeepSVDDCenterTracker",
                         g->node[n].name, port, helper ? helper->name : "nothing, or several nodes");
    helper->needed = !helper->class;
    helper->helps = helper->class != NULL;
    g->node[n].helper = g->from[link].node;
    return TESS_OK;
}

static tess_status need(tess_cuvis_wiring *g, int n)
{
    while (n != TESS_NODE_DATA && !g->node[n].needed) {
        g->node[n].needed = true;
        if (!g->node[n].class)
            return TESS_OK;
        TESS_TRY(find_helper(g, n));
        TESS_TRY(find_source(g, n, &g->node[n].reads));
        n = g->node[n].reads;
    }
    return TESS_OK;
}

const tess_kind_row *tess_cuvis_kind(const tess_cuvis_node *n)
{
    for (int k = 0; n->class && n->class->role == TESS_CUVIS_KIND && k < TESS_NODE_KINDS; k++)
        if (strcmp(tess_node_kinds[k].name, n->class->kind) == 0)
            return &tess_node_kinds[k];
    return NULL;
}

/* Needs all nodes that give decisions; without one, those that give logits; without one, those that score. */
static tess_status need_ends(tess_cuvis_wiring *g)
{
    for (int turn = 0; turn < 3; turn++) {
        bool found = false;
        for (int i = 0; i < g->nodes; i++) {
            const tess_kind_row *row = tess_cuvis_kind(&g->node[i]);
            const bool scores = row && row->gives == TESS_PORT_SCORES,
                       spectra = row && row->reads == 1u << TESS_PORT_SPECTRA;
            if (!row || !(turn == 0   ? row->gives == TESS_PORT_DECISIONS
                          : turn == 1 ? scores && !spectra
                                      : scores && spectra))
                continue;
            found = true;
            TESS_TRY(need(g, i));
        }
        if (found)
            return TESS_OK;
    }
    return TESS_OK;
}

/* Adds metrics of what is there; what else they read is left out with them. */
static void need_metrics(tess_cuvis_wiring *g)
{
    static const char *const ports[] = {"decisions", "logits"};
    for (int i = 0; i < g->nodes; i++) {
        const tess_kind_row *row = tess_cuvis_kind(&g->node[i]);
        for (int p = 0; row && row->gives == TESS_PORT_NONE && p < 2; p++) {
            const int link = tess_cuvis_link_to(g, i, ports[p], strlen(ports[p]));
            if (link < 0 || !g->node[g->from[link].node].needed || !g->node[g->from[link].node].class)
                continue;
            g->node[i].needed = true;
            g->node[i].reads = g->from[link].node;
            return;
        }
    }
}

/* Behind a node that we don't have, all that it reads is needed too, so that one message names everything that is missing. What
 * else is wrong there does not matter. */
static void need_behind_unknown(tess_cuvis_wiring *g)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < g->links; i++) {
            tess_cuvis_node *from = &g->node[g->from[i].node];
            const tess_cuvis_node *to = &g->node[g->to[i].node];
            if (!to->needed || to->class || from->needed ||
                (from->class && from->class->role != TESS_CUVIS_KIND))
                continue;
            from->is_data |= is_data(g, &g->from[i]);
            if (from->is_data)
                continue;
            (void)!need(g, g->from[i].node);
            more = true;
        }
    }
}

tess_status tess_cuvis_need(tess_cuvis_wiring *g)
{
    TESS_TRY(need_ends(g));
    need_behind_unknown(g);
    need_metrics(g);
    return TESS_OK;
}
