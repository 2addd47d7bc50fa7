/* detect_plan.c: the bytes of a run, and the rows of a block that fit the limit. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/image.h"
#include "job/common/note.h"
#include "job/detect/detect_job.h"
#include "plan/limit.h"
#include "train/statistics/decide.h"
#include "weights/weights.h"

enum { PIECE = 1 << 16 };

char *tess_detect_target(const tess_detect_job *job, int64_t file)
{
    const tess_cube_entry *entry = &job->input.list.entries[file];
    const char *output = job->settings->output;
    if (!tess_detect_is_folder(job->settings->input))
        return tess_small_strdup(output);
    const char *slash = strrchr(entry->path, '/'), *name = slash ? slash + 1 : entry->path,
               *point = strrchr(name, '.');
    const int length = (int)(point && point > name ? point - name : (long)strlen(name));
    const size_t bytes = strlen(output) + (size_t)length + 8;
    char *path = tess_small_alloc(bytes, 1);
    if (path)
        snprintf(path, bytes, "%s/%.*s%s", output, length, name,
                 entry->info.georeferenced && entry->info.count == 1 ? ".tif" : ".npy");
    return path;
}

static tess_status writer_bytes(const tess_detect_job *job, size_t *most, tess_error *error)
{
    *most = 0;
    for (int64_t f = 0; f < job->input.list.count; f++) {
        const tess_cube_info *info = &job->input.list.entries[f].info;
        char *path = tess_detect_target(job, f);
        if (!path)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
        const size_t bytes = tess_cube_scores_bytes(info, info->count > 1 ? -1 : 0, path);
        *most = bytes > *most ? bytes : *most;
        tess_small_free(path);
    }
    return TESS_OK;
}

/* The most that a writer holds: they follow each other. */
static tess_status most_of_writers(const tess_detect_job *job, size_t *most, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const tess_pixel_image *size = &job->input.image[0];
    const tess_image_info mask = {.height = size->height,
                                  .width = size->width,
                                  .channels = 1,
                                  .dtype = TESS_U8},
                          picture = {
                              .height = size->height, .width = size->width, .channels = 3, .dtype = TESS_U8};
    const size_t each[] = {s->save ? tess_safetensors_bytes() : 0,
                           s->mask_out ? tess_writer_held_bytes(s->mask_out, &mask) : 0,
                           s->overlay ? tess_writer_held_bytes(s->overlay, &picture) : 0};
    TESS_TRY(writer_bytes(job, most, error));
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        *most = each[i] > *most ? each[i] : *most;
    return TESS_OK;
}

/* Pixels of a piece: whole rows of the widest image. */
static int64_t piece_pixels(const tess_detect_job *job)
{
    int64_t widest = 1;
    for (int64_t i = 0; i < job->input.set.images; i++)
        widest = tess_max_i64(widest, job->input.image[i].width);
    return tess_max_i64(widest, PIECE);
}

static size_t sample_bytes(const tess_detect_job *job)
{
    size_t most = 0;
    for (int64_t f = 0; job->settings->overlay && f < job->input.list.count; f++) {
        const size_t bytes = tess_cube_bytes(&job->input.list.entries[f].info, 1);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A phase on each device: the one follows the other, so the larger of each kind of memory counts. */
static tess_status plan_stages(tess_detect_job *job, tess_error *error)
{
    tess_mem_bytes fit;
    TESS_TRY(tess_statistics_plan(&job->stage, job->plan, &job->all, &job->planned, error));
    if (job->fit_stage.device == job->stage.device)
        return TESS_OK;
    TESS_TRY(tess_statistics_plan(&job->fit_stage, job->plan, &job->all, &fit, error));
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        job->planned.by[i] = fit.by[i] > job->planned.by[i] ? fit.by[i] : job->planned.by[i];
    return TESS_OK;
}

static tess_status plan_rows(tess_detect_job *job, int64_t rows, tess_error *error)
{
    tess_mem_usage held;
    size_t writer;
    job->fit_stage.block_rows = job->stage.block_rows = rows;
    TESS_TRY(plan_stages(job, error));
    TESS_TRY(most_of_writers(job, &writer, error));
    tess_memory_held(job->engine.memory, tess_engine_scope(&job->engine), &held); /* the device */
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        if (i != TESS_MEM_HOST && i != TESS_MEM_IO)
            job->planned.by[i] += held.bytes.by[i];
    const size_t cube = tess_pixel_cubes_bytes(&job->input), other = tess_pixel_cubes_bytes(&job->other);
    job->piece_pixels = piece_pixels(job);
    job->planned.by[TESS_MEM_HOST] += writer + cube + other + job->state.block.bytes +
                                      tess_block_granted((size_t)job->piece_pixels * 6 + sample_bytes(job)) +
                                      (job->decides ? tess_block_granted(tess_decide_bytes()) : 0);
    if (!job->engine.separate_memory) {
        job->planned.by[TESS_MEM_IO] += job->planned.by[TESS_MEM_HOST];
        job->planned.by[TESS_MEM_HOST] = 0;
    }
    job->planned_total = tess_mem_total(&job->planned);
    tess_memory_plan(job->engine.memory, tess_engine_scope(&job->engine), job->planned_total);
    return TESS_OK;
}

/* The most rows of a block that fit the limit. */
static tess_status fit_rows(tess_detect_job *job, tess_error *error)
{
    const uint64_t asked = job->settings->common.memory_limit;
    tess_pixel_stage_sizes sizes;
    TESS_TRY(plan_rows(job, 0, error));
    TESS_TRY(tess_pixel_stage_plan(&job->stage, job->plan, &job->all, &sizes, error));
    for (int64_t rows = sizes.rows; job->planned_total > job->limit; rows = (rows + 1) / 2) {
        TESS_TRY(plan_rows(job, rows, error));
        if (rows > 1 || job->planned_total <= job->limit)
            continue;
        return tess_fail(error, TESS_OVER_LIMIT,
                         "%s%s %s too little for one row of the cube at a time; %s%s would do",
                         asked ? "`memory_limit` " : "", tess_size_words(job->limit).text,
                         asked ? "is" : "of free memory are", asked ? "`memory_limit` " : "",
                         tess_size_enough(job->planned_total).text);
    }
    return TESS_OK;
}

/* Ranks that have nothing to read. */
static void note_idle(const tess_detect_job *job)
{
    const tess_dist *dist = job->engine.dist;
    const int64_t images = job->input.set.images;
    int64_t blocks = 0;
    for (int64_t i = 0; i < images; i++) {
        const tess_pixel_image *image = &job->input.image[i];
        blocks += tess_ceil_div(image->height, tess_pixel_block_rows(&job->stage, job->plan, image));
    }
    if (blocks < dist->size)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%d ranks share %lld block(s) of rows: %lld of them have nothing to do", dist->size,
                  (long long)blocks, (long long)(dist->size - blocks));
}

tess_status tess_detect_make_plan(tess_detect_job *job, tess_error *error)
{
    const uint64_t asked = job->settings->common.memory_limit;
    tess_dist *dist = job->engine.dist;
    job->limit = asked ? asked : tess_engine_free_limit(&job->engine);
    TESS_TRY(tess_engine_share_limit(&job->engine, &job->limit, error));
    TESS_TRY(tess_dist_agree(dist, fit_rows(job, error), error));
    int64_t rows = job->stage.block_rows; /* blocks are part of the result: rank 0's count */
    TESS_TRY(tess_dist_broadcast(dist, 0, &rows, sizeof rows, error));
    note_idle(job);
    return tess_dist_agree(dist, rows == job->stage.block_rows ? TESS_OK : plan_rows(job, rows, error),
                           error);
}
