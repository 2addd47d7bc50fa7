/* detect_decide.c: what is computed from the scores when all of them are known: the threshold of each image, decisions, and
 * the figures of the whole set. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/image.h"
#include "job/detect/detect_job.h"
#include "train/statistics/decide.h"

typedef struct part {
    tess_detect_job *job;
    int64_t offset;
} part;

static tess_status read_part(void *user, int64_t first, int64_t count, float *scores, tess_error *error)
{
    const part *p = user;
    return tess_detect_spool_read(p->job, p->offset + first, count, scores, error);
}

static tess_status find_threshold(tess_detect_job *job, int64_t image, tess_error *error)
{
    part p = {job, tess_detect_offset(job, image)};
    const tess_pixel_image *size = &job->input.image[image];
    const tess_score_reader reader = {size->height * size->width, &p, read_part};
    job->threshold = INFINITY;
    return job->decides
               ? tess_decide_threshold(&job->state, &reader, job->decider.data, &job->threshold, error)
               : TESS_OK;
}

static tess_status open_mask(tess_detect_job *job, int64_t image, tess_writer **writer, tess_error *error)
{
    const tess_pixel_image *size = &job->input.image[image];
    const tess_image_info info = {
        .height = size->height, .width = size->width, .channels = 1, .dtype = TESS_U8, .full_scale = 255};
    *writer = NULL;
    if (!job->settings->mask_out)
        return TESS_OK;
    return tess_writer_open(job->engine.memory, job->settings->mask_out, &info, NULL, writer, error);
}

/* Rows of scores with their truth. */
static tess_status add_rows(tess_detect_job *job, int64_t width, int64_t rows, const float *scores,
                            const uint8_t *truth, uint8_t *decisions, tess_error *error)
{
    const int64_t pixels = rows * width;
    if (truth) {
        tess_curve_count(&job->curve, scores, truth, pixels);
        tess_confusion_add(&job->confusion, scores, job->threshold, truth, pixels);
    }
    for (int64_t i = 0; i < pixels; i++) {
        decisions[i] = (double)scores[i] >= job->threshold ? 255 : 0;
        job->anomalies += decisions[i] != 0;
    }
    for (int64_t row = 0; job->objects && row < rows; row++)
        TESS_TRY(tess_objects_row(job->objects, scores + row * width, job->threshold, error));
    return TESS_OK;
}

static tess_status decide_image(tess_detect_job *job, int64_t image, tess_cube_mask *mask,
                                tess_writer *writer, tess_error *error)
{
    const tess_pixel_image *size = &job->input.image[image];
    const int64_t step = tess_max_i64(1, job->piece_pixels / size->width),
                  offset = tess_detect_offset(job, image);
    float *scores = job->piece.data;
    uint8_t *truth = (uint8_t *)(scores + job->piece_pixels), *decisions = truth + job->piece_pixels;
    if (job->objects)
        tess_objects_image(job->objects, image, size->width);
    for (int64_t row = 0; row < size->height; row += step) {
        const int64_t rows = tess_min_i64(step, size->height - row);
        TESS_TRY(tess_stop_check(&job->engine.stop, error));
        TESS_TRY(tess_detect_spool_read(job, offset + row * size->width, rows * size->width, scores, error));
        if (mask)
            TESS_TRY(tess_cube_mask_read(mask, job->input.place[image], row, rows, truth, error));
        TESS_TRY(add_rows(job, size->width, rows, scores, mask ? truth : NULL, decisions, error));
        if (writer)
            TESS_TRY(tess_writer_rows(writer, rows, decisions, error));
    }
    return TESS_OK;
}

static tess_status decide_file(tess_detect_job *job, int64_t file, int64_t first, int64_t images,
                               tess_error *error)
{
    tess_cube_mask *mask = NULL;
    tess_writer *writer = NULL;
    tess_status status = tess_detect_truth_open(job, file, &mask, error);
    for (int64_t i = first; status == TESS_OK && i < first + images; i++) {
        status = find_threshold(job, i, error);
        if (status == TESS_OK)
            status = open_mask(job, i, &writer, error);
        if (status == TESS_OK)
            status = decide_image(job, i, mask, writer, error);
        if (status == TESS_OK && writer)
            status = tess_writer_commit(writer, error);
        tess_writer_close(writer);
        writer = NULL;
    }
    tess_cube_mask_close(mask);
    return status;
}

tess_status tess_detect_decide(tess_detect_job *job, tess_error *error)
{
    int64_t widest = 1, first = 0;
    for (int64_t i = 0; i < job->input.set.images; i++)
        widest = tess_max_i64(widest, job->input.image[i].width);
    if (job->decides && job->settings->detections && !(job->objects = tess_objects_create(widest)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of detections");
    TESS_TRY(tess_curve_sort(&job->curve, error));
    for (int64_t f = 0; f < job->input.list.count; f++) {
        const int64_t images = job->input.list.entries[f].info.count;
        TESS_TRY(decide_file(job, f, first, images, error));
        first += images;
    }
    return TESS_OK;
}
