/* cuvis.h: pipelines of cuvis.ai (cubert-hyperspectral/cuvis-ai, cuvis-ai-core) as pipelines of ours.
 *
 * cuvis.ai saves NAME.yaml, the graph {metadata, nodes: [{name, class_name, hparams}], connections: [{source:
 * "A.outputs.port", target: "B.inputs.port"}]}, and NAME.pt, {"state_dict": {node: {buffer: tensor}}}. One table (classes.c)
 * says which class is which kind of node, and which buffer which parameter. Only what scores and decisions need is taken
 * over: losses, monitors and pictures are left out and named; a needed node of a class that is not in the table is an
 * error that names it. Both files are data of strangers. */
#ifndef TESS_MODEL_CUVIS_CUVIS_H
#define TESS_MODEL_CUVIS_CUVIS_H

#include "base/json.h"
#include "model/spectral/state.h"
#include "weights/weights.h"

typedef struct tess_cuvis_class tess_cuvis_class;

/* What is known beside the file. */
typedef struct tess_cuvis_facts {
    bool fitted; /* the buffers will be read: settings that only matter while fitting do not matter */
    int bands;   /* of the cube; 0: unknown */
    const double *wavelengths; /* one a band, or NULL */
} tess_cuvis_facts;

typedef struct tess_cuvis {
    tess_pipeline pipeline;
    struct {
        const char *name;   /* in the YAML, which must outlive this */
        const char *helper; /* another node of the YAML that holds parameters of this one; or NULL */
        const tess_cuvis_class *class;
    } of[TESS_PIPELINE_NODES]; /* for each node of the pipeline */
    tess_json *left_out;       /* [{"name":, "class":}] */
    tess_json *data;           /* the same: nodes that give the cube */
} tess_cuvis;

/* The caller frees what it made, also after a failure. Messages do not contain the path. */
tess_status tess_cuvis_graph(const tess_json *yaml, const tess_cuvis_facts *facts, tess_cuvis *out,
                             tess_error *error) TESS_MUST_CHECK;
void tess_cuvis_free(tess_cuvis *cuvis);

/* Bands of the data, as the weights have them. TESS_BAD_OPTION: a cube must say it. Messages do not contain the path. */
tess_status tess_cuvis_bands(const tess_cuvis *cuvis, const tess_weights *weights, int *bands,
                             tess_error *error) TESS_MUST_CHECK;
/* Compiles the pipeline and takes its parameters from the buffers. The caller frees both; the state points to the plan. */
tess_status tess_cuvis_load(const tess_cuvis *cuvis, const tess_cuvis_facts *facts, tess_weights *weights,
                            tess_memory *memory, tess_spectral_plan **plan, tess_spectral_state *state,
                            tess_error *error) TESS_MUST_CHECK;

#endif
