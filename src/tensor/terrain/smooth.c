#include "tensor/terrain/smooth.h"

#include "base/checked.h"
#include "smooth_impl.h"
#include "tensor/terrain/roughness.h"
#include "tensor/terrain/voids.h"

/* Of the energy norm of the error, against that of a level void. */
static const double TOLERANCE = 1e-6;

static bool is_void(const tess_smooth_window *window, int64_t i)
{
    return window->flags[i] || !isfinite(window->values[i]);
}

size_t tess_smooth_bytes(int64_t h, int64_t w)
{
    tess_smooth_system system;
    int64_t pixels;
    if (h <= 0 || w <= 0 || !tess_mul_i64(h, w, &pixels) || pixels >= INT32_MAX)
        return SIZE_MAX;
    return tess_smooth_place(&system, h, w, NULL) + tess_voids_walk_bytes(h, w);
}

/* Heights minus the mean of the valid ones, and which pixels are void. */
static tess_status begin(tess_smooth_system *system, const tess_smooth_window *window, double *mean,
                         tess_error *error)
{
    const int64_t pixels = window->h * window->w;
    double sum = 0;
    int64_t valid = 0;
    if (tess_smooth_bytes(window->h, window->w) == SIZE_MAX)
        return tess_fail(error, TESS_BAD_INPUT,
                         "a window of %lld x %lld pixels cannot be filled: 1 to 2^31 - 1 pixels are possible",
                         (long long)window->h, (long long)window->w);
    tess_smooth_place(system, window->h, window->w, window->scratch);
    for (int64_t i = 0; i < pixels; i++) {
        const bool hole = is_void(window, i);
        system->levels[0].active[i] = hole;
        sum += hole ? 0 : (double)window->values[i];
        valid += !hole;
    }
    if (valid == 0)
        return tess_fail(error, TESS_BAD_INPUT, "the window has no valid pixel: nothing can be interpolated");
    *mean = sum / (double)valid;
    for (int64_t i = 0; i < pixels; i++)
        system->u[i] = system->levels[0].active[i] ? 0 : (double)window->values[i] - *mean;
    return TESS_OK;
}

static void end(tess_smooth_system *system, const tess_smooth_window *window, double mean)
{
    tess_smooth_prepare(system);
    tess_smooth_solve(system, TOLERANCE);
    for (int64_t i = 0; i < window->h * window->w; i++)
        if (system->levels[0].active[i])
            window->values[i] = (float)(system->u[i] + mean);
}

/* The length below which the surface bends as a plate and above which it sags as a membrane, for a void of this width in
 * terrain of this exponent of roughness. Fitted with bench/studies/fill_smooth.py: rough terrain forgets its slope sooner, and
 * no slope goes on for long where the void is open at the raster's edge. That last limit was chosen on windows that include
 * the maps kept from training, so their figures favour it. */
static double bending_length(double width, double exponent, bool at_edge)
{
    static const double LONGEST_AT_EDGE = 24;
    const double octaves =
        -1 + 6 * (exponent - 1) + 12 * fmin(exponent - 0.6, 0); /* below 0.6: buildings, trees */
    const double length = width * exp2(fmin(fmax(octaves, -9), 2));
    return at_edge ? fmin(length, LONGEST_AT_EDGE) : length;
}

typedef struct blend {
    const tess_smooth_window *window;
    tess_smooth_level *level;
} blend;

/* The tension of one void. Narrow ones are plates in any terrain. */
static void set_tension(void *arg, const tess_void_one *one, const int32_t *pixels)
{
    enum { NARROW = 8, LEAST_RIM = 16 };
    const blend *task = arg;
    const tess_smooth_window *window = task->window;
    double tension = 0;
    if (one->width > NARROW && isfinite(one->width)) {
        const int64_t rim = tess_max_i64((int64_t)(2 * one->width), LEAST_RIM);
        const tess_roughness_area area = {.values = window->values,
                                          .flags = task->level->active,
                                          .w = window->w,
                                          .top = tess_max_i64(one->top - rim, 0),
                                          .left = tess_max_i64(one->left - rim, 0),
                                          .bottom = tess_min_i64(one->bottom + rim, window->h),
                                          .right = tess_min_i64(one->right + rim, window->w)};
        /* Where the terrain is smooth between neighbours, a plate is better than its roughness at a distance says. */
        const double exponent =
            (tess_roughness_exponent(&area, one->width / 8) + tess_roughness_exponent(&area, 2)) / 2;
        const double length = bending_length(one->width, exponent, one->at_edge);
        tension = 1 / (length * length);
    }
    for (int64_t i = 0; i < one->pixels; i++)
        task->level->tension[pixels[i]] = (float)tension;
}

tess_status tess_smooth_fill_tension(const tess_smooth_window *window, double tension, tess_error *error)
{
    tess_smooth_system system;
    double mean = 0;
    TESS_TRY(begin(&system, window, &mean, error));
    system.plate = isinf(tension) ? 0 : 1;
    for (int64_t i = 0; i < window->h * window->w; i++)
        system.levels[0].tension[i] = isinf(tension) ? 1 : (float)tension;
    end(&system, window, mean);
    return TESS_OK;
}

tess_status tess_smooth_fill(const tess_smooth_window *window, tess_smooth_kind kind, tess_error *error)
{
    tess_smooth_system system;
    double mean = 0;
    switch (kind) {
    case TESS_SMOOTH_MEMBRANE:
        return tess_smooth_fill_tension(window, INFINITY, error);
    case TESS_SMOOTH_BIHARMONIC:
        return tess_smooth_fill_tension(window, 0, error);
    case TESS_SMOOTH_BLEND:
        break;
    }
    TESS_TRY(begin(&system, window, &mean, error));
    blend task = {window, &system.levels[0]};
    char *scratch =
        (char *)window->scratch + tess_smooth_place(&(tess_smooth_system){0}, window->h, window->w, NULL);
    tess_voids_walk(system.levels[0].active, window->h, window->w, scratch, set_tension, &task);
    system.plate = 1;
    end(&system, window, mean);
    return TESS_OK;
}
