/* Pictures and arrays out of a reconstruction. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/image.h"
#include "job/reconstruct/views.h"
#include "tensor/samples.h"

static bool is_npy(const char *path)
{
    const size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* NPY takes the values as they are; a picture takes 8 bits of [0, range]. */
static tess_image_info info_of(const char *path, int64_t height, int64_t width, int64_t channels)
{
    tess_image_info info = {
        .height = height, .width = width, .channels = (int)channels, .dtype = TESS_U8, .full_scale = 255};
    if (is_npy(path)) {
        info.dtype = TESS_F32;
        info.full_scale = 1;
    }
    return info;
}

static tess_image_info measurement_info(const tess_reconstruct_job *job)
{
    const tess_extent m = tess_problem_measurement_extent(&job->problem);
    return info_of(job->settings->save_measurement, m.height, m.width, m.channels);
}

static tess_image_info side_info(const tess_reconstruct_job *job)
{
    const tess_problem *p = &job->problem;
    const int64_t pictures = tess_problem_has_truth(p) ? 3 : 2;
    return info_of(job->settings->side_by_side, p->height, pictures * p->width + (pictures - 1) * TESS_GAP,
                   p->channels);
}

static tess_image_info result_info(const tess_reconstruct_job *job)
{
    const tess_problem *p = &job->problem;
    const tess_extent all = tess_problem_image_extent(p);
    if (is_npy(job->settings->output))
        return info_of(job->settings->output, all.height, all.width, all.channels);
    return info_of(job->settings->output, p->height, p->width, p->channels);
}

/* What was measured cannot be made again. */
static tess_status check_names(const tess_reconstruct_job *job, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    const tess_problem *p = &job->problem;
    const char *const outputs[] = {s->output, s->side_by_side, s->save_measurement},
                      *const inputs[] = {p->measurement, p->truth, p->geometry, p->image,
                                         p->name,        p->flat,  p->dark};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; outputs[i] && k < 7; k++)
            if (inputs[k] && (tess_image_same_target(outputs[i], inputs[k]) ||
                              tess_views_same_file(outputs[i], inputs[k])))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is read by this problem; write to another name",
                                 outputs[i]);
        for (int64_t k = 0; outputs[i] && p->kernel_files && k < p->count; k++)
            if (tess_image_same_file(outputs[i], p->kernel_files[k]))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is read by this problem; write to another name",
                                 outputs[i]);
        for (int k = 0; outputs[i] && k < i; k++)
            if (outputs[k] && tess_image_same_target(outputs[i], outputs[k]))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is named for two outputs", outputs[i]);
    }
    return TESS_OK;
}

tess_status tess_reconstruct_check_outputs(const tess_reconstruct_job *job, size_t *measurement_held,
                                           size_t *output_held, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    tess_image_info info = result_info(job);
    *measurement_held = 0;
    TESS_TRY(check_names(job, error));
    TESS_TRY(tess_writer_check(s->output, &info, error));
    *output_held = tess_writer_held_bytes(s->output, &info);
    if (s->side_by_side) {
        info = side_info(job);
        TESS_TRY(tess_writer_check(s->side_by_side, &info, error));
        const size_t held = tess_writer_held_bytes(s->side_by_side, &info);
        *output_held = held > *output_held ? held : *output_held;
    }
    if (!s->save_measurement)
        return TESS_OK;
    if (!is_npy(s->save_measurement))
        return tess_fail(error, TESS_BAD_OPTION, "--save-measurement %s: name an .npy file",
                         s->save_measurement);
    info = measurement_info(job);
    TESS_TRY(tess_writer_check(s->save_measurement, &info, error));
    *measurement_held = tess_writer_held_bytes(s->save_measurement, &info);
    return TESS_OK;
}

/* Row y into `values`. */
typedef tess_status (*row_fn)(tess_reconstruct_job *job, int64_t y, float *values, tess_error *error);

static tess_status write_rows(tess_reconstruct_job *job, tess_writer *writer, const tess_image_info *info,
                              row_fn row, tess_error *error)
{
    for (int64_t y = 0; y < info->height; y++) {
        TESS_TRY(row(job, y, job->rows[0], error));
        tess_samples_from_float(info->dtype, info->full_scale, job->rows[0], info->width * info->channels,
                                job->rows[1]);
        TESS_TRY(tess_writer_rows(writer, 1, job->rows[1], error));
    }
    return tess_writer_commit(writer, error);
}

static tess_status from_device(tess_reconstruct_job *job, const void *vector, int64_t y, int64_t samples,
                               float *values, tess_error *error)
{
    tess_device *device = job->engine.device;
    device->copy(device, values, (const float *)vector + y * samples, (size_t)samples * sizeof *values, NULL);
    return device->sync(device, NULL, error);
}

tess_status tess_reconstruct_rows(tess_reconstruct_job *job, const void *vector, int64_t first, int64_t count,
                                  float *to, tess_error *error)
{
    const tess_problem *p = &job->problem;
    tess_device *device = job->engine.device;
    const int64_t samples = tess_problem_row(p), stride = job->op->image.w * job->op->image.c,
                  together = stride == samples ? count : 1;
    const float *from = (const float *)vector + (first + p->margin[0]) * stride + p->margin[1] * p->channels;
    for (int64_t y = 0; y < count; y += together)
        device->copy(device, to + y * samples, from + y * stride, (size_t)(together * samples) * sizeof *to,
                     NULL);
    return device->sync(device, NULL, error);
}

/* To the file's units in NPY, else to [0, 1]. */
static void clamp(const tess_problem *p, int64_t count, bool npy, float *values)
{
    const double scale = npy ? p->unit : 1 / p->high, offset = npy ? p->offset : 0;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(fmin(fmax((double)values[i], p->low), p->high) * scale + offset);
}

/* Of a volume, a picture shows the slice in the middle. */
static int64_t middle(const tess_problem *p)
{
    return p->depth / 2 * p->height;
}

static tess_status result_row(tess_reconstruct_job *job, int64_t y, float *values, tess_error *error)
{
    const tess_problem *p = &job->problem;
    const tess_extent all = tess_problem_image_extent(p);
    const bool npy = is_npy(job->settings->output); /* its rows are slices, of a volume */
    const int64_t samples = npy ? all.width * all.channels : tess_problem_row(p),
                  rows = samples / tess_problem_row(p);
    TESS_TRY(
        tess_reconstruct_rows(job, job->vectors[0], npy ? y * rows : middle(p) + y, rows, values, error));
    clamp(p, samples, npy, values);
    return TESS_OK;
}

static tess_status measurement_row(tess_reconstruct_job *job, int64_t y, float *values, tess_error *error)
{
    const tess_extent m = tess_problem_measurement_extent(&job->problem);
    const int64_t samples = m.width * m.channels;
    TESS_TRY(from_device(job, job->measurement.data, y, samples, values, error));
    for (int64_t i = 0; i < samples; i++)
        values[i] = (float)((double)(values[i] * (float)tess_problem_measured_unit(&job->problem)) +
                            job->problem.offset);
    return TESS_OK;
}

static tess_status side_row(tess_reconstruct_job *job, int64_t y, float *values, tess_error *error)
{
    const tess_problem *p = &job->problem;
    const int64_t samples = p->width * p->channels, step = samples + TESS_GAP * p->channels;
    const bool npy = is_npy(job->settings->side_by_side);
    const int64_t pictures = job->truth ? 3 : 2;
    for (int64_t i = 0; i < pictures * step - TESS_GAP * p->channels; i++)
        values[i] = (float)p->high;
    clamp(p, pictures * step - TESS_GAP * p->channels, npy, values);
    y += middle(p);
    memcpy(values, job->shown + y * samples, (size_t)samples * sizeof *values);
    TESS_TRY(tess_reconstruct_rows(job, job->vectors[0], y, 1, values + step, error));
    if (job->truth)
        memcpy(values + 2 * step, job->truth + y * samples, (size_t)samples * sizeof *values);
    for (int64_t i = 0; i < pictures; i++)
        clamp(p, samples, npy, values + i * step);
    return TESS_OK;
}

tess_status tess_reconstruct_save_measurement(tess_reconstruct_job *job, tess_error *error)
{
    const tess_image_info info = measurement_info(job);
    tess_writer *writer = NULL;
    tess_status status =
        tess_writer_open(job->engine.memory, job->settings->save_measurement, &info, NULL, &writer, error);
    if (status == TESS_OK)
        status = write_rows(job, writer, &info, measurement_row, error);
    tess_writer_close(writer);
    return status;
}

tess_status tess_reconstruct_open_outputs(tess_reconstruct_job *job, tess_error *error)
{
    const tess_image_info result = result_info(job);
    TESS_TRY(tess_writer_open(job->engine.memory, job->settings->output, &result, NULL, &job->writer, error));
    if (!job->settings->side_by_side)
        return TESS_OK;
    const tess_image_info side = side_info(job);
    return tess_writer_open(job->engine.memory, job->settings->side_by_side, &side, NULL, &job->side_writer,
                            error);
}

tess_status tess_reconstruct_write(tess_reconstruct_job *job, tess_error *error)
{
    const tess_image_info result = result_info(job);
    TESS_TRY(write_rows(job, job->writer, &result, result_row, error));
    tess_writer_close(job->writer); /* what it held is free for the next */
    job->writer = NULL;
    if (!job->settings->side_by_side)
        return TESS_OK;
    const tess_image_info side = side_info(job);
    return write_rows(job, job->side_writer, &side, side_row, error);
}
