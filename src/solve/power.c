#include "solve/power.h"

#include <math.h>

#include "base/checked.h"
#include "base/rng.h"

enum {
    PIECE = 4096,
    POWER_ITEM = 0x706f7765 /* its random numbers differ from those of any noise */
};

tess_status tess_power_start(const tess_data_term *term, uint64_t seed, void *x, tess_error *error)
{
    tess_device *device = term->op->device;
    const tess_tensor *image = &term->op->image;
    const int64_t count = image->n * image->d * image->h * image->w * image->c;
    float piece[PIECE];
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t some = tess_min_i64(PIECE, count - at);
        tess_rng_normal((tess_rng_key){seed, POWER_ITEM, 0}, term->op->image_first + at, some, piece);
        device->memory->copy(device, (float *)x + at, piece, (size_t)some * sizeof *piece, NULL);
        TESS_TRY(tess_share_keep(term->op->share, device->streams->sync(device, NULL, error),
                                 error)); /* before the piece is reused */
    }
    return TESS_OK;
}

static tess_status scale(const tess_data_term *term, void *x, double factor, tess_error *error)
{
    const tess_sum scaled = {.a = factor, .x = x};
    return tess_vectors_sum(&term->images, &scaled, x, error);
}

tess_status tess_power(const tess_data_term *term, const tess_power_settings *settings,
                       void *const vectors[2], tess_power_result *result, tess_error *error)
{
    void *x = vectors[0], *y = vectors[1];
    double square, previous = INFINITY;
    *result = (tess_power_result){0};
    TESS_TRY(tess_power_start(term, settings->seed, x, error));
    TESS_TRY(tess_vectors_dot(&term->images, x, x, &square, error));
    TESS_TRY(scale(term, x, 1 / sqrt(square), error));
    while (result->iterations < settings->iterations) {
        double product, image_square;
        TESS_TRY(tess_data_term_ask(term, &settings->tick, error));
        tess_data_term_normal(term, x, y);
        TESS_TRY(tess_vectors_dot(&term->images, x, y, &product, error));
        TESS_TRY(tess_vectors_dot(&term->images, x, x, &square, error));
        TESS_TRY(tess_vectors_dot(&term->images, y, y, &image_square, error));
        result->norm_squared = product / square;
        result->iterations++;
        const double change = fabs(result->norm_squared - previous);
        if (change < settings->absolute || change < settings->relative * result->norm_squared)
            break;
        if (!(image_square > 0) || !isfinite(image_square))
            return tess_fail(error, TESS_BAD_INPUT,
                             "the %s operator sees nothing of the image: check its geometry", term->op->name);
        previous = result->norm_squared;
        TESS_TRY(scale(term, y, 1 / sqrt(image_square), error));
        void *swap = x;
        x = y;
        y = swap;
    }
    return TESS_OK;
}
