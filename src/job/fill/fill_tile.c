/* Computes tiles: runs the sampler over batches of prepared tiles, and adds up the samples of each tile. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/mem.h"
#include "job/fill/fill_prepare.h"

/* One sample of one tile in a batch. */
typedef struct item {
    int64_t tile, sample;
    double centre, scale;
} item;

typedef struct stage {
    tess_fill_job *job;
    tess_sampler *sampler;
    int64_t level, batch;
    const tess_fill_prepared *current; /* the tile whose samples go into batches; NULL: none yet */
    int64_t sample;                    /* its next one */
    bool guessed;                      /* y starts from a guess */
    tess_fill_ahead ahead;
    /* the batch that is prepared, and what is in the slots */
    float *cond, *known, *guesses, *result;
    int64_t *items;
    item *list[TESS_SAMPLER_SLOTS];
    float *smooth[TESS_SAMPLER_SLOTS]; /* of the slots' tiles; not used by published models */
    int64_t count[TESS_SAMPLER_SLOTS];
    /* the tile whose samples are added up */
    double *mean, *spread; /* of each pixel of the tile; sum of squares of the deviations */
    float *entry;
    uint8_t *wanted;
    tess_block block;
} stage;

enum { PARTS = 14 };

static size_t place(const tess_fill_job *job, int64_t batch, size_t at[PARTS])
{
    const size_t square = (size_t)(job->tile * job->tile), n = (size_t)batch, f = sizeof(float),
                 smooth = job->conditioned ? n * square * f : 0;
    const size_t sizes[PARTS] = {tess_fill_ahead_bytes(job),
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
                                 square,
                                 smooth,
                                 smooth};
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

static tess_status open_stage(stage *s, bool guided, tess_error *error)
{
    size_t at[PARTS];
    const size_t bytes = place(s->job, s->job->batch, at);
    TESS_TRY(tess_block_alloc(s->job->engine.memory, &s->block, TESS_MEM_HOST, bytes, error));
    char *data = s->block.data;
    /* Ranks take no more than a batch at a time, so that they end together. */
    const bool shared = s->job->engine.dist->size > 1;
    const int64_t most = shared ? tess_ceil_div(s->batch, s->job->samples) : TESS_FILL_AHEAD;
    tess_fill_ahead_open(&s->ahead, s->job, (int)s->level, guided, most, data + at[0]);
    s->cond = (float *)(void *)(data + at[1]);
    s->known = (float *)(void *)(data + at[2]);
    s->guesses = (float *)(void *)(data + at[3]);
    s->result = (float *)(void *)(data + at[4]);
    s->items = (int64_t *)(void *)(data + at[5]);
    s->list[0] = (item *)(void *)(data + at[6]);
    s->list[1] = (item *)(void *)(data + at[7]);
    s->mean = (double *)(void *)(data + at[8]);
    s->spread = (double *)(void *)(data + at[9]);
    s->entry = (float *)(void *)(data + at[10]);
    s->wanted = (uint8_t *)data + at[11];
    s->smooth[0] = (float *)(void *)(data + at[12]);
    s->smooth[1] = (float *)(void *)(data + at[13]);
    return TESS_OK;
}

/* Puts a prepared tile into the batch at place n. */
static void place_tile(const stage *s, const tess_fill_prepared *prepared, int slot, int64_t n,
                       int64_t sample)
{
    const tess_fill_window *w = &prepared->window;
    const tess_fill_level *level = &s->job->map.levels[s->level];
    const int64_t square = w->size * w->size;
    const tess_fill_place to = {.cond = s->cond + n * square * (s->job->net.channels - 1),
                                .known = s->known + n * square * 2,
                                .guess = s->guessed ? s->guesses + n * square : NULL,
                                .smooth = s->job->conditioned ? s->smooth[slot] + n * square : NULL};
    tess_fill_put(prepared, &to);
    /* Levels have noise of their own, and so has every pair of samples. The second of a pair takes its noise with the sign turned:
     * what the noise alone decides then cancels in the mean. */
    const int64_t facts[TESS_DIFFUSE_ITEMS] = {sample / 2 * TESS_FILL_LEVELS + s->level, w->y, w->x,
                                               tess_max_i64(level->width, w->size), sample % 2};
    memcpy(s->items + n * TESS_DIFFUSE_ITEMS, facts, sizeof facts);
    s->list[slot][n] = (item){prepared->tile, sample, prepared->centre, prepared->scale};
}

/* Fills a batch; fewer items at the end of the group. */
static tess_status gather(stage *s, int slot, tess_error *error)
{
    int64_t n = 0;
    while (n < s->batch) {
        if (!s->current || s->sample == s->job->samples) {
            TESS_TRY(tess_fill_ahead_next(&s->ahead, &s->current, error));
            s->sample = 0;
        }
        if (!s->current)
            break;
        place_tile(s, s->current, slot, n++, s->sample++);
    }
    s->count[slot] = n;
    return TESS_OK;
}

/* Adds a sample to the mean and the spread (Welford); after the last one the tile goes to the journal. */
static tess_status add_sample(stage *s, const item *one, const float *y, const float *smooth,
                              tess_error *error)
{
    tess_fill_job *job = s->job;
    const double count = (double)(one->sample + 1);
    int64_t h, w, next = 0;
    tess_fill_tile_wanted(&job->list, &job->map, &job->list.tiles[one->tile], s->wanted, &h, &w);
    for (int64_t i = 0; i < h * w; i++) {
        if (!s->wanted[i])
            continue;
        const int64_t at = i / w * job->tile + i % w;
        const double from = smooth ? (double)smooth[at] : one->centre,
                     value = from + one->scale * (double)y[at];
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
        TESS_TRY(add_sample(s, &s->list[slot][i], s->result + i * square,
                            s->job->conditioned ? s->smooth[slot] + i * square : NULL, error));
    s->job->tile_steps += n * tess_sampler_steps_of(s->sampler)->count;
    s->job->operations += tess_sampler_flops(s->sampler, n);
    return TESS_OK;
}

static tess_status compute(stage *s, tess_error *error)
{
    for (int slot = 0;; slot = (slot + 1) % TESS_SAMPLER_SLOTS) {
        TESS_TRY(take(s, slot, error));
        TESS_TRY(gather(s, slot, error));
        if (s->count[slot] == 0)
            break;
        const tess_sampler_batch batch = {.n = s->count[slot],
                                          .cond = s->cond,
                                          .known = s->known,
                                          .guess = s->guessed ? s->guesses : NULL,
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

int64_t tess_fill_take(tess_fill_job *job, int level, bool guided)
{
    int64_t first, tile;
    const int64_t end = tess_fill_list_group(&job->list, level, guided, &first);
    do {
        const int64_t number = tess_dist_next(job->engine.dist, job->counter);
        if (number >= end - first)
            return -1;
        tile = first + number;
    } while (tess_fill_journal_has(job->journal, tile));
    return tile;
}

tess_status tess_fill_group(tess_fill_job *job, int level, bool guided, tess_error *error)
{
    stage s = {.job = job, .level = level, .guessed = guided && !job->conditioned};
    int64_t first, left = 0;
    const int64_t end = tess_fill_list_group(&job->list, level, guided, &first);
    for (int64_t i = first; i < end; i++)
        left += !tess_fill_journal_has(job->journal, i);
    if (left == 0)
        return TESS_OK;
    s.batch = tess_min_i64(job->batch, tess_ceil_div(left * job->samples, job->engine.dist->size));
    const double start = tess_clock();
    const tess_sampler_settings settings = tess_fill_sampler_settings(job, guided, s.batch);
    tess_status status = tess_sampler_create(&settings, &s.sampler, error);
    if (status == TESS_OK)
        status = open_stage(&s, guided, error);
    if (status == TESS_OK)
        status = tess_sampler_prepare(s.sampler, job->embedding_weights.data, job->step_weights.data, error);
    job->prepare_seconds += tess_clock() - start;
    if (status == TESS_OK)
        status = compute(&s, error);
    tess_sampler_destroy(s.sampler);
    tess_block_free(&s.block);
    job->compute_seconds += tess_clock() - start;
    return status;
}
