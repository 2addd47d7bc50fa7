/* config_files.c: checks before a run that what it reads exists and that what it writes can be made, so that it does not
 * fail after hours. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/config_impl.h"

static tess_status check_folder(const char *key, const char *path, tess_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s: %s; expected a folder", key, path, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s: is a file; expected a folder", key, path);
    return TESS_OK;
}

static tess_status check_file(const char *key, const tess_train_path *file, tess_error *error)
{
    struct stat about;
    if (!file->path)
        return TESS_OK;
    if (stat(file->path, &about) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s: %s", key, file->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s: is not a file", key, file->path);
    return TESS_OK;
}

static tess_status check_writable(const char *key, const char *path, bool folder, tess_error *error)
{
    if (access(path, folder ? W_OK | X_OK : W_OK) == 0)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT, "%s: %s: cannot be written: %s", key, path, strerror(errno));
}

/* The file itself need not exist, but the folder that it will be in must; it is also written if the file is replaced. */
static tess_status check_target(const char *key, const tess_train_path *target, bool folder, bool replaced,
                                tess_error *error)
{
    struct stat about;
    char parent[PATH_MAX];
    if (!target->path)
        return TESS_OK;
    const bool exists = stat(target->path, &about) == 0;
    if (exists && !(folder ? S_ISDIR(about.st_mode) : S_ISREG(about.st_mode)))
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s: is %s; expected a %s", key, target->path,
                         S_ISDIR(about.st_mode)   ? "a folder"
                         : S_ISREG(about.st_mode) ? "a file"
                                                  : "not a regular file",
                         folder ? "folder" : "file");
    if (exists)
        TESS_TRY(check_writable(key, target->path, folder, error));
    if (exists && !replaced)
        return TESS_OK;
    size_t length = strlen(target->path);
    while (length > 1 && target->path[length - 1] == '/') /* of a folder */
        length--;
    while (length > 0 && target->path[length - 1] != '/')
        length--;
    if (snprintf(parent, sizeof parent, "%.*s", (int)length, target->path) >= (int)sizeof parent)
        return tess_fail(error, TESS_BAD_INPUT, "%s: the name is too long", key);
    if (stat(*parent ? parent : ".", &about) == 0 && S_ISDIR(about.st_mode))
        return check_writable(key, *parent ? parent : ".", true, error);
    return tess_fail(error, TESS_BAD_INPUT, "%s: %s: there is no folder %s; make it first", key, target->path,
                     parent);
}

tess_status tess_train_config_check_files(const tess_train_config *config, tess_error *error)
{
    for (int i = 0; i < config->data.folders.count; i++) {
        char key[32];
        snprintf(key, sizeof key, "data.folders[%d]", i);
        TESS_TRY(check_folder(key, config->data.folders.list[i].path, error));
    }
    if (config->validation.folder.path)
        TESS_TRY(check_folder("validation.folder", config->validation.folder.path, error));
    TESS_TRY(check_file("network.weights", &config->network.weights, error));
    TESS_TRY(check_file("pipeline", &config->pipeline.fitted, error));
    TESS_TRY(check_target("output", &config->output, false, true, error));
    TESS_TRY(check_target("log", &config->log, false, false, error));
    TESS_TRY(check_target("checkpoint.folder", &config->checkpoint.folder, true, false, error));
    return check_target("tensorboard", &config->tensorboard, true, false, error);
}
