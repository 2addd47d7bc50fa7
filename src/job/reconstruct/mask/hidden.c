#include "job/reconstruct/mask/hidden.h"

#include <math.h>

#include "base/mem.h"
#include "job/common/note.h"
#include "job/reconstruct/mask/clipped.h"
#include "job/reconstruct/mask/dark_border.h"
#include "job/reconstruct/mask/frame.h"
#include "job/reconstruct/mask/marks.h"
#include "job/reconstruct/mask/squares.h"
#include "job/reconstruct/problem/file_rows.h"

/* Of the range: how far beyond it light may be that was cut off. */
static const double BEYOND = 1;
static const double FEW = 0.005; /* of all values: photographs have so many at the end of their range */

double tess_hidden_high(const tess_problem *p)
{
    const double top = tess_problem_top(p);
    return p->hidden.count[TESS_HIDDEN_BRIGHT] > 0 ? fmax(top, p->high + BEYOND * (p->high - p->low)) : top;
}

double tess_hidden_low(const tess_problem *p)
{
    return p->hidden.count[TESS_HIDDEN_DARK] > 0 ? p->low - BEYOND * (p->high - p->low) : p->low;
}

tess_hidden_reason tess_hidden_own(const tess_problem *p, int64_t y, int64_t column, float value)
{
    const tess_hidden *h = &p->hidden;
    return !isfinite(value)                              ? TESS_HIDDEN_MISSING
           : h->frame && tess_frame_covers(p, y, column) ? TESS_HIDDEN_FRAME
           : (double)value >= h->bright                  ? TESS_HIDDEN_BRIGHT
           : (double)value <= h->dark                    ? TESS_HIDDEN_DARK
                                                         : TESS_HIDDEN_REASONS;
}

tess_hidden_reason tess_hidden_why(const tess_problem *p, int64_t y, int64_t column, float value)
{
    const tess_hidden_reason why = tess_hidden_own(p, y, column, value);
    return why == TESS_HIDDEN_REASONS ? tess_square_why(p, y, column) : why;
}

float tess_hidden_weight(const tess_problem *p, int64_t y, int64_t column, float value)
{
    return tess_hidden_own(p, y, column, value) == TESS_HIDDEN_REASONS ? tess_square_weight(p, y, column) : 0;
}

bool tess_hidden_any(const tess_problem *p)
{
    return p->hidden.blurs;
}

typedef struct looking {
    tess_problem *p;
    int64_t *missing; /* of each blur */
    bool seek[2];     /* values that are cut off: bright, dark */
    tess_clipped clipped[2];
    tess_frames frames;
    tess_dark_border border;
} looking;

static tess_status first_look(void *user, int64_t y, float *values, tess_error *error)
{
    looking *l = user;
    for (int64_t i = 0; i < tess_problem_row(l->p); i++)
        l->missing[y / l->p->height] += !isfinite(values[i]);
    for (int i = 0; i < 2; i++)
        tess_clipped_add(&l->clipped[i], values);
    tess_frames_add(&l->frames, y, values);
    return tess_dark_border_add(&l->border, y, values, error);
}

static tess_status look_for_frames(void *user, int64_t y, float *values, tess_error *error)
{
    looking *l = user;
    return tess_frames_row(&l->frames, y, values, error);
}

static tess_status look_for_ends(void *user, int64_t y, float *values, tess_error *error)
{
    looking *l = user;
    for (int i = 0; i < 2; i++)
        if (l->seek[i])
            TESS_TRY(tess_clipped_row(&l->clipped[i], y, values, error));
    return TESS_OK;
}

static tess_status hide_squares(void *user, int64_t y, float *values, tess_error *error)
{
    looking *l = user;
    (void)error;
    for (int64_t i = 0; i < tess_problem_row(l->p); i++) {
        const int64_t column = i / l->p->channels;
        const tess_hidden_reason why = tess_hidden_own(l->p, y, column, values[i]);
        if (why == TESS_HIDDEN_BRIGHT || why == TESS_HIDDEN_DARK)
            tess_squares_hide(l->p, y, column, why);
    }
    return TESS_OK;
}

static tess_status count(void *user, int64_t y, float *values, tess_error *error)
{
    looking *l = user;
    const tess_problem *p = l->p;
    tess_hidden *h = &l->p->hidden;
    (void)error;
    for (int64_t i = 0; i < tess_problem_row(p); i++) {
        const tess_hidden_reason why = tess_hidden_why(p, y, i / p->channels, values[i]);
        if (why == TESS_HIDDEN_REASONS)
            continue;
        h->blurs[y / p->height] = true;
        h->count[why]++;
    }
    return TESS_OK;
}

static void say(const tess_problem *p, const tess_common *common)
{
    static const char *const what[TESS_HIDDEN_REASONS] = {
        "are missing (NaN, nodata value, mask)",
        "are cut off at the largest value (\"saturated\": false keeps them)",
        "are cut off at the least value (\"saturated\": false keeps them)",
        "lie in a frame that was set after the blur (\"frame\": false keeps them)"};
    const double all = (double)(p->count * p->height * tess_problem_row(p));
    for (int i = 0; i < TESS_HIDDEN_REASONS; i++)
        if (p->hidden.count[i])
            tess_note(
                common,
                i == TESS_HIDDEN_BRIGHT && (double)p->hidden.count[i] < FEW * all ? TESS_NOTE_DETAIL
                                                                                  : TESS_NOTE_WARNING,
                "%s: %lld values (%.2g %%) %s; they are left out, and the picture is found from the others",
                p->measurement, (long long)p->hidden.count[i], 100 * (double)p->hidden.count[i] / all,
                what[i]);
}

/* A blur without a value is no measurement. */
static tess_status check_missing(const looking *l, bool *any, tess_error *error)
{
    const tess_problem *p = l->p;
    *any = false;
    for (int64_t i = 0; i < p->count; i++) {
        *any = *any || l->missing[i] > 0;
        if (l->missing[i] == p->height * tess_problem_row(p))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: all values of blur %lld (counted from 0) are missing (NaN, nodata value, "
                             "mask); leave it and its kernel out",
                             p->measurement, (long long)i);
    }
    return TESS_OK;
}

/* What is cut off, when a frame is known. */
static tess_status find_ends(looking *l, tess_error *error)
{
    tess_hidden *h = &l->p->hidden;
    const bool few = !h->keep[TESS_HIDDEN_BRIGHT] && tess_clipped_few(&l->clipped[0]);
    for (int i = 0; i < 2; i++)
        l->seek[i] = !h->keep[i ? TESS_HIDDEN_DARK : TESS_HIDDEN_BRIGHT] && !(few && i == 0) &&
                     tess_clipped_possible(&l->clipped[i]);
    if (l->seek[0] || l->seek[1])
        TESS_TRY(tess_problem_file_rows(l->p, look_for_ends, l, error));
    if (few || (l->seek[0] && tess_clipped_found(&l->clipped[0])))
        h->bright =
            l->clipped[0].end - (few ? tess_clipped_waves(&l->clipped[0]) : tess_waves_of_highlight(l->p));
    if (l->seek[1] && tess_clipped_found(&l->clipped[1]))
        h->dark = l->clipped[1].end + tess_waves_of_highlight(l->p);
    return TESS_OK;
}

/* Zeros outside are a picture as any other, but a start with light there is far from it. */
static void note_border(tess_problem *p, const tess_dark_border *border, const tess_common *common)
{
    if (!(p->dark_outside = tess_dark_border_found(border)))
        return;
    tess_note(common, TESS_NOTE_WARNING,
              "%s: its border is as dark as if it was blurred with zeros outside of the picture, as by a "
              "convolution that keeps the size; the outside is begun as black",
              p->measurement);
}

static tess_status look(looking *l, const tess_common *common, tess_error *error)
{
    tess_problem *p = l->p;
    tess_hidden *h = &p->hidden;
    bool any;
    if (!(l->missing = tess_small_alloc((size_t)p->count, sizeof *l->missing)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to look at %lld blurs", (long long)p->count);
    TESS_TRY(tess_frames_open(&l->frames, error));
    TESS_TRY(tess_dark_border_open(&l->border, error));
    for (int i = 0; i < 2; i++)
        TESS_TRY(tess_clipped_open(&l->clipped[i], error));
    TESS_TRY(tess_problem_find_marks(p, common, error));
    TESS_TRY(tess_problem_file_rows(p, first_look, l, error));
    note_border(p, &l->border, common);
    TESS_TRY(check_missing(l, &any, error));
    if (any && h->keep[TESS_HIDDEN_MISSING]) /* they are refused when they are read */
        return TESS_OK;
    if (!h->keep[TESS_HIDDEN_FRAME] && tess_frames_possible(&l->frames))
        TESS_TRY(tess_problem_file_rows(p, look_for_frames, l, error));
    tess_frames_end(&l->frames, h);
    TESS_TRY(find_ends(l, error));
    if (!any && !h->frame && !isfinite(h->bright) && !isfinite(h->dark))
        return TESS_OK;
    if (!(h->blurs = tess_small_alloc((size_t)p->count, sizeof *h->blurs)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to note %lld blurs", (long long)p->count);
    TESS_TRY(tess_squares_open(p, error));
    if (h->squares) {
        TESS_TRY(tess_problem_file_rows(p, hide_squares, l, error));
        tess_squares_end(p);
    }
    TESS_TRY(tess_problem_file_rows(p, count, l, error));
    say(p, common);
    return TESS_OK;
}

tess_status tess_problem_find_hidden(tess_problem *p, const tess_common *common, tess_error *error)
{
    looking l = {.p = p,
                 .clipped = {{.problem = p}, {.problem = p, .dark = true}},
                 .frames = {.problem = p},
                 .border = {.problem = p}};
    p->hidden.bright = INFINITY;
    p->hidden.dark = -INFINITY;
    if (p->physics != TESS_PHYSICS_BLUR || p->synthetic || p->as_published || !p->unknown)
        return TESS_OK;
    const tess_status status = look(&l, common, error);
    tess_small_free(l.missing);
    for (int i = 0; i < 2; i++)
        tess_clipped_close(&l.clipped[i]);
    tess_frames_close(&l.frames);
    tess_dark_border_close(&l.border);
    return status;
}
