/* compile.h: what a pipeline needs of the data, before any of it is read: the channels of each node, where statistics are
 * gathered, and in how many passes.
 *
 * Statistics are gathered at taps. The moments of the pixels at a tap give those behind any chain of affine nodes exactly,
 * so a tap lies behind the last node that is not affine (a cut) and serves all nodes from there on, and the raw data serve
 * min-max, z-score, PCA and RX in one pass. Only the range of values behind a node that mixes or drops channels must be
 * gathered there. A tap behind a node that phase 1 fits waits for that node's pass; a tap behind a node that is fitted
 * for each image reads the image first. */
#ifndef TESS_MODEL_SPECTRAL_COMPILE_H
#define TESS_MODEL_SPECTRAL_COMPILE_H

#include "base/json.h"
#include "model/spectral/pipeline.h"

enum { TESS_SPECTRAL_BANDS = 4096 };

enum {
    TESS_NEED_MEAN = 1,
    TESS_NEED_COVARIANCE = 2,
    TESS_NEED_RANGE = 4,          /* least and largest value of all channels */
    TESS_NEED_CHANNEL_RANGES = 8, /* of each channel */
    TESS_NEED_MEDIANS = 16,       /* of each channel: several readings */
    TESS_NEED_SCORES = 32,        /* mean and deviation of the scores */
    TESS_NEED_SCORE_ORDER = 64,   /* one of the scores in ascending order: two passes */
    TESS_NEED_TRIMMED =
        128 /* of the pixels alone whose score, by the pass before, is not far above the mean */
};

enum { TESS_TAPS = TESS_PIPELINE_NODES + 1 };

enum { TESS_MEDIAN_READINGS = 3, TESS_ORDER_READINGS = 2 };

typedef struct tess_tap {
    int at; /* pixels as this node gives them, or TESS_NODE_DATA; of scores: the score node */
    unsigned needs;
    tess_node_scope scope; /* SET, or IMAGE */
    int first, last;       /* passes over the set, or readings of the image, from 1 */
} tess_tap;

typedef struct tess_spectral_plan {
    tess_pipeline pipeline;
    int bands;
    double *wavelengths;               /* of the bands, or NULL; owned */
    int channels[TESS_PIPELINE_NODES]; /* that a node gives; 1 for scores */
    int *source[TESS_PIPELINE_NODES];  /* the band that each channel is, or NULL if they are mixed */
    int *owned[TESS_PIPELINE_NODES];   /* lists to free */
    int taps;
    tess_tap tap[TESS_TAPS];
    int tap_of[TESS_PIPELINE_NODES]; /* -1: the node needs none */
    int trim_tap; /* of the score node, for the passes after its first one; -1: its statistics are of all pixels */
    int known[TESS_PIPELINE_NODES]; /* SET: the pass after which it is fitted; IMAGE: the reading */
    int passes;                     /* of phase 1, over the set */
    int readings;                   /* of an image, before its pixels can be scored */
    int all_bands[TESS_SPECTRAL_BANDS];
} tess_spectral_plan;

/* `wavelengths` may be NULL. */
tess_status tess_spectral_compile(const tess_pipeline *pipeline, int bands, const double *wavelengths,
                                  tess_spectral_plan **out, tess_error *error) TESS_MUST_CHECK;
void tess_spectral_plan_free(tess_spectral_plan *plan);
/* Channels that a node reads. */
int tess_spectral_reads(const tess_spectral_plan *plan, int node);
int tess_spectral_gives(const tess_spectral_plan *plan, int node); /* also of TESS_NODE_DATA */
/* Readings of an image before pixels behind `node` can be computed; 0: none. */
int tess_spectral_readings_at(const tess_spectral_plan *plan, int node);
/* The passes of phase 1, with what is gathered in each, for which nodes, and why it could not be earlier. NULL: no memory. */
tess_json *tess_spectral_passes_json(const tess_spectral_plan *plan);

#endif
