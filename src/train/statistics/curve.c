#include "train/statistics/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 4096 };

typedef struct step {
    float score;
    int64_t positives, equal, below;
} step;

void tess_curve_begin(tess_curve *curve, tess_memory *memory)
{
    *curve = (tess_curve){.memory = memory};
}

static tess_status grow(tess_curve *curve, tess_error *error)
{
    tess_block larger;
    const int64_t capacity = curve->capacity ? 2 * curve->capacity : FIRST;
    TESS_TRY(
        tess_block_alloc(curve->memory, &larger, TESS_MEM_HOST, (size_t)capacity * sizeof(float), error));
    if (curve->positives)
        memcpy(larger.data, curve->scores.data, (size_t)curve->positives * sizeof(float));
    tess_block_free(&curve->scores);
    curve->scores = larger;
    curve->capacity = capacity;
    return TESS_OK;
}

tess_status tess_curve_collect(tess_curve *curve, const float *scores, const uint8_t *truth, int64_t count,
                               tess_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        if (isnan(scores[i])) {
            curve->left_out++;
            continue;
        }
        if (!truth[i]) {
            curve->negatives++;
            continue;
        }
        if (curve->positives == curve->capacity)
            TESS_TRY(grow(curve, error));
        ((float *)curve->scores.data)[curve->positives++] = scores[i];
    }
    return TESS_OK;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

tess_status tess_curve_sort(tess_curve *curve, tess_error *error)
{
    float *scores = curve->scores.data;
    if (!curve->positives)
        return TESS_OK;
    qsort(scores, (size_t)curve->positives, sizeof *scores, ascending);
    int64_t distinct = 1;
    for (int64_t i = 1; i < curve->positives; i++)
        distinct += scores[i] != scores[i - 1];
    TESS_TRY(tess_block_alloc(curve->memory, &curve->counts, TESS_MEM_HOST, (size_t)distinct * sizeof(step),
                              error));
    step *steps = curve->counts.data, *at = steps - 1;
    for (int64_t i = 0; i < curve->positives; i++) {
        if (i == 0 || scores[i] != scores[i - 1])
            *++at = (step){.score = scores[i]};
        at->positives++;
    }
    curve->distinct = distinct;
    return TESS_OK;
}

void tess_curve_count(tess_curve *curve, const float *scores, const uint8_t *truth, int64_t count)
{
    step *steps = curve->counts.data;
    for (int64_t i = 0; i < count; i++) {
        if (truth[i] || isnan(scores[i]))
            continue;
        int64_t low = 0, high = curve->distinct; /* the first step whose score is not below */
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (steps[middle].score < scores[i])
                low = middle + 1;
            else
                high = middle;
        }
        if (low == curve->distinct)
            continue; /* above all anomalies */
        if (steps[low].score == scores[i])
            steps[low].equal++;
        else
            steps[low].below++;
    }
}

tess_curve_result tess_curve_end(const tess_curve *curve)
{
    tess_curve_result r = {.positives = curve->positives, .negatives = curve->negatives};
    r.known = r.positives && r.negatives;
    if (!r.known)
        return r;
    const step *steps = curve->counts.data;
    double wins = 0;
    int64_t below = 0, positives_below = 0;
    for (int64_t i = 0; i < curve->distinct; i++) {
        below += steps[i].below;
        wins += (double)steps[i].positives * ((double)below + 0.5 * (double)steps[i].equal);
        /* At this threshold: all scores from here on. */
        const double true_positives = (double)(r.positives - positives_below);
        const double false_positives = (double)(r.negatives - below);
        r.average_precision += (double)steps[i].positives / (double)r.positives * true_positives /
                               (true_positives + false_positives);
        below += steps[i].equal;
        positives_below += steps[i].positives;
    }
    r.auroc = wins / ((double)r.positives * (double)r.negatives);
    return r;
}

/* Where a point lies between (0, 0) and (1, 1), as the sum of both rates; it is kept if it is in another part than the last. */
typedef struct thinner {
    int parts, count;
    double last;
    double *points;
} thinner;

static void add_point(thinner *t, double alarms, double recall)
{
    const double part = floor(0.5 * (alarms + recall) * t->parts);
    if (part <= t->last && alarms + recall < 2)
        return;
    t->points[2 * t->count] = alarms;
    t->points[2 * t->count + 1] = recall;
    t->count++;
    t->last = part;
}

int tess_curve_points(const tess_curve *curve, int most, double *points)
{
    const step *steps = curve->counts.data;
    const double p = (double)curve->positives, n = (double)curve->negatives;
    thinner t = {.parts = most - 2, .last = -1, .points = points};
    int64_t below = 0, found = 0;
    if (!curve->positives || !curve->negatives)
        return 0;
    for (int64_t i = 0; i < curve->distinct; i++)
        below += steps[i].below + steps[i].equal;
    add_point(&t, 0, 0);
    for (int64_t i = curve->distinct;
         i-- > 0;) { /* others above the score, then the anomalies with their ties */
        add_point(&t, (n - (double)below) / n, (double)found / p);
        below -= steps[i].equal;
        found += steps[i].positives;
        if (below > 0 || found < curve->positives) /* else the last point */
            add_point(&t, (n - (double)below) / n, (double)found / p);
        below -= steps[i].below;
    }
    add_point(&t, 1, 1);
    return t.count;
}

void tess_curve_free(tess_curve *curve)
{
    tess_block_free(&curve->scores);
    tess_block_free(&curve->counts);
}

void tess_confusion_add(tess_confusion *sums, const float *scores, double threshold, const uint8_t *truth,
                        int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const bool marked = (double)scores[i] >= threshold;
        if (isnan(scores[i]))
            continue;
        sums->true_positives += marked && truth[i];
        sums->false_positives += marked && !truth[i];
        sums->false_negatives += !marked && truth[i];
        sums->true_negatives += !marked && !truth[i];
    }
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

double tess_confusion_precision(const tess_confusion *c)
{
    return share(c->true_positives, c->true_positives + c->false_positives);
}

double tess_confusion_recall(const tess_confusion *c)
{
    return share(c->true_positives, c->true_positives + c->false_negatives);
}

double tess_confusion_f1(const tess_confusion *c)
{
    return share(2 * c->true_positives, 2 * c->true_positives + c->false_positives + c->false_negatives);
}

double tess_confusion_iou(const tess_confusion *c)
{
    return share(c->true_positives, c->true_positives + c->false_positives + c->false_negatives);
}
