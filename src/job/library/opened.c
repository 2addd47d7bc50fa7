/* Device and model handles. */
#include <stdio.h>
#include <string.h>

#include "job/library/library.h"

static tess_opened *opened_of(const tess_device *device)
{
    return device ? device->owner : NULL;
}

tess_status tess_device_open(tess_context *context, const tess_device_settings *settings, tess_device **out)
{
    if (out)
        *out = NULL;
    if (!context)
        return TESS_BAD_OPTION;
    tess_error *error = &context->error;
    tess_device_settings s;
    tess_device_settings_init(&s);
    if (!out)
        return tess_fail(error, TESS_BAD_OPTION, "tess_device_open: `out` is NULL");
    if (settings && !tess_struct_take(&s, sizeof s, settings))
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_device_open: the settings have no size; fill them with "
                         "tess_device_settings_init");
    tess_opened *opened = tess_small_alloc(1, sizeof *opened);
    if (!opened)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a device");
    opened->context = context;
    tess_common common;
    tess_common_init(&common);
    common.device = s.device ? s.device : "auto";
    common.threads = s.threads;
    const tess_status status = tess_engine_open(&opened->engine, &context->memory, &common, error);
    if (status != TESS_OK) {
        tess_engine_close(&opened->engine);
        tess_small_free(opened);
        return status;
    }
    tess_device *device = opened->engine.device;
    device->owner = opened;
    const char *index = strchr(common.device, ':');
    snprintf(opened->name, sizeof opened->name, "%s%s %s", device->kind,
             index                              ? index
             : strcmp(device->kind, "cpu") == 0 ? ""
                                                : ":0",
             opened->engine.facts.name);
    *out = device;
    return TESS_OK;
}

void tess_device_close(tess_device *device)
{
    tess_opened *opened = opened_of(device);
    if (!opened)
        return;
    tess_engine_close(&opened->engine);
    tess_small_free(opened);
}

const char *tess_device_name(const tess_device *device)
{
    const tess_opened *opened = opened_of(device);
    return opened ? opened->name : "";
}

static tess_status load(tess_opened *opened, const tess_model_settings *s, tess_model *model,
                        tess_error *error)
{
    tess_engine *engine = &opened->engine;
    tess_engine_model *loaded = &model->loaded;
    TESS_TRY(
        tess_precision_of(&engine->facts, s->precision ? s->precision : "auto", &model->precision, error));
    if (s->inflate) {
        loaded->inflated = true;
        loaded->how = strcmp(s->inflate, "level") == 0 ? TESS_INFLATE_LEVEL : TESS_INFLATE_HALVES;
        if (loaded->how == TESS_INFLATE_HALVES && strcmp(s->inflate, "halves") != 0)
            return tess_fail(error, TESS_BAD_OPTION, "inflate %s: use halves or level", s->inflate);
    }
    TESS_TRY(tess_model_find(s->name, loaded->path, sizeof loaded->path, error));
    TESS_TRY(tess_engine_model_open(engine, &model->precision, loaded, error));
    TESS_TRY(tess_engine_model_load(engine, loaded, error));
    return engine->device->streams->sync(engine->device, NULL, error);
}

tess_status tess_model_load(tess_device *device, const tess_model_settings *settings, tess_model **out)
{
    if (out)
        *out = NULL;
    tess_opened *opened = opened_of(device);
    if (!opened)
        return TESS_BAD_OPTION;
    tess_error *error = &opened->context->error;
    tess_model_settings s;
    tess_model_settings_init(&s);
    if (!out)
        return tess_fail(error, TESS_BAD_OPTION, "tess_model_load: `out` is NULL");
    if (settings && !tess_struct_take(&s, sizeof s, settings))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "tess_model_load: the settings have no size; fill them with tess_model_settings_init");
    if (!s.name || !*s.name)
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_model_load: `name` is empty; use a bundled model's name or a weight file");
    tess_model *model = tess_small_alloc(1, sizeof *model);
    if (!model)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a model");
    model->opened = opened;
    const tess_status status = load(opened, &s, model, error);
    if (status != TESS_OK) {
        tess_model_release(model);
        return status;
    }
    *out = model;
    return TESS_OK;
}

void tess_model_release(tess_model *model)
{
    if (!model)
        return;
    tess_engine_model_close(&model->opened->engine, &model->loaded);
    tess_small_free(model);
}

int64_t tess_model_channels(const tess_model *model)
{
    return model ? model->loaded.model.channels : 0;
}

bool tess_model_takes_sigma(const tess_model *model)
{
    return model && model->loaded.model.noise_map;
}
