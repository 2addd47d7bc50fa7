/* Values below 0 that are no noise: means of blocks, in which the noise of a backprojection, which has high frequencies,
 * almost vanishes. Line integrals need not show them, since most rays also pass what is above 0. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/look/range.h"

enum { SIDE = 8, LEAST_BLOCKS = 2 };
static const double SHARE_OF_BLOCKS = 5e-4; /* fewer are artefacts beside dense objects */

typedef struct blocks {
    int64_t width, column, row; /* of the next pixel */
    double *sums;               /* one row of blocks */
    double factor, below, least;
    double count, all; /* blocks below, and all; as ranks can add them up */
} blocks;

static void end_row(blocks *b)
{
    for (int64_t i = 0; i < b->width / SIDE; i++) {
        const double mean = b->factor * b->sums[i] / (SIDE * SIDE);
        b->count += mean < b->below;
        b->least = fmin(b->least, mean);
        b->all++;
    }
    memset(b->sums, 0, (size_t)(b->width / SIDE) * sizeof *b->sums);
}

static void add_pixels(void *user, int64_t first, int64_t count, float *values)
{
    (void)first; /* pieces come in order */
    blocks *b = user;
    for (int64_t i = 0; i < count; i++) {
        if (b->column < b->width / SIDE * SIDE)
            b->sums[b->column / SIDE] += (double)values[i];
        if (++b->column < b->width)
            continue;
        b->column = 0;
        if (++b->row % SIDE == 0)
            end_row(b);
    }
}

tess_status tess_problem_least(tess_workspace *w, void *image, double factor, double below, double *least,
                               tess_error *error)
{
    blocks b = {.width = w->op->image.w, .factor = factor, .below = below};
    *least = 0;
    b.sums = tess_small_alloc((size_t)(b.width / SIDE + 1), sizeof *b.sums);
    tess_status status = b.sums ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a row of blocks");
    if (status == TESS_OK)
        status = tess_workspace_pieces(w, image, tess_workspace_values(&w->op->image), false, add_pixels, &b,
                                       error);
    tess_small_free(b.sums);
    TESS_TRY(tess_share_agree(w->op->share, status, error));
    TESS_TRY(tess_share_add(w->op->share, TESS_SHARE_SUM, &b.count, error));
    TESS_TRY(tess_share_add(w->op->share, TESS_SHARE_SUM, &b.all, error));
    TESS_TRY(tess_share_add(w->op->share, TESS_SHARE_LEAST, &b.least, error));
    if (b.count >= fmax(LEAST_BLOCKS, SHARE_OF_BLOCKS * b.all))
        *least = b.least;
    return TESS_OK;
}
