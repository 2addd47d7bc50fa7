/* pipeline_json.c: a pipeline from JSON and to it. Whatever is wrong is named: the node, the setting, the port. */
#include <stdio.h>
#include <string.h>

#include "base/spelling.h"
#include "model/spectral/pipeline.h"

static tess_status unknown_kind(const char *kind, tess_error *error)
{
    const char *nearest = NULL;
    int least = tess_spelling_limit(kind);
    char known[640] = "";
    size_t used = 0;
    for (int i = 0; i < TESS_NODE_KINDS; i++) {
        const int far = tess_spelling_distance(kind, tess_node_kinds[i].name);
        if (far < least)
            nearest = tess_node_kinds[i].name, least = far;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 tess_node_kinds[i].name);
    }
    if (nearest)
        return tess_fail(error, TESS_BAD_INPUT, "no kind of node is called '%.40s'; did you mean %s?", kind,
                         nearest);
    return tess_fail(error, TESS_BAD_INPUT, "no kind of node is called '%.40s'; the kinds are %s", kind,
                     known);
}

static int find_node(const tess_pipeline *pipeline, const char *name, size_t length)
{
    for (int i = 0; i < pipeline->count; i++)
        if (strlen(pipeline->nodes[i].name) == length && memcmp(pipeline->nodes[i].name, name, length) == 0)
            return i;
    return -1;
}

static tess_status read_node(const tess_json *json, tess_pipeline *pipeline, tess_error *error)
{
    static const char only[] = "a node is an object such as {\"kind\": \"rx\", \"name\": \"score\"}";
    const char *kind = tess_json_get_string(json, "kind", NULL);
    const char *name = tess_json_get_string(json, "name", kind);
    if (!kind || (tess_json_get(json, "name") && !tess_json_is_string(tess_json_get(json, "name"))))
        return tess_fail(error, TESS_BAD_INPUT, "nodes: node %d has no kind or no name; %s",
                         pipeline->count + 1, only);
    tess_node node = {.from = TESS_NODE_DATA, .target = TESS_NODE_NOTHING};
    while (node.kind < TESS_NODE_KINDS && strcmp(tess_node_kinds[node.kind].name, kind) != 0)
        node.kind++;
    if (node.kind == TESS_NODE_KINDS)
        return unknown_kind(kind, error);
    if (!*name || strlen(name) >= sizeof node.name || strpbrk(name, ". \t\r\n\"'"))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "nodes: '%.60s' is no name; it has 1 to %d characters, without points, quotes and spaces", name,
            TESS_NODE_NAME - 1);
    if (find_node(pipeline, name, strlen(name)) >= 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "nodes: two are called '%s'; give one of them another \"name\"", name);
    strcpy(node.name, name);
    TESS_TRY(tess_node_read(json, &node, error));
    pipeline->nodes[pipeline->count++] = node;
    return TESS_OK;
}

static tess_status unknown_node(const tess_pipeline *pipeline, const char *where, const char *text,
                                tess_error *error)
{
    const char *nearest = NULL;
    int least = tess_spelling_limit(text);
    for (int i = 0; i < pipeline->count; i++) {
        const int far = tess_spelling_distance(text, pipeline->nodes[i].name);
        if (far < least)
            nearest = pipeline->nodes[i].name, least = far;
    }
    return tess_fail(error, TESS_BAD_INPUT, "%s: no node is called '%.60s'%s%s%s", where, text,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* "NODE" or "NODE.PORT"; the port must be one that the node has on that side. */
static tess_status find_end(const tess_pipeline *pipeline, const tess_json *value, bool output, int *node,
                            tess_error *error)
{
    const char *text = tess_json_as_string(value, "");
    const char *point = strchr(text, '.');
    *node = find_node(pipeline, text, point ? (size_t)(point - text) : strlen(text));
    if (*node < 0)
        return unknown_node(pipeline, "connections", text, error);
    const tess_kind_row *row = &tess_node_kinds[pipeline->nodes[*node].kind];
    const unsigned ports = output ? row->gives == TESS_PORT_NONE ? 0 : 1u << row->gives : row->reads;
    bool found = !point;
    for (int p = 0; p < TESS_PORT_NONE && point; p++)
        found |= (ports >> p & 1) && strcmp(point + 1, tess_port_name((tess_port)p)) == 0;
    if (found)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT, "connections: node '%s' (%s) has no %s '%.40s'; it %s %s",
                     pipeline->nodes[*node].name, row->name, output ? "output" : "input", point + 1,
                     output ? "gives" : "reads",
                     output                                 ? tess_port_name(row->gives)
                     : row->reads == 1                      ? "spectra"
                     : row->reads == 1u << TESS_PORT_SCORES ? "scores"
                                                            : "scores or decisions");
}

static tess_status connect(tess_pipeline *pipeline, int from, int to, bool *connected, tess_error *error)
{
    tess_node *a = &pipeline->nodes[from], *b = &pipeline->nodes[to];
    const tess_kind_row *gives = &tess_node_kinds[a->kind], *reads = &tess_node_kinds[b->kind];
    if (connected[to])
        return tess_fail(error, TESS_BAD_INPUT,
                         "connections: node '%s' has two inputs, '%s' and '%s'; it reads one", b->name,
                         pipeline->nodes[b->from].name, a->name);
    if (gives->gives == TESS_PORT_NONE || !(reads->reads >> gives->gives & 1))
        return tess_fail(error, TESS_BAD_INPUT,
                         "connections: '%s' (%s) gives %s, which '%s' (%s) does not read", a->name,
                         gives->name, tess_port_name(gives->gives), b->name, reads->name);
    b->from = from;
    connected[to] = true;
    return TESS_OK;
}

static tess_status read_connections(const tess_json *json, tess_pipeline *pipeline, tess_error *error)
{
    bool connected[TESS_PIPELINE_NODES] = {false};
    for (int i = 1, last = 0; !json && i < pipeline->count; i++) { /* a chain */
        TESS_TRY(connect(pipeline, last, i, connected, error));
        last = tess_node_kinds[pipeline->nodes[i].kind].gives == TESS_PORT_NONE ? last : i;
    }
    if (json && !tess_json_is_array(json))
        return tess_fail(error, TESS_BAD_INPUT,
                         "connections: expected a list of pairs such as [\"a\", \"b\"]");
    for (int64_t i = 0; i < tess_json_length(json); i++) {
        const tess_json *pair = tess_json_at(json, i);
        int from, to;
        if (!tess_json_is_array(pair) || tess_json_length(pair) != 2)
            return tess_fail(error, TESS_BAD_INPUT,
                             "connections: number %lld is not a pair such as [\"a\", \"b\"]",
                             (long long)i + 1);
        TESS_TRY(find_end(pipeline, tess_json_at(pair, 0), true, &from, error));
        TESS_TRY(find_end(pipeline, tess_json_at(pair, 1), false, &to, error));
        TESS_TRY(connect(pipeline, from, to, connected, error));
    }
    for (int i = 0; i < pipeline->count; i++) {
        const tess_kind_row *row = &tess_node_kinds[pipeline->nodes[i].kind];
        if (!connected[i] && !(row->reads >> TESS_PORT_SPECTRA & 1))
            return tess_fail(error, TESS_BAD_INPUT,
                             "connections: nothing is connected to '%s' (%s), which reads scores",
                             pipeline->nodes[i].name, row->name);
    }
    return TESS_OK;
}

/* "target": the name of a node, or "data". The nodes are still in the order of the list. */
static tess_status read_targets(const tess_json *nodes, tess_pipeline *pipeline, tess_error *error)
{
    for (int i = 0; i < pipeline->count; i++) {
        tess_node *node = &pipeline->nodes[i];
        const char *name = tess_json_get_string(tess_json_at(nodes, i), "target", NULL);
        if (!tess_node_kinds[node->kind].target)
            continue;
        if (!name)
            return tess_fail(error, TESS_BAD_INPUT,
                             "node '%s' (%s): target: is missing; expected the name of a node, or \"data\"",
                             node->name, tess_node_kinds[node->kind].name);
        node->target = strcmp(name, "data") == 0 ? TESS_NODE_DATA : tess_pipeline_find(pipeline, name);
        if (strcmp(name, "data") != 0 && node->target < 0)
            return unknown_node(pipeline, "target", name, error);
    }
    return TESS_OK;
}

/* Spectra that lead to neither a score nor a loss are probably a forgotten connection. */
static tess_status check_used(const tess_pipeline *pipeline, int score, tess_error *error)
{
    bool used[TESS_PIPELINE_NODES] = {false};
    for (int end = 0; end < pipeline->count; end++)
        for (int i = end;
             i != TESS_NODE_DATA && (end == score || tess_node_kinds[pipeline->nodes[end].kind].loss);
             i = pipeline->nodes[i].from)
            used[i] = true;
    for (int i = 0; i < pipeline->count; i++)
        if (!used[i] && tess_node_kinds[pipeline->nodes[i].kind].gives == TESS_PORT_SPECTRA)
            return tess_fail(error, TESS_BAD_INPUT,
                             "connections: '%s' does not lead to '%s'; connect it, or leave it out",
                             pipeline->nodes[i].name, pipeline->nodes[score].name);
    return TESS_OK;
}

/* One result: a pipeline has one node that scores, and at most one of each kind behind it. */
static tess_status check_whole(const tess_pipeline *pipeline, tess_error *error)
{
    int scores = -1, deciders = -1, logits = -1, metrics = -1;
    for (int i = 0; i < pipeline->count; i++) {
        const tess_kind_row *row = &tess_node_kinds[pipeline->nodes[i].kind];
        int *which = row->gives == TESS_PORT_SPECTRA || row->loss ? NULL
                     : row->gives == TESS_PORT_NONE               ? &metrics
                     : row->gives == TESS_PORT_DECISIONS          ? &deciders
                     : row->reads >> TESS_PORT_SPECTRA & 1        ? &scores
                                                                  : &logits;
        if (which && *which >= 0)
            return tess_fail(error, TESS_BAD_INPUT,
                             "nodes: '%s' and '%s' do the same; a pipeline has one result",
                             pipeline->nodes[*which].name, pipeline->nodes[i].name);
        if (which)
            *which = i;
    }
    if (scores < 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "nodes: none of them scores; add one of the kind rx, lad, svdd or residual");
    if (deciders >= 0 && logits >= 0 && pipeline->nodes[deciders].from != logits)
        return tess_fail(error, TESS_BAD_INPUT, "connections: '%s' must read '%s', the last of the scores",
                         pipeline->nodes[deciders].name, pipeline->nodes[logits].name);
    for (int i = 0; i < pipeline->count; i++)
        TESS_TRY(tess_node_check_inputs(pipeline, i, error));
    return check_used(pipeline, scores, error);
}

tess_status tess_pipeline_parse(const tess_json *json, tess_pipeline *out, tess_error *error)
{
    static const char form[] =
        "expected {\"nodes\": [...], \"connections\": [[\"a\", \"b\"], ...]} or the nodes of a chain alone";
    const tess_json *nodes = tess_json_get(json, "nodes");
    *out = (tess_pipeline){0};
    for (const char *key = NULL; (key = tess_json_next_key(json, key));)
        if (strcmp(key, "nodes") != 0 && strcmp(key, "connections") != 0)
            return tess_fail(error, TESS_BAD_INPUT, "%.60s: is no key of a pipeline; %s", key, form);
    if (!tess_json_is_array(nodes) || tess_json_length(nodes) < 1)
        return tess_fail(error, TESS_BAD_INPUT, "there are no nodes; %s", form);
    if (tess_json_length(nodes) > TESS_PIPELINE_NODES)
        return tess_fail(error, TESS_BAD_INPUT, "nodes: expected at most %d, got %lld", TESS_PIPELINE_NODES,
                         (long long)tess_json_length(nodes));
    for (int64_t i = 0; i < tess_json_length(nodes); i++)
        TESS_TRY(read_node(tess_json_at(nodes, i), out, error));
    TESS_TRY(read_connections(tess_json_get(json, "connections"), out, error));
    TESS_TRY(read_targets(nodes, out, error));
    TESS_TRY(tess_pipeline_order(out, error));
    return check_whole(out, error);
}

tess_json *tess_pipeline_json(const tess_pipeline *pipeline)
{
    tess_json *root = tess_json_object(), *nodes = tess_json_array(), *connections = tess_json_array();
    for (int i = 0; i < pipeline->count; i++) {
        const tess_node *node = &pipeline->nodes[i];
        tess_json *object = tess_json_object();
        tess_json_set_string(&object, "kind", tess_node_kinds[node->kind].name);
        tess_json_set_string(&object, "name", node->name);
        tess_node_write(node, &object);
        if (node->target != TESS_NODE_NOTHING)
            tess_json_set_string(&object, "target",
                                 node->target == TESS_NODE_DATA ? "data"
                                                                : pipeline->nodes[node->target].name);
        tess_json_append(&nodes, object);
        if (node->from == TESS_NODE_DATA)
            continue;
        tess_json *pair = tess_json_array();
        tess_json_append_string(&pair, pipeline->nodes[node->from].name);
        tess_json_append_string(&pair, node->name);
        tess_json_append(&connections, pair);
    }
    tess_json_set(&root, "nodes", nodes);
    tess_json_set(&root, "connections", connections);
    return root;
}
