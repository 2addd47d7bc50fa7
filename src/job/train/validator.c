#include "job/train/validator.h"

#include <math.h>

#include "base/checked.h"
#include "job/train/validator_dem.h"
#include "model/diffusion.h"

struct tess_validator {
    tess_dem_validator *dem;     /* of a diffusion network, which needs nothing of the rest; or NULL */
    tess_cubes_validator *cubes; /* likewise of a pipeline */
    tess_curve_result curve;
    tess_engine *engine;
    tess_stop *stop;
    tess_model_net model;
    tess_bound *bound;
    tess_validation *set;
    int64_t height, width; /* of the largest image */
    int levels;
    size_t arena_bytes, workspace_bytes, result_bytes;
    tess_block weights, arena, workspace, result;
    tess_net_plan *plan; /* of the last size */
    int64_t plan_height, plan_width;
};

static tess_status plan_of(tess_validator *v, int64_t height, int64_t width, tess_error *error)
{
    if (v->plan && v->plan_height == height && v->plan_width == width)
        return TESS_OK;
    tess_net_plan_destroy(v->plan);
    v->plan = NULL;
    const tess_plan_shape shape = {.n = 1, .h = height, .w = width};
    TESS_TRY(tess_net_plan_create(v->bound, shape, &v->plan, error));
    v->plan_height = height;
    v->plan_width = width;
    return TESS_OK;
}

static tess_status open_set(tess_validator *v, const tess_train_config *config, tess_error *error)
{
    const char *paths[] = {config->validation.folder.path};
    const int64_t grid =
        tess_max_i64(tess_net_grid(v->model.net, TESS_HEIGHT), tess_net_grid(v->model.net, TESS_WIDTH));
    tess_validation_settings settings = {.images = {.paths = paths,
                                                    .path_count = 1,
                                                    .recursive = true,
                                                    .channels = (int)v->model.channels,
                                                    .budget = 0,
                                                    .memory = v->engine->memory},
                                         .levels = config->validation.sigma.count,
                                         .seed = config->seed,
                                         .grid = grid,
                                         .level_channel = v->model.noise_map,
                                         .pool = v->engine->host};
    for (int i = 0; i < settings.levels; i++)
        settings.level[i] = config->validation.sigma.list[i];
    v->levels = settings.levels;
    return tess_validation_open(&settings, &v->set, error);
}

tess_status tess_validator_open(tess_engine *engine, tess_stop *stop, const tess_train_config *config,
                                tess_weights *weights, tess_validator **out, tess_error *error)
{
    tess_validator *v = *out = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the validation");
    v->engine = engine;
    v->stop = stop;
    if (tess_diffusion_has(weights))
        return tess_dem_validator_open(engine, stop, config, weights, &v->dem, error);
    TESS_TRY(tess_model_recognise(weights, &v->model, error));
    TESS_TRY(tess_bound_create(v->model.net, engine->device, engine->dtype, &v->bound, error));
    TESS_TRY(open_set(v, config, error));
    tess_validation_largest(v->set, &v->height, &v->width);
    TESS_TRY(plan_of(v, v->height, v->width, error));
    v->arena_bytes = tess_net_plan_arena_bytes(v->plan);
    v->workspace_bytes = tess_net_plan_workspace_bytes(v->plan);
    v->result_bytes = (size_t)(v->height * v->width * v->model.channels) * sizeof(float);
    return TESS_OK;
}

tess_status tess_validator_open_cubes(tess_engine *engine, const tess_cubes_validator_settings *settings,
                                      tess_validator **out, tess_error *error)
{
    tess_validator *v = *out = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the validation");
    v->engine = engine;
    return tess_cubes_validator_open(settings, &v->cubes, error);
}

void tess_validator_close(tess_validator *v)
{
    if (!v)
        return;
    const tess_device_memory *memory = v->engine->device->memory;
    tess_net_plan_destroy(v->plan);
    memory->free(v->engine->device, &v->weights);
    memory->free(v->engine->device, &v->arena);
    memory->free(v->engine->device, &v->workspace);
    memory->host_free(v->engine->device, &v->result);
    tess_validation_close(v->set);
    tess_dem_validator_close(v->dem);
    tess_cubes_validator_close(v->cubes);
    tess_bound_destroy(v->bound);
    tess_model_clear(&v->model);
    tess_small_free(v);
}

tess_mem_bytes tess_validator_bytes(const tess_validator *v)
{
    tess_device *device = v->engine->device;
    tess_mem_bytes bytes = {{0}};
    if (v->dem)
        return tess_dem_validator_bytes(v->dem);
    if (v->cubes)
        return tess_cubes_validator_bytes(v->cubes);
    if (!v->set)
        return bytes;
    bytes.by[TESS_MEM_WEIGHTS] = device->memory->granted(device, tess_bound_weight_bytes(v->bound));
    bytes.by[TESS_MEM_ACTIVATIONS] = device->memory->granted(device, v->arena_bytes);
    bytes.by[TESS_MEM_WORKSPACE] =
        v->workspace_bytes ? device->memory->granted(device, v->workspace_bytes) : 0;
    bytes.by[TESS_MEM_HOST] = tess_block_granted(v->result_bytes) + tess_validation_bytes(v->set);
    return bytes;
}

tess_status tess_validator_prepare(tess_validator *v, tess_error *error)
{
    tess_device *device = v->engine->device;
    const tess_device_memory *memory = device->memory;
    if (v->dem)
        return tess_dem_validator_prepare(v->dem, error);
    if (v->cubes)
        return tess_cubes_validator_prepare(v->cubes, error);
    TESS_TRY(memory->alloc(device, &v->weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(v->bound), error));
    TESS_TRY(memory->alloc(device, &v->arena, TESS_MEM_ACTIVATIONS, v->arena_bytes, error));
    if (v->workspace_bytes)
        TESS_TRY(memory->alloc(device, &v->workspace, TESS_MEM_WORKSPACE, v->workspace_bytes, error));
    return memory->host_alloc(device, &v->result, v->result_bytes, error);
}

/* A smaller image may need more workspace than the largest on a device that chooses kernels by the size. */
static tess_status fit(tess_validator *v, tess_error *error)
{
    if (tess_net_plan_arena_bytes(v->plan) <= v->arena.bytes &&
        tess_net_plan_workspace_bytes(v->plan) <= v->workspace.bytes)
        return TESS_OK;
    return tess_fail(error, TESS_INTERNAL,
                     "a validation image of %lld x %lld needs more memory than was planned",
                     (long long)v->plan_height, (long long)v->plan_width);
}

static tess_status denoise(tess_validator *v, const tess_validation_item *item, tess_error *error)
{
    tess_device *device = v->engine->device;
    size_t in = 0, out = 0, in_bytes = 0, out_bytes = 0;
    TESS_TRY(plan_of(v, item->height, item->width, error));
    TESS_TRY(fit(v, error));
    TESS_TRY(tess_net_plan_prepare(v->plan, error));
    const tess_tensor from = tess_net_plan_input(v->plan, &in), to = tess_net_plan_output(v->plan, &out);
    if (!tess_tensor_bytes(&from, &in_bytes) || !tess_tensor_bytes(&to, &out_bytes) ||
        out_bytes > v->result.bytes)
        return tess_fail(error, TESS_INTERNAL, "a validation image is larger than was planned");
    device->memory->copy(device, (char *)v->arena.data + in, item->noisy, in_bytes, NULL);
    tess_net_plan_run(v->plan, v->arena.data, v->workspace.data, v->weights.data, NULL);
    device->memory->copy(device, v->result.data, (char *)v->arena.data + out, out_bytes, NULL);
    return device->streams->sync(device, NULL, error);
}

static tess_status run_cubes(tess_validator *v, double *quality, tess_error *error)
{
    TESS_TRY(tess_cubes_validator_run(v->cubes, &v->curve, error));
    *quality = v->curve.auroc;
    return TESS_OK;
}

static tess_status run_dem(tess_validator *v, tess_weights *weights, double *quality, tess_error *error)
{
    double loss = 0;
    TESS_TRY(tess_dem_validator_run(v->dem, weights, &loss, error));
    *quality = -loss;
    return TESS_OK;
}

tess_status tess_validator_run(tess_validator *v, tess_weights *weights, double *psnr, tess_error *error)
{
    tess_validation_item item;
    bool more = true;
    if (v->dem)
        return run_dem(v, weights, psnr, error);
    if (v->cubes)
        return run_cubes(v, psnr, error);
    TESS_TRY(tess_bound_load(v->bound, weights, v->weights.data, error));
    TESS_TRY(tess_validation_begin(v->set, error));
    for (;;) {
        TESS_TRY(tess_validation_next(v->set, v->stop, &item, &more, error));
        if (!more)
            break;
        TESS_TRY(denoise(v, &item, error));
        (void)tess_validation_add(v->set, v->result.data);
    }
    *psnr = tess_validation_psnr(v->set, -1);
    return TESS_OK;
}

const tess_images *tess_validator_images(const tess_validator *v)
{
    return v->cubes ? NULL : v->dem ? tess_dem_validator_images(v->dem) : tess_validation_images(v->set);
}

const tess_cube_list *tess_validator_cubes(const tess_validator *v)
{
    return v->cubes ? tess_cubes_validator_list(v->cubes) : NULL;
}

double tess_validator_precision(const tess_validator *v)
{
    return v->curve.average_precision;
}

int tess_validator_levels(const tess_validator *v)
{
    return v->cubes ? 0 : v->dem ? TESS_DEM_VALIDATOR_LEVELS : v->levels;
}

double tess_validator_psnr(const tess_validator *v, int level)
{
    return v->dem ? -tess_dem_validator_loss(v->dem, level) : tess_validation_psnr(v->set, level);
}
