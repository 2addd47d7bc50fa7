#include "job/train/validator_dem.h"

#include <math.h>

#include "base/checked.h"
#include "model/diffusion.h"
#include "net/plan.h"
#include "train/data_dem.h"

enum { VOIDS = 2, ALIGNMENT = 256 }; /* voids in each map */

/* Most of y is noise, half of it, a few per cent: y is 0.2 in the mean. */
static const double gammas[TESS_DEM_VALIDATOR_LEVELS] = {0.27, 0.88, 0.9933};

/* One of the two networks. */
typedef struct part {
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block weights, arena;
} part;

struct tess_dem_validator {
    tess_engine *engine;
    tess_stop *stop;
    tess_diffusion_net net;
    tess_source *source;
    part embedding, step;
    size_t workspace_bytes, host_bytes;
    size_t at[TESS_DATA_ARRAYS], result_at; /* in the host's block */
    tess_block workspace, host;
    double sum[TESS_DEM_VALIDATOR_LEVELS];
    int64_t count;
};

static tess_status open_part(tess_dem_validator *v, const tess_net *net, tess_dtype dtype, int64_t side,
                             part *out, tess_error *error)
{
    const tess_plan_shape shape = {.n = 1,
                                   .h = tess_max_i64(side, tess_net_grid(net, TESS_HEIGHT)),
                                   .w = tess_max_i64(side, tess_net_grid(net, TESS_WIDTH))};
    TESS_TRY(tess_bound_create(net, v->engine->device, dtype, &out->bound, error));
    if (v->engine->tf32 && dtype == v->engine->dtype && side > 1)
        tess_bound_allow_tf32(out->bound);
    TESS_TRY(tess_net_plan_create(out->bound, shape, &out->plan, error));
    const size_t workspace = tess_net_plan_workspace_bytes(out->plan);
    v->workspace_bytes = workspace > v->workspace_bytes ? workspace : v->workspace_bytes;
    return TESS_OK;
}

/* The arrays of samples of all levels, then the result. */
static void lay_out(tess_dem_validator *v)
{
    size_t end = 0, bytes = 0;
    for (int i = 0; i < v->source->arrays; i++) {
        v->at[i] = end;
        (void)tess_tensor_bytes(&v->source->array[i], &bytes);
        end += tess_align_size(TESS_DEM_VALIDATOR_LEVELS * bytes, ALIGNMENT);
    }
    v->result_at = end;
    (void)tess_tensor_bytes(&v->source->array[TESS_DEM_NOISE], &bytes);
    v->host_bytes = end + bytes;
}

static tess_status open_all(tess_dem_validator *v, const tess_train_config *config, tess_weights *weights,
                            tess_error *error)
{
    const char *paths[] = {config->validation.folder.path};
    const int64_t crop = config->data.crop;
    TESS_TRY(tess_diffusion_recognise(weights, &v->net, error));
    TESS_TRY(open_part(v, v->net.embedding, TESS_F32, 1, &v->embedding, error));
    TESS_TRY(open_part(v, v->net.step, v->engine->dtype, crop, &v->step, error));
    const tess_dem_settings settings = {
        .images = {.paths = paths, .path_count = 1, .recursive = true, .memory = v->engine->memory},
        .crop = crop,
        .scales = 1,
        .scale = {1},
        .share = {1},
        .levels = v->net.levels};
    const tess_status status = tess_dem_open(&settings, &v->source, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, "validation.folder");
    lay_out(v);
    return TESS_OK;
}

tess_status tess_dem_validator_open(tess_engine *engine, tess_stop *stop, const tess_train_config *config,
                                    tess_weights *weights, tess_dem_validator **out, tess_error *error)
{
    tess_dem_validator *v = *out = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the validation");
    v->engine = engine;
    v->stop = stop;
    const tess_status status = open_all(v, config, weights, error);
    if (status != TESS_OK) {
        tess_dem_validator_close(v);
        *out = NULL;
    }
    return status;
}

static void close_part(tess_device *device, part *p)
{
    tess_net_plan_destroy(p->plan);
    device->memory->free(device, &p->weights);
    device->memory->free(device, &p->arena);
    tess_bound_destroy(p->bound);
}

void tess_dem_validator_close(tess_dem_validator *v)
{
    if (!v)
        return;
    tess_device *device = v->engine->device;
    close_part(device, &v->embedding);
    close_part(device, &v->step);
    device->memory->free(device, &v->workspace);
    device->memory->host_free(device, &v->host);
    tess_source_close(v->source);
    tess_diffusion_clear(&v->net);
    tess_small_free(v);
}

tess_mem_bytes tess_dem_validator_bytes(const tess_dem_validator *v)
{
    tess_device *device = v->engine->device;
    const part *parts[] = {&v->embedding, &v->step};
    tess_mem_bytes bytes = {{0}};
    for (int i = 0; i < 2; i++) {
        bytes.by[TESS_MEM_WEIGHTS] +=
            device->memory->granted(device, tess_bound_weight_bytes(parts[i]->bound));
        bytes.by[TESS_MEM_ACTIVATIONS] +=
            device->memory->granted(device, tess_net_plan_arena_bytes(parts[i]->plan));
    }
    bytes.by[TESS_MEM_WORKSPACE] =
        v->workspace_bytes ? device->memory->granted(device, v->workspace_bytes) : 0;
    bytes.by[TESS_MEM_HOST] = tess_block_granted(v->host_bytes) + v->source->table->bytes(v->source, 1);
    return bytes;
}

static tess_status prepare_part(tess_device *device, part *p, tess_error *error)
{
    TESS_TRY(device->memory->alloc(device, &p->weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(p->bound),
                                   error));
    TESS_TRY(device->memory->alloc(device, &p->arena, TESS_MEM_ACTIVATIONS,
                                   tess_net_plan_arena_bytes(p->plan), error));
    return tess_net_plan_prepare(p->plan, error);
}

tess_status tess_dem_validator_prepare(tess_dem_validator *v, tess_error *error)
{
    tess_device *device = v->engine->device;
    TESS_TRY(prepare_part(device, &v->embedding, error));
    TESS_TRY(prepare_part(device, &v->step, error));
    if (v->workspace_bytes)
        TESS_TRY(device->memory->alloc(device, &v->workspace, TESS_MEM_WORKSPACE, v->workspace_bytes, error));
    TESS_TRY(device->memory->host_alloc(device, &v->host, v->host_bytes, error));
    return v->source->table->begin(v->source, 1, error);
}

/* Predicts the noise of a sample in the host's block. */
static tess_status predict(tess_dem_validator *v, int level, tess_error *error)
{
    tess_device *device = v->engine->device;
    const tess_device_memory *memory = device->memory;
    char *host = v->host.data, *first = v->embedding.arena.data, *second = v->step.arena.data;
    size_t level_at, table_at, input_at, vector_at, output_at, input_bytes = 0, output_bytes = 0;
    (void)tess_net_plan_input(v->embedding.plan, &level_at);
    (void)tess_net_plan_output(v->embedding.plan, &table_at);
    const tess_tensor input = tess_net_plan_input_at(v->step.plan, 0, &input_at),
                      output = tess_net_plan_output(v->step.plan, &output_at);
    (void)tess_net_plan_input_at(v->step.plan, 1, &vector_at);
    if (!tess_tensor_bytes(&input, &input_bytes) || !tess_tensor_bytes(&output, &output_bytes) ||
        output_bytes > v->host_bytes - v->result_at)
        return tess_fail(error, TESS_INTERNAL, "a validation sample is larger than was planned");
    const size_t level_bytes = (size_t)v->net.levels * sizeof(float);
    memory->copy(device, first + level_at, host + v->at[TESS_DEM_LEVEL] + (size_t)level * level_bytes,
                 level_bytes, NULL);
    tess_net_plan_run(v->embedding.plan, first, v->workspace.data, v->embedding.weights.data, NULL);
    memory->copy(device, second + vector_at, first + table_at, (size_t)v->net.table * sizeof(float), NULL);
    memory->copy(device, second + input_at, host + v->at[TESS_DEM_INPUT] + (size_t)level * input_bytes,
                 input_bytes, NULL);
    tess_net_plan_run(v->step.plan, second, v->workspace.data, v->step.weights.data, NULL);
    memory->copy(device, host + v->result_at, second + output_at, output_bytes, NULL);
    return device->streams->sync(device, NULL, error);
}

/* The mean squared error in the void, of the sample of this level and the result. */
static double error_of(const tess_dem_validator *v, int level)
{
    const tess_tensor *t = &v->source->array[TESS_DEM_NOISE];
    const char *host = v->host.data;
    const int64_t pixels = t->h * t->w, first = level * pixels;
    const float *noise = (const float *)(const void *)(host + v->at[TESS_DEM_NOISE]) + first,
                *weight = (const float *)(const void *)(host + v->at[TESS_DEM_WEIGHT]) + first,
                *result = (const float *)(const void *)(host + v->result_at);
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < pixels; i++)
        if (weight[i] > 0) {
            const double error = (double)result[i] - (double)noise[i];
            sum += error * error;
            count++;
        }
    return sum / (double)count;
}

/* A void of a map at all levels. */
static tess_status measure(tess_dem_validator *v, int64_t map, int64_t number, tess_error *error)
{
    void *arrays[TESS_DATA_ARRAYS] = {0};
    for (int i = 0; i < v->source->arrays; i++)
        arrays[i] = (char *)v->host.data + v->at[i];
    const tess_sample sample = {.seed = 0,
                                .step = number,
                                .index = map,
                                .more = TESS_DEM_VALIDATOR_LEVELS - 1,
                                .worker = 0,
                                .stop = v->stop};
    TESS_TRY(tess_dem_draw(v->source, &sample, &(tess_dem_fixed){map, gammas}, arrays, error));
    for (int i = 0; i < TESS_DEM_VALIDATOR_LEVELS; i++) {
        TESS_TRY(tess_stop_check(v->stop, error));
        TESS_TRY(predict(v, i, error));
        v->sum[i] += error_of(v, i);
    }
    return TESS_OK;
}

tess_status tess_dem_validator_run(tess_dem_validator *v, tess_weights *weights, double *loss,
                                   tess_error *error)
{
    TESS_TRY(tess_bound_load(v->embedding.bound, weights, v->embedding.weights.data, error));
    TESS_TRY(tess_bound_load(v->step.bound, weights, v->step.weights.data, error));
    for (int i = 0; i < TESS_DEM_VALIDATOR_LEVELS; i++)
        v->sum[i] = 0;
    v->count = v->source->items * VOIDS;
    for (int64_t k = 0; k < v->count; k++)
        TESS_TRY(measure(v, k / VOIDS, k % VOIDS, error));
    *loss = 0;
    for (int i = 0; i < TESS_DEM_VALIDATOR_LEVELS; i++)
        *loss += tess_dem_validator_loss(v, i) / TESS_DEM_VALIDATOR_LEVELS;
    return TESS_OK;
}

const tess_images *tess_dem_validator_images(const tess_dem_validator *v)
{
    return v->source->images;
}

double tess_dem_validator_loss(const tess_dem_validator *v, int level)
{
    return v->count > 0 ? v->sum[level] / (double)v->count : NAN;
}
