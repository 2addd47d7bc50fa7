#include "plan/training.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"

/* What is computed again, and how much longer a step then takes: the share of all work that it is. Half of that, if as
 * many blocks as the limit requires are computed again. */
static const struct {
    tess_recompute recompute;
    double cost;
} ways[] = {{TESS_RECOMPUTE_NONE, 1}, {TESS_RECOMPUTE_BLOCKS, 1.17}, {TESS_RECOMPUTE_ALL, 1.33}};

enum { WAYS = sizeof ways / sizeof ways[0], MOST_DIVISIONS = 7, MOST_CANDIDATES = WAYS * MOST_DIVISIONS };

/* A device is not fully used below some number of pixels: time = (pixels + this) / speed. */
static const double idle_pixels_host = 1000, idle_pixels_card = 80000;
/* The rough costs decide the order in which combinations are tried. Those up to this factor behind the first that fits
 * may be faster, and are compared by their seconds. */
static const double near_enough = 1.2;
/* Dividing a network with batch norm changes its statistics, so anything else is tried first. */
static const double norm_penalty = 1;

typedef struct candidate {
    int way, micro_batches;
    double cost;
} candidate;

const char *tess_recompute_name(tess_recompute recompute)
{
    switch (recompute) {
    case TESS_RECOMPUTE_NONE:
        return "none";
    case TESS_RECOMPUTE_BLOCKS:
        return "blocks";
    case TESS_RECOMPUTE_ALL:
        return "all";
    }
    return "?";
}

static bool has_batch_norm(const tess_net *net)
{
    for (int i = 0; i < tess_net_layer_count(net); i++)
        if (!tess_net_layer(net, i)->dropped && tess_net_layer(net, i)->kind == TESS_OP_BATCH_NORM)
            return true;
    return false;
}

static void insert(candidate *list, int *count, candidate one)
{
    int at = (*count)++;
    for (; at > 0 && list[at - 1].cost > one.cost; at--)
        list[at] = list[at - 1];
    list[at] = one;
}

/* All allowed combinations, the cheapest by a rough estimate first. */
static int list_candidates(const tess_net *net, const tess_device *device, const tess_training_request *r,
                           candidate *list)
{
    const tess_training_settings *s = &r->settings;
    const double pixels = (double)(s->n * s->h * s->w),
                 idle = device->host_memory ? idle_pixels_host : idle_pixels_card;
    int count = 0;
    for (int k = 0; k < WAYS; k++) {
        if (!r->recompute_auto && ways[k].recompute != s->recompute)
            continue;
        const double cost = r->recompute_auto ? (1 + ways[k].cost) / 2 : ways[k].cost;
        for (int i = 0; i < MOST_DIVISIONS; i++) {
            const int parts = s->micro_batches ? s->micro_batches : 1 << i;
            if (s->n % parts || (s->micro_batches && i))
                break;
            const double norms = parts > 1 && has_batch_norm(net) ? norm_penalty : 0;
            insert(list, &count, (candidate){k, parts, cost * (1 + idle * parts / pixels) + norms});
        }
    }
    return count;
}

double tess_training_seconds(const tess_rates *rates, const tess_training *training, int micro_batches,
                             bool *measured)
{
    double seconds = 0;
    for (int i = 0; i < tess_training_op_count(training); i++)
        seconds += tess_rates_op_seconds(rates, tess_training_op(training, i), measured);
    return seconds * micro_batches;
}

/* Rates that were measured include what a small part wastes; estimates do not. */
static double seconds_of(const tess_rates *rates, const tess_device *device, const tess_training_request *r,
                         const tess_training *training, int micro_batches, bool *measured)
{
    const tess_training_settings *s = &r->settings;
    const double pixels = (double)(s->n * s->h * s->w),
                 idle = device->host_memory ? idle_pixels_host : idle_pixels_card,
                 seconds = tess_training_seconds(rates, training, micro_batches, measured);
    if (*measured)
        return seconds;
    bool known = r->factor != NULL;
    const double factor = known ? tess_rates_operator(rates, r->factor, &known) : 1;
    *measured = known;
    return seconds * factor * (pixels + idle * micro_batches) / (pixels + idle);
}

static void say_why(const tess_training_request *r, const tess_training_choice *choice, char *text)
{
    const bool first = choice->first;
    char blocks[32] = "";
    if (choice->blocks < choice->blocks_of)
        snprintf(blocks, sizeof blocks, " (%d of %d)", choice->blocks, choice->blocks_of);
    const double mib = (double)r->limit / (1 << 20);
    if (first && r->recompute_auto && !r->settings.micro_batches)
        snprintf(text, TESS_TRAINING_WHY, "the whole batch fits, and all activations are kept");
    else if (first)
        snprintf(text, TESS_TRAINING_WHY, "as asked");
    else
        snprintf(text, TESS_TRAINING_WHY,
                 "the fastest of the combinations that fit in %.1f MiB: %d micro-batch(es) of %lld, "
                 "recompute %s%s",
                 mib, choice->micro_batches, (long long)(r->settings.n / choice->micro_batches),
                 tess_recompute_name(choice->recompute), blocks);
}

static tess_status refuse(const tess_training_request *r, uint64_t least, uint64_t besides, tess_error *error)
{
    const uint64_t mib = (least + (1 << 20) - 1) >> 20;
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "training needs at least %lluM with %lld crops of %lld x %lld in a batch (%.1f MiB of it for data "
        "and "
        "validation), and %.1f MiB are allowed; use `memory_limit` %lluM, a smaller batch or smaller crops",
        (unsigned long long)mib, (long long)r->settings.n, (long long)r->settings.h, (long long)r->settings.w,
        (double)besides / (1 << 20), (double)r->limit / (1 << 20), (unsigned long long)mib);
}

static uint64_t bytes_of(const tess_training *training)
{
    const tess_mem_bytes bytes = tess_training_bytes(training);
    return tess_mem_total(&bytes);
}

/* Replaces the training by the one that computes the fewest blocks again and fits in `limit`, as it does now. Fewer
 * blocks need more bytes, so their number is found by halving. */
static tess_status use_fewest_blocks(const tess_net *net, tess_device *device,
                                     tess_training_settings *settings, uint64_t limit,
                                     tess_training **training, tess_error *error)
{
    int enough = tess_training_recomputed(*training), too_few = 0;
    while (enough - too_few > 1) {
        tess_training *fewer = NULL;
        settings->recompute_blocks = too_few + (enough - too_few) / 2;
        const tess_status status = tess_training_create(net, device, settings, &fewer, error);
        if (status != TESS_OK) {
            tess_training_destroy(*training);
            *training = NULL;
            return status;
        }
        const bool fits = bytes_of(fewer) <= limit;
        tess_training_destroy(fits ? *training : fewer);
        if (fits) {
            *training = fewer;
            enough = settings->recompute_blocks;
        } else {
            too_few = settings->recompute_blocks;
        }
    }
    return TESS_OK;
}

static tess_status try_candidate(const tess_net *net, tess_device *device, const tess_training_request *r,
                                 const candidate *one, tess_training_choice *choice, tess_training **training,
                                 tess_error *error)
{
    const uint64_t besides = r->besides ? r->besides(r->user, one->micro_batches) : 0;
    tess_training_settings settings = r->settings;
    settings.n /= one->micro_batches;
    settings.micro_batches = one->micro_batches;
    settings.recompute = ways[one->way].recompute;
    settings.recompute_blocks = TESS_RECOMPUTE_EVERYWHERE;
    TESS_TRY(tess_training_create(net, device, &settings, training, error));
    const int blocks = tess_training_recomputed(*training);
    if (r->recompute_auto && r->limit && bytes_of(*training) + besides <= r->limit)
        TESS_TRY(use_fewest_blocks(net, device, &settings, r->limit - besides, training, error));
    *choice = (tess_training_choice){.micro_batches = settings.micro_batches,
                                     .recompute = settings.recompute,
                                     .blocks = tess_training_recomputed(*training),
                                     .blocks_of = blocks,
                                     .bytes = bytes_of(*training),
                                     .besides = besides,
                                     .calibrated = true};
    return TESS_OK;
}

tess_status tess_plan_training(const tess_net *net, tess_device *device, const tess_rates *rates,
                               const tess_training_request *r, tess_training_choice *choice,
                               tess_training **out, uint64_t *least, tess_error *error)
{
    candidate list[MOST_CANDIDATES];
    const int count = list_candidates(net, device, r, list);
    uint64_t smallest = UINT64_MAX, besides_smallest = 0;
    double bound = INFINITY;
    *out = NULL;
    if (count == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "micro_batches: a batch of %lld cannot be divided into %d equal micro-batches",
                         (long long)r->settings.n, r->settings.micro_batches);
    for (int i = 0; i < count && list[i].cost <= bound; i++) {
        tess_training *training = NULL;
        tess_training_choice one;
        const tess_status status = try_candidate(net, device, r, &list[i], &one, &training, error);
        if (status != TESS_OK) {
            tess_training_destroy(*out);
            *out = NULL;
            return status;
        }
        const bool fits = r->limit == 0 || one.bytes + one.besides <= r->limit;
        if (one.bytes + one.besides < smallest) {
            smallest = one.bytes + one.besides;
            besides_smallest = one.besides;
        }
        one.seconds = seconds_of(rates, device, r, training, one.micro_batches, &one.calibrated);
        if (!fits || (*out && one.seconds >= choice->seconds)) {
            tess_training_destroy(training);
            continue;
        }
        tess_training_destroy(*out);
        *out = training;
        *choice = one;
        choice->first = i == 0;
        say_why(r, choice, choice->why);
        if (isinf(bound)) /* nothing beats the undivided batch with all activations kept */
            bound = i ? near_enough * list[i].cost : 0;
    }
    if (*out)
        return TESS_OK;
    *least = smallest;
    return refuse(r, smallest, besides_smallest, error);
}
