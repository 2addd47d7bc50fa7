#include "train/statistics/condense.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "model/spectral/network.h"
#include "tensor/moments.h"

enum { MOST_BYTES = 32 << 20 }; /* of moments at a time */

typedef struct condensing {
    const tess_pixel_stage_settings *settings;
    const tess_path *path;
    tess_pixel_stage stage;
    tess_block host, device; /* moments of some images */
    int channels;
    int64_t together;
    float *pixels; /* of the first of these images */
} condensing;

/* From the moments of one image to those of the next. */
static size_t values_of(int channels)
{
    return tess_moments_values(channels, true);
}

/* Images whose moments are gathered together. */
static int64_t together_of(int channels, int64_t images)
{
    return tess_max_i64(1,
                        tess_min_i64(images, (int64_t)(MOST_BYTES / (values_of(channels) * sizeof(double)))));
}

static size_t moments_bytes(int channels, int64_t images)
{
    return (size_t)images * values_of(channels) * sizeof(double);
}

static tess_pixel_stage_settings stage_settings(const tess_pixel_stage_settings *settings)
{
    tess_pixel_stage_settings stage = *settings;
    stage.sums = true;
    return stage;
}

tess_status tess_condense_plan(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                               const tess_pixel_set *set, tess_mem_bytes *bytes, tess_error *error)
{
    tess_pixel_stage_sizes sizes;
    const int channels = tess_spectral_gives(plan, tess_spectral_network_at(plan));
    const size_t moments = moments_bytes(channels, together_of(channels, set->images));
    const tess_pixel_stage_settings stage = stage_settings(settings);
    TESS_TRY(tess_pixel_stage_plan(&stage, plan, set, &sizes, error));
    *bytes = (tess_mem_bytes){{0}};
    tess_pixel_stage_bytes(&stage, &sizes, bytes);
    bytes->by[TESS_MEM_HOST] += tess_block_granted(moments);
    bytes->by[TESS_MEM_IO] += settings->device->memory->granted(settings->device, moments);
    return TESS_OK;
}

/* Cholesky's factor of a symmetric matrix without negative eigenvalues, in its lower triangle. Directions without variance, up to
 * rounding, get none. */
static void factorise(double *a, int n)
{
    static const double least = 1e-14; /* of the variance of the channel itself */
    for (int j = 0; j < n; j++) {
        double *row = a + (size_t)j * (size_t)n, rest = row[j];
        for (int k = 0; k < j; k++)
            rest -= row[k] * row[k];
        const double pivot = rest > least * row[j] ? sqrt(rest) : 0;
        for (int i = j + 1; i < n; i++) {
            double *below = a + (size_t)i * (size_t)n, sum = below[j];
            for (int k = 0; k < j; k++)
                sum -= below[k] * row[k];
            below[j] = pivot > 0 ? sum / pivot : 0;
        }
        row[j] = pivot;
    }
}

/* An item is an image. */
static void place_pixels(void *arg, int64_t item, int thread)
{
    const condensing *c = arg;
    const int n = c->channels;
    double *moments = (double *)c->host.data + (size_t)item * values_of(n),
           *second = moments + tess_moments_second(n);
    const double *mean = moments + TESS_MOMENTS_MEAN, scale = n / moments[TESS_MOMENTS_COUNT];
    float *to = c->pixels + item * tess_condensed_pixels(n) * n;
    (void)thread;
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++)
        second[i] *= scale;
    factorise(second, n);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++) {
            const double far = i >= k ? second[(size_t)i * (size_t)n + (size_t)k] : 0;
            to[(size_t)(2 * k) * (size_t)n + (size_t)i] = (float)(mean[i] + far);
            to[(size_t)(2 * k + 1) * (size_t)n + (size_t)i] = (float)(mean[i] - far);
        }
}

/* Moments of images [first, first + count), on the host. */
static tess_status gather(condensing *c, const tess_pixel_set *set, int64_t first, int64_t count,
                          tess_error *error)
{
    tess_device *device = c->settings->device;
    const tess_pixel_walk walk = {
        .set = set, .image = first, .end = first + count, .joins = true, .alike = true};
    const tess_pixel_block *block;
    double *host = c->host.data, *there = c->device.data;
    for (int64_t i = 0; i < count; i++)
        tess_moments_clear(host + (size_t)i * values_of(c->channels), c->channels, true);
    device->memory->copy(device, there, host, moments_bytes(c->channels, count), NULL);
    TESS_TRY(tess_pixel_stage_begin(&c->stage, &walk, error));
    for (;;) {
        TESS_TRY(tess_pixel_stage_next(&c->stage, &block, error));
        if (!block)
            break;
        double *to = there + (size_t)(block->image - first) * values_of(c->channels);
        TESS_TRY(block->joined
                     ? tess_pixel_stage_moments_each(&c->stage, to, error)
                     : tess_pixel_stage_moments(&c->stage, tess_pixel_stage_behind(&c->stage, c->path), 0,
                                                c->stage.pixels, c->channels, true, to, error));
        tess_stop_add(c->settings->stop, c->stage.pixels);
    }
    device->memory->copy(device, host, there, moments_bytes(c->channels, count), NULL);
    TESS_TRY(device->streams->sync(device, NULL, error));
    TESS_TRY(tess_stop_check(c->settings->stop, error));
    for (int64_t i = 0; i < count; i++)
        if (host[(size_t)i * values_of(c->channels) + TESS_MOMENTS_COUNT] < 1)
            return tess_fail(error, TESS_BAD_INPUT, "image %lld of the cubes has no pixel with a value",
                             (long long)(first + i));
    return TESS_OK;
}

static tess_status condense_all(condensing *c, const tess_pixel_set *set, float *pixels, tess_error *error)
{
    tess_device *device = c->settings->device;
    const size_t bytes = moments_bytes(c->channels, c->together);
    const tess_pixel_stage_settings stage = stage_settings(c->settings);
    TESS_TRY(tess_pixel_stage_create(&stage, c->path->state->plan, set, &c->stage, error));
    TESS_TRY(device->memory->host_alloc(device, &c->host, bytes, error));
    TESS_TRY(device->memory->alloc(device, &c->device, TESS_MEM_IO, bytes, error));
    for (int64_t first = 0; first < set->images; first += c->together) {
        const int64_t count = tess_min_i64(c->together, set->images - first);
        TESS_TRY(gather(c, set, first, count, error));
        c->pixels = pixels + first * tess_condensed_pixels(c->channels) * c->channels;
        if (c->settings->pool)
            tess_pool_run(c->settings->pool, count, place_pixels, c);
        else
            for (int64_t i = 0; i < count; i++)
                place_pixels(c, i, 0);
    }
    return TESS_OK;
}

tess_status tess_condense(const tess_pixel_stage_settings *settings, const tess_pixel_set *set,
                          const tess_path *path, float *pixels, tess_error *error)
{
    condensing *c = tess_small_alloc(1, sizeof *c);
    if (!c)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to condense pixels");
    *c = (condensing){.settings = settings,
                      .path = path,
                      .channels = path->out,
                      .together = together_of(path->out, set->images)};
    const tess_status status = condense_all(c, set, pixels, error);
    tess_pixel_stage_destroy(&c->stage);
    settings->device->memory->host_free(settings->device, &c->host);
    settings->device->memory->free(settings->device, &c->device);
    tess_small_free(c);
    return status;
}
