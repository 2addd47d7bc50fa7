/* kinds.c: the table of the kinds of nodes. Names, ranges and standard values of the settings are stated here alone. */
#include "model/spectral/pipeline.h"

static const tess_setting_word set_or_image[] = {
    {"set", TESS_SCOPE_SET}, {"image", TESS_SCOPE_IMAGE}, {NULL, 0}};
static const tess_setting_word rx_scopes[] = {{"set", TESS_SCOPE_SET},
                                              {"image", TESS_SCOPE_IMAGE},
                                              {"local", TESS_SCOPE_LOCAL},
                                              {"stream", TESS_SCOPE_STREAM},
                                              {NULL, 0}};

static const tess_setting_word selector_starts[] = {
    {"variance", TESS_START_VARIANCE}, {"uniform", TESS_START_UNIFORM}, {NULL, 0}};
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
#define TRAINABLE(standard)                                                                                  \
    {                                                                                                        \
        "trainable", BOOL, 0, 1, standard, NULL, "true or false"                                             \
    }
#define SEED                                                                                                 \
    {                                                                                                        \
        "seed", INTEGER, 0, 4294967295.0, 0, NULL, "a whole number from 0"                                   \
    }
#define WEIGHT(standard)                                                                                     \
    {                                                                                                        \
        "weight", NUMBER, -HUGE, HUGE, standard, NULL, "a number"                                            \
    }

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
                           [TESS_ZSCORE_EPS] = {"eps", NUMBER, 0, HUGE, -1, NULL, from_zero},
                           [TESS_ZSCORE_TRAINABLE] = TRAINABLE(0)}},
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
                       {[TESS_PCA_COMPONENTS] = {"components", INTEGER, 0, 4096, 3, NULL,
                                                 "a number of components, or 0 for all"},
                        [TESS_PCA_WHITEN] = {"whiten", BOOL, 0, 1, 0, NULL, "true or false"},
                        [TESS_PCA_EPS] = {"eps", NUMBER, 0, HUGE, 1e-6, NULL, from_zero},
                        [TESS_PCA_TRAINABLE] = TRAINABLE(0)}},
    [TESS_NODE_SELECTOR] =
        {"selector",
         READS_SPECTRA,
         TESS_PORT_SPECTRA,
         {[TESS_SELECTOR_SELECT] = {"select", INTEGER, 1, 4096, 3, NULL, "a number of channels from 1"},
          [TESS_SELECTOR_START] = {"start", WORD, 0, 0, TESS_START_VARIANCE, selector_starts, NULL},
          [TESS_SELECTOR_TEMPERATURE] = {"temperature", NUMBER, LEAST, HUGE, 5, NULL, "a number above 0"},
          [TESS_SELECTOR_LEAST] = {"least", NUMBER, LEAST, HUGE, 0.1, NULL, "a number above 0"},
          [TESS_SELECTOR_DECAY] = {"decay", NUMBER, LEAST, 1, 0.9, NULL, "a number above 0 and at most 1"},
          [TESS_SELECTOR_HARD] = {"hard", BOOL, 0, 1, 0, NULL, "true or false"},
          [TESS_SELECTOR_EPS] = {"eps", NUMBER, 0, HUGE, 1e-6, NULL, from_zero},
          [TESS_SELECTOR_TRAINABLE] = TRAINABLE(1)}},
    [TESS_NODE_LINEAR] = {"linear",
                          READS_SPECTRA,
                          TESS_PORT_SPECTRA,
                          {[TESS_LINEAR_CHANNELS] = {"channels", INTEGER, 1, 4096, 16, NULL,
                                                     "a number of channels from 1"},
                           [TESS_LINEAR_EPS] = {"eps", NUMBER, 0, HUGE, 1e-6, NULL, from_zero},
                           [TESS_LINEAR_SEED] = SEED,
                           [TESS_LINEAR_TRAINABLE] = TRAINABLE(1)}},
    [TESS_NODE_MLP] =
        {"mlp",
         READS_SPECTRA,
         TESS_PORT_SPECTRA,
         {[TESS_MLP_HIDDEN] = {"hidden", INTEGER, 1, 4096, 128, NULL, "a number of channels from 1"},
          [TESS_MLP_CHANNELS] = {"channels", INTEGER, 1, 4096, 32, NULL, "a number of channels from 1"},
          [TESS_MLP_SEED] = SEED,
          [TESS_MLP_TRAINABLE] = TRAINABLE(1)}},
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
          [TESS_RX_WARMUP] = {"warmup", INTEGER, 1, 65536, 64, NULL, "a number of rows from 1"},
          [TESS_RX_TRIM] = {"trim", NUMBER, 0, HUGE, 0, NULL, "a multiple of the mean score above 1, or 0"},
          [TESS_RX_TRIMS] = {"trims", INTEGER, 1, 100, 3, NULL, "a number of passes from 1"},
          [TESS_RX_TRAINABLE] = TRAINABLE(0)}},
    [TESS_NODE_LAD] = {"lad",
                       READS_SPECTRA,
                       TESS_PORT_SCORES,
                       {[TESS_LAD_NORMALISED] = {"normalised", BOOL, 0, 1, 1, NULL, "true or false"},
                        [TESS_LAD_TRAINABLE] = TRAINABLE(0)}},
    [TESS_NODE_SVDD] = {"svdd",
                        READS_SPECTRA,
                        TESS_PORT_SCORES,
                        {[TESS_SVDD_FOLLOWS] = {"follows", NUMBER, 0, 1, 0.1, NULL, "a number from 0 to 1"}}},
    [TESS_NODE_RESIDUAL] = {"residual", READS_SPECTRA, TESS_PORT_SCORES, {{NULL}}, .target = true},
    [TESS_NODE_SCORE_TO_LOGIT] = {"score_to_logit",
                                  READS_SCORES,
                                  TESS_PORT_SCORES,
                                  {[TESS_LOGIT_SCALE] = {"scale", NUMBER, LEAST, HUGE, 1, NULL,
                                                         "a number above 0"},
                                   [TESS_LOGIT_DEVIATIONS] = {"deviations", NUMBER, -1e6, 1e6, 2, NULL,
                                                              "a number of standard deviations"},
                                   [TESS_LOGIT_TRAINABLE] = TRAINABLE(0)}},
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
    [TESS_NODE_BCE] = {"bce",
                       READS_SCORES,
                       TESS_PORT_NONE,
                       {[TESS_LOSS_WEIGHT] = WEIGHT(1),
                        [TESS_BCE_POSITIVE] = {"positive", NUMBER, LEAST, HUGE, 1, NULL, "a number above 0"}},
                       .loss = true},
    [TESS_NODE_IOU] = {"iou",
                       READS_SCORES,
                       TESS_PORT_NONE,
                       {[TESS_LOSS_WEIGHT] = WEIGHT(1),
                        [TESS_IOU_SMOOTH] = {"smooth", NUMBER, LEAST, HUGE, 1e-6, NULL, "a number above 0"}},
                       .loss = true},
    [TESS_NODE_MSE] = {"mse",
                       READS_SPECTRA,
                       TESS_PORT_NONE,
                       {[TESS_LOSS_WEIGHT] = WEIGHT(1)},
                       .loss = true,
                       .target = true},
    [TESS_NODE_SOFT_BOUNDARY] = {"soft_boundary",
                                 READS_SCORES,
                                 TESS_PORT_NONE,
                                 {[TESS_LOSS_WEIGHT] = WEIGHT(1),
                                  [TESS_SOFT_BOUNDARY_NU] = {"nu", NUMBER, LEAST, 1 - LEAST, 0.05, NULL,
                                                             a_share}},
                                 .loss = true},
    [TESS_NODE_ORTHOGONALITY] =
        {"orthogonality", READS_SPECTRA, TESS_PORT_NONE, {[TESS_LOSS_WEIGHT] = WEIGHT(1)}, .loss = true},
    [TESS_NODE_DISTINCTNESS] = {"distinctness",
                                READS_SPECTRA,
                                TESS_PORT_NONE,
                                {[TESS_LOSS_WEIGHT] = WEIGHT(0.1),
                                 [TESS_DISTINCTNESS_EPS] = {"eps", NUMBER, LEAST, HUGE, 1e-6, NULL,
                                                            "a number above 0"}},
                                .loss = true},
    /* A target below 0 stands for none. */
    [TESS_NODE_ENTROPY] =
        {"entropy",
         READS_SPECTRA,
         TESS_PORT_NONE,
         {[TESS_LOSS_WEIGHT] = WEIGHT(0.01),
          [TESS_ENTROPY_TARGET] = {"entropy", NUMBER, -1, HUGE, -1, NULL, "a number from 0, or -1 for none"},
          [TESS_ENTROPY_EPS] = {"eps", NUMBER, LEAST, HUGE, 1e-6, NULL, "a number above 0"}},
         .loss = true},
    [TESS_NODE_DIVERSITY] =
        {"diversity", READS_SPECTRA, TESS_PORT_NONE, {[TESS_LOSS_WEIGHT] = WEIGHT(0.01)}, .loss = true},
};
