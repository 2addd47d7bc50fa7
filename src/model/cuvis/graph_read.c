/* graph_read.c: nodes and connections as the YAML has them. Every name is checked here. */
#include <stdio.h>
#include <string.h>

#include "base/spelling.h"
#include "model/cuvis/graph_impl.h"

/* An entry by its key of today or of the first versions. */
static const tess_json *entry_of(const tess_json *object, const char *key, const char *before)
{
    const tess_json *value = tess_json_get(object, key);
    return value ? value : tess_json_get(object, before);
}

static int find_node(const tess_cuvis_wiring *g, const char *name, size_t length)
{
    for (int i = 0; i < g->nodes; i++)
        if (strlen(g->node[i].name) == length && memcmp(g->node[i].name, name, length) == 0)
            return i;
    return -1;
}

static tess_status read_node(tess_cuvis_wiring *g, const tess_json *json)
{
    const tess_json *class = entry_of(json, "class_name", "class"),
                    *hparams = entry_of(json, "hparams", "params");
    tess_cuvis_node *n = &g->node[g->nodes];
    n->name = tess_json_get_string(json, "name", "");
    n->class_name = tess_json_as_string(class, "");
    if (!*n->name || !*n->class_name)
        return tess_fail(g->error, TESS_BAD_INPUT,
                         "nodes: node %d has no name or no class_name, or they are no text", g->nodes + 1);
    if (hparams && !tess_json_is_object(hparams) && tess_json_length(hparams) == 0 &&
        !tess_json_is_string(hparams) && !tess_json_is_number(hparams) && !tess_json_is_bool(hparams))
        hparams = NULL; /* null, or an empty list */
    if (hparams && !tess_json_is_object(hparams))
        return tess_fail(g->error, TESS_BAD_INPUT, "node '%.60s': hparams: expected names with values",
                         n->name);
    if (find_node(g, n->name, strlen(n->name)) >= 0)
        return tess_fail(g->error, TESS_BAD_INPUT, "nodes: two are called '%.60s'", n->name);
    n->hparams = hparams;
    n->class = tess_cuvis_find(n->class_name);
    n->reads = TESS_NODE_DATA;
    n->helper = -1;
    snprintf(n->ours, sizeof n->ours, "%s", n->name);
    for (char *c = n->ours; (c = strpbrk(c, ". \t\r\n\"'"));)
        *c = '_';
    g->nodes++;
    return TESS_OK;
}

static tess_status no_node(const tess_cuvis_wiring *g, const char *text, size_t length)
{
    char name[64];
    const char *nearest = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), text);
    int least = tess_spelling_limit(name);
    for (int i = 0; i < g->nodes; i++) {
        const int far = tess_spelling_distance(name, g->node[i].name);
        if (far < least)
            nearest = g->node[i].name, least = far;
    }
    return tess_fail(g->error, TESS_BAD_INPUT, "connections: no node is called '%s'%s%.60s%s", name,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* "NODE.outputs.PORT" or "NODE.inputs.PORT". */
static tess_status read_end(tess_cuvis_wiring *g, const tess_json *value, bool output, tess_cuvis_end *out)
{
    const char *text = tess_json_as_string(value, ""), *side = output ? ".outputs." : ".inputs.";
    const char *point = strstr(text, side);
    if (!point || point == text || !point[strlen(side)])
        return tess_fail(g->error, TESS_BAD_INPUT,
                         "connections: number %d: expected a %s such as NODE%sPORT, got '%.60s'",
                         g->links + 1, output ? "source" : "target", side, text);
    out->port = point + strlen(side);
    out->node = find_node(g, text, (size_t)(point - text));
    if (out->node < 0)
        return no_node(g, text, (size_t)(point - text));
    const tess_cuvis_node *n = &g->node[out->node];
    const char *ports = n->class ? output ? n->class->outputs : n->class->inputs : NULL;
    if (ports && !tess_cuvis_has_word(ports, out->port, strlen(out->port)))
        return tess_fail(g->error, TESS_BAD_INPUT,
                         "connections: node '%.60s' (%s) has no %s '%.60s'; it has: %s", n->name,
                         n->class->name, output ? "output" : "input", out->port, ports);
    return TESS_OK;
}

tess_status tess_cuvis_read(tess_cuvis_wiring *g, const tess_json *yaml)
{
    const tess_json *nodes = tess_json_get(yaml, "nodes"), *links = tess_json_get(yaml, "connections");
    if (!tess_json_is_object(yaml) || !tess_json_is_array(nodes) || tess_json_length(nodes) < 1)
        return tess_fail(g->error, TESS_BAD_INPUT,
                         "is no pipeline of cuvis.ai: expected a list 'nodes' of names, classes and hparams");
    if (!tess_json_is_array(links) || tess_json_length(links) < 1)
        return tess_fail(g->error, TESS_BAD_INPUT, "has no 'connections': a list of sources and targets");
    if (tess_json_length(nodes) > TESS_CUVIS_NODES || tess_json_length(links) > TESS_CUVIS_LINKS)
        return tess_fail(g->error, TESS_BAD_INPUT,
                         "has %lld nodes and %lld connections; at most %d and %d are taken",
                         (long long)tess_json_length(nodes), (long long)tess_json_length(links),
                         TESS_CUVIS_NODES, TESS_CUVIS_LINKS);
    for (int64_t i = 0; i < tess_json_length(nodes); i++)
        TESS_TRY(read_node(g, tess_json_at(nodes, i)));
    for (int64_t i = 0; i < tess_json_length(links); i++) {
        const tess_json *link = tess_json_at(links, i);
        TESS_TRY(read_end(g, entry_of(link, "source", "from"), true, &g->from[g->links]));
        TESS_TRY(read_end(g, entry_of(link, "target", "to"), false, &g->to[g->links]));
        g->links++;
    }
    return TESS_OK;
}
