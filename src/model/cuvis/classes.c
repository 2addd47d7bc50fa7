/* classes.c: which class of cuvis.ai is which kind of node. A class is found by its last name: modules moved between versions
 * (cuvis_ai.anomaly.rx_detector, cuvis_ai.node.anomaly.rx_detector), classes did not. A class of another package is
 * another class, whatever its name. */
#include "model/cuvis/classes.h"

#include <string.h>

static const tess_cuvis_class classes[] = {
    {"CU3SDataNode",
     TESS_CUVIS_DATA,
     NULL,
     "cube mask wavelengths mesu_index",
     "cube mask wavelengths mesu_index",
     NULL,
     NULL,
     {{0}}},
    {"LentilsAnomalyDataNode",
     TESS_CUVIS_DATA,
     NULL,
     "cube mask wavelengths mesu_index",
     "cube mask wavelengths mesu_index",
     NULL,
     NULL,
     {{0}}},
    {"IdentityNormalizer", TESS_CUVIS_PASS, NULL, "data", "normalized", NULL, NULL, {{0}}},
    {"MinMaxNormalizer",
     TESS_CUVIS_KIND,
     "minmax",
     "data",
     "normalized",
     "eps use_running_stats max_initialization_frames",
     tess_cuvis_minmax,
     {{"running_min", "least", TESS_CUVIS_COPY}, {"running_max", "largest", TESS_CUVIS_COPY}}},
    {"ZScoreNormalizerGlobal",
     TESS_CUVIS_KIND,
     "zscore",
     "data",
     "normalized",
     "num_channels eps hidden",
     tess_cuvis_zscore_set,
     {{"zscore_mean", "mean", TESS_CUVIS_COPY}, {"zscore_std", "deviation", TESS_CUVIS_COPY}}},
    {"ZScoreNormalizer",
     TESS_CUVIS_KIND,
     "zscore",
     "data",
     "normalized",
     "dims eps keepdim",
     tess_cuvis_zscore_image,
     {{0}}},
    {"SigmoidNormalizer",
     TESS_CUVIS_KIND,
     "sigmoid",
     "data",
     "normalized",
     "std_floor",
     tess_cuvis_sigmoid,
     {{0}}},
    {"PerPixelUnitNorm",
     TESS_CUVIS_KIND,
     "unit_norm",
     "data",
     "normalized",
     "eps",
     tess_cuvis_unit_norm,
     {{0}}},
    {"SNVCorrection", TESS_CUVIS_KIND, "snv", "cube", "cube", "eps", tess_cuvis_snv, {{0}}},
    {"SavitzkyGolay",
     TESS_CUVIS_KIND,
     "savitzky_golay",
     "cube wavelengths",
     "cube",
     "window_length polyorder deriv delta mode",
     tess_cuvis_savitzky_golay,
     {{0}}},
    {"ContinuumRemoval", TESS_CUVIS_KIND, "continuum", "cube wavelengths", "cube", "eps", NULL, {{0}}},
    {"BandpassByWavelength",
     TESS_CUVIS_KIND,
     "bandpass",
     "data wavelengths",
     "filtered",
     "min_wavelength_nm max_wavelength_nm",
     tess_cuvis_bandpass,
     {{0}}},
    {"TrainablePCA",
     TESS_CUVIS_KIND,
     "pca",
     "data",
     "projected explained_variance_ratio components",
     "num_channels n_components whiten init_method eps",
     tess_cuvis_pca,
     {{"_mean", "mean", TESS_CUVIS_COPY},
      {"_components", "components", TESS_CUVIS_COPY},
      {"_explained_variance", "variances", TESS_CUVIS_COPY}}},
    {"SoftChannelSelector",
     TESS_CUVIS_KIND,
     "selector",
     "data",
     "selected weights",
     "n_select input_channels init_method temperature_init temperature_min temperature_decay hard eps",
     tess_cuvis_selector,
     {{"channel_logits", "logits", TESS_CUVIS_COPY}, {"", "temperature", TESS_CUVIS_SETTING}}},
    {"DeepSVDDProjection",
     TESS_CUVIS_KIND,
     "mlp",
     "data",
     "embeddings",
     "in_channels rep_dim hidden kernel n_rff gamma mlp_forward_batch_size",
     tess_cuvis_mlp,
     {{"net.fc1.weight", "first", TESS_CUVIS_COPY},
      {"net.fc1.bias", "bias", TESS_CUVIS_COPY},
      {"net.fc2.weight", "second", TESS_CUVIS_COPY}}},
    {"DeepSVDDCenterTracker",
     TESS_CUVIS_HELPER,
     "svdd",
     "embeddings",
     "center metrics",
     "rep_dim alpha update_in_eval",
     NULL,
     {{0}}},
    {"DeepSVDDScores",
     TESS_CUVIS_KIND,
     "svdd",
     "embeddings center",
     "scores",
     NULL,
     tess_cuvis_svdd,
     {{"_tracked_center", "centre", TESS_CUVIS_HELPED}},
     "center"},
    {"RXGlobal",
     TESS_CUVIS_KIND,
     "rx",
     "data",
     "scores",
     "num_channels eps cache_inverse",
     tess_cuvis_rx_set,
     {{"mu", "mean", TESS_CUVIS_COPY}, {"cov_inv", "covariance", TESS_CUVIS_COVARIANCE}}},
    {"RXPerBatch", TESS_CUVIS_KIND, "rx", "data", "scores", "eps", tess_cuvis_rx_image, {{0}}},
    {"LADGlobal",
     TESS_CUVIS_KIND,
     "lad",
     "data",
     "scores",
     "num_channels eps normalize_laplacian use_numpy_laplacian",
     tess_cuvis_lad,
     {{"M", "mean", TESS_CUVIS_COPY}, {"L", "laplacian", TESS_CUVIS_SYMMETRIC}}},
    {"ScoreToLogit",
     TESS_CUVIS_KIND,
     "score_to_logit",
     "scores",
     "logits",
     "init_scale init_bias",
     tess_cuvis_logit,
     {{"scale", "scale", TESS_CUVIS_COPY}, {"bias", "bias", TESS_CUVIS_COPY}}},
    {"BinaryDecider",
     TESS_CUVIS_KIND,
     "binary",
     "logits",
     "decisions",
     "threshold",
     tess_cuvis_binary,
     {{0}}},
    {"QuantileBinaryDecider",
     TESS_CUVIS_KIND,
     "quantile",
     "logits",
     "decisions",
     "quantile reduce_dims",
     tess_cuvis_quantile,
     {{0}}},
    {"TwoStageBinaryDecider",
     TESS_CUVIS_KIND,
     "two_stage",
     "logits",
     "decisions",
     "image_threshold top_k_fraction quantile pixel_threshold reduce_dims",
     tess_cuvis_two_stage,
     {{0}}},
    {"AnomalyDetectionMetrics",
     TESS_CUVIS_KIND,
     "metrics",
     "decisions logits targets",
     "metrics",
     NULL,
     NULL,
     {{0}}},
};

const tess_cuvis_class *tess_cuvis_find(const char *class_name)
{
    const char *point = strrchr(class_name, '.'), *last = point ? point + 1 : class_name;
    if (point && strncmp(class_name, "cuvis_ai.", 9) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(classes[i].name, last) != 0)
            continue;
        for (int k = 0; classes[i].kind && k < TESS_NODE_KINDS; k++)
            if (strcmp(tess_node_kinds[k].name, classes[i].kind) == 0)
                return &classes[i];
        return classes[i].kind ? NULL : &classes[i];
    }
    return NULL;
}

bool tess_cuvis_has_word(const char *list, const char *word, size_t length)
{
    while (list && *list) {
        const size_t first = strcspn(list, " ");
        if (first == length && memcmp(list, word, length) == 0)
            return true;
        list += first + (list[first] == ' ');
    }
    return false;
}

tess_status tess_cuvis_translate(const tess_cuvis_class *class, tess_cuvis_entry *entry, tess_error *error)
{
    for (const char *key = NULL; (key = tess_json_next_key(entry->hparams, key));) {
        const tess_json *value = tess_json_get(entry->hparams, key);
        const bool nothing = !tess_json_is_object(value) && !tess_json_is_array(value) &&
                             !tess_json_is_string(value) && !tess_json_is_number(value) &&
                             !tess_json_is_bool(value);
        if (!nothing && strcmp(key, "name") != 0 && strcmp(key, "execution_stages") != 0 &&
            !tess_cuvis_has_word(class->hparams, key, strlen(key)))
            return tess_fail(error, TESS_UNSUPPORTED,
                             "node '%.60s': %.60s: is no setting of %s that is known here; %s%s", entry->name,
                             key, class->name, class->hparams ? "known are: " : "it has none",
                             class->hparams ? class->hparams : "");
    }
    entry->kind = class->kind;
    entry->settings = tess_json_object();
    if (class->translate)
        TESS_TRY(class->translate(entry, error));
    tess_json_set_string(&entry->settings, "kind", entry->kind);
    return entry->settings ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
}
