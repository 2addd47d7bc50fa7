#include <math.h>
#include <string.h>

#include "job/reconstruct/plan/margins.h"
#include "job/reconstruct/run/output_impl.h"
#include "tensor/samples.h"

static int owner_of_row(const tess_problem *p, int64_t row)
{
    int rank = 0;
    while (tess_share_many(p->share) && row >= tess_problem_shown(p, p->share, rank + 1))
        rank++;
    return rank;
}

static tess_status send_row(const tess_outputs *o, tess_workspace *w, int owner, int64_t samples,
                            tess_error *error)
{
    const int rank = o->problem->share->dist->rank;
    const size_t bytes = (size_t)samples * sizeof(float);
    float *row = w->host.rows[0];
    tess_dist_transfer move = {.peer = rank ? 0 : owner};
    if (rank)
        move.send = row, move.send_bytes = bytes;
    else
        move.receive = row, move.receive_bytes = bytes;
    TESS_TRY(tess_dist_exchange_begin(w->exchange, &move, 1, error));
    return tess_dist_exchange_end(w->exchange, error);
}

/* All rows are sent, also after a failure. */
tess_status tess_output_rows(const tess_outputs *o, tess_workspace *w, tess_writer *writer,
                             const tess_image_info *info, const tess_row_kind *kind, tess_error *error)
{
    const tess_problem *p = o->problem;
    const bool many = tess_share_many(p->share);
    const int rank = many ? p->share->dist->rank : 0;
    const int64_t samples = info->width * info->channels;
    float *const *rows = w->host.rows;
    tess_status status = TESS_OK;
    for (int64_t y = 0; y < info->height && (many || status == TESS_OK); y++) {
        const int owner = kind->owner(o, y);
        tess_error why;
        tess_status one = rank == owner ? kind->take(o, w, y, rows[0], &why) : TESS_OK;
        tess_error lost;
        const tess_status sent = owner && (rank == owner || rank == 0)
                                     ? send_row(o, w, owner, samples, one == TESS_OK ? &why : &lost)
                                     : TESS_OK;
        one = one == TESS_OK ? sent : one;
        if (rank == 0 && one == TESS_OK && status == TESS_OK) {
            kind->complete(o, rows[0]);
            tess_samples_from_float(info->dtype, info->full_scale, rows[0], samples, rows[1]);
            one = tess_writer_rows(writer, 1, rows[1], &why);
        }
        if (one != TESS_OK && status == TESS_OK) {
            status = one;
            *error = why;
        }
    }
    TESS_TRY(tess_share_agree(p->share, status, error));
    return tess_share_agree(p->share, rank == 0 ? tess_writer_commit(writer, error) : TESS_OK, error);
}

/* Converts to the units of the measurement, or to [0, 1] for a picture. */
static void clamp(const tess_problem *p, int64_t count, bool picture, float *values)
{
    if (!picture)
        tess_problem_to_units(p, count, values);
    for (int64_t i = 0; i < count && picture; i++)
        values[i] = (float)(fmin(fmax((double)values[i], p->low), p->high) * (1 / p->high));
}

/* A picture of a volume shows the middle slice. */
static int64_t middle(const tess_problem *p)
{
    return p->depth / 2 * p->height;
}

static int64_t result_row(const tess_outputs *o, int64_t y)
{
    const tess_problem *p = o->problem; /* the rows of a volume's array are slices */
    return tess_output_is_npy(o->result) ? y * (p->depth > 1 ? p->height : 1) : middle(p) + y;
}

static int64_t result_samples(const tess_outputs *o)
{
    const tess_extent all = tess_problem_image_extent(o->problem);
    return tess_output_is_npy(o->result) ? all.width * all.channels : tess_problem_row(o->problem);
}

static int owner_of_result(const tess_outputs *o, int64_t y)
{
    return owner_of_row(o->problem, result_row(o, y));
}

static tess_status take_result(const tess_outputs *o, tess_workspace *w, int64_t y, float *values,
                               tess_error *error)
{
    return tess_margins_rows(w, o->problem, w->vectors[0], result_row(o, y),
                             result_samples(o) / tess_problem_row(o->problem), values, error);
}

static void complete_result(const tess_outputs *o, float *values)
{
    clamp(o->problem, result_samples(o), !tess_output_holds_values(o->result), values);
}

/* Rows of all blurs, or views. */
static int owner_of_measurement(const tess_outputs *o, int64_t y)
{
    const tess_problem *p = o->problem;
    int rank = 0;
    if (p->physics == TESS_PHYSICS_BLUR)
        return owner_of_row(p, y % p->height);
    while (tess_share_many(p->share) && y >= tess_problem_view(p, rank + 1))
        rank++;
    return rank;
}

static tess_status take_measurement(const tess_outputs *o, tess_workspace *w, int64_t y, float *values,
                                    tess_error *error)
{
    const tess_problem *p = o->problem;
    tess_device *device = w->device;
    const tess_extent m = tess_problem_measurement_extent(p);
    const int64_t samples = m.width * m.channels;
    if (p->physics == TESS_PHYSICS_BLUR) /* a rank has the same rows of each blur */
        y = y / p->height * tess_problem_own(p) + y % p->height - tess_problem_first(p);
    else
        y -= tess_problem_first_view(p);
    device->memory->copy(device, values, (const float *)w->measurement.data + y * samples,
                         (size_t)samples * sizeof *values, NULL);
    return device->streams->sync(device, NULL, error);
}

static void complete_measurement(const tess_outputs *o, float *values)
{
    const tess_extent m = tess_problem_measurement_extent(o->problem);
    for (int64_t i = 0; i < m.width * m.channels; i++)
        values[i] =
            (float)((double)(values[i] * (float)tess_problem_measured_unit(o->problem)) + o->problem->offset);
}

static int64_t side_row(const tess_outputs *o, int64_t y)
{
    return middle(o->problem) + y;
}

static int owner_of_side(const tess_outputs *o, int64_t y)
{
    return owner_of_row(o->problem, side_row(o, y));
}

/* From one picture to the next. */
static int64_t side_step(const tess_problem *p)
{
    return (p->width + TESS_GAP) * p->channels;
}

static tess_status take_side(const tess_outputs *o, tess_workspace *w, int64_t y, float *values,
                             tess_error *error)
{
    const tess_problem *p = o->problem;
    const int64_t samples = tess_problem_row(p), step = side_step(p), row = side_row(o, y),
                  own = row - tess_problem_first(p), pictures = w->host.truth ? 3 : 2;
    for (int64_t i = 0; i < pictures * step - TESS_GAP * p->channels; i++)
        values[i] = (float)p->high;
    memcpy(values, w->host.shown + own * samples, (size_t)samples * sizeof *values);
    if (w->host.truth)
        memcpy(values + 2 * step, w->host.truth + own * samples, (size_t)samples * sizeof *values);
    return tess_margins_rows(w, p, w->vectors[0], row, 1, values + step, error);
}

static void complete_side(const tess_outputs *o, float *values)
{
    const tess_problem *p = o->problem;
    const int64_t pictures = tess_problem_has_truth(p) ? 3 : 2;
    clamp(p, pictures * side_step(p) - TESS_GAP * p->channels, !tess_output_holds_values(o->side_by_side),
          values);
}

const tess_row_kind tess_result_rows = {owner_of_result, take_result, complete_result},
                    tess_measurement_rows = {owner_of_measurement, take_measurement, complete_measurement},
                    tess_side_rows = {owner_of_side, take_side, complete_side};
