#include "job/fill/fill_prepare.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/pool.h"

_Static_assert((int)TESS_CONDITIONS_COARSE == (int)TESS_FILL_FACTOR, "a guess comes from the next level");

enum { VALUES, VOIDS, GUESS, SMOOTH, CHANNELS, SCRATCH, PARTS };

static size_t place(const tess_fill_job *job, size_t at[PARTS])
{
    const size_t square = (size_t)(job->tile * job->tile), f = sizeof(float),
                 reading = tess_fill_window_bytes(job->tile),
                 making = job->conditioned ? tess_conditions_bytes(job->tile, job->tile) : 0;
    const size_t sizes[PARTS] = {[VALUES] = square * f,
                                 [VOIDS] = square,
                                 [GUESS] = square * f,
                                 [SMOOTH] = job->conditioned ? square * f : 0,
                                 [CHANNELS] = job->conditioned ? square * f * TESS_CONDITIONS : 0,
                                 [SCRATCH] = reading > making ? reading : making};
    size_t total = 0;
    for (int i = 0; i < PARTS; i++) {
        at[i] = total;
        total += tess_align_size(sizes[i], 64);
    }
    return total;
}

/* Published models need no work worth sharing. */
static int count_of(const tess_fill_job *job)
{
    return job->conditioned ? (int)tess_min_i64(tess_pool_threads(job->engine.host), TESS_FILL_AHEAD) : 1;
}

size_t tess_fill_ahead_bytes(const tess_fill_job *job)
{
    size_t at[PARTS];
    return (size_t)count_of(job) * place(job, at);
}

static void open_one(tess_fill_prepared *p, tess_fill_job *job, int level, bool guided, char *memory)
{
    size_t at[PARTS];
    (void)place(job, at);
    *p = (tess_fill_prepared){.job = job,
                              .tile = -1,
                              .guided = guided,
                              .window = {.level = level,
                                         .size = job->tile,
                                         .values = (float *)(void *)(memory + at[VALUES]),
                                         .voids = (uint8_t *)memory + at[VOIDS]},
                              .guess = (float *)(void *)(memory + at[GUESS]),
                              .conditions = {.smooth = (float *)(void *)(memory + at[SMOOTH]),
                                             .channels = (float *)(void *)(memory + at[CHANNELS])},
                              .scratch = memory + at[SCRATCH]};
}

void tess_fill_ahead_open(tess_fill_ahead *ahead, tess_fill_job *job, int level, bool guided, int64_t most,
                          char *memory)
{
    size_t at[PARTS];
    const size_t bytes = place(job, at);
    ahead->count = (int)tess_min_i64(count_of(job), most);
    ahead->ready = ahead->used = 0;
    for (int i = 0; i < ahead->count; i++)
        open_one(&ahead->list[i], job, level, guided, memory + (size_t)i * bytes);
}

/* The range of the valid pixels; of a guided tile also that of the guess inside its voids. */
static void find_range(tess_fill_prepared *p)
{
    const tess_fill_window *w = &p->window;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < w->size * w->size; i++) {
        if (w->voids[i] && !p->guided)
            continue;
        const double value = (double)(w->voids[i] ? p->guess[i] : w->values[i]);
        low = fmin(low, value);
        high = fmax(high, value);
    }
    const tess_fill_map *map = &p->job->map;
    if (p->job->settings->scaling == TESS_FILL_GLOBAL || low > high) {
        low = map->low - map->base;
        high = map->high - map->base;
    }
    p->scale = (high - low) / 2;
    p->centre = (low + high) / 2;
}

/* Not more than one tile at a time: the raster has one reader. */
static tess_status read_tile(tess_fill_prepared *p, int64_t tile, tess_error *error)
{
    tess_fill_job *job = p->job;
    p->window.y = job->list.tiles[tile].top;
    p->window.x = job->list.tiles[tile].left;
    TESS_TRY(tess_fill_window_read(&job->map, &p->window, p->scratch, error));
    if (p->guided)
        tess_fill_guess(&job->map, &p->window, p->guess);
    p->tile = tile;
    return TESS_OK;
}

static void condition(void *arg, int64_t item, int thread)
{
    (void)thread;
    tess_fill_ahead *ahead = arg;
    tess_fill_prepared *p = &ahead->list[item];
    if (!p->job->conditioned) {
        find_range(p);
        return;
    }
    const double span = p->job->map.high - p->job->map.low;
    const tess_conditions_window window = {.values = p->window.values,
                                           .flags = p->window.voids,
                                           .guess = p->guided ? p->guess : NULL,
                                           .h = p->window.size,
                                           .w = p->window.size,
                                           .scratch = p->scratch,
                                           .least = TESS_CONDITIONS_LEAST * fmin(span, 1)};
    ahead->status[item] = tess_conditions_make(&window, &p->conditions, &ahead->errors[item]);
    p->centre = 0;
    p->scale = p->conditions.scale;
}

/* Takes some tiles, reads and prepares them. */
static tess_status fill_ahead(tess_fill_ahead *ahead, tess_error *error)
{
    tess_fill_job *job = ahead->list[0].job;
    ahead->ready = ahead->used = 0;
    for (int n = 0; n < ahead->count; n++) {
        const int64_t tile = tess_fill_take(job, (int)ahead->list[n].window.level, ahead->list[n].guided);
        if (tile < 0)
            break;
        ahead->status[n] = TESS_OK;
        TESS_TRY(read_tile(&ahead->list[n], tile, error));
        ahead->ready++;
    }
    tess_pool_run(job->engine.host, ahead->ready, condition, ahead);
    TESS_TRY(tess_stop_check(&job->engine.stop, error)); /* which ends the loop early */
    for (int i = 0; i < ahead->ready; i++)
        if (ahead->status[i] != TESS_OK) {
            *error = ahead->errors[i];
            return ahead->status[i];
        }
    return TESS_OK;
}

tess_status tess_fill_ahead_next(tess_fill_ahead *ahead, const tess_fill_prepared **out, tess_error *error)
{
    if (ahead->used == ahead->ready)
        TESS_TRY(fill_ahead(ahead, error));
    *out = ahead->used < ahead->ready ? &ahead->list[ahead->used++] : NULL;
    return TESS_OK;
}

static float scaled(const tess_fill_prepared *p, float value)
{
    const double y = p->scale > 0 ? ((double)value - p->centre) / p->scale : 0;
    return (float)fmin(fmax(y, -1), 1);
}

void tess_fill_put(const tess_fill_prepared *p, const tess_fill_place *to)
{
    const tess_fill_window *w = &p->window;
    const int64_t square = w->size * w->size;
    if (p->job->conditioned) {
        memcpy(to->cond, p->conditions.channels, (size_t)(square * TESS_CONDITIONS) * sizeof(float));
        memcpy(to->smooth, p->conditions.smooth, (size_t)square * sizeof(float));
    }
    for (int64_t i = 0; i < square; i++) {
        const bool is_void = w->voids[i];
        const float value = is_void || p->job->conditioned ? 0 : scaled(p, w->values[i]);
        to->known[2 * i] = value;
        to->known[2 * i + 1] = is_void;
        if (p->job->conditioned)
            continue;
        to->cond[i] = is_void ? -1 : value;
        if (to->guess)
            to->guess[i] = is_void ? scaled(p, p->guess[i]) : value;
    }
}
