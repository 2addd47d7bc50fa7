/* Sends what a rank has found out about its files to all ranks. All ranks run the same program, so the struct itself is
 * sent, and its pointers are replaced: texts and arrays follow it, and names stay the receiver's own. */
#include <stdio.h>
#include <string.h>

#include "job/denoise/denoise.h"

typedef struct wire {
    int64_t index;
    tess_denoise_file file;
    /* instead of pointers */
    int64_t model_channels; /* 0: it has none */
    tess_denoise_word scale_origin, foreign[4];
    uint64_t slices, spans, bands, defects, error_bytes; /* that follow */
} wire;

typedef struct buffer {
    char *data;
    size_t used, size;
} buffer;

static bool append(buffer *to, const void *data, size_t bytes)
{
    if (to->used + bytes > to->size) {
        const size_t size = 2 * to->size + bytes;
        char *grown = tess_small_realloc(to->data, size, 1);
        if (!grown)
            return false;
        to->data = grown;
        to->size = size;
    }
    if (bytes)
        memcpy(to->data + to->used, data, bytes);
    to->used += bytes;
    return true;
}

static void set_word(tess_denoise_word *to, const char *text)
{
    snprintf(to->text, sizeof to->text, "%s", text ? text : "");
}

/* Texts of a file are constants of the program; a received one is kept in the job. */
static const char *word_of(tess_denoise_job *job, const tess_denoise_word *word)
{
    if (!word->text[0])
        return NULL;
    int i = 0;
    while (i < job->word_count && strcmp(job->words[i].text, word->text) != 0)
        i++;
    if (i == TESS_DENOISE_WORDS)
        return "?"; /* there are fewer texts than that */
    job->words[i] = *word;
    job->word_count = i == job->word_count ? i + 1 : job->word_count;
    return job->words[i].text;
}

static tess_image_info *info_at(tess_denoise_file *file, int i)
{
    tess_image_info *const infos[4] = {&file->info, &file->truth_info, &file->map_info, &file->out_info};
    return infos[i];
}

static bool append_file(buffer *to, const tess_denoise_job *job, int64_t index)
{
    wire one;
    memset(&one, 0, sizeof one);
    one.index = index;
    one.file = job->files[index];
    const tess_denoise_file *file = &job->files[index];
    one.model_channels = file->model ? file->model->model.channels : 0;
    set_word(&one.scale_origin, file->scale_origin);
    for (int i = 0; i < 4; i++)
        set_word(&one.foreign[i], info_at(&one.file, i)->foreign);
    if (file->look.slices)
        one.slices = (uint64_t)(file->info.depth * tess_denoise_colours(&file->info));
    one.spans = file->look.spans ? (uint64_t)file->info.depth : 0;
    one.bands = file->band_sigma ? (uint64_t)tess_denoise_colours(&file->info) : 0;
    one.defects = (uint64_t)file->look.defect_count;
    one.error_bytes = file->error ? strlen(file->error) + 1 : 0;
    return append(to, &one, sizeof one) &&
           append(to, file->look.slices, one.slices * sizeof *file->look.slices) &&
           append(to, file->look.spans, one.spans * sizeof *file->look.spans) &&
           append(to, file->band_sigma, one.bands * sizeof *file->band_sigma) &&
           append(to, file->look.defects, one.defects * sizeof *file->look.defects) &&
           append(to, file->error, one.error_bytes);
}

/* Replaces a file by what another rank sent. The model is the one that was given, or a bundled one by its channels. */
static tess_status take_file(tess_denoise_job *job, const wire *one, const char *rest, tess_error *error)
{
    tess_denoise_file *file = &job->files[one->index], old = *file;
    tess_small_free(old.error);
    tess_small_free(old.look.slices);
    tess_small_free(old.look.spans);
    tess_small_free(old.look.bands);
    tess_small_free(old.band_sigma);
    tess_small_free(old.look.defects);
    *file = one->file;
    file->name = old.name, file->input = old.input, file->output = old.output, file->truth = old.truth;
    file->error = NULL, file->model = NULL, file->look.bands = NULL; /* those are no longer needed */
    file->fresh = false;
    file->scale_origin = word_of(job, &one->scale_origin);
    for (int i = 0; i < 4; i++)
        info_at(file, i)->foreign = word_of(job, &one->foreign[i]);
    void *arrays[4] = {NULL};
    const size_t counts[4] = {one->slices, one->spans, one->bands, one->defects},
                 sizes[4] = {sizeof *file->look.slices, sizeof *file->look.spans, sizeof *file->band_sigma,
                             sizeof *file->look.defects};
    bool good = true;
    for (int i = 0; i < 4; i++) {
        arrays[i] = counts[i] ? tess_small_alloc(counts[i], sizes[i]) : NULL;
        if (arrays[i])
            memcpy(arrays[i], rest, counts[i] * sizes[i]);
        good = good && (arrays[i] || !counts[i]);
        rest += counts[i] * sizes[i];
    }
    file->look.noise.slices = file->look.slices = arrays[0];
    file->look.spans = arrays[1];
    file->band_sigma = arrays[2];
    file->look.defects = arrays[3];
    if (!good)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for what was found in %s", file->input);
    if (one->error_bytes)
        file->error = tess_small_strdup(rest); /* without memory: "no memory" */
    if (one->model_channels == 0)
        return TESS_OK;
    const char *named = job->settings->model;
    return named ? tess_engine_model_of(&job->engine, named, &file->model, error)
                 : tess_engine_bundled_of(&job->engine, one->model_channels, &file->model, error);
}

static tess_status take_files(tess_denoise_job *job, const char *all, size_t total, tess_error *error)
{
    tess_status status = TESS_OK;
    for (size_t at = 0; at < total && status == TESS_OK;) {
        wire one;
        memcpy(&one, all + at, sizeof one);
        const char *rest = all + at + sizeof one;
        at += sizeof one + one.slices * sizeof *one.file.look.slices +
              one.spans * sizeof *one.file.look.spans + one.bands * sizeof *one.file.band_sigma +
              one.defects * sizeof *one.file.look.defects + one.error_bytes;
        if (!job->files[one.index].fresh) /* else it is from here */
            status = take_file(job, &one, rest, error);
    }
    for (int64_t i = 0; i < job->count; i++)
        job->files[i].fresh = false;
    return status;
}

tess_status tess_denoise_share(tess_denoise_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    if (dist->size == 1)
        return TESS_OK;
    buffer mine = {0};
    bool good = true;
    for (int64_t i = 0; i < job->count && good; i++)
        if (job->files[i].fresh)
            good = append_file(&mine, job, i);
    tess_status status =
        good ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the results of the ranks");
    status = tess_dist_agree(dist, status, error);
    void *all = NULL;
    size_t total = 0;
    if (status == TESS_OK)
        status = tess_dist_pool(dist, mine.data, mine.used, &all, &total, error);
    if (status == TESS_OK)
        status = tess_dist_agree(dist, take_files(job, all, total, error), error);
    tess_small_free(all);
    tess_small_free(mine.data);
    return status == TESS_OK ? tess_voice_share(job->voice, error) : status;
}
