/* The files of a denoise job. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/denoise.h"

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static char *join(const char *folder, const char *name)
{
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = tess_small_alloc(bytes, 1);
    if (path)
        snprintf(path, bytes, "%s%s%s", folder, folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/",
                 name);
    return path;
}

static void set_file(tess_denoise_file *file, const char *name, char *input, char *output, char *truth)
{
    *file = (tess_denoise_file){.name = tess_small_strdup(name), .psnr = NAN, .ssim = NAN};
    file->input = input;
    file->output = output;
    file->truth = truth;
}

static bool complete(const tess_denoise_file *file, bool truth)
{
    return file->name && file->input && file->output && (!truth || file->truth);
}

static tess_status one_file(const tess_denoise_settings *s, tess_denoise_file **files, int64_t *count,
                            tess_error *error)
{
    if (access(s->input, F_OK) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: no such file or folder", s->input);
    if (s->truth && is_folder(s->truth))
        return tess_fail(error, TESS_BAD_OPTION, "--truth %s: is a folder, but the input is a file",
                         s->truth);
    *files = tess_small_alloc(1, sizeof **files);
    if (!*files)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of files");
    *count = 1;
    const char *slash = strrchr(s->input, '/'), *name = slash ? slash + 1 : s->input;
    char *output = is_folder(s->output) ? join(s->output, name) : tess_small_strdup(s->output);
    set_file(*files, name, tess_small_strdup(s->input), output,
             s->truth ? tess_small_strdup(s->truth) : NULL);
    if (!complete(*files, s->truth != NULL))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of files");
    return TESS_OK;
}

static int wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && tess_image_is_known(entry->d_name);
}

static tess_status from_names(const tess_denoise_settings *s, struct dirent **names, int found,
                              tess_denoise_file **files, int64_t *count, tess_error *error)
{
    *files = tess_small_alloc((size_t)found, sizeof **files);
    if (!*files)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d files", found);
    for (int i = 0; i < found; i++) {
        char *input = join(s->input, names[i]->d_name);
        if (input && is_folder(input)) {
            tess_small_free(input);
            continue;
        }
        tess_denoise_file *file = &(*files)[*count];
        const char *truth = s->truth;
        char *own_truth =
            truth ? (is_folder(truth) ? join(truth, names[i]->d_name) : tess_small_strdup(truth)) : NULL;
        set_file(file, names[i]->d_name, input, join(s->output, names[i]->d_name), own_truth);
        file->item = (uint32_t)*count;
        ++*count;
        if (!complete(file, truth != NULL))
            return tess_fail(error, TESS_NO_MEMORY, "no memory for %d files", found);
    }
    if (*count == 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: holds no image file (png, npy, jpg, tif, ...)",
                         s->input);
    return TESS_OK;
}

tess_status tess_denoise_list(const tess_denoise_settings *s, tess_denoise_file **files, int64_t *count,
                              bool *folder, tess_error *error)
{
    *files = NULL;
    *count = 0;
    *folder = is_folder(s->input);
    if (!*folder)
        return one_file(s, files, count, error);
    if (access(s->output, F_OK) == 0 && !is_folder(s->output))
        return tess_fail(error, TESS_BAD_OPTION, "%s: is a file; a folder in gives a folder out", s->output);
    struct dirent **names = NULL;
    int found = scandir(s->input, &names, wanted, alphasort);
    if (found < 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: %s", s->input, strerror(errno));
    tess_status status = found > 0 ? from_names(s, names, found, files, count, error)
                                   : tess_fail(error, TESS_BAD_INPUT,
                                               "%s: holds no image file (png, npy, jpg, tif, ...)", s->input);
    for (int i = 0; i < found; i++)
        free(names[i]);
    free(names);
    return status;
}

void tess_denoise_list_free(tess_denoise_file *files, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        tess_small_free(files[i].name);
        tess_small_free(files[i].input);
        tess_small_free(files[i].output);
        tess_small_free(files[i].truth);
        tess_small_free(files[i].error);
    }
    tess_small_free(files);
}
