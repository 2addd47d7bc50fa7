/* A run. Everything is checked and allocated before, so that the run only moves pixels and computes. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/library/library.h"
#include "window/resident.h"

static tess_status create_windows(tess_denoiser *plan, tess_error *error)
{
    tess_engine *engine = &plan->model->opened->engine;
    const tess_windows_settings settings = {.device = engine->device,
                                            .keep = (int)tess_cut_shapes(&plan->cut),
                                            .graphs = !engine->device->host_memory,
                                            .run_first = !engine->device->host_memory};
    TESS_TRY(tess_windows_create(&settings, &plan->windows, error));
    TESS_TRY(tess_windows_alloc(plan->windows, plan->sizes.arena, plan->sizes.workspace, error));
    return tess_windows_prepare(plan->windows, &plan->net, &plan->cut, error);
}

static void release_parts(tess_denoiser *plan)
{
    tess_windows_destroy(plan->windows);
    plan->windows = NULL;
    tess_queue_close(plan->queue);
    plan->queue = NULL;
    tess_block_free(&plan->stage);
    plan->prepared = false;
}

static tess_status prepare(tess_denoiser *plan, tess_error *error)
{
    tess_engine *engine = &plan->model->opened->engine;
    if (plan->prepared)
        return TESS_OK;
    tess_status status = tess_block_alloc(engine->memory, &plan->stage, TESS_MEM_HOST, plan->staged, error);
    if (status == TESS_OK)
        status = engine->separate_memory && !plan->settings.on_device
                     ? tess_queue_open(engine->device, &plan->sizes, &plan->queue, error)
                     : create_windows(plan, error);
    if (status != TESS_OK)
        release_parts(plan);
    plan->prepared = status == TESS_OK;
    return status;
}

tess_status tess_denoiser_prepare(tess_denoiser *plan)
{
    return plan ? prepare(plan, tess_model_error(plan->model)) : TESS_BAD_OPTION;
}

void tess_denoiser_release(tess_denoiser *plan)
{
    if (!plan)
        return;
    tess_device *device = plan->model->opened->engine.device;
    if (plan->prepared && plan->settings.on_device && !device->host_memory)
        (void)!device->streams->sync(device, NULL, NULL);
    release_parts(plan);
    tess_small_free(plan);
}

static bool same_sizes(const tess_denoiser_settings *s, const tess_image *image)
{
    return image->depth == s->depth && image->height == s->height && image->width == s->width &&
           image->channels == s->channels;
}

tess_status tess_denoiser_take_image(const tess_denoiser *plan, const tess_image *image, const char *name,
                                     tess_image *out, tess_error *error)
{
    const tess_denoiser_settings *s = &plan->settings;
    tess_image_init(out, NULL, s->element, 1, 1, 1);
    if (!image || !tess_struct_take(out, sizeof *out, image) || !out->data)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "tess_denoiser_run: `%s` is no image; fill it with tess_image_init, and give it data", name);
    if (!same_sizes(s, out) || out->element != s->element)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "tess_denoiser_run: `%s` is %lld x %lld x %lld with %lld channel(s) of element type %d, "
            "the plan is for %lld x %lld x %lld with %lld of type %d; make another plan",
            name, (long long)out->depth, (long long)out->height, (long long)out->width,
            (long long)out->channels, (int)out->element, (long long)s->depth, (long long)s->height,
            (long long)s->width, (long long)s->channels, (int)s->element);
    if (out->on_device != s->on_device)
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_denoiser_run: `%s` is %son the device, the plan is for images that are%s",
                         name, out->on_device ? "" : "not ", s->on_device ? "" : " not");
    if ((uintptr_t)out->data % tess_dtype_size(plan->type.dtype) != 0)
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_denoiser_run: the data of `%s` is not aligned to its elements", name);
    return TESS_OK;
}

/* The bytes that an image touches, from its data on; false when they are more than an address can reach. */
static bool span_of(const tess_image *image, size_t element, int64_t *low, int64_t *high)
{
    const int64_t sizes[] = {image->depth, image->height, image->width, image->channels},
                  strides[] = {image->stride_depth, image->stride_height, image->stride_width,
                               image->stride_channel};
    *low = 0;
    *high = (int64_t)element;
    for (int i = 0; i < 4; i++) {
        int64_t bytes, *end = strides[i] < 0 ? low : high;
        if (__builtin_mul_overflow(strides[i], (int64_t)element, &bytes) ||
            __builtin_mul_overflow(bytes, sizes[i] - 1, &bytes) || __builtin_add_overflow(*end, bytes, end))
            return false;
    }
    return *low > -(INT64_MAX / 4) && *high < INT64_MAX / 4;
}

static bool same_layout(const tess_image *a, const tess_image *b)
{
    return a->data == b->data && a->stride_depth == b->stride_depth && a->stride_height == b->stride_height &&
           a->stride_width == b->stride_width && a->stride_channel == b->stride_channel;
}

/* One image may be written over another only where both are the same: windows read what others have written otherwise. */
static tess_status check_overlap(const tess_denoiser *plan, const tess_image *in, const tess_image *out,
                                 tess_error *error)
{
    const size_t element = tess_dtype_size(plan->type.dtype);
    int64_t in_low, in_high, out_low, out_high;
    if (!span_of(in, element, &in_low, &in_high) || !span_of(out, element, &out_low, &out_high))
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_denoiser_run: a stride is larger than memory; strides are in elements");
    const char *from = in->data, *to = out->data;
    const bool disjoint = (uintptr_t)(from + in_high) <= (uintptr_t)(to + out_low) ||
                          (uintptr_t)(to + out_high) <= (uintptr_t)(from + in_low);
    return disjoint || same_layout(in, out)
               ? TESS_OK
               : tess_fail(
                     error, TESS_BAD_OPTION,
                     "tess_denoiser_run: `out` overlaps `in` but is not the same image; use another one");
}

/* Strides under which pixels overlap are allowed for reading, but not for writing. */
static tess_status check_strides(const tess_image *out, tess_error *error)
{
    const int64_t sizes[] = {out->depth, out->height, out->width, out->channels},
                  strides[] = {out->stride_depth, out->stride_height, out->stride_width, out->stride_channel};
    for (int i = 0; i < 4; i++)
        if (sizes[i] > 1 && strides[i] == 0)
            return tess_fail(
                error, TESS_BAD_OPTION,
                "tess_denoiser_run: a stride of `out` is 0, so that its pixels lie on one another");
    return TESS_OK;
}

static tess_status choose_level(tess_denoiser *plan, const tess_image *in, double sigma, tess_error *error)
{
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++)
        plan->level[c] = (float)sigma;
    if (!plan->model->loaded.model.noise_map)
        return TESS_OK;
    if (sigma == TESS_SIGMA_AUTO && in->on_device)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "tess_denoiser_run: sigma is estimated from images on the host only; give a number");
    if (sigma == TESS_SIGMA_AUTO) {
        const tess_strided host = tess_strided_of(in, plan->type);
        return tess_denoiser_estimate(plan, &host, error);
    }
    if (!(sigma >= 0 && sigma <= 1))
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_denoiser_run: sigma is %g; use 0 to 1, on the scale of the range, or "
                         "TESS_SIGMA_AUTO",
                         sigma);
    return TESS_OK;
}

/* Channels without noise are copied, as by the denoise verb; all of them if `all`. */
static void copy_image(const tess_denoiser *plan, bool all, const tess_strided *in, const tess_strided *out)
{
    enum { PIXELS = 64 };
    _Alignas(8) char samples[PIXELS * 8];
    for (int64_t c = 0; c < in->channels && in->data != out->data; c++)
        for (int64_t y = 0; y < in->depth * in->height && (all || tess_denoiser_keeps(plan, c)); y++)
            for (int64_t x = 0; x < in->width; x += PIXELS) {
                const tess_run_of_pixels run = {.z = y / in->height,
                                                .y = y % in->height,
                                                .x = x,
                                                .count = tess_min_i64(PIXELS, in->width - x),
                                                .first = c,
                                                .channels = 1};
                tess_strided_copy_out(in, &run, samples);
                tess_strided_copy_in(out, &run, samples);
            }
}

/* Whether every plane's level is 0. */
static bool is_clean(const tess_denoiser *plan)
{
    bool clean = plan->model->loaded.model.noise_map;
    for (int64_t p = 0; p < plan->net.planes; p++)
        clean = clean && tess_denoiser_level(plan, p) == 0;
    return clean;
}

static tess_status run_with_level(tess_denoiser *plan, const tess_strided *from, const tess_strided *to,
                                  tess_error *error)
{
    copy_image(plan, is_clean(plan), from, to);
    if (is_clean(plan))
        return TESS_OK;
    return plan->queue ? tess_denoiser_run_queue(plan, from, to, error)
                       : tess_denoiser_run_host(plan, from, to, error);
}

static tess_status run_host(tess_denoiser *plan, const tess_image *in, const tess_image *out,
                            tess_error *error)
{
    tess_strided from = tess_strided_of(in, plan->type), to = tess_strided_of(out, plan->type);
    if (plan->model->loaded.model.volume && in->data == out->data && !is_clean(plan) &&
        plan->cut.axis[0].tiles * plan->cut.axis[1].tiles * plan->cut.axis[2].tiles > 1)
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_denoiser_run: a volume in several windows needs an `out` of its own");
    if (!plan->slice_levels)
        return run_with_level(plan, &from, &to, error);
    from.depth = to.depth = 1;
    for (int64_t z = 0; z < in->depth; z++) {
        memcpy(plan->level, plan->slice_levels + z * TESS_NOISE_CHANNELS, sizeof plan->level);
        TESS_TRY(run_with_level(plan, &from, &to, error));
        from.data += from.step_depth;
        to.data += to.step_depth;
    }
    return TESS_OK;
}

tess_status tess_denoiser_run(tess_denoiser *plan, const tess_image *in, const tess_image *out, double sigma,
                              void *stream)
{
    if (!plan)
        return TESS_BAD_OPTION;
    tess_error *error = tess_model_error(plan->model);
    tess_image from, to;
    TESS_TRY(tess_denoiser_take_image(plan, in, "in", &from, error));
    TESS_TRY(tess_denoiser_take_image(plan, out, "out", &to, error));
    TESS_TRY(check_strides(&to, error));
    TESS_TRY(check_overlap(plan, &from, &to, error));
    if (!from.on_device) {
        const tess_strided host = tess_strided_of(&from, plan->type);
        TESS_TRY(tess_denoiser_check_finite(&host, error));
    }
    tess_status status = choose_level(plan, &from, sigma, error);
    if (status == TESS_OK)
        status = prepare(plan, error);
    if (status == TESS_OK)
        status = plan->settings.on_device ? tess_denoiser_run_resident(plan, &from, &to, stream, error)
                                          : run_host(plan, &from, &to, error);
    tess_small_free(plan->slice_levels);
    plan->slice_levels = NULL;
    return status;
}
