/* Training of a diffusion network for `fill`: its shape, its data, and what its file says. */
#include <stdio.h>

#include "base/checked.h"
#include "job/train/train_job.h"
#include "model/diffusion.h"
#include "tensor/terrain/conditions.h"
#include "train/data_dem.h"

void tess_train_shape_diffusion(const tess_train_config *config, tess_model_shape *shape)
{
    shape->channels = TESS_CONDITIONS + 1;
    for (int i = 0; i < config->network.attention.count; i++)
        for (int k = 0; k < shape->width_count; k++)
            if (config->network.attention.list[i] == (int64_t)1 << k)
                shape->attention[k] = true;
}

/* Keys that only a file can tell to be without effect. */
tess_status tess_train_open_denoiser(tess_train_job *job, tess_error *error)
{
    TESS_TRY(tess_model_recognise_trained(job->start, &job->model, error));
    const tess_train_config *config = &job->config;
    const char *unused = config->network.dropout > 0     ? "network.dropout"
                         : config->data.repeats > 1      ? "data.repeats"
                         : config->deviation_factor != 1 ? "deviation_factor"
                                                         : NULL;
    if (!unused)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: is for diffusion networks, and network.weights holds a %s; remove it", unused,
                     job->model.architecture);
}

tess_status tess_train_open_diffusion(tess_train_job *job, tess_error *error)
{
    tess_diffusion_net net;
    TESS_TRY(tess_train_config_diffusion(&job->config, error));
    TESS_TRY(tess_diffusion_recognise_trained(job->start, job->config.network.dropout, &net, error));
    job->model = (tess_model_net){
        .architecture = "diffusion", .net = net.step, .channels = net.channels, .parameters = net.parameters};
    job->levels = net.levels;
    if (net.channels == TESS_CONDITIONS + 1)
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "network.weights: takes %lld channels, but training gives %d: the conditions and the noisy map",
        (long long)net.channels, TESS_CONDITIONS + 1);
}

tess_status tess_train_open_maps(tess_train_job *job, int64_t crop, uint64_t cache, tess_error *error)
{
    const tess_train_config *config = &job->config;
    const char *folders[TESS_CONFIG_PATHS], *exclude[TESS_CONFIG_PATHS];
    for (int i = 0; i < config->data.folders.count; i++)
        folders[i] = config->data.folders.list[i].path;
    for (int i = 0; i < config->data.exclude.count; i++)
        exclude[i] = config->data.exclude.list[i].given;
    tess_dem_settings settings = {.images = {.paths = folders,
                                             .path_count = config->data.folders.count,
                                             .exclude = exclude,
                                             .exclude_count = config->data.exclude.count,
                                             .recursive = true,
                                             .budget = (size_t)cache,
                                             .memory = job->engine.memory},
                                  .crop = crop,
                                  .scales = (int)tess_min_i64(config->data.scales.count, TESS_DEM_SCALES),
                                  .levels = job->levels,
                                  .repeats = config->data.repeats};
    for (int i = 0; i < settings.scales; i++) {
        settings.scale[i] = config->data.scales.list[i];
        settings.share[i] = config->data.scales.weight[i];
    }
    return tess_dem_open(&settings, &job->source, error);
}

tess_status tess_train_describe_diffusion(const tess_train_job *job, tess_weights *weights, tess_error *error)
{
    static const char *const kept[] = {"num_head_channels", "num_groups"};
    char factor[32];
    TESS_TRY(tess_weights_set_metadata(weights, "conditioning", "smooth", error));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *text = tess_weights_metadata(job->start, kept[i]);
        if (text)
            TESS_TRY(tess_weights_set_metadata(weights, kept[i], text, error));
    }
    if (job->config.deviation_factor == 1)
        return TESS_OK;
    snprintf(factor, sizeof factor, "%.9g", job->config.deviation_factor);
    return tess_weights_set_metadata(weights, "deviation_factor", factor, error);
}
