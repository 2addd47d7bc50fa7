/* graph_impl.h: the graph of the YAML, for graph*.c. */
#ifndef TESS_MODEL_CUVIS_GRAPH_IMPL_H
#define TESS_MODEL_CUVIS_GRAPH_IMPL_H

#include "model/cuvis/classes.h"

enum { TESS_CUVIS_NODES = 256, TESS_CUVIS_LINKS = 2048 };

typedef struct tess_cuvis_node {
    const char *name, *class_name;
    const tess_cuvis_class *class; /* NULL: not one that we have */
    const tess_json *hparams;
    char ours[TESS_NODE_NAME];
    bool needed, is_data, helps;
    int helper; /* -1: none */
    int reads;  /* the needed node that it reads, or TESS_NODE_DATA */
} tess_cuvis_node;

typedef struct tess_cuvis_end {
    int node;
    const char *port;
} tess_cuvis_end;

typedef struct tess_cuvis_wiring {
    const tess_cuvis_facts *facts;
    int nodes, links;
    tess_cuvis_node node[TESS_CUVIS_NODES];
    tess_cuvis_end from[TESS_CUVIS_LINKS], to[TESS_CUVIS_LINKS];
    tess_error *error;
} tess_cuvis_wiring;

/* graph_read.c */
tess_status tess_cuvis_read(tess_cuvis_wiring *g, const tess_json *yaml) TESS_MUST_CHECK;

/* graph_need.c: the connection to a port (-1: none, -2: several); the kind of ours that a node is, or NULL; and marks what
 * scores and decisions need. */
int tess_cuvis_link_to(const tess_cuvis_wiring *g, int node, const char *port, size_t length);
const tess_kind_row *tess_cuvis_kind(const tess_cuvis_node *node);
tess_status tess_cuvis_need(tess_cuvis_wiring *g) TESS_MUST_CHECK;

#endif
