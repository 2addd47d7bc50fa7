#include "job/reconstruct/problem/data_rows.h"

#include <math.h>

#include "job/reconstruct/look/finite.h"
#include "job/reconstruct/mask/hidden_rows.h"
#include "job/reconstruct/problem/values.h"

static int64_t samples_of(const tess_data_rows *f)
{
    return f->part ? f->part : f->extent.width * f->extent.channels;
}

static tess_status take_row(const tess_data_rows *f, double file_unit, double file_offset, int64_t y,
                            float *row, tess_error *error)
{
    const tess_problem *p = f->problem;
    const float unit = (float)file_unit;
    for (int64_t i = 0; i < samples_of(f); i++) {
        const long long a = y, b = i / f->extent.channels;
        if (!isfinite(row[i])) { /* counted; refused at the end, or a hole */
            row[i] = f->holes ? NAN : row[i];
            continue;
        }
        if (f->path == p->image && !(row[i] >= 0 && row[i] <= 1))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: holds %g at row %lld, column %lld; an image's values lie between 0 and 1",
                             f->path, (double)row[i], a, b);
        row[i] = (float)((double)row[i] - file_offset) / unit;
        if (!isfinite(row[i]))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: a value at row %lld is too large for the range up to %g; \"range\" is that "
                             "of the image, in the units of the file",
                             f->path, a, p->unit);
    }
    return TESS_OK;
}

static tess_status read_rows(const tess_data_rows *f, tess_values *from, tess_hidden_rows *hidden,
                             tess_error *error)
{
    const tess_problem *p = f->problem;
    tess_device *device = f->workspace->device;
    const tess_image_info *info = &from->info;
    const tess_extent *is = &f->extent;
    const int64_t samples = samples_of(f);
    if (info->height != is->height || info->width != is->width || info->channels != is->channels)
        return tess_fail(error, TESS_BAD_INPUT, "%s: changed while the job ran; run it again", f->path);
    /* An integer truth for blurs without a range is on the scale of its own type. */
    const bool own = p->physics == TESS_PHYSICS_BLUR && info->dtype != TESS_F32 && !f->numbers;
    const double unit = own ? 1 : p->unit, offset = own ? 0 : p->offset;
    tess_bad_values bad = {0};
    tess_kept kept = {0};
    const int64_t end = f->count ? f->first + f->count : is->height;
    for (int64_t y = 0; y < end; y++) {
        TESS_TRY(tess_values_next(from, error));
        if (y < f->first)
            continue;
        float *row = f->device ? f->workspace->host.rows[1] : f->to + (y - f->first) * samples;
        TESS_TRY(
            tess_values_take(from, f->numbers ? 1 : info->full_scale, f->from, samples, row, &kept, error));
        tess_bad_values_count(&bad, y, row, samples);
        TESS_TRY(take_row(f, unit, offset, y, row, error));
        if (!f->device)
            continue;
        TESS_TRY(tess_hidden_rows_take(hidden, y, row, error));
        const int64_t rows = tess_problem_own(p), inside = y % p->height - tess_problem_first(p);
        if (inside < 0 || inside >= rows)
            continue; /* another rank's */
        device->memory->copy(device, f->to + (y / p->height * rows + inside) * samples, row,
                             (size_t)samples * sizeof(float), NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    const bool all = !tess_share_many(p->share); /* a rank's part may be a hole */
    if (f->holes && all && bad.nan + bad.infinite == is->height * samples)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has no value to compare with: all are NaN or missing (nodata value, mask)",
                         f->path);
    if (!f->holes)
        TESS_TRY(tess_bad_values_check(&bad, f->path, *is, p->physics == TESS_PHYSICS_CONE, error));
    if (f->rounded)
        *f->rounded = kept.lost;
    return tess_kept_check(&kept, f->path, error);
}

tess_status tess_data_rows_read(const tess_data_rows *f, tess_error *error)
{
    tess_values values = {0};
    tess_hidden_rows hidden = {0};
    tess_status status = tess_values_open(f->problem->memory, f->path, TESS_AXES_PLAIN, 0, &values, error);
    if (status == TESS_OK)
        status = tess_hidden_rows_open(&hidden, f->problem, f->workspace, error);
    if (status == TESS_OK) {
        tess_values_lend(&values, f->workspace->host.rows[0]);
        values.stop = f->problem->stop;
        values.marks = f->problem->hidden.marks;
        values.mark_count = f->device ? f->problem->hidden.mark_count : 0;
        status = read_rows(f, &values, &hidden, error);
    }
    tess_hidden_rows_close(&hidden);
    tess_values_close(&values);
    return status;
}
