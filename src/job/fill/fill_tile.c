/* Computes tiles: reads their pixels, scales them for the network, runs the sampler over batches, and adds up the samples
 * of each tile. Heights of a tile are scaled so that its valid pixels (and the first guess) span [-1, 1], as the network
 * was trained; the network sees -1 in the voids. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/mem.h"
#include "job/fill/fill_job.h"

/* One sample of one tile in a batch. */
typedef struct item {
    int64_t tile, sample;
    double low, high;
} item;

typedef struct stage {
    tess_fill_job *job;
    tess_sampler *sampler;
    int64_t level, next, end; /* next: item of the group, counted over tiles and samples */
    int64_t first;            /* tile of the group */
    bool guided;
    /* the tile that is prepared */
    tess_fill_window window;
    float *guess;
    void *scratch;
    int64_t prepared;
    double low, high;
    /* the batch that is prepared, and what is in the slots */
    float *cond, *known, *guesses, *result;
    int64_t *items;
    item *list[TESS_SAMPLER_SLOTS];
    int64_t count[TESS_SAMPLER_SLOTS];
    /* the tile whose samples are added up */
    double *mean, *spread; /* of each pixel of the tile; sum of squares of the deviations */
    float *entry;
    uint8_t *wanted;
    tess_block block;
} stage;

enum { PARTS = 16 };

static size_t place(const tess_fill_job *job, int64_t batch, size_t at[PARTS])
{
    const size_t square = (size_t)(job->tile * job->tile), n = (size_t)batch, f = sizeof(float);
    const size_t sizes[PARTS] = {square * f,
                                 square,
                                 square,
                                 square * f,
                                 tess_fill_window_bytes(job->tile),
                                 n * square * f * (size_t)(job->net.channels - 1),
                                 n * square * f * 2,
                                 n * square * f,
                                 n * square * f,
                                 n * TESS_DIFFUSE_ITEMS * sizeof(int64_t),
                                 n * sizeof(item),
                                 n * sizeof(item),
                                 square * sizeof(double),
                                 square * sizeof(double),
                                 square * f * 2,
                                 square};
    size_t total = 0;
    for (int i = 0; i < PARTS; i++) {
        at[i] = total;
        total += (size_t)tess_round_up((int64_t)sizes[i], 64);
    }
    return total;
}

size_t tess_fill_stage_bytes(const tess_fill_job *job, int64_t batch)
{
    size_t at[PARTS];
    return tess_block_granted(place(job, batch, at));
}

static tess_status open_stage(stage *s, tess_error *error)
{
    size_t at[PARTS];
    const size_t bytes = place(s->job, s->job->batch, at);
    TESS_TRY(tess_block_alloc(s->job->engine.memory, &s->block, TESS_MEM_HOST, bytes, error));
    char *data = s->block.data;
    s->window = (tess_fill_window){.level = s->level,
                                   .size = s->job->tile,
                                   .values = (float *)(void *)(data + at[0]),
                                   .voids = (uint8_t *)data + at[1],
                                   .wanted = (uint8_t *)data + at[2]};
    s->guess = (float *)(void *)(data + at[3]);
    s->scratch = data + at[4];
    s->cond = (float *)(void *)(data + at[5]);
    s->known = (float *)(void *)(data + at[6]);
    s->guesses = (float *)(void *)(data + at[7]);
    s->result = (float *)(void *)(data + at[8]);
    s->items = (int64_t *)(void *)(data + at[9]);
    s->list[0] = (item *)(void *)(data + at[10]);
    s->list[1] = (item *)(void *)(data + at[11]);
    s->mean = (double *)(void *)(data + at[12]);
    s->spread = (double *)(void *)(data + at[13]);
    s->entry = (float *)(void *)(data + at[14]);
    s->wanted = (uint8_t *)data + at[15];
    s->prepared = -1;
    return TESS_OK;
}

/* The range of the valid pixels; of a guided tile also that of the guess inside its voids. */
static void find_range(stage *s)
{
    const tess_fill_window *w = &s->window;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < w->size * w->size; i++) {
        if (w->voids[i] && !s->guided)
            continue;
        const double value = (double)(w->voids[i] ? s->guess[i] : w->values[i]);
        low = fmin(low, value);
        high = fmax(high, value);
    }
    const tess_fill_map *map = &s->job->map;
    if (s->job->settings->scaling == TESS_FILL_GLOBAL || low > high) {
        low = map->low - map->base;
        high = map->high - map->base;
    }
    s->low = low;
    s->high = high;
}

static tess_status prepare_tile(stage *s, int64_t id, tess_error *error)
{
    tess_fill_job *job = s->job;
    const tess_fill_tile *tile = &job->list.tiles[id];
    const tess_fill_grid *grid = &job->list.grids[s->level];
    s->window.y = tess_fill_start(&grid->rows, tile->row);
    s->window.x = tess_fill_start(&grid->columns, tile->column);
    TESS_TRY(tess_fill_window_read(&job->map, &s->window, s->scratch, error));
    if (s->guided)
        tess_fill_guess(&job->map, &s->window, s->guess);
    find_range(s);
    s->prepared = id;
    return TESS_OK;
}

static float scaled(const stage *s, float value)
{
    const double range = s->high - s->low;
    const double y = range > 0 ? 2 * ((double)value - s->low) / range - 1 : 0;
    return (float)fmin(fmax(y, -1), 1);
}

/* Puts the prepared tile into the batch at place n. */
static void place_tile(const stage *s, int64_t n, int64_t sample)
{
    const tess_fill_window *w = &s->window;
    const tess_fill_level *level = &s->job->map.levels[s->level];
    const int64_t square = w->size * w->size, channels = s->job->net.channels - 1;
    for (int64_t i = 0; i < square; i++) {
        const bool is_void = w->voids[i];
        const float value = is_void ? 0 : scaled(s, w->values[i]);
        float *cond = s->cond + (n * square + i) * channels, *known = s->known + (n * square + i) * 2;
        cond[0] = is_void ? -1 : value;
        known[0] = value;
        known[1] = is_void;
        if (s->guided)
            s->guesses[n * square + i] = is_void ? scaled(s, s->guess[i]) : value;
    }
    /* Levels and samples have noise of their own. */
    const int64_t facts[TESS_DIFFUSE_ITEMS] = {sample * TESS_FILL_LEVELS + s->level, w->y, w->x,
                                               tess_max_i64(level->width, w->size)};
    memcpy(s->items + n * TESS_DIFFUSE_ITEMS, facts, sizeof facts);
}

/* Fills a batch; fewer items at the end of the group. */
static tess_status gather(stage *s, int slot, tess_error *error)
{
    const int64_t samples = s->job->samples;
    int64_t n = 0;
    while (n < s->job->batch && s->next < s->end) {
        const int64_t id = s->first + s->next / samples, sample = s->next % samples;
        if (tess_fill_journal_has(s->job->journal, id) && s->prepared != id) {
            s->next += samples;
            continue;
        }
        if (s->prepared != id)
            TESS_TRY(prepare_tile(s, id, error));
        place_tile(s, n, sample);
        s->list[slot][n++] = (item){id, sample, s->low, s->high};
        s->next++;
    }
    s->count[slot] = n;
    return TESS_OK;
}

/* Adds a sample to the mean and the spread (Welford); after the last one the tile goes to the journal. */
static tess_status add_sample(stage *s, const item *one, const float *y, tess_error *error)
{
    tess_fill_job *job = s->job;
    const tess_fill_tile *tile = &job->list.tiles[one->tile];
    const tess_fill_grid *grid = &job->list.grids[s->level];
    const tess_fill_level *level = &job->map.levels[s->level];
    const int64_t top = tess_fill_start(&grid->rows, tile->row),
                  left = tess_fill_start(&grid->columns, tile->column),
                  h = tess_min_i64(job->tile, level->height - top),
                  w = tess_min_i64(job->tile, level->width - left);
    const double half = (one->high - one->low) / 2, count = (double)(one->sample + 1);
    tess_bitmap_read(&level->wanted, top, left, h, w, s->wanted);
    int64_t next = 0;
    for (int64_t i = 0; i < h * w; i++) {
        if (!s->wanted[i])
            continue;
        const double value = one->low + half * ((double)y[i / w * job->tile + i % w] + 1);
        double *mean = &s->mean[next], *spread = &s->spread[next++];
        const double before = one->sample == 0 ? value : *mean, away = value - before;
        *mean = before + away / count;
        *spread = one->sample == 0 ? 0 : *spread + away * (value - *mean);
    }
    if (one->sample + 1 < job->samples)
        return TESS_OK;
    for (int64_t i = 0; i < next; i++) {
        s->entry[i] = (float)s->mean[i];
        s->entry[next + i] = job->samples > 1 ? (float)sqrt(s->spread[i] / (count - 1)) : 0;
    }
    return tess_fill_journal_add(job->journal, one->tile, s->entry, job->samples > 1 ? 2 * next : next,
                                 error);
}

static tess_status take(stage *s, int slot, tess_error *error)
{
    const int64_t square = s->job->tile * s->job->tile, n = s->count[slot];
    s->count[slot] = 0;
    if (n == 0)
        return TESS_OK;
    TESS_TRY(tess_sampler_wait(s->sampler, slot, s->result, error));
    for (int64_t i = 0; i < n; i++)
        TESS_TRY(add_sample(s, &s->list[slot][i], s->result + i * square, error));
    s->job->tile_steps += n * tess_sampler_steps_of(s->sampler)->count;
    s->job->operations += tess_sampler_flops(s->sampler, n);
    return TESS_OK;
}

static tess_status compute(stage *s, tess_error *error)
{
    for (int slot = 0; s->next < s->end; slot = (slot + 1) % TESS_SAMPLER_SLOTS) {
        TESS_TRY(take(s, slot, error));
        TESS_TRY(gather(s, slot, error));
        if (s->count[slot] == 0)
            break;
        const tess_sampler_batch batch = {.n = s->count[slot],
                                          .cond = s->cond,
                                          .known = s->known,
                                          .guess = s->guided ? s->guesses : NULL,
                                          .items = s->items};
        if (!s->job->meter)
            s->job->meter = tess_meter_begin(s->job->engine.device);
        const tess_status status = tess_sampler_submit(s->sampler, slot, &batch, error);
        if (status != TESS_OK)
            s->count[slot] = 0;
        TESS_TRY(status);
        TESS_TRY(take(s, (slot + 1) % TESS_SAMPLER_SLOTS, error)); /* while this one computes */
    }
    for (int slot = 0; slot < TESS_SAMPLER_SLOTS; slot++)
        TESS_TRY(take(s, slot, error));
    return TESS_OK;
}

tess_status tess_fill_group(tess_fill_job *job, int level, bool guided, tess_error *error)
{
    stage s = {.job = job, .level = level, .guided = guided};
    const int64_t end = tess_fill_list_group(&job->list, level, guided, &s.first);
    int64_t left = 0;
    for (int64_t i = s.first; i < end; i++)
        left += !tess_fill_journal_has(job->journal, i);
    if (left == 0)
        return TESS_OK;
    s.end = (end - s.first) * job->samples;
    const double start = tess_clock();
    const tess_sampler_settings settings = tess_fill_sampler_settings(job, guided, job->batch);
    tess_status status = tess_sampler_create(&settings, &s.sampler, error);
    if (status == TESS_OK)
        status = open_stage(&s, error);
    if (status == TESS_OK)
        status = tess_sampler_prepare(s.sampler, job->embedding_weights.data, job->step_weights.data, error);
    if (status == TESS_OK)
        status = compute(&s, error);
    tess_sampler_destroy(s.sampler);
    tess_block_free(&s.block);
    job->compute_seconds += tess_clock() - start;
    return status;
}
