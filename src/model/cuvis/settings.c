/* settings.c: the settings of each class, as those of our kind. What upstream takes if nothing is said is said here, since our
 * own standard values may differ; ranges and types are checked when the pipeline is read. What a fitted node no longer
 * uses (eps that is already in its buffers) becomes neutral. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/cuvis/classes.h"

static const double pinv_cutoff = 0x1p-23; /* torch.linalg.pinv of float32: times the number of channels */

static const tess_json *value_of(const tess_cuvis_entry *e, const char *key)
{
    return tess_json_get(e->hparams, key);
}

static bool is_null(const tess_json *value)
{
    return !value ||
           (!tess_json_is_object(value) && !tess_json_is_array(value) && !tess_json_is_string(value) &&
            !tess_json_is_number(value) && !tess_json_is_bool(value));
}

static tess_status refuse(const tess_cuvis_entry *e, const char *key, const char *expected, tess_error *error)
{
    char *text = value_of(e, key) ? tess_json_dump(value_of(e, key), false) : NULL;
    const tess_status status = tess_fail(error, TESS_UNSUPPORTED, "node '%.60s': %s: expected %s, got %.60s",
                                         e->name, key, expected, text ? text : "nothing");
    tess_small_free(text);
    return status;
}

/* A number that is passed on; also where Python would read one from a text. */
static tess_status number(tess_cuvis_entry *e, const char *key, const char *ours, double otherwise,
                          tess_error *error)
{
    const tess_json *value = value_of(e, key);
    if (value && !tess_json_is_number(value))
        return refuse(e, key, "a number", error);
    if (!value && isnan(otherwise))
        return refuse(e, key, "a number, which this node must have", error);
    if (tess_json_is_int(value))
        tess_json_set_int(&e->settings, ours, tess_json_as_int(value, 0));
    else
        tess_json_set_double(&e->settings, ours, tess_json_as_double(value, otherwise));
    return TESS_OK;
}

static tess_status flag(const tess_cuvis_entry *e, const char *key, bool otherwise, bool *out,
                        tess_error *error)
{
    const tess_json *value = value_of(e, key);
    *out = tess_json_as_bool(value, otherwise);
    return !value || tess_json_is_bool(value) ? TESS_OK : refuse(e, key, "true or false", error);
}

/* Axes of (batch, height, width, channel) over which upstream reduces. */
static bool are_axes(const tess_json *value, const char *axes)
{
    bool same = tess_json_is_array(value) && tess_json_length(value) == (int64_t)strlen(axes);
    for (int64_t i = 0; same && i < tess_json_length(value); i++) {
        const int64_t axis = tess_json_as_int(tess_json_at(value, i), 9);
        same = (axis < 0 ? axis + 4 : axis) == axes[i] - '0';
    }
    return same;
}

tess_status tess_cuvis_minmax(tess_cuvis_entry *e, tess_error *error)
{
    bool running;
    TESS_TRY(flag(e, "use_running_stats", true, &running, error));
    if (running && !e->facts->fitted && !is_null(value_of(e, "max_initialization_frames")))
        return refuse(e, "max_initialization_frames", "null (all images are read to fit a node)", error);
    tess_json_set_string(&e->settings, "over", running ? "set" : "image");
    return number(e, "eps", "eps", 1e-6, error);
}

tess_status tess_cuvis_zscore_set(tess_cuvis_entry *e, tess_error *error)
{
    tess_json_set_string(&e->settings, "over", "set");
    if (!e->facts->fitted)
        return number(e, "eps", "eps", 1e-8, error);
    tess_json_set_double(&e->settings, "eps", 0); /* zscore_std has it */
    return TESS_OK;
}

tess_status tess_cuvis_zscore_image(tess_cuvis_entry *e, tess_error *error)
{
    if (!is_null(value_of(e, "dims")) && !are_axes(value_of(e, "dims"), "12"))
        return refuse(e, "dims", "[1, 2]: each band over its image", error);
    tess_json_set_string(&e->settings, "over", "image");
    return number(e, "eps", "eps", 1e-6, error);
}

tess_status tess_cuvis_sigmoid(tess_cuvis_entry *e, tess_error *error)
{
    if (tess_json_as_double(value_of(e, "std_floor"), 1e-6) != 1e-6)
        return refuse(e, "std_floor", "1e-6", error);
    return TESS_OK;
}

tess_status tess_cuvis_unit_norm(tess_cuvis_entry *e, tess_error *error)
{
    return number(e, "eps", "eps", 1e-8, error);
}

tess_status tess_cuvis_snv(tess_cuvis_entry *e, tess_error *error)
{
    tess_json_set_bool(&e->settings, "unbiased", true);
    return number(e, "eps", "eps", 1e-8, error);
}

static int by_size(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* The median distance of neighbours, as torch.median: of an even number the lower of the middle two. */
static tess_status median_step(const tess_cuvis_entry *e, double *step, tess_error *error)
{
    const int steps = e->facts->bands - 1;
    if (!e->facts->wavelengths || steps < 1)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "node '%.60s': takes the spacing of its bands from the wavelengths; name a `cube` that has them",
            e->name);
    double *all = tess_small_alloc((size_t)steps, sizeof *all);
    if (!all)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the wavelengths");
    for (int i = 0; i < steps; i++)
        all[i] = e->facts->wavelengths[i + 1] - e->facts->wavelengths[i];
    qsort(all, (size_t)steps, sizeof *all, by_size);
    *step = all[(steps - 1) / 2];
    tess_small_free(all);
    return TESS_OK;
}

tess_status tess_cuvis_savitzky_golay(tess_cuvis_entry *e, tess_error *error)
{
    static const char *const modes[][2] = {
        {"nearest", "nearest"}, {"mirror", "mirror"}, {"constant", "zero"}};
    const char *mode = value_of(e, "mode") ? tess_json_as_string(value_of(e, "mode"), "") : "nearest";
    size_t found = 0;
    while (found < 3 && strcmp(modes[found][0], mode) != 0)
        found++;
    if (found == 3)
        return refuse(e, "mode", "nearest, mirror or constant", error);
    tess_json_set_string(&e->settings, "ends", modes[found][1]);
    TESS_TRY(number(e, "window_length", "window", 11, error));
    TESS_TRY(number(e, "polyorder", "order", 2, error));
    TESS_TRY(number(e, "deriv", "derivative", 0, error));
    if (!e->has_wavelengths || tess_json_as_double(value_of(e, "deriv"), 0) <= 0)
        return number(e, "delta", "spacing", 1, error);
    double step = 1;
    TESS_TRY(median_step(e, &step, error));
    tess_json_set_double(&e->settings, "spacing", step);
    return TESS_OK;
}

tess_status tess_cuvis_bandpass(tess_cuvis_entry *e, tess_error *error)
{
    if (!is_null(value_of(e, "max_wavelength_nm")))
        TESS_TRY(number(e, "max_wavelength_nm", "to", NAN, error));
    return number(e, "min_wavelength_nm", "from", NAN, error);
}

tess_status tess_cuvis_pca(tess_cuvis_entry *e, tess_error *error)
{
    bool whiten;
    TESS_TRY(flag(e, "whiten", false, &whiten, error));
    tess_json_set_bool(&e->settings, "whiten", whiten);
    TESS_TRY(number(e, "eps", "eps", 1e-6, error));
    return number(e, "n_components", "components", NAN, error);
}

tess_status tess_cuvis_selector(tess_cuvis_entry *e, tess_error *error)
{
    bool hard;
    const tess_json *start = value_of(e, "init_method");
    if (start && !tess_json_is_string(start))
        return refuse(e, "init_method", "uniform or variance", error);
    TESS_TRY(flag(e, "hard", false, &hard, error));
    tess_json_set_bool(&e->settings, "hard", hard);
    tess_json_set_string(&e->settings, "start", tess_json_as_string(start, "uniform"));
    TESS_TRY(number(e, "temperature_init", "temperature", 5, error));
    TESS_TRY(number(e, "temperature_min", "least", 0.1, error));
    TESS_TRY(number(e, "temperature_decay", "decay", 0.9, error));
    TESS_TRY(number(e, "eps", "eps", 1e-6, error));
    return number(e, "n_select", "select", NAN, error);
}

tess_status tess_cuvis_mlp(tess_cuvis_entry *e, tess_error *error)
{
    const tess_json *kernel = value_of(e, "kernel");
    if (kernel && strcmp(tess_json_as_string(kernel, ""), "linear") != 0)
        return refuse(e, "kernel", "linear", error);
    TESS_TRY(number(e, "hidden", "hidden", 128, error));
    return number(e, "rep_dim", "channels", 32, error);
}

tess_status tess_cuvis_svdd(tess_cuvis_entry *e, tess_error *error)
{
    const tess_json *alpha = tess_json_get(e->helper, "alpha");
    if (tess_json_as_bool(tess_json_get(e->helper, "update_in_eval"), false))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "node '%.60s': its centre moves while pixels are scored (update_in_eval)", e->name);
    if (alpha && !tess_json_is_number(alpha))
        return tess_fail(error, TESS_UNSUPPORTED, "node '%.60s': alpha of its centre: expected a number",
                         e->name);
    tess_json_set_double(&e->settings, "follows", tess_json_as_double(alpha, 0.1));
    return TESS_OK;
}

tess_status tess_cuvis_rx_set(tess_cuvis_entry *e, tess_error *error)
{
    bool pinv;
    TESS_TRY(flag(e, "cache_inverse", true, &pinv, error));
    tess_json_set_string(&e->settings, "over", "set");
    if (e->facts
            ->fitted) { /* both are in the buffer; this cutoff keeps out what is left out there (quadratic.c) */
        tess_json_set_double(&e->settings, "eps", 0);
        tess_json_set_double(&e->settings, "cutoff", 0x1p-42);
        return TESS_OK;
    }
    tess_json_set_double(&e->settings, "cutoff", pinv ? pinv_cutoff : 0);
    return number(e, "eps", "eps", 1e-6, error);
}

tess_status tess_cuvis_rx_image(tess_cuvis_entry *e, tess_error *error)
{
    tess_json_set_string(&e->settings, "over", "image");
    tess_json_set_double(&e->settings, "cutoff", 0); /* solves, without a cutoff */
    return number(e, "eps", "eps", 1e-6, error);
}

tess_status tess_cuvis_lad(tess_cuvis_entry *e, tess_error *error)
{
    bool normalised;
    TESS_TRY(flag(e, "normalize_laplacian", true, &normalised, error));
    tess_json_set_bool(&e->settings, "normalised", normalised);
    return TESS_OK;
}

tess_status tess_cuvis_logit(tess_cuvis_entry *e, tess_error *error)
{
    return number(e, "init_scale", "scale", 1,
                  error); /* fitting replaces init_bias by mean + 2 deviations, as ours */
}

tess_status tess_cuvis_binary(tess_cuvis_entry *e, tess_error *error)
{
    return number(e, "threshold", "threshold", 0.5, error);
}

tess_status tess_cuvis_quantile(tess_cuvis_entry *e, tess_error *error)
{
    const tess_json *axes = value_of(e, "reduce_dims");
    if (!is_null(axes) && !are_axes(axes, "12") && !are_axes(axes, "123"))
        return refuse(e, "reduce_dims", "null: one threshold an image", error);
    return number(e, "quantile", "quantile", 0.995, error);
}

/* Without an image threshold it is the decider by quantile; a fixed threshold of pixels we don't have. */
tess_status tess_cuvis_two_stage(tess_cuvis_entry *e, tess_error *error)
{
    if (!is_null(value_of(e, "pixel_threshold")))
        return refuse(e, "pixel_threshold", "null: pixels are decided by their quantile", error);
    TESS_TRY(number(e, "quantile", "quantile", 0.995, error));
    if (is_null(value_of(e, "image_threshold"))) {
        e->kind = "quantile";
        return TESS_OK;
    }
    TESS_TRY(number(e, "top_k_fraction", "share", 0.001, error));
    return number(e, "image_threshold", "threshold", NAN, error);
}
