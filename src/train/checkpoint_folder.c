/* checkpoint_folder.c: the folder of a run's checkpoints. One run uses it at a time: the folder is locked while it is open,
 * and the system releases the lock when a process ends in whatever way. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/checkpoint_impl.h"

static const char PREFIX[] = "step-", SUFFIX[] = ".ckpt", TEMPORARY[] = ".tmp-tessera-";

const char *tess_checkpoint_block_name(tess_training_state state)
{
    switch (state) {
    case TESS_STATE_PARAMETERS:
        return "parameters";
    case TESS_STATE_FIRST_MOMENT:
        return "first_moment";
    case TESS_STATE_SECOND_MOMENT:
        return "second_moment";
    case TESS_STATE_AVERAGE:
        return "average";
    case TESS_STATE_RUNNING:
        return "running";
    case TESS_STATES:
        break;
    }
    return "";
}

char *tess_checkpoint_path(const tess_checkpoints *checkpoints, int64_t step)
{
    const size_t size = strlen(checkpoints->folder) + 48;
    char *path = tess_small_alloc(size, 1);
    if (path)
        snprintf(path, size, "%s/%s%09" PRId64 "%s", checkpoints->folder, PREFIX, step, SUFFIX);
    return path;
}

/* The step of a checkpoint's name, or -1. */
static int64_t step_of(const char *name)
{
    const size_t prefix = sizeof PREFIX - 1;
    if (strncmp(name, PREFIX, prefix) != 0)
        return -1;
    const char *digits = name + prefix;
    const size_t count = strspn(digits, "0123456789");
    return count >= 1 && count <= 15 && strcmp(digits + count, SUFFIX) == 0 ? strtoll(digits, NULL, 10) : -1;
}

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

tess_status tess_checkpoints_list(const tess_checkpoints *checkpoints, int64_t **steps, int *count,
                                  tess_error *error)
{
    *steps = NULL;
    *count = 0;
    DIR *dir = opendir(checkpoints->folder);
    if (!dir)
        return tess_fail(error, TESS_IO_FAILED, "%s: %s", checkpoints->folder, strerror(errno));
    int capacity = 0;
    tess_status status = TESS_OK;
    for (struct dirent *entry; status == TESS_OK && (entry = readdir(dir));) {
        const int64_t step = step_of(entry->d_name);
        if (step < 0)
            continue;
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            int64_t *grown = tess_small_realloc(*steps, (size_t)capacity, sizeof *grown);
            if (!grown) {
                status = tess_fail(error, TESS_NO_MEMORY, "%s: no memory to list it", checkpoints->folder);
                break;
            }
            *steps = grown;
        }
        (*steps)[(*count)++] = step;
    }
    closedir(dir);
    if (status == TESS_OK && *count)
        qsort(*steps, (size_t)*count, sizeof **steps, newest_first);
    if (status != TESS_OK) {
        tess_small_free(*steps);
        *steps = NULL;
    }
    return status;
}

/* Removes the unfinished checkpoints of runs that were killed. Other programs may write in this folder too: only
 * files that begin as a checkpoint are removed, and the lock says that no run is writing one. */
static void remove_unfinished(const tess_checkpoints *checkpoints)
{
    DIR *dir = opendir(checkpoints->folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, TEMPORARY, sizeof TEMPORARY - 1) != 0)
            continue;
        char name[300], head[8] = "";
        snprintf(name, sizeof name, "%s/new", entry->d_name);
        const int fd = openat(dirfd(dir), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        const bool ours = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head &&
                          memcmp(head, TESS_CHECKPOINT_MAGIC, sizeof head) == 0;
        if (fd >= 0)
            close(fd);
        if (ours && unlinkat(dirfd(dir), name, 0) == 0)
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    if (dir)
        closedir(dir);
}

static tess_status lock(tess_checkpoints *checkpoints, tess_error *error)
{
    if (mkdir(checkpoints->folder, 0777) != 0 && errno != EEXIST)
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot be made: %s", checkpoints->folder,
                         strerror(errno));
    checkpoints->lock = open(checkpoints->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (checkpoints->lock < 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: %s", checkpoints->folder, strerror(errno));
    /* File systems without locks are used without. */
    if (flock(checkpoints->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: another run is using this folder; wait for it, or set another checkpoint.folder",
            checkpoints->folder);
    return TESS_OK;
}

tess_status tess_checkpoints_open(tess_memory *memory, const char *folder, tess_checkpoints **out,
                                  tess_error *error)
{
    *out = NULL;
    tess_checkpoints *checkpoints = tess_small_alloc(1, sizeof *checkpoints);
    if (!checkpoints)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", folder);
    checkpoints->lock = -1;
    checkpoints->folder = tess_small_strdup(folder);
    tess_status status = checkpoints->folder
                             ? lock(checkpoints, error)
                             : tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", folder);
    if (status == TESS_OK)
        status = tess_block_alloc(memory, &checkpoints->buffer, TESS_MEM_HOST, TESS_CHECKPOINT_BUFFER, error);
    if (status != TESS_OK) {
        tess_checkpoints_close(checkpoints);
        return status;
    }
    remove_unfinished(checkpoints);
    *out = checkpoints;
    return TESS_OK;
}

void tess_checkpoints_close(tess_checkpoints *checkpoints)
{
    if (!checkpoints)
        return;
    if (checkpoints->lock >= 0)
        close(checkpoints->lock);
    tess_block_free(&checkpoints->buffer);
    tess_small_free(checkpoints->folder);
    tess_small_free(checkpoints);
}

tess_status tess_checkpoints_check_empty(const tess_checkpoints *checkpoints, tess_error *error)
{
    int64_t *steps;
    int count;
    TESS_TRY(tess_checkpoints_list(checkpoints, &steps, &count, error));
    const int64_t newest = count ? steps[0] : 0;
    tess_small_free(steps);
    if (!count)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: holds a run at step %lld; `resume` it, remove the folder, or set another "
                     "checkpoint.folder",
                     checkpoints->folder, (long long)newest);
}
