/* kinds.c: the table of the kinds of nodes. Names, ranges and standard values of the settings are stated here alone. */
#include "model/spectral/pipeline.h"

static const tess_setting_word set_or_image[] = {
    {"set", TESS_SCOPE_SET}, {"image", TESS_SCOPE_IMAGE}, {NULL, 0}};
static const tess_setting_word rx_scopes[] = {{"set", TESS_SCOPE_SET},
                                              {"image", TESS_SCOPE_IMAGE},
                                              {"local", TESS_SCOPE_LOCAL},
                                              {"stream", TESS_SCOPE_STREAM},
                                              {NULL, 0}};

static const tess_setting_word ends[] = {{"interp", TESS_ENDS_INTERP},
                                         {"nearest", TESS_ENDS_NEAREST},
                                         {"mirror", TESS_ENDS_MIRROR},
                                         {"zero", TESS_ENDS_ZERO},
                                         {NULL, 0}};

static const char from_zero[] = "a number from 0", a_share[] = "a number above 0 and below 1",
                  a_wavelength[] = "a wavelength in nanometres";

#define READS_SPECTRA   (1u << TESS_PORT_SPECTRA)
#define READS_SCORES    (1u << TESS_PORT_SCORES)
#define READS_DECISIONS (1u << TESS_PORT_DECISIONS)
#define NUMBER          TESS_SETTING_NUMBER
#define INTEGER         TESS_SETTING_INTEGER
#define BOOL            TESS_SETTING_BOOL
#define WORD            TESS_SETTING_WORD
#define LEAST           0x1p-40 /* "above 0" */
#define HUGE            1e300

const tess_kind_row tess_node_kinds[TESS_NODE_KINDS] = {
    [TESS_NODE_MINMAX] = {"minmax",
                          READS_SPECTRA,
                          TESS_PORT_SPECTRA,
                          {[TESS_MINMAX_OVER] = {"over", WORD, 0, 0, TESS_SCOPE_SET, set_or_image, NULL},
                           [TESS_MINMAX_EPS] = {"eps", NUMBER, 0, HUGE, 1e-6, NULL, from_zero}}},
    /* The standard eps is that of cuvis.ai: 1e-8 over the set, 1e-6 over an image; -1 stands for that. */
    [TESS_NODE_ZSCORE] = {"zscore",
                          READS_SPECTRA,
                          TESS_PORT_SPECTRA,
                          {[TESS_ZSCORE_OVER] = {"over", WORD, 0, 0, TESS_SCOPE_SET, set_or_image, NULL},
                           [TESS_ZSCORE_EPS] = {"eps", NUMBER, 0, HUGE, -1, NULL, from_zero}}},
    [TESS_NODE_SIGMOID] = {"sigmoid", READS_SPECTRA, TESS_PORT_SPECTRA, {{NULL}}},
    [TESS_NODE_UNIT_NORM] = {"unit_norm",
                             READS_SPECTRA,
                             TESS_PORT_SPECTRA,
                             {[TESS_NORM_EPS] = {"eps", NUMBER, 0, HUGE, 1e-8, NULL, from_zero}}},
    [TESS_NODE_SNV] = {"snv",
                       READS_SPECTRA,
                       TESS_PORT_SPECTRA,
                       {[TESS_NORM_EPS] = {"eps", NUMBER, 0, HUGE, 1e-8, NULL, from_zero},
                        [TESS_SNV_UNBIASED] = {"unbiased", BOOL, 0, 1, 0, NULL, "true or false"}}},
    [TESS_NODE_SAVITZKY_GOLAY] =
        {"savitzky_golay",
         READS_SPECTRA,
         TESS_PORT_SPECTRA,
         {[TESS_SAVGOL_WINDOW] = {"window", INTEGER, 3, 501, 11, NULL,
                                  "an odd number of bands from 3 to 501"},
          [TESS_SAVGOL_ORDER] = {"order", INTEGER, 0, 10, 2, NULL, "an order from 0 to 10"},
          [TESS_SAVGOL_DERIVATIVE] = {"derivative", INTEGER, 0, 10, 0, NULL, "a derivative from 0 to 10"},
          [TESS_SAVGOL_SPACING] = {"spacing", NUMBER, LEAST, HUGE, 1, NULL, "a number above 0"},
          [TESS_SAVGOL_ENDS] = {"ends", WORD, 0, 0, TESS_ENDS_INTERP, ends, NULL}}},
    [TESS_NODE_CONTINUUM] = {"continuum", READS_SPECTRA, TESS_PORT_SPECTRA, {{NULL}}},
    [TESS_NODE_BANDPASS] = {"bandpass",
                            READS_SPECTRA,
                            TESS_PORT_SPECTRA,
                            {[TESS_BANDPASS_FROM] = {"from", NUMBER, 0, 1e9, 0, NULL, a_wavelength},
                             [TESS_BANDPASS_TO] = {"to", NUMBER, 0, 1e9, 1e9, NULL, a_wavelength}}},
    [TESS_NODE_PCA] = {"pca",
                       READS_SPECTRA,
                       TESS_PORT_SPECTRA,
                       {[TESS_PCA_COMPONENTS] = {"components", INTEGER, 1, 4096, 3, NULL,
                                                 "a number of components from 1"},
                        [TESS_PCA_WHITEN] = {"whiten", BOOL, 0, 1, 0, NULL, "true or false"},
                        [TESS_PCA_EPS] = {"eps", NUMBER, 0, HUGE, 1e-6, NULL, from_zero}}},
    [TESS_NODE_RX] =
        {"rx",
         READS_SPECTRA,
         TESS_PORT_SCORES,
         {[TESS_RX_OVER] = {"over", WORD, 0, 0, TESS_SCOPE_SET, rx_scopes, NULL},
          [TESS_RX_EPS] = {"eps", NUMBER, 0, HUGE, 1e-6, NULL, from_zero},
          [TESS_RX_CUTOFF] = {"cutoff", NUMBER, 0, 0.5, 0x1p-52, NULL, "a number from 0 to 0.5"},
          [TESS_RX_INNER] = {"inner", INTEGER, 1, 255, 9, NULL, "an odd number of pixels from 1 to 255"},
          [TESS_RX_OUTER] = {"outer", INTEGER, 3, 511, 25, NULL, "an odd number of pixels from 3 to 511"},
          [TESS_RX_FORGETTING] = {"forgetting", NUMBER, LEAST, 1, 0.995, NULL,
                                  "a factor a row above 0 and at most 1"},
          [TESS_RX_EVERY] = {"every", INTEGER, 1, 65536, 16, NULL, "a number of rows from 1"},
          [TESS_RX_WARMUP] = {"warmup", INTEGER, 1, 65536, 64, NULL, "a number of rows from 1"}}},
    [TESS_NODE_LAD] = {"lad",
                       READS_SPECTRA,
                       TESS_PORT_SCORES,
                       {[TESS_LAD_NORMALISED] = {"normalised", BOOL, 0, 1, 1, NULL, "true or false"}}},
    [TESS_NODE_SCORE_TO_LOGIT] = {"score_to_logit",
                                  READS_SCORES,
                                  TESS_PORT_SCORES,
                                  {[TESS_LOGIT_SCALE] = {"scale", NUMBER, LEAST, HUGE, 1, NULL,
                                                         "a number above 0"},
                                   [TESS_LOGIT_DEVIATIONS] = {"deviations", NUMBER, -1e6, 1e6, 2, NULL,
                                                              "a number of standard deviations"}}},
    [TESS_NODE_BINARY] = {"binary",
                          READS_SCORES,
                          TESS_PORT_DECISIONS,
                          {[TESS_BINARY_THRESHOLD] = {"threshold", NUMBER, LEAST, 1 - LEAST, 0.5, NULL,
                                                      a_share}}},
    [TESS_NODE_QUANTILE] = {"quantile",
                            READS_SCORES,
                            TESS_PORT_DECISIONS,
                            {[TESS_QUANTILE_QUANTILE] = {"quantile", NUMBER, 0, 1, 0.995, NULL,
                                                         "a number from 0 to 1"}}},
    [TESS_NODE_TWO_STAGE] =
        {"two_stage",
         READS_SCORES,
         TESS_PORT_DECISIONS,
         {[TESS_QUANTILE_QUANTILE] = {"quantile", NUMBER, 0, 1, 0.995, NULL, "a number from 0 to 1"},
          [TESS_TWO_STAGE_SHARE] = {"share", NUMBER, LEAST, 1, 0.001, NULL, "a share of the pixels above 0"},
          [TESS_TWO_STAGE_THRESHOLD] = {"threshold", NUMBER, -HUGE, HUGE, 0.5, NULL, "a score"}}},
    [TESS_NODE_FALSE_ALARM] = {"false_alarm",
                               READS_SCORES,
                               TESS_PORT_DECISIONS,
                               {[TESS_FALSE_ALARM_RATE] = {"rate", NUMBER, LEAST, 1 - LEAST, 0.001, NULL,
                                                           a_share}}},
    [TESS_NODE_METRICS] = {"metrics", READS_SCORES | READS_DECISIONS, TESS_PORT_NONE, {{NULL}}},
};

const char *tess_port_name(tess_port port)
{
    static const char *const names[] = {"spectra", "scores", "decisions", "nothing"};
    return names[port];
}

tess_node_scope tess_node_scope_of(const tess_node *node)
{
    switch (node->kind) {
    case TESS_NODE_MINMAX:
        return (tess_node_scope)node->values[TESS_MINMAX_OVER];
    case TESS_NODE_ZSCORE:
        return (tess_node_scope)node->values[TESS_ZSCORE_OVER];
    case TESS_NODE_RX:
        return (tess_node_scope)node->values[TESS_RX_OVER];
    case TESS_NODE_PCA:
    case TESS_NODE_LAD:
    case TESS_NODE_SCORE_TO_LOGIT:
    case TESS_NODE_FALSE_ALARM:
        return TESS_SCOPE_SET;
    case TESS_NODE_SIGMOID:
    case TESS_NODE_QUANTILE:
    case TESS_NODE_TWO_STAGE:
        return TESS_SCOPE_IMAGE;
    case TESS_NODE_UNIT_NORM:
    case TESS_NODE_SNV:
    case TESS_NODE_SAVITZKY_GOLAY:
    case TESS_NODE_CONTINUUM:
    case TESS_NODE_BANDPASS:
    case TESS_NODE_BINARY:
    case TESS_NODE_METRICS:
    case TESS_NODE_KINDS:
        break;
    }
    return TESS_SCOPE_NONE;
}

bool tess_node_is_affine(const tess_node *node)
{
    const bool maps = node->kind == TESS_NODE_MINMAX || node->kind == TESS_NODE_ZSCORE ||
                      node->kind == TESS_NODE_SAVITZKY_GOLAY || node->kind == TESS_NODE_BANDPASS ||
                      node->kind == TESS_NODE_PCA;
    return maps && tess_node_scope_of(node) != TESS_SCOPE_IMAGE;
}

int tess_pipeline_kind(const tess_pipeline *pipeline, tess_node_kind kind)
{
    for (int i = 0; i < pipeline->count; i++)
        if (pipeline->nodes[i].kind == kind)
            return i;
    return -1;
}

int tess_pipeline_score(const tess_pipeline *pipeline)
{
    const int rx = tess_pipeline_kind(pipeline, TESS_NODE_RX);
    return rx >= 0 ? rx : tess_pipeline_kind(pipeline, TESS_NODE_LAD);
}

int tess_pipeline_decider(const tess_pipeline *pipeline)
{
    for (int i = 0; i < pipeline->count; i++)
        if (tess_node_kinds[pipeline->nodes[i].kind].gives == TESS_PORT_DECISIONS)
            return i;
    return -1;
}
