/* Made-up cubes, as those of cuvis.ai's stress tests: a smooth spectrum whose brightness varies over the image, noise, and discs
 * of another spectrum. Every value depends on its cube, row and column alone. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/rng.h"
#include "job/study/bench_stats.h"

static const double PI = 3.14159265358979323846;
enum { SEED = 42, SPECTRA = 2, DISC = 3 }; /* DISC: random numbers of a disc */

typedef struct making {
    const tess_stats_data *data;
    const double *normal, *anomaly; /* spectra */
} making;

static float *cube_of(const tess_stats_data *d, int64_t cube)
{
    return (float *)d->block.data + cube * d->load.side * d->load.side * d->load.channels;
}

/* An item is a row of a cube. */
static void make_row(void *arg, int64_t item, int thread)
{
    const making *m = arg;
    const tess_stats_load *l = &m->data->load;
    const int64_t cube = item / l->side, row = item % l->side, values = l->side * l->channels;
    float *to = cube_of(m->data, cube) + row * values;
    (void)thread;
    tess_rng_normal((tess_rng_key){.seed = SEED, .item = (uint32_t)cube}, row * values, values, to);
    const double along = 1 + 0.2 * sin(2 * PI * (double)row / (double)l->side);
    for (int64_t x = 0; x < l->side; x++) {
        const double light = along * (1 + 0.2 * cos(2 * PI * (double)x / (double)l->side));
        for (int64_t c = 0; c < l->channels; c++)
            to[x * l->channels + c] = (float)(light * m->normal[c] + 10 * (double)to[x * l->channels + c]);
    }
}

static void draw_disc(const making *m, float *cube, const float *random)
{
    const tess_stats_load *l = &m->data->load;
    const int64_t y = (int64_t)(random[0] * (float)l->side), x = (int64_t)(random[1] * (float)l->side),
                  radius = 2 + (int64_t)(random[2] * 4);
    for (int64_t v = tess_max_i64(0, y - radius); v <= tess_min_i64(l->side - 1, y + radius); v++)
        for (int64_t u = tess_max_i64(0, x - radius); u <= tess_min_i64(l->side - 1, x + radius); u++)
            for (int64_t c = 0; (v - y) * (v - y) + (u - x) * (u - x) <= radius * radius && c < l->channels;
                 c++)
                cube[(v * l->side + u) * l->channels + c] = (float)m->anomaly[c];
}

/* An item is a cube. */
static void make_discs(void *arg, int64_t cube, int thread)
{
    const making *m = arg;
    const tess_stats_load *l = &m->data->load;
    const int64_t discs = tess_max_i64(1, l->side * l->side / 20 / 20);
    (void)thread;
    for (int64_t i = 0; i < discs; i++) {
        float random[DISC];
        tess_rng_uniform((tess_rng_key){.seed = SEED, .item = (uint32_t)cube, .step = 1}, i * DISC, DISC,
                         random);
        draw_disc(m, cube_of(m->data, cube), random);
    }
}

static void make_spectra(int64_t channels, double *normal, double *anomaly)
{
    for (int64_t c = 0; c < channels; c++) {
        const double u = channels > 1 ? (double)c / (double)(channels - 1) : 0;
        normal[c] = 100 * exp(-(u - 0.5) * (u - 0.5) / 0.1);
        anomaly[c] = 150 * (exp(-(u - 0.3) * (u - 0.3) / 0.05) + exp(-(u - 0.7) * (u - 0.7) / 0.05));
    }
}

static size_t cube_bytes(const tess_stats_load *l)
{
    return (size_t)(l->side * l->side * l->channels) * sizeof(float);
}

size_t tess_stats_bytes(const tess_stats_data *d)
{
    return (size_t)d->distinct * cube_bytes(&d->load);
}

/* Batches of cubes, the last of which may have fewer. */
static tess_status list_images(tess_stats_data *d, tess_error *error)
{
    const tess_stats_load *l = &d->load;
    d->count = tess_ceil_div(l->samples, l->batch);
    d->images = tess_small_alloc((size_t)d->count, sizeof *d->images);
    d->cubes = tess_small_alloc((size_t)l->samples, sizeof *d->cubes);
    if (!d->images || !d->cubes)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of cubes");
    for (int64_t i = 0; i < l->samples; i++)
        d->cubes[i] = (tess_pixel_image){.height = l->side, .width = l->side, .dtype = TESS_F32};
    for (int64_t i = 0; i < d->count; i++)
        d->images[i] =
            (tess_pixel_image){.height = tess_min_i64(l->batch, l->samples - i * l->batch) * l->side,
                               .width = l->side,
                               .dtype = TESS_F32};
    return TESS_OK;
}

tess_status tess_stats_make(const tess_stats_load *load, uint64_t most, tess_engine *engine,
                            tess_stats_data *d, tess_error *error)
{
    const size_t channels = (size_t)load->channels;
    double *spectra = tess_small_alloc(SPECTRA * channels, sizeof *spectra);
    const int64_t batch = tess_min_i64(load->batch, load->samples),
                  fit = (int64_t)(most / cube_bytes(load)) / batch * batch;
    *d = (tess_stats_data){.load = *load, .distinct = tess_min_i64(load->samples, fit)};
    tess_status status = TESS_OK;
    if (!spectra)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for a spectrum");
    else if (d->distinct < 1)
        status =
            tess_fail(error, TESS_NO_MEMORY, "a batch of %lld cubes of %zu bytes does not fit into memory",
                      (long long)batch, cube_bytes(load));
    if (status == TESS_OK)
        status = tess_block_alloc_watched(engine->memory, &d->block, TESS_MEM_HOST, tess_stats_bytes(d),
                                          &engine->stop, error);
    if (status == TESS_OK)
        status = list_images(d, error);
    if (status == TESS_OK) {
        const making m = {d, spectra, spectra + channels};
        const double start = tess_clock();
        make_spectra(load->channels, spectra, spectra + channels);
        tess_pool_run(engine->host, d->distinct * load->side, make_row, (void *)&m);
        tess_pool_run(engine->host, d->distinct, make_discs, (void *)&m);
        d->seconds = tess_clock() - start;
        status = tess_stop_check(&engine->stop, error);
    }
    tess_small_free(spectra);
    return status;
}

void tess_stats_free(tess_stats_data *d)
{
    tess_block_free(&d->block);
    tess_small_free(d->images);
    tess_small_free(d->cubes);
    *d = (tess_stats_data){0};
}

/* Bytes from the first distinct cube on. Distinct cubes are whole batches, or all there are. */
static size_t offset_of(const tess_stats_data *d, int64_t image, int64_t first)
{
    const tess_stats_load *l = &d->load;
    const int64_t cube = image * l->batch % d->distinct;
    return ((size_t)cube * (size_t)l->side + (size_t)first) * (size_t)(l->side * l->channels) * sizeof(float);
}

static tess_status read(void *user, int64_t image, int64_t first, int64_t rows, void *samples,
                        tess_error *error)
{
    const tess_stats_data *d = user;
    (void)error;
    memcpy(samples, (const char *)d->block.data + offset_of(d, image, first),
           (size_t)(rows * d->load.side * d->load.channels) * sizeof(float));
    return TESS_OK;
}

static const void *place(void *user, int64_t image, int64_t first)
{
    const tess_stats_data *d = user;
    return d->base + offset_of(d, image, first);
}

tess_pixel_set tess_stats_set(tess_stats_data *d, bool resident)
{
    return (tess_pixel_set){.images = d->count,
                            .bands = (int)d->load.channels,
                            .image = d->images,
                            .user = d,
                            .read = read,
                            .readers = TESS_PIXEL_READERS,
                            .at = resident ? place : NULL};
}

static size_t row_offset(const tess_stats_data *d, int64_t cube, int64_t first)
{
    return (size_t)(cube % d->distinct) * cube_bytes(&d->load) +
           (size_t)(first * d->load.side * d->load.channels) * sizeof(float);
}

static tess_status read_cube(void *user, int64_t cube, int64_t first, int64_t rows, void *samples,
                             tess_error *error)
{
    const tess_stats_data *d = user;
    (void)error;
    memcpy(samples, (const char *)d->block.data + row_offset(d, cube, first),
           (size_t)(rows * d->load.side * d->load.channels) * sizeof(float));
    return TESS_OK;
}

static const void *place_cube(void *user, int64_t cube, int64_t first)
{
    const tess_stats_data *d = user;
    return d->base + row_offset(d, cube, first);
}

tess_pixel_set tess_stats_cubes(tess_stats_data *d, bool resident)
{
    return (tess_pixel_set){.images = d->load.samples,
                            .bands = (int)d->load.channels,
                            .image = d->cubes,
                            .user = d,
                            .read = read_cube,
                            .readers = TESS_PIXEL_READERS,
                            .at = resident ? place_cube : NULL};
}
