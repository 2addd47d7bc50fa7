/* detect_outputs.c: what can be said about the files of a run before a cube is read, so that hours of reading do not end in a
 * name that cannot be written or a mask of the wrong size. */
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "job/detect/detect_job.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* a.img and a.npy of one folder would both be written to a.npy. */
static tess_status check_targets(const tess_detect_job *job, tess_error *error)
{
    const int64_t count = job->input.list.count;
    char **targets = tess_small_alloc((size_t)count, sizeof *targets);
    tess_status status = targets ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the names");
    for (int64_t f = 0; status == TESS_OK && f < count; f++)
        if (!(targets[f] = tess_detect_target(job, f)))
            status = tess_fail(error, TESS_NO_MEMORY, "no memory for the names");
    if (status == TESS_OK) /* a folder that is not there yet is made */
        status = tess_writer_check_folder(
            tess_detect_is_folder(job->settings->output) ? targets[0] : job->settings->output, error);
    if (status == TESS_OK)
        qsort(targets, (size_t)count, sizeof *targets, by_name);
    for (int64_t f = 1; status == TESS_OK && f < count; f++)
        if (strcmp(targets[f], targets[f - 1]) == 0)
            status = tess_fail(
                error, TESS_BAD_INPUT,
                "%s: the scores of two cubes of %s would have this name; move one to another folder",
                targets[f], job->settings->input);
    for (int64_t f = 0; targets && f < count; f++)
        tess_small_free(targets[f]);
    tess_small_free(targets);
    return status;
}

static tess_status check_truth(tess_detect_job *job, tess_error *error)
{
    for (int64_t f = 0; tess_detect_rates(job) && f < job->input.list.count; f++) {
        tess_cube_mask *mask = NULL;
        TESS_TRY(tess_detect_truth_open(job, f, &mask, error));
        tess_cube_mask_close(mask);
    }
    return TESS_OK;
}

tess_status tess_detect_check_files(tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const char *outputs[] = {s->mask_out, s->overlay, s->detections, s->save};
    const tess_pixel_image *size = &job->input.image[0];
    const tess_image_info mask = {
        .height = size->height, .width = size->width, .channels = 1, .dtype = TESS_U8, .full_scale = 255};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (outputs[i])
            TESS_TRY(tess_writer_check_folder(outputs[i], error));
    if (s->mask_out)
        TESS_TRY(tess_writer_check(s->mask_out, &mask, error));
    TESS_TRY(check_targets(job, error));
    return check_truth(job, error);
}
