#include "tensor/terrain/relief.h"

#include <math.h>

#include "base/checked.h"
#include "tensor/terrain/roughness.h"
#include "tensor/terrain/voids.h"

size_t tess_relief_bytes(int64_t h, int64_t w)
{
    return tess_voids_walk_bytes(h, w);
}

static void fit_range(const tess_relief_window *window, tess_relief *relief)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < window->h * window->w; i++)
        if (!window->flags[i]) {
            low = fmin(low, (double)window->values[i]);
            high = fmax(high, (double)window->values[i]);
        }
    if (low > high)
        low = high = 0;
    relief->centre = (low + high) / 2;
    relief->scale = fmax((high - low) / 2, window->least);
}

/* The area around all voids, and the widest. */
typedef struct rim {
    tess_void_one all;
    double width;
} rim;

static void add_void(void *arg, const tess_void_one *one, const int32_t *pixels)
{
    (void)pixels;
    rim *sum = arg;
    if (sum->width <= 0)
        sum->all = *one;
    sum->all.top = tess_min_i64(sum->all.top, one->top),
    sum->all.left = tess_min_i64(sum->all.left, one->left);
    sum->all.bottom = tess_max_i64(sum->all.bottom, one->bottom);
    sum->all.right = tess_max_i64(sum->all.right, one->right);
    sum->width = fmax(sum->width, one->width);
}

/* The smooth fill of a void misses about as much as the terrain's second differences at a quarter of its width are: the
 * root mean square of what is left is then 0.2 to 0.9 in voids cut into real maps, 0.4 in the median. */
static void fit_smooth(const tess_relief_window *window, tess_relief *relief)
{
    rim sum = {.width = 0};
    relief->scale = window->least;
    tess_voids_walk(window->flags, window->h, window->w, window->scratch, add_void, &sum);
    relief->width = sum.width;
    if (!(sum.width > 0) || !isfinite(sum.width))
        return;
    const int64_t reach = tess_max_i64((int64_t)(2 * sum.width), 16);
    const tess_roughness_area area = {.values = window->values,
                                      .flags = window->flags,
                                      .w = window->w,
                                      .top = tess_max_i64(sum.all.top - reach, 0),
                                      .left = tess_max_i64(sum.all.left - reach, 0),
                                      .bottom = tess_min_i64(sum.all.bottom + reach, window->h),
                                      .right = tess_min_i64(sum.all.right + reach, window->w)};
    double square = NAN;
    for (int64_t lag = tess_max_i64(llrint(sum.width / 4), 1); lag > 0 && isnan(square); lag /= 2)
        square = tess_roughness(&area, lag);
    if (square > 0)
        relief->scale = fmax(sqrt(square), window->least);
}

void tess_relief_fit(const tess_relief_window *window, tess_relief_kind kind, tess_relief *relief)
{
    *relief = (tess_relief){.kind = kind};
    switch (kind) {
    case TESS_RELIEF_MINMAX:
        fit_range(window, relief);
        break;
    case TESS_RELIEF_SMOOTH:
        fit_smooth(window, relief);
        break;
    }
}

void tess_relief_apply(const tess_relief *relief, const float *values, const uint8_t *flags,
                       const float *smooth, int64_t count, float *out)
{
    const bool subtract = relief->kind == TESS_RELIEF_SMOOTH;
    const double most = subtract ? 2 : 1;
    for (int64_t i = 0; i < count; i++) {
        const double from = subtract ? (double)smooth[i] : relief->centre;
        const double y = flags && flags[i] ? 0 : ((double)values[i] - from) / relief->scale;
        out[i] = (float)fmin(fmax(y, -most), most);
    }
}

void tess_relief_restore(const tess_relief *relief, const float *in, const float *smooth, int64_t count,
                         float *values)
{
    const bool subtract = relief->kind == TESS_RELIEF_SMOOTH;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)in[i] * relief->scale + (subtract ? (double)smooth[i] : relief->centre));
}
