/* Pictures inside larger ones: for blurs with an unknown boundary, the solver's images have margins and the
 * measurements do not. */
#include "job/reconstruct/plan/margins.h"

#include <math.h>

#include "job/reconstruct/look/noise.h"

/* out = a in + b out, for parts of images. */
static tess_status combine(tess_workspace *w, const tess_tensor *in, const float *from,
                           const tess_tensor *out, float *to, const double factors[2], tess_error *error)
{
    tess_device *device = w->device;
    const tess_op op = {.kind = TESS_OP_COMBINE,
                        .outputs = 1,
                        .in = {*in, *out},
                        .out = {*out},
                        .kernel = {1, 1, 1},
                        .stride = {1, 1, 1},
                        .combine = {.a = factors[0], .b = factors[1], .low = -INFINITY, .high = INFINITY},
                        .inputs = 2};
    const tess_op_buffers buffers = {.in = {from, to}, .out = {to}};
    tess_prepared *prepared = NULL;
    TESS_TRY(device->ops->prepare(device, &op, &prepared, error));
    device->ops->run(device, prepared, &buffers, NULL);
    device->ops->release(device, prepared);
    return TESS_OK;
}

static tess_tensor part(const tess_workspace *w, int64_t height, int64_t width)
{
    tess_tensor t = w->op->image;
    t.h = height;
    t.w = width;
    return t;
}

/* Rows of this rank's part above what was measured: only the first rank has some, because all have measured rows. */
static int64_t rows_above(const tess_problem *p)
{
    return p->margin[0] > tess_share_first(p->share) ? p->margin[0] - tess_share_first(p->share) : 0;
}

tess_status tess_margins_add(tess_workspace *w, const tess_problem *p, int64_t i, void *mean,
                             tess_error *error)
{
    const tess_tensor *m = &w->op->measurement, middle = part(w, m->h, m->w),
                      one = tess_tensor_2d(TESS_F32, 1, m->h, m->w, m->c);
    float *to = (float *)mean + rows_above(p) * middle.stride_h + p->margin[1] * middle.stride_w;
    double sum = 0;
    for (int64_t k = 0; k < p->count; k++)
        sum += pow(tess_problem_weight(p, k), 2);
    const double factors[2] = {pow(tess_problem_weight(p, i), 2) / sum, i ? 1 : 0};
    return combine(w, &one, (const float *)w->measurement.data + i * m->stride_n, &middle, to, factors,
                   error);
}

/* Sets `count` rows or columns to the one at `from`: a tensor with stride 0 repeats it; or to black. */
static tess_status repeat(tess_workspace *w, const tess_problem *p, bool rows, int64_t from, int64_t first,
                          int64_t count, float *image, tess_error *error)
{
    const double copy[2] = {p->dark_outside ? 0 : 1, 0};
    const tess_tensor *all = &w->op->image;
    const int64_t step = rows ? all->stride_h : all->stride_w,
                  start = rows ? 0 : rows_above(p) * all->stride_h;
    const tess_tensor to = rows ? part(w, count, all->w) : part(w, w->op->measurement.h, count);
    tess_tensor one = to;
    if (rows)
        one.stride_h = 0;
    else
        one.stride_w = 0;
    return count > 0
               ? combine(w, &one, image + start + from * step, &to, image + start + first * step, copy, error)
               : TESS_OK;
}

tess_status tess_margins_fill(tess_workspace *w, const tess_problem *p, void *image, tess_error *error)
{
    const tess_tensor *all = &w->op->image;
    for (int rows = 0; rows < 2; rows++) { /* columns first: the rows then fill the corners */
        const int64_t before = rows ? rows_above(p) : p->margin[1],
                      seen = rows ? w->op->measurement.h : p->width, end = before + seen,
                      side = rows ? all->h : all->w;
        TESS_TRY(repeat(w, p, rows, before, 0, before, image, error));
        TESS_TRY(repeat(w, p, rows, end - 1, end, side - end, image, error));
    }
    return TESS_OK;
}

tess_status tess_margins_rows(tess_workspace *w, const tess_problem *p, const void *vector, int64_t first,
                              int64_t count, float *to, tess_error *error)
{
    tess_device *device = w->device;
    const tess_tensor *all = &w->op->image;
    const int64_t samples = tess_problem_row(p), stride = all->w * all->c;
    const bool whole =
        stride == samples && (all->h == p->height || tess_share_many(p->share)); /* rows follow each other */
    first -= tess_problem_first(p);
    for (int64_t y = 0, some; y < count; y += some) {
        const int64_t slice = (first + y) / p->height + p->margin_depth,
                      row = (first + y) % p->height + (p->depth > 1 ? p->margin[0] : rows_above(p));
        const float *from =
            (const float *)vector + (slice * all->h + row) * stride + p->margin[1] * p->channels;
        some = whole ? count : 1;
        device->memory->copy(device, to + y * samples, from, (size_t)(some * samples) * sizeof *to, NULL);
    }
    return device->streams->sync(device, NULL, error);
}
