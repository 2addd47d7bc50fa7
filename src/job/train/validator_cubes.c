#include "job/train/validator_cubes.h"

struct tess_cubes_validator {
    tess_cubes_validator_settings settings;
    tess_pixel_cubes cubes;
    tess_statistics *statistics;
    tess_mem_bytes bytes;
    int64_t widest;
    tess_block marks;       /* of some rows */
    tess_memory own_memory; /* of the scores of anomalies, whose number nobody knows before */
    tess_curve curve;
    /* of a reading */
    bool counts; /* the second */
    tess_cube_mask *mask;
    int64_t mask_file;
};

enum { MARK_PIXELS = 1 << 16 };

static int64_t mark_pixels(const tess_cubes_validator *v)
{
    return v->widest > MARK_PIXELS ? v->widest : MARK_PIXELS;
}

static tess_status open_mask(tess_cubes_validator *v, int64_t file, tess_error *error)
{
    const tess_cube_entry *entry = &v->cubes.list.entries[file];
    if (v->mask && v->mask_file == file)
        return TESS_OK;
    tess_cube_mask_close(v->mask);
    v->mask = NULL;
    char *path = tess_cube_mask_beside(entry->path);
    const tess_status status =
        path ? tess_cube_mask_open(path, &entry->info, &v->cubes.settings, &v->mask, error)
             : tess_fail(error, TESS_BAD_INPUT,
                         "%s: has no mask beside it (NAME_mask), which a validation needs", entry->path);
    tess_small_free(path);
    v->mask_file = file;
    return status;
}

static tess_status plan(tess_cubes_validator *v, tess_error *error)
{
    const tess_spectral_plan *of = v->settings.state->plan;
    size_t held = 0;
    if (v->cubes.list.bands != of->bands)
        return tess_fail(error, TESS_BAD_INPUT, "%s: has %d bands, and the pipeline has %d",
                         v->cubes.list.entries[0].path, v->cubes.list.bands, of->bands);
    for (int64_t f = 0; f < v->cubes.list.count; f++) {
        TESS_TRY(open_mask(v, f, error));
        const size_t bytes = tess_cube_mask_held_bytes(v->mask);
        held = bytes > held ? bytes : held;
        v->widest =
            v->cubes.list.entries[f].info.width > v->widest ? v->cubes.list.entries[f].info.width : v->widest;
    }
    TESS_TRY(tess_statistics_plan(&v->settings.stage, of, &v->cubes.set, &v->bytes, error));
    v->bytes.by[TESS_MEM_HOST] +=
        held + tess_pixel_cubes_bytes(&v->cubes) + tess_block_granted((size_t)mark_pixels(v));
    return TESS_OK;
}

tess_status tess_cubes_validator_open(const tess_cubes_validator_settings *settings,
                                      tess_cubes_validator **out, tess_error *error)
{
    const tess_cube_settings cubes = {.memory = settings->stage.memory,
                                      .stop = settings->stage.stop,
                                      .find_marks = !settings->marks_are_values};
    *out = NULL;
    tess_cubes_validator *v = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the validation");
    v->settings = *settings;
    tess_curve_begin(&v->curve, &v->own_memory);
    tess_status status = tess_pixel_cubes_open(settings->folder, &cubes, &v->cubes, error);
    if (status == TESS_OK) {
        tess_marks_note(settings->common, &v->cubes, TESS_TRAIN_KEEP_MARKS, TESS_TRAIN_DROP_ZEROS);
        status = plan(v, error);
    }
    if (status == TESS_OK)
        *out = v;
    else
        tess_cubes_validator_close(v);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, "validation.folder");
}

void tess_cubes_validator_close(tess_cubes_validator *v)
{
    if (!v)
        return;
    tess_cube_mask_close(v->mask);
    tess_curve_free(&v->curve);
    tess_block_free(&v->marks);
    tess_statistics_destroy(v->statistics);
    tess_pixel_cubes_close(&v->cubes);
    tess_small_free(v);
}

tess_mem_bytes tess_cubes_validator_bytes(const tess_cubes_validator *v)
{
    return v->bytes;
}

tess_status tess_cubes_validator_prepare(tess_cubes_validator *v, tess_error *error)
{
    TESS_TRY(
        tess_block_alloc(v->settings.stage.memory, &v->marks, TESS_MEM_HOST, (size_t)mark_pixels(v), error));
    return tess_statistics_create(&v->settings.stage, &v->cubes.set, v->settings.state, &v->statistics,
                                  error);
}

static tess_status take_scores(void *user, int64_t image, int64_t first_row, int64_t rows,
                               const float *scores, tess_error *error)
{
    tess_cubes_validator *v = user;
    const int64_t width = v->cubes.image[image].width, step = mark_pixels(v) / width;
    uint8_t *marks = v->marks.data;
    TESS_TRY(open_mask(v, v->cubes.file[image], error));
    for (int64_t row = 0; row < rows; row += step) {
        const int64_t some = rows - row < step ? rows - row : step;
        TESS_TRY(tess_cube_mask_read(v->mask, v->cubes.place[image], first_row + row, some, marks, error));
        if (v->counts)
            tess_curve_count(&v->curve, scores + row * width, marks, some * width);
        else
            TESS_TRY(tess_curve_collect(&v->curve, scores + row * width, marks, some * width, error));
    }
    return TESS_OK;
}

tess_status tess_cubes_validator_run(tess_cubes_validator *v, tess_curve_result *result, tess_error *error)
{
    tess_curve_free(&v->curve);
    tess_curve_begin(&v->curve, &v->own_memory);
    tess_statistics_renew(v->statistics);
    for (int reading = 0; reading < 2; reading++) {
        v->counts = reading == 1;
        for (int64_t i = 0; i < v->cubes.set.images; i++)
            TESS_TRY(tess_statistics_score(v->statistics, &v->cubes.set, i, i + 1, take_scores, v, error));
        if (reading == 0)
            TESS_TRY(tess_curve_sort(&v->curve, error));
    }
    *result = tess_curve_end(&v->curve);
    return result->known
               ? TESS_OK
               : tess_fail(
                     error, TESS_BAD_INPUT,
                     "validation.folder: the masks need anomalies and other pixels; there are %lld and %lld",
                     (long long)result->positives, (long long)result->negatives);
}

const tess_cube_list *tess_cubes_validator_list(const tess_cubes_validator *v)
{
    return &v->cubes.list;
}
