/* pipeline.h: a hyperspectral pipeline: a graph of nodes that turn the spectrum of each pixel into a score and a decision.
 *
 * A node reads the output of one other node, or the data; some compare it with a second one, their target. Nodes that are
 * losses say what a pipeline is trained by. The rows of one table (kinds.c) say what a kind of node reads
 * and gives, and what settings it has; reading, writing, hints and the documentation follow that table. The struct is
 * plain data of fixed size. Its nodes are in an order in which each follows the one that it reads. */
#ifndef TESS_MODEL_SPECTRAL_PIPELINE_H
#define TESS_MODEL_SPECTRAL_PIPELINE_H

#include "base/json.h"
#include "base/status.h"

enum {
    TESS_PIPELINE_NODES = 64,
    TESS_NODE_NAME = 48,
    TESS_NODE_SETTINGS = 11,
    TESS_NODE_DATA = -1, /* the place of the data among the nodes */
    TESS_NODE_NOTHING = -2
};

typedef enum tess_node_kind {
    TESS_NODE_MINMAX,
    TESS_NODE_ZSCORE,
    TESS_NODE_SIGMOID,
    TESS_NODE_UNIT_NORM,
    TESS_NODE_SNV,
    TESS_NODE_SAVITZKY_GOLAY,
    TESS_NODE_CONTINUUM,
    TESS_NODE_BANDPASS,
    TESS_NODE_PCA,
    TESS_NODE_SELECTOR,
    TESS_NODE_LINEAR,
    TESS_NODE_MLP,
    TESS_NODE_RX,
    TESS_NODE_LAD,
    TESS_NODE_SVDD,
    TESS_NODE_RESIDUAL,
    TESS_NODE_SCORE_TO_LOGIT,
    TESS_NODE_BINARY,
    TESS_NODE_QUANTILE,
    TESS_NODE_TWO_STAGE,
    TESS_NODE_FALSE_ALARM,
    TESS_NODE_METRICS,
    TESS_NODE_BCE,
    TESS_NODE_IOU,
    TESS_NODE_MSE,
    TESS_NODE_SOFT_BOUNDARY,
    TESS_NODE_ORTHOGONALITY,
    TESS_NODE_DISTINCTNESS,
    TESS_NODE_ENTROPY,
    TESS_NODE_DIVERSITY,
    TESS_NODE_KINDS
} tess_node_kind;

/* What passes from node to node: one value a band (or component), one score, or one decision a pixel. */
typedef enum tess_port { TESS_PORT_SPECTRA, TESS_PORT_SCORES, TESS_PORT_DECISIONS, TESS_PORT_NONE } tess_port;

/* What a node's parameters come from. */
typedef enum tess_node_scope {
    TESS_SCOPE_NONE,   /* there are none, or the settings are enough */
    TESS_SCOPE_SET,    /* all pixels of the training set: phase 1 */
    TESS_SCOPE_IMAGE,  /* all pixels of the image, before the first one is scored */
    TESS_SCOPE_LOCAL,  /* a window around each pixel */
    TESS_SCOPE_STREAM, /* the rows so far */
} tess_node_scope;

/* What a filter takes for the bands beyond the first and the last. */
typedef enum tess_filter_ends {
    TESS_ENDS_INTERP,  /* none: the polynomial of the first or last whole window */
    TESS_ENDS_NEAREST, /* the end itself */
    TESS_ENDS_MIRROR,  /* the bands before it, in reverse */
    TESS_ENDS_ZERO
} tess_filter_ends;

/* Places of the settings in tess_node.values. */
enum { TESS_MINMAX_OVER, TESS_MINMAX_EPS };
enum { TESS_ZSCORE_OVER, TESS_ZSCORE_EPS, TESS_ZSCORE_TRAINABLE };
enum { TESS_NORM_EPS, TESS_SNV_UNBIASED }; /* unit_norm has the first alone */
enum { TESS_SAVGOL_WINDOW, TESS_SAVGOL_ORDER, TESS_SAVGOL_DERIVATIVE, TESS_SAVGOL_SPACING, TESS_SAVGOL_ENDS };
enum { TESS_BANDPASS_FROM, TESS_BANDPASS_TO };
enum { TESS_PCA_COMPONENTS, TESS_PCA_WHITEN, TESS_PCA_EPS, TESS_PCA_TRAINABLE };
enum {
    TESS_SELECTOR_SELECT,
    TESS_SELECTOR_START,
    TESS_SELECTOR_TEMPERATURE,
    TESS_SELECTOR_LEAST,
    TESS_SELECTOR_DECAY,
    TESS_SELECTOR_HARD,
    TESS_SELECTOR_EPS,
    TESS_SELECTOR_TRAINABLE
};
enum { TESS_START_VARIANCE, TESS_START_UNIFORM }; /* of a selector */
enum { TESS_LINEAR_CHANNELS, TESS_LINEAR_EPS, TESS_LINEAR_SEED, TESS_LINEAR_TRAINABLE };
enum { TESS_MLP_HIDDEN, TESS_MLP_CHANNELS, TESS_MLP_SEED, TESS_MLP_TRAINABLE };
enum { TESS_SVDD_FOLLOWS };
enum {
    TESS_RX_OVER,
    TESS_RX_EPS,
    TESS_RX_CUTOFF,
    TESS_RX_INNER,
    TESS_RX_OUTER,
    TESS_RX_FORGETTING,
    TESS_RX_EVERY,
    TESS_RX_WARMUP,
    TESS_RX_TRIM,
    TESS_RX_TRIMS,
    TESS_RX_TRAINABLE
};
enum { TESS_LAD_NORMALISED, TESS_LAD_TRAINABLE };
enum { TESS_LOGIT_SCALE, TESS_LOGIT_DEVIATIONS, TESS_LOGIT_TRAINABLE };
enum { TESS_BINARY_THRESHOLD };
enum { TESS_QUANTILE_QUANTILE, TESS_TWO_STAGE_SHARE, TESS_TWO_STAGE_THRESHOLD };
enum { TESS_FALSE_ALARM_RATE };
enum { TESS_LOSS_WEIGHT }; /* of every loss */
enum { TESS_BCE_POSITIVE = 1 };
enum { TESS_IOU_SMOOTH = 1 };
enum { TESS_SOFT_BOUNDARY_NU = 1 };
enum { TESS_DISTINCTNESS_EPS = 1 };
enum { TESS_ENTROPY_TARGET = 1, TESS_ENTROPY_EPS };

typedef enum tess_setting_type {
    TESS_SETTING_NUMBER,
    TESS_SETTING_INTEGER,
    TESS_SETTING_BOOL,
    TESS_SETTING_WORD
} tess_setting_type;

typedef struct tess_setting_word {
    const char *word; /* NULL ends a list */
    int value;        /* of tess_node_scope, or of the enum of the setting */
} tess_setting_word;

typedef struct tess_setting {
    const char *name; /* NULL ends a list */
    tess_setting_type type;
    double low, high, standard;
    const tess_setting_word *words;
    const char *expected;
} tess_setting;

typedef struct tess_kind_row {
    const char *name;
    unsigned reads; /* bits of the ports that it can read */
    tess_port gives;
    tess_setting settings[TESS_NODE_SETTINGS + 1];
    bool loss;   /* counts in training alone */
    bool target; /* has a second input: "target": the name of a node before it, or "data" */
} tess_kind_row;

extern const tess_kind_row tess_node_kinds[TESS_NODE_KINDS];

typedef struct tess_node {
    tess_node_kind kind;
    char name[TESS_NODE_NAME];
    int from;   /* an earlier node, or TESS_NODE_DATA */
    int target; /* the same, or TESS_NODE_NOTHING */
    double values[TESS_NODE_SETTINGS];
} tess_node;

typedef struct tess_pipeline {
    int count;
    tess_node nodes[TESS_PIPELINE_NODES];
} tess_pipeline;

/* Reads {"nodes": [{"kind": ..., "name": ..., settings}], "connections": [["a", "b"], ...]}. Without connections a node
 * reads the last one before it that gives something. A kind is the name of a node that has none. "a.spectra" names the port of a node. */
tess_status tess_pipeline_parse(const tess_json *json, tess_pipeline *out, tess_error *error) TESS_MUST_CHECK;
/* rx, rx-trimmed, rx-local, lad, svdd, selector. */
tess_status tess_pipeline_named(const char *name, tess_pipeline *out, tess_error *error) TESS_MUST_CHECK;
/* Complete: all settings, with connections. NULL: no memory. */
tess_json *tess_pipeline_json(const tess_pipeline *pipeline);

const char *tess_port_name(tess_port port);
tess_node_scope tess_node_scope_of(const tess_node *node);
/* True for a node that is a matrix and a vector once its parameters are known, and whose parameters do not differ from
 * image to image. */
bool tess_node_is_affine(const tess_node *node);
/* True for a node whose parameters may be changed by gradients. */
bool tess_node_trainable(const tess_node *node);
/* Sets that of a node; false: no node of its kind can be trained. */
bool tess_node_set_trainable(tess_node *node, bool trainable);
int tess_pipeline_find(const tess_pipeline *pipeline, const char *name); /* -1: no node has this name */
/* The node that scores; the node of a kind; the node that decides. -1: there is none. */
int tess_pipeline_score(const tess_pipeline *pipeline);
int tess_pipeline_kind(const tess_pipeline *pipeline, tess_node_kind kind);
int tess_pipeline_decider(const tess_pipeline *pipeline);

/* For pipeline_*.c: reads the settings of one node, writes them, checks them against each other. */
tess_status tess_node_read(const tess_json *json, tess_node *node, tess_error *error) TESS_MUST_CHECK;
void tess_node_write(const tess_node *node, tess_json **object);
/* What a node reads must be of a kind that it can use. */
tess_status tess_node_check_inputs(const tess_pipeline *pipeline, int node,
                                   tess_error *error) TESS_MUST_CHECK;
/* Sorts, so that each node follows the one that it reads; a circle is named. */
tess_status tess_pipeline_order(tess_pipeline *pipeline, tess_error *error) TESS_MUST_CHECK;

#endif
