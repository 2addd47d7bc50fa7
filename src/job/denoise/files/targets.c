/* Checks where the results go. A job overwrites nothing that it reads, under any name: files are compared by device
 * and inode in sorted tables, so that a folder of very many files is checked quickly. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job/denoise/denoise.h"

/* A file that exists. */
typedef struct identity {
    dev_t device;
    ino_t inode;
    int64_t file; /* index of its file; -1: the job's */
    const char *path, *what;
} identity;

static const char INPUT[] = "input", OUTPUT[] = "result of another file";

static bool is_link(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
}

static int order(const void *a, const void *b)
{
    const identity *one = a, *other = b;
    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    return one->inode < other->inode ? -1 : one->inode > other->inode;
}

static void add(identity *table, size_t *count, int64_t file, const char *path, const char *what)
{
    struct stat facts;
    if (path && stat(path, &facts) == 0)
        table[(*count)++] = (identity){facts.st_dev, facts.st_ino, file, path, what};
}

/* The first entry of this file, or `count`. */
static size_t find(const identity *table, size_t count, const identity *wanted)
{
    size_t from = 0, to = count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (order(&table[middle], wanted) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool is_input(const char *path, const identity *table, size_t count)
{
    identity target;
    size_t exists = 0;
    bool found = false;
    add(&target, &exists, -1, path, NULL);
    for (size_t i = exists ? find(table, count, &target) : count; i < count && order(&table[i], &target) == 0;
         i++)
        found = found || table[i].what == INPUT;
    return found;
}

static tess_status check_file(tess_denoise_job *job, int64_t index, const identity *table, size_t count,
                              tess_error *error)
{
    const char *output = job->files[index].output;
    identity target;
    size_t exists = 0;
    add(&target, &exists, index, output, NULL);
    for (size_t i = exists ? find(table, count, &target) : count; i < count && order(&table[i], &target) == 0;
         i++) {
        const identity *used = &table[i];
        if (used->what == OUTPUT && used->file == index)
            continue;
        if (used->what != INPUT)
            return tess_fail(error, TESS_BAD_OPTION,
                             "%s: the result would be written over the %s; give it another name", output,
                             used->what);
        if (job->settings->skip_existing)
            return tess_fail(
                error, TESS_BAD_OPTION,
                "%s: is an input and an output, so that `skip_existing` cannot tell whether it is done; "
                "give another output, or only the inputs that are left",
                output);
        if (!job->settings->overwrite)
            return tess_fail(error, TESS_BAD_OPTION,
                             "%s: the result would be written over the input %s; give another output, or "
                             "`overwrite` if that is meant",
                             output, used->path);
        if (used->file != index) /* it would be read after it was overwritten by a result */
            return tess_fail(
                error, TESS_BAD_OPTION,
                "%s: the result of %s would be written over the input %s; process them one by one", output,
                job->files[index].input, used->path);
        job->in_place = true;
    }
    return TESS_OK;
}

/* A result removes the side files of the file it replaces, but none that the job reads. */
static tess_status check_sides(const char *output, const identity *table, size_t count, tess_error *error)
{
    const char *const *suffixes = tess_image_stale_suffixes(output);
    for (int i = 0; suffixes[i]; i++) {
        char name[PATH_MAX];
        identity side;
        size_t exists = 0;
        if (snprintf(name, sizeof name, "%s%s", output, suffixes[i]) < (int)sizeof name)
            add(&side, &exists, -1, name, NULL);
        const size_t at = exists ? find(table, count, &side) : count;
        if (at < count && order(&table[at], &side) == 0)
            return tess_fail(
                error, TESS_BAD_OPTION,
                "%s: its side file %s would be removed, but is the %s; give the result another name", output,
                table[at].path, table[at].what);
    }
    return TESS_OK;
}

static int by_output(const void *a, const void *b)
{
    const tess_denoise_file *const *one = a, *const *other = b;
    return strcmp((*one)->output, (*other)->output);
}

/* Outputs are in one folder, so equal files have equal names, except for links. */
static tess_status check_twice(const tess_denoise_job *job, tess_error *error)
{
    const tess_denoise_file **sorted = tess_small_alloc((size_t)job->count, sizeof *sorted);
    if (!sorted)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to check %lld outputs", (long long)job->count);
    for (int64_t i = 0; i < job->count; i++)
        sorted[i] = &job->files[i];
    qsort(sorted, (size_t)job->count, sizeof *sorted, by_output);
    tess_status status = TESS_OK;
    for (int64_t i = 1; i < job->count && status == TESS_OK; i++)
        if (strcmp(sorted[i - 1]->output, sorted[i]->output) == 0)
            status =
                tess_fail(error, TESS_BAD_OPTION,
                          "%s and %s would both be written to %s; process them one by one, to two folders",
                          sorted[i - 1]->input, sorted[i]->input, sorted[i]->output);
    tess_small_free(sorted);
    return status;
}

tess_status tess_denoise_check_targets(tess_denoise_job *job, tess_error *error)
{
    TESS_TRY(check_twice(job, error));
    identity *table = tess_small_alloc(3 * (size_t)job->count + 1, sizeof *table);
    if (!table)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to check %lld outputs", (long long)job->count);
    size_t count = 0;
    add(table, &count, -1, job->settings->sigma_map, "noise map");
    for (int64_t i = 0; i < job->count; i++) {
        add(table, &count, i, job->files[i].truth, "truth");
        add(table, &count, i, job->files[i].input, INPUT);
        /* the target of the link is written, which may be the output of another file */
        if (is_link(job->files[i].output))
            add(table, &count, i, job->files[i].output, OUTPUT);
    }
    qsort(table, count, sizeof *table, order);
    tess_status status = TESS_OK;
    for (int64_t i = 0; i < job->count && status == TESS_OK; i++) {
        if (!job->files[i].skipped || is_input(job->files[i].output, table, count))
            status = check_file(job, i, table, count, error);
        if (status == TESS_OK && !job->files[i].skipped)
            status = check_sides(job->files[i].output, table, count, error);
    }
    tess_small_free(table);
    return status;
}

tess_status tess_denoise_make_folder(const tess_denoise_job *job, const tess_denoise_file *file,
                                     tess_error *error)
{
    const size_t root = strlen(job->settings->output);
    const char *last = strrchr(file->output, '/');
    if (strcmp(file->output, job->settings->output) == 0 || !last)
        return TESS_OK;
    char *path = tess_small_strdup(file->output);
    if (!path)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to make the folder of %s", file->output);
    tess_status status = TESS_OK;
    for (char *at = path + root - 1; at <= path + (last - file->output) && status == TESS_OK; at++)
        if (*at == '/' && at > path) {
            *at = '\0';
            if (mkdir(path, 0777) != 0 && errno != EEXIST)
                status = tess_fail(error, TESS_IO_FAILED, "%s: cannot make this folder: %s", path,
                                   strerror(errno));
            *at = '/';
        }
    tess_small_free(path);
    return status;
}
