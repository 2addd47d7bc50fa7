/* No file of a run may be another one, under any name: what a run writes replaces what was there, and images, weights and
 * configurations cannot be made again. */
#include <string.h>

#include "io/image.h"
#include "job/common/record.h"
#include "job/train/train_job.h"

typedef struct target {
    const char *key, *path; /* path NULL: none */
    bool folder;
} target;

enum { TARGETS = 4 };

/* The caller's record is checked beside them: its message has no key. */
static tess_status check_read(const tess_train_job *job, const target *targets, const char *path,
                              tess_error *error)
{
    for (int i = 0; i < TARGETS && path; i++)
        if (targets[i].path && tess_image_same_target(targets[i].path, path))
            return tess_fail(error, TESS_BAD_INPUT, "%s: %s: is read by this run; use another name",
                             targets[i].key, targets[i].path);
    return tess_record_apart(&job->settings->common, &path, 1, error);
}

static tess_status check_images(const tess_train_job *job, const target *targets, const tess_images *images,
                                tess_error *error)
{
    for (int64_t i = 0; i < tess_images_count(images); i++)
        TESS_TRY(check_read(job, targets, tess_images_at(images, i)->path, error));
    return TESS_OK;
}

typedef struct checked {
    const tess_train_job *job;
    const target *targets;
} checked;

static tess_status check_cube(const void *user, const char *path, tess_error *error)
{
    const checked *c = user;
    return path ? check_read(c->job, c->targets, path, error) : TESS_OK;
}

/* Event files and checkpoints have names of their own, so they may share a folder. */
static tess_status check_pairs(const target *targets, tess_error *error)
{
    for (int i = 0; i < TARGETS; i++)
        for (int k = 0; k < i; k++)
            if (targets[i].path && targets[k].path && !(targets[i].folder && targets[k].folder) &&
                tess_image_same_target(targets[i].path, targets[k].path))
                return tess_fail(error, TESS_BAD_INPUT, "%s: %s: is also the name of %s; use another name",
                                 targets[i].key, targets[i].path, targets[k].key);
    return TESS_OK;
}

/* True for a name that a checkpoint may get. */
static bool is_checkpoint(const tess_train_config *config, const char *path)
{
    const size_t length = strlen(path), end = sizeof ".ckpt" - 1;
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";
    if (length < end || strcmp(path + length - end, ".ckpt") != 0 ||
        (slash && (size_t)(slash - path) + 2 > sizeof folder))
        return false;
    if (slash) {
        memcpy(folder, path, (size_t)(slash - path) + 1);
        folder[slash - path + 1] = '\0';
    }
    return tess_image_same_file(folder, config->checkpoint.folder.path);
}

tess_status tess_train_check_files(const tess_train_job *job, tess_error *error)
{
    const tess_train_config *config = &job->config;
    const tess_common *common = &job->settings->common;
    const target targets[TARGETS] = {{"output", config->output.path, false},
                                     {"log", config->log.path, false},
                                     {"checkpoint.folder", config->checkpoint.folder.path, true},
                                     {"tensorboard", config->tensorboard.path, true}};
    TESS_TRY(check_read(job, targets, job->settings->config, error));
    TESS_TRY(check_read(job, targets, config->network.weights.path, error));
    const checked cubes = {job, targets};
    TESS_TRY(job->spectral ? tess_train_each_cube(job, check_cube, &cubes, error)
                           : check_images(job, targets, job->source->images, error));
    if (job->validator && tess_validator_images(job->validator))
        TESS_TRY(check_images(job, targets, tess_validator_images(job->validator), error));
    TESS_TRY(check_pairs(targets, error));
    if (config->log.path && is_checkpoint(config, config->log.path))
        return tess_fail(error, TESS_BAD_INPUT, "log: %s: is a name of checkpoints; use another name",
                         config->log.path);
    const char *const own[] = {common->record_file, common->trace_file};
    for (int i = 0; i < 2; i++)
        if (own[i] && is_checkpoint(config, own[i]))
            return tess_record_apart(common, &own[i], 1, error);
    for (int i = 0; i < TARGETS; i++)
        TESS_TRY(tess_record_apart(common, &targets[i].path, 1, error));
    return TESS_OK;
}
