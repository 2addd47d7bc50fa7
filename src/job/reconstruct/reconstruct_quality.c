/* Compares an image on the device with the truth on the host, strip by strip; a volume slice by slice. All threads
 * take part, and the order of the sums does not depend on their number. NaN in the truth is a hole, which does not
 * count. */
#include "job/reconstruct/reconstruct_quality.h"

#include <float.h>
#include <math.h>

#include "base/checked.h"
#include "job/reconstruct/reconstruct_margins.h"
#include "tensor/quality.h"

enum {
    PARTS = 64,                 /* of a strip, for sums of squares */
    BANDS = 8,                  /* for SSIM, each with its own rows */
    STRIP = 256,                /* rows of an image */
    BEFORE = TESS_SSIM_TAPS - 1 /* rows above that a window needs */
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
    return p->depth > 1 ? p->height : tess_min_i64(p->height, STRIP + BEFORE);
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

tess_status tess_judge_image(const tess_judge *judge, const void *image, double *psnr, double *ssim,
                             tess_error *error)
{
    const tess_problem *p = judge->problem;
    tess_workspace *w = judge->workspace;
    const tess_host_part *host = &w->host;
    const int64_t samples = tess_problem_row(p), room = tess_judge_rows(p);
    const bool estimated = p->range_from == TESS_RANGE_FROM_DATA;
    double square = 0, similar = 0;
    int64_t positions = 0, valid = 0;
    *psnr = NAN;
    if (ssim)
        *ssim = NAN;
    if (!host->truth)
        return TESS_OK;
    strip s = {.values = host->rows[0],
               .truth = host->rows[1],
               .samples = samples,
               .low = (float)p->low,
               .high = (float)p->high,
               .truth_low = estimated ? -FLT_MAX : (float)p->low,
               .truth_high = estimated ? FLT_MAX : (float)p->high,
               .peak = estimated ? host->truth_peak : (float)p->high};
    for (int64_t slice = 0; slice < p->depth; slice++)
        for (s.top = 0; s.top < p->height; s.top = s.bottom) {
            s.from = tess_max_i64(s.top - BEFORE, 0);
            s.bottom = tess_min_i64(s.from + room, p->height);
            const int64_t at = slice * p->height + s.from;
            s.truth_from = host->truth + at * samples;
            TESS_TRY(tess_margins_rows(w, p, image, at, s.bottom - s.from, s.values, error));
            tess_pool_run(w->engine->host, PARTS, compare, &s);
            for (int i = 0; i < PARTS; i++) {
                square += s.square[i];
                valid += s.valid[i];
            }
            if (ssim)
                add_bands(judge, &s, &similar, &positions);
        }
    const double mean = square / (double)valid; /* a truth without any value is refused */
    *psnr = -10 * log10(mean + (judge->saturating ? 1e-8 : 0));
    if (ssim && positions)
        *ssim = similar / (double)positions;
    return TESS_OK;
}
