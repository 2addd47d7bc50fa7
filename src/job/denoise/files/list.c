/* The files of a denoise job: named files, and the images of named folders. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/common/note.h"
#include "job/denoise/denoise.h"

/* A folder being read and its parents: a link to one of them would form a cycle. */
typedef struct walk {
    const char *path;
    const char *relative; /* path from the named folder: "", or ending with '/' */
    dev_t device;
    ino_t inode;
    const struct walk *around;
} walk;

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static bool ends_in_slash(const char *path)
{
    const size_t length = strlen(path);
    return length > 0 && path[length - 1] == '/';
}

static char *join(const char *folder, const char *relative, const char *name)
{
    size_t bytes = strlen(folder) + strlen(relative) + strlen(name) + 2;
    char *path = tess_small_alloc(bytes, 1);
    if (path)
        snprintf(path, bytes, "%s%s%s%s", folder, !folder[0] || ends_in_slash(folder) ? "" : "/", relative,
                 name);
    return path;
}

static tess_status no_memory(const tess_denoise_job *job, tess_error *error)
{
    return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of %lld files", (long long)job->count + 1);
}

/* Doubles the capacity when the list is full: folders can hold very many files. */
static tess_status grow(tess_denoise_job *job, tess_error *error)
{
    if (job->count & (job->count - 1))
        return TESS_OK;
    const size_t room = job->count ? 2 * (size_t)job->count : 1;
    tess_denoise_file *more = tess_small_realloc(job->files, room, sizeof *more);
    if (!more)
        return no_memory(job, error);
    job->files = more;
    return TESS_OK;
}

static char *truth_of(const tess_denoise_job *job, const char *relative, const char *name)
{
    const char *truth = job->settings->truth;
    return job->folder && is_folder(truth) ? join(truth, relative, name) : tess_small_strdup(truth);
}

/* An empty file is no result, but what a full disk or a stopped copy leaves. */
static bool has_result(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && !S_ISDIR(facts.st_mode) &&
           (facts.st_size > 0 || !S_ISREG(facts.st_mode));
}

/* The name in the output's folder. Formats that are only read get the suffix of one that is written as well; the whole
 * name stays before it, so that a.webp and a.png have different results. */
static char *target_in(const char *folder, const char *relative, const char *name)
{
    const char *more = tess_image_written_as(name);
    char *path = join(folder, relative, name);
    if (!path || !more)
        return path;
    const size_t bytes = strlen(path) + strlen(more) + 1;
    char *longer = tess_small_alloc(bytes, 1);
    if (longer)
        snprintf(longer, bytes, "%s%s", path, more);
    tess_small_free(path);
    return longer;
}

/* `input` is `name` in a named folder, or `name` itself. */
static tess_status add_file(tess_denoise_job *job, const char *input, const char *relative, const char *name,
                            tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    const bool inside = job->folder || ends_in_slash(s->output) || is_folder(s->output);
    TESS_TRY(grow(job, error));
    tess_denoise_file *file = &job->files[job->count];
    *file = (tess_denoise_file){.name = join("", relative, name),
                                .input = tess_small_strdup(input),
                                .output = inside ? target_in(s->output, relative, name)
                                                 : tess_small_strdup(s->output),
                                .truth = s->truth ? truth_of(job, relative, name) : NULL,
                                .item = (uint32_t)job->count,
                                .psnr = NAN,
                                .ssim = NAN};
    job->count++; /* counted first, so that an incomplete entry is freed with the list */
    if (!file->name || !file->input || !file->output || (s->truth && !file->truth))
        return no_memory(job, error);
    file->skipped = s->skip_existing && has_result(file->output);
    return TESS_OK;
}

static bool around(const walk *inner, const struct stat *facts)
{
    for (const walk *w = inner; w; w = w->around)
        if (w->device == facts->st_dev && w->inode == facts->st_ino)
            return true;
    return false;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* What is not taken. */
typedef struct left_out {
    int64_t folders, files;
} left_out;

static tess_status walk_folder(tess_denoise_job *job, const walk *w, left_out *out, tess_error *error);

/* Enters a subfolder. The job's output folder is not an input. */
static tess_status enter(tess_denoise_job *job, const walk *w, const char *name, const struct stat *facts,
                         left_out *out, tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    struct stat output;
    if (around(w, facts) ||
        (stat(s->output, &output) == 0 && output.st_dev == facts->st_dev && output.st_ino == facts->st_ino))
        return TESS_OK;
    out->folders++;
    if (!s->recursive)
        return TESS_OK;
    char *path = join(w->path, "", name), *relative = join("", w->relative, name),
         *inner = relative ? join(relative, "", "") : NULL;
    const walk below = {path, inner, facts->st_dev, facts->st_ino, w};
    tess_status status = path && inner ? walk_folder(job, &below, out, error) : no_memory(job, error);
    tess_small_free(path);
    tess_small_free(relative);
    tess_small_free(inner);
    return status;
}

static tess_status take_entry(tess_denoise_job *job, const walk *w, const struct dirent *entry, left_out *out,
                              tess_error *error)
{
    const bool image = tess_image_is_known(entry->d_name);
    TESS_TRY(tess_stop_check(&job->engine.stop, error));
    if (entry->d_type == DT_REG && !image) {
        out->files++;
        return TESS_OK;
    }
    char *path = join(w->path, "", entry->d_name);
    if (!path)
        return no_memory(job, error);
    struct stat facts;
    tess_status status = TESS_OK;
    if (entry->d_type != DT_REG && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        status = enter(job, w, entry->d_name, &facts, out, error);
    else if (image)
        status = add_file(job, path, w->relative, entry->d_name, error);
    tess_small_free(path);
    return status;
}

static tess_status walk_folder(tess_denoise_job *job, const walk *w, left_out *out, tess_error *error)
{
    struct dirent **names = NULL;
    const int found = scandir(w->path, &names, visible, alphasort);
    if (found < 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: %s", w->path, strerror(errno));
    tess_status status = TESS_OK;
    for (int i = 0; i < found; i++) {
        if (status == TESS_OK)
            status = take_entry(job, w, names[i], out, error);
        free(names[i]);
    }
    free(names);
    return status;
}

static tess_status take_folder(tess_denoise_job *job, const char *path, const struct stat *facts,
                               tess_error *error)
{
    const walk top = {path, "", facts->st_dev, facts->st_ino, NULL};
    const int64_t before = job->count;
    left_out out = {0};
    TESS_TRY(walk_folder(job, &top, &out, error));
    const bool deeper = out.folders > 0 && !job->settings->recursive;
    if (job->count == before)
        return tess_fail(error, TESS_BAD_INPUT, "%s: holds no image file (png, npy, jpg, tif, ...)%s", path,
                         deeper ? "; `recursive` looks into the folders in it" : "");
    if (out.files > 0)
        tess_note(&job->settings->common, TESS_NOTE_DETAIL,
                  "%s: %lld file(s) in it do not have the suffix of an image, and are left out", path,
                  (long long)out.files);
    if (deeper)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%s: has %lld folder(s) in it, which are left out; `recursive` takes them too", path,
                  (long long)out.folders);
    return TESS_OK;
}

static tess_status take_input(tess_denoise_job *job, const char *path, tess_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: no such file or folder", path);
    if (S_ISDIR(facts.st_mode))
        return take_folder(job, path, &facts, error);
    const char *slash = strrchr(path, '/');
    return add_file(job, path, "", slash ? slash + 1 : path, error);
}

tess_status tess_denoise_list(tess_denoise_job *job, tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    const char *const *inputs = s->input_count > 0 ? s->inputs : &s->input;
    const int count = s->input_count > 0 ? s->input_count : 1;
    job->folder = count > 1 || is_folder(inputs[0]);
    if (job->folder && access(s->output, F_OK) == 0 && !is_folder(s->output))
        return tess_fail(error, TESS_BAD_OPTION, "%s: is a file; %s as input needs a folder as output",
                         s->output, count > 1 ? "several files" : "a folder");
    if (!job->folder && s->truth && is_folder(s->truth))
        return tess_fail(error, TESS_BAD_OPTION, "`truth` %s: is a folder, but the input is a file",
                         s->truth);
    for (int i = 0; i < count; i++)
        TESS_TRY(take_input(job, inputs[i], error));
    return TESS_OK;
}

void tess_denoise_note_list(const tess_denoise_job *job)
{
    const tess_denoise_settings *s = job->settings;
    int64_t skipped = 0, others = 0;
    const tess_denoise_file *other = NULL;
    for (int64_t i = 0; i < job->count; i++) {
        skipped += job->files[i].skipped;
        if (strcmp(job->files[i].output, s->output) == 0 || !tess_image_written_as(job->files[i].input))
            continue;
        others++;
        other = &job->files[i];
    }
    if (others > 0)
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%lld file(s) have a format that is only read, and are written in another: %s as %s",
                  (long long)others, other->input, other->output);
    if (skipped == job->count)
        tess_note(&s->common, TESS_NOTE_WARNING, "nothing to do: all %lld outputs are there already",
                  (long long)skipped);
}

void tess_denoise_list_free(tess_denoise_file *files, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        tess_small_free(files[i].name);
        tess_small_free(files[i].input);
        tess_small_free(files[i].output);
        tess_small_free(files[i].truth);
        tess_small_free(files[i].error);
        tess_small_free(files[i].look.slices);
        tess_small_free(files[i].look.spans);
        tess_small_free(files[i].look.bands);
        tess_small_free(files[i].band_sigma);
        tess_small_free(files[i].look.defects);
    }
    tess_small_free(files);
}
