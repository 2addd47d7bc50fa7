/* Compares an image on the device with the truth on the host, strip by strip; a volume slice by slice. All threads
 * take part, and the order of the sums does not depend on their number. NaN in the truth is a hole, which does not
 * count. */
#include "job/reconstruct/run/quality.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/plan/margins.h"

enum {
    PARTS = 64,  /* of a strip, for sums of squares */
    BANDS = 8,   /* for SSIM, each with its own rows */
    STRIP = 256, /* rows of an image */
    BEFORE = TESS_JUDGE_BEFORE
};

/* Rows [from, bottom) of a slice, scaled to [0, 1]; those from `top` on are new. */
typedef struct strip {
    const float *truth_from;
    float *values, *truth;
    int64_t from, top, bottom, samples;
    float low, high;             /* results are clamped to it */
    float truth_low, truth_high; /* truths are clamped to this; not if the range is estimated */
    float peak;
    double square[PARTS];
    int64_t valid[PARTS]; /* values of the truth that are no hole */
    tess_quality band[BANDS];
} strip;

int64_t tess_judge_rows(const tess_problem *p)
{
    return p->depth > 1 ? p->height : tess_min_i64(tess_problem_own(p) + tess_judge_above(p), STRIP + BEFORE);
}

int64_t tess_judge_above(const tess_problem *p)
{
    return p->depth > 1 || tess_problem_first(p) == 0 ? 0 : BEFORE;
}

size_t tess_judge_bytes(const tess_problem *p)
{
    return BANDS * tess_quality_bytes(p->width, p->channels);
}

static void compare(void *arg, int64_t part, int thread)
{
    (void)thread;
    strip *s = arg;
    const int64_t count = (s->bottom - s->from) * s->samples, old = (s->top - s->from) * s->samples;
    const int64_t from = count * part / PARTS, to = count * (part + 1) / PARTS;
    double square = 0;
    int64_t valid = 0;
    for (int64_t i = from; i < to; i++) {
        const bool hole = isnan(s->truth_from[i]);
        s->values[i] = fminf(fmaxf(s->values[i], s->low), s->high) / s->peak;
        s->truth[i] = hole ? NAN : fminf(fmaxf(s->truth_from[i], s->truth_low), s->truth_high) / s->peak;
        const double difference = hole ? 0 : (double)s->values[i] - (double)s->truth[i];
        square += i >= old ? difference * difference : 0;
        valid += i >= old && !hole;
    }
    s->square[part] = square;
    s->valid[part] = valid;
}

/* Windows whose last row is in the band's share of the new rows. */
static void resemble(void *arg, int64_t band, int thread)
{
    (void)thread;
    strip *s = arg;
    const int64_t first = tess_max_i64(s->top, BEFORE), count = tess_max_i64(s->bottom - first, 0);
    const int64_t from = first + count * band / BANDS, to = first + count * (band + 1) / BANDS;
    for (int64_t y = from - BEFORE; from < to && y < to; y++)
        tess_quality_row(&s->band[band], s->values + (y - s->from) * s->samples,
                         s->truth + (y - s->from) * s->samples);
}

/* Adds the sum of SSIM over the strip's windows, and their number. */
static void add_bands(const tess_judge *judge, strip *s, double *similar, int64_t *positions)
{
    const tess_problem *p = judge->problem;
    tess_workspace *w = judge->workspace;
    const size_t lines = tess_quality_bytes(p->width, p->channels);
    for (int i = 0; i < BANDS; i++)
        tess_quality_begin(&s->band[i], p->width, p->channels, (char *)w->host.lines + (size_t)i * lines);
    tess_pool_run(w->engine->host, BANDS, resemble, s);
    for (int i = 0; i < BANDS; i++) {
        *similar += s->band[i].ssim;
        *positions += s->band[i].positions;
    }
}

/* Sends the last rows of this rank's part of an image to the next rank, whose windows of SSIM begin there. */
static void exchange_above(const tess_judge *judge, const void *image)
{
    const tess_problem *p = judge->problem;
    tess_workspace *w = judge->workspace;
    if (!tess_share_many(p->share) || p->depth > 1)
        return;
    const tess_dist *dist = p->share->dist;
    const int64_t samples = tess_problem_row(p);
    const size_t bytes = (size_t)(BEFORE * samples) * sizeof(float);
    tess_dist_transfer list[2];
    tess_error error;
    int count = 0;
    tess_status status = tess_margins_rows(w, p, image, tess_problem_first(p) + tess_problem_own(p) - BEFORE,
                                           BEFORE, w->host.rows[0], &error);
    (void)!tess_share_keep(p->share, status, &error); /* several ranks: it is kept */
    if (dist->rank > 0)
        list[count++] =
            (tess_dist_transfer){.peer = dist->rank - 1, .receive = w->host.above, .receive_bytes = bytes};
    if (dist->rank + 1 < dist->size)
        list[count++] =
            (tess_dist_transfer){.peer = dist->rank + 1, .send = w->host.rows[0], .send_bytes = bytes};
    status = tess_dist_exchange_begin(w->exchange, list, count, &error);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(w->exchange, &error);
    (void)!tess_share_keep(p->share, status, &error);
}

/* Rows [at, at + count) of the image, of which the first may be those of the rank above. */
static tess_status take_rows(const tess_judge *judge, const void *image, int64_t at, int64_t count,
                             float *values, tess_error *error)
{
    const tess_problem *p = judge->problem;
    const int64_t samples = tess_problem_row(p), missing = tess_max_i64(tess_problem_first(p) - at, 0);
    if (missing > 0)
        memcpy(values, judge->workspace->host.above + (BEFORE - missing) * samples,
               (size_t)(missing * samples) * sizeof *values);
    return tess_margins_rows(judge->workspace, p, image, at + missing, count - missing,
                             values + missing * samples, error);
}

/* What a comparison adds up. */
typedef struct sums {
    double square, similar;
    int64_t positions, valid;
} sums;

static tess_status compare_all(const tess_judge *judge, const void *image, strip *s, bool resembling,
                               sums *sum, tess_error *error)
{
    const tess_problem *p = judge->problem;
    tess_workspace *w = judge->workspace;
    const int64_t room = tess_judge_rows(p), begin = tess_problem_first(p), end = begin + tess_problem_own(p);
    for (int64_t start = begin / p->height * p->height; start < end; start += p->height) { /* slices */
        const int64_t stop = tess_min_i64(end - start, p->height);
        for (s->top = tess_max_i64(begin - start, 0); s->top < stop; s->top = s->bottom) {
            s->from = tess_max_i64(s->top - BEFORE, 0);
            s->bottom = tess_min_i64(s->from + room, stop);
            s->truth_from = w->host.truth + (start + s->from - begin) * s->samples;
            TESS_TRY(take_rows(judge, image, start + s->from, s->bottom - s->from, s->values, error));
            tess_pool_run(w->engine->host, PARTS, compare, s);
            for (int i = 0; i < PARTS; i++) {
                sum->square += s->square[i];
                sum->valid += s->valid[i];
            }
            if (resembling)
                add_bands(judge, s, &sum->similar, &sum->positions);
        }
    }
    return TESS_OK;
}

tess_status tess_judge_image(const tess_judge *judge, const void *image, double *psnr, double *ssim,
                             tess_error *error)
{
    const tess_problem *p = judge->problem;
    const tess_host_part *host = &judge->workspace->host;
    const bool estimated = p->range_from == TESS_RANGE_FROM_DATA;
    sums sum = {0};
    *psnr = NAN;
    if (ssim)
        *ssim = NAN;
    if (!host->truth)
        return TESS_OK;
    strip s = {.values = host->rows[0],
               .truth = host->rows[1],
               .samples = tess_problem_row(p),
               .low = (float)p->low,
               .high = (float)tess_problem_top(p),
               .truth_low = estimated ? -FLT_MAX : (float)p->low,
               .truth_high = estimated ? FLT_MAX : (float)p->high,
               .peak = estimated ? host->truth_peak : (float)p->high};
    exchange_above(judge, image);
    TESS_TRY(tess_share_keep(p->share, compare_all(judge, image, &s, ssim, &sum, error), error));
    double valid = (double)sum.valid, positions = (double)sum.positions;
    double *const added[] = {&sum.square, &sum.similar, &valid, &positions};
    for (int i = 0; i < 4; i++)
        TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, added[i], error));
    const double mean = sum.square / valid; /* a truth without any value is refused */
    *psnr = -10 * log10(mean + (judge->saturating ? 1e-8 : 0));
    if (ssim && positions > 0)
        *ssim = sum.similar / positions;
    return TESS_OK;
}
