#include "job/reconstruct/look/blur_rows.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { REACH = TESS_BLUR_ROWS_REACH, BESIDE = 2 * REACH }; /* BESIDE: rows at a border */

static int64_t borders(const tess_blur_rows *s)
{
    return tess_share_many(s->problem->share) ? s->problem->share->dist->size - 1 : 0;
}

/* The first of the rows beside border `i`. */
static int64_t edge_row(const tess_blur_rows *s, int64_t i)
{
    return tess_problem_shown(s->problem, s->problem->share, (int)i + 1) - REACH;
}

static bool is_own(const tess_blur_rows *s, int64_t row)
{
    return row >= s->first && row < s->first + s->own;
}

static void copy_own(const tess_blur_rows *s, int64_t row, float *to)
{
    tess_device *device = s->w->device;
    const float *from = s->w->measurement.data;
    device->memory->copy(device, to, from + (s->blur * s->own + row - s->first) * s->samples,
                         (size_t)s->samples * sizeof *to, NULL);
}

static void fetch_row(const tess_blur_rows *s, int64_t row)
{
    float *to = s->ring + row % TESS_BLUR_ROWS * s->samples;
    if (is_own(s, row)) {
        copy_own(s, row, to);
        return;
    }
    for (int64_t i = 0; i < borders(s); i++) {
        const int64_t at = row - edge_row(s, i);
        if (at >= 0 && at < BESIDE)
            memcpy(to, s->edges + (i * BESIDE + at) * s->samples, (size_t)s->samples * sizeof *to);
    }
}

tess_status tess_blur_rows_open(tess_blur_rows *s, const tess_problem *p, tess_workspace *w,
                                tess_error *error)
{
    *s = (tess_blur_rows){.problem = p,
                          .w = w,
                          .first = tess_problem_first(p),
                          .own = tess_problem_own(p),
                          .samples = tess_problem_row(p)};
    s->ring =
        tess_small_alloc((size_t)((TESS_BLUR_ROWS + BESIDE * borders(s)) * s->samples), sizeof *s->ring);
    s->edges = s->ring ? s->ring + TESS_BLUR_ROWS * s->samples : NULL;
    return tess_share_agree(
        p->share, s->ring ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for rows of a blur"),
        error);
}

void tess_blur_rows_close(tess_blur_rows *s)
{
    tess_small_free(s->ring);
    s->ring = s->edges = NULL;
}

tess_status tess_blur_rows_choose(tess_blur_rows *s, int64_t blur, tess_error *error)
{
    tess_device *device = s->w->device;
    const int64_t rows = BESIDE * borders(s);
    s->blur = blur;
    if (rows == 0)
        return TESS_OK;
    memset(s->edges, 0, (size_t)(rows * s->samples) * sizeof *s->edges);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = edge_row(s, i / BESIDE) + i % BESIDE;
        if (is_own(s, row))
            copy_own(s, row, s->edges + i * s->samples);
    }
    TESS_TRY(tess_share_keep(s->problem->share, device->streams->sync(device, NULL, error), error));
    return tess_dist_sum_f32(s->problem->share->dist, s->edges, rows * s->samples, error);
}

tess_status tess_blur_rows_visit(tess_blur_rows *s, tess_blur_row_fn visit, void *user, tess_error *error)
{
    tess_device *device = s->w->device;
    const int64_t height = s->problem->height;
    int64_t next = tess_max_i64(s->first - REACH, 0);
    for (int64_t row = s->first; row < s->first + s->own; row++) {
        for (; next <= tess_min_i64(row + REACH, height - 1); next++)
            fetch_row(s, next);
        TESS_TRY(device->streams->sync(device, NULL, error));
        visit(user, s, row);
    }
    return TESS_OK;
}

const float *tess_blur_row(const tess_blur_rows *s, int64_t row)
{
    const int64_t inside = tess_min_i64(tess_max_i64(row, 0), s->problem->height - 1);
    return s->ring + inside % TESS_BLUR_ROWS * s->samples;
}
