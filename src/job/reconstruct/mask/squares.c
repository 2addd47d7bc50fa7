#include "job/reconstruct/mask/squares.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

enum { GRAY = 8, COLOUR = 16 }; /* sides of squares; colours usually have half the resolution */
static const double MOST = 0.6; /* of all squares */
/* Photographs in which highlights hide much end up to 1.6 dB higher with this weight of what is beside them than with 0. Where they hide
 * less than this share, as points of light do, 0 is better by up to 2 dB. */
static const float BESIDE = 0.3f;
static const double MUCH = 0.25;
/* Of the quantisation's deviation. A wave that ends a frame too early costs more than a few pixels of a dark picture that are taken for
 * the frame. */
static const double FRAME = 7, HIGHLIGHT = 3;
/* Of the range: more takes dark pictures for frames. */
static const double MOST_FRAME = 0.08, MOST_HIGHLIGHT = 0.03;

static int64_t side_of(const tess_problem *p)
{
    return p->channels > 1 ? COLOUR : GRAY;
}

static int64_t across(const tess_problem *p)
{
    return tess_ceil_div(p->width, side_of(p));
}

static int64_t squares_of(const tess_problem *p)
{
    return tess_ceil_div(p->count * p->height, side_of(p)) * across(p);
}

static int64_t square_at(const tess_problem *p, int64_t y, int64_t column)
{
    return y / side_of(p) * across(p) + column / side_of(p);
}

tess_status tess_squares_open(tess_problem *p, tess_error *error)
{
    if (!(p->quantised > 0))
        return TESS_OK;
    p->hidden.squares = tess_small_alloc((size_t)squares_of(p), 1);
    return p->hidden.squares ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for the squares of a JPEG");
}

void tess_squares_hide(tess_problem *p, int64_t y, int64_t column, tess_hidden_reason why)
{
    p->hidden.squares[square_at(p, y, column)] = (unsigned char)(why + 1);
}

void tess_squares_end(tess_problem *p)
{
    const int64_t all = squares_of(p);
    int64_t hidden = 0;
    for (int64_t i = 0; i < all; i++)
        hidden += p->hidden.squares[i] > 0;
    p->hidden.beside = (double)hidden < MUCH * (double)all ? 0 : BESIDE;
    if ((double)hidden <= MOST * (double)all)
        return;
    tess_small_free(p->hidden.squares);
    p->hidden.squares = NULL;
}

tess_hidden_reason tess_square_why(const tess_problem *p, int64_t y, int64_t column)
{
    const int why = p->hidden.squares ? p->hidden.squares[square_at(p, y, column)] : 0;
    return why ? (tess_hidden_reason)(why - 1) : TESS_HIDDEN_REASONS;
}

float tess_square_weight(const tess_problem *p, int64_t y, int64_t column)
{
    const tess_hidden_reason why = tess_square_why(p, y, column);
    return why == TESS_HIDDEN_REASONS ? 1 : p->hidden.beside;
}

static double waves(const tess_problem *p, double deviations, double most)
{
    return fmin(deviations * p->quantised / p->unit, most * (p->high - p->low));
}

double tess_waves_of_frame(const tess_problem *p)
{
    return waves(p, p->channels > 1 ? 2 * FRAME : FRAME, MOST_FRAME); /* colours are stored more coarsely */
}

double tess_waves_of_highlight(const tess_problem *p)
{
    return waves(p, HIGHLIGHT, MOST_HIGHLIGHT);
}
