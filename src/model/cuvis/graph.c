/* graph.c: a pipeline of ours from the needed nodes of the YAML. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/cuvis/graph_impl.h"

/* Names of nodes with their classes: "a (package.A), b (package.B)", as many as fit. */
static void list_nodes(const tess_cuvis_wiring *g, bool needed, char *text, size_t bytes)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < g->nodes; i++) {
        const tess_cuvis_node *n = &g->node[i];
        if (n->class || n->is_data || (needed && !n->needed))
            continue;
        char one[256];
        snprintf(one, sizeof one, "%s%.60s (%.120s)", used ? ", " : "", n->name, n->class_name);
        if (used + strlen(one) + 8 > bytes) {
            snprintf(text + used, bytes - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s", one);
    }
}

static tess_status check_needed(const tess_cuvis_wiring *g)
{
    char text[512];
    bool scores = false, missing = false;
    for (int i = 0; i < g->nodes; i++) {
        const tess_kind_row *row = g->node[i].needed ? tess_cuvis_kind(&g->node[i]) : NULL;
        missing |= g->node[i].needed && !g->node[i].class;
        scores |= row && row->gives == TESS_PORT_SCORES && row->reads == 1u << TESS_PORT_SPECTRA;
    }
    list_nodes(g, missing, text, sizeof text);
    if (missing)
        return tess_fail(g->error, TESS_UNSUPPORTED, "needs nodes that we don't have: %s", text);
    if (!scores)
        return tess_fail(g->error, TESS_UNSUPPORTED, "no node that we have scores pixels%s%s",
                         *text ? "; nodes that we don't have: " : "", text);
    return TESS_OK;
}

static tess_status write_nodes(tess_cuvis_wiring *g, tess_json **nodes, tess_json **links)
{
    for (int i = 0; i < g->nodes; i++) {
        const tess_cuvis_node *n = &g->node[i];
        if (!n->needed)
            continue;
        tess_cuvis_entry entry = {.name = n->name, .hparams = n->hparams, .facts = g->facts};
        entry.helper = n->helper >= 0 ? g->node[n->helper].hparams : NULL;
        entry.has_wavelengths = tess_cuvis_link_to(g, i, "wavelengths", 11) != -1;
        const tess_status status = tess_cuvis_translate(n->class, &entry, g->error);
        tess_json_set_string(&entry.settings, "name", n->ours);
        if (status != TESS_OK) {
            tess_json_free(entry.settings);
            return status;
        }
        tess_json_append(nodes, entry.settings);
        if (n->reads == TESS_NODE_DATA)
            continue;
        tess_json *pair = tess_json_array();
        tess_json_append_string(&pair, g->node[n->reads].ours);
        tess_json_append_string(&pair, n->ours);
        tess_json_append(links, pair);
    }
    return TESS_OK;
}

static void list_rest(const tess_cuvis_wiring *g, tess_cuvis *out)
{
    out->left_out = tess_json_array();
    out->data = tess_json_array();
    for (int i = 0; i < g->nodes; i++) {
        const tess_cuvis_node *n = &g->node[i];
        if (n->needed || n->helps || (n->class && n->class->role == TESS_CUVIS_PASS))
            continue;
        tess_json *one = tess_json_object();
        tess_json_set_string(&one, "name", n->name);
        tess_json_set_string(&one, "class", n->class_name);
        tess_json_append(n->is_data ? &out->data : &out->left_out, one);
    }
}

static tess_status make(tess_cuvis_wiring *g, tess_cuvis *out)
{
    tess_json *root = tess_json_object(), *nodes = tess_json_array(), *links = tess_json_array();
    tess_status status = write_nodes(g, &nodes, &links);
    tess_json_set(&root, "nodes", nodes);
    tess_json_set(&root, "connections", links);
    if (status == TESS_OK && !root)
        status = tess_fail(g->error, TESS_NO_MEMORY, "no memory for the pipeline");
    if (status == TESS_OK)
        status = tess_pipeline_parse(root, &out->pipeline, g->error);
    tess_json_free(root);
    TESS_TRY(status);
    for (int i = 0; i < out->pipeline.count; i++)
        for (int k = 0; k < g->nodes; k++)
            if (g->node[k].needed && strcmp(g->node[k].ours, out->pipeline.nodes[i].name) == 0) {
                out->of[i].name = g->node[k].name;
                out->of[i].class = g->node[k].class;
                out->of[i].helper = g->node[k].helper >= 0 ? g->node[g->node[k].helper].name : NULL;
            }
    list_rest(g, out);
    return out->left_out && out->data ? TESS_OK
                                      : tess_fail(g->error, TESS_NO_MEMORY, "no memory for the pipeline");
}

tess_status tess_cuvis_graph(const tess_json *yaml, const tess_cuvis_facts *facts, tess_cuvis *out,
                             tess_error *error)
{
    *out = (tess_cuvis){.left_out = NULL};
    tess_cuvis_wiring *g = tess_small_alloc(1, sizeof *g);
    if (!g)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    g->facts = facts;
    g->error = error;
    tess_status status = tess_cuvis_read(g, yaml);
    if (status == TESS_OK)
        status = tess_cuvis_need(g);
    if (status == TESS_OK)
        status = check_needed(g);
    if (status == TESS_OK)
        status = make(g, out);
    tess_small_free(g);
    return status;
}

void tess_cuvis_free(tess_cuvis *cuvis)
{
    tess_json_free(cuvis->left_out);
    tess_json_free(cuvis->data);
    *cuvis = (tess_cuvis){.left_out = NULL};
}
