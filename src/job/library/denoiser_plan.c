/* Plans how images of one kind are denoised. The request is the one that the denoise verb makes for a file of such
 * samples, so that both cut an image in the same way and give the same bits. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/process.h"
#include "job/common/record.h"
#include "job/library/library.h"

static const int64_t MOST = (int64_t)1 << 40; /* samples: keeps all byte counts far from overflow */

static tess_status check_sizes(const tess_model *model, const tess_denoiser_settings *s, tess_error *error)
{
    const tess_model_net *net = &model->loaded.model;
    int64_t row, slice, all;
    if (s->depth < 1 || s->height < 1 || s->width < 1 || s->channels < 1)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "an image of depth %lld, height %lld, width %lld and %lld channel(s): each must be at "
            "least 1",
            (long long)s->depth, (long long)s->height, (long long)s->width, (long long)s->channels);
    if (!tess_mul_i64(s->width, s->channels, &row) || !tess_mul_i64(row, s->height, &slice) ||
        !tess_mul_i64(slice, s->depth, &all) || all > MOST)
        return tess_fail(error, TESS_BAD_OPTION, "an image of %lld x %lld pixels is more than can be planned",
                         (long long)s->height, (long long)s->width);
    if (net->channels != s->channels && net->channels != 1)
        return tess_fail(error, TESS_BAD_OPTION,
                         "the model takes %lld channel(s), the images have %lld; use a model for as many, or "
                         "one for 1",
                         (long long)net->channels, (long long)s->channels);
    return TESS_OK;
}

static tess_status check_cut(const tess_model *model, const tess_denoiser_settings *s, tess_error *error)
{
    if (!(s->tile_height == 0 || s->tile_height == TESS_TILE_WHOLE ||
          (s->tile_height > 0 && s->tile_width > 0)))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "tile %lld x %lld: use two numbers of pixels, a height of 0 for automatic, or a height "
            "of TESS_TILE_WHOLE",
            (long long)s->tile_height, (long long)s->tile_width);
    if (s->halo < TESS_HALO_EXACT || s->halo > 1 << 20)
        return tess_fail(error, TESS_BAD_OPTION, "halo: use pixels, TESS_HALO_AUTO or TESS_HALO_EXACT");
    if (s->batch < 0 || s->batch > 4096)
        return tess_fail(error, TESS_BAD_OPTION, "batch: use 1 to 4096, or 0 for automatic");
    if (model->loaded.model.volume && s->batch > 1)
        return tess_fail(error, TESS_BAD_OPTION, "batch: a 3-D model takes one window at a time; use 0");
    if (model->loaded.model.volume && model->opened->engine.separate_memory && !s->on_device)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "a 3-D model on a card takes volumes that are on the card: set on_device");
    return TESS_OK;
}

static tess_status choose_type(const tess_denoiser_settings *s, tess_sample_type *type, tess_error *error)
{
    if (!tess_element_dtype(s->element, &type->dtype))
        return tess_fail(error, TESS_BAD_OPTION, "element %d: use one of TESS_ELEMENT_U8 to TESS_ELEMENT_F64",
                         (int)s->element);
    const double full = tess_samples_full_scale(type->dtype), low = s->range_low, high = s->range_high;
    if (low == 0 && high == 0) {
        *type = (tess_sample_type){type->dtype, {0, full}, true};
        return TESS_OK;
    }
    if (!isfinite(low) || !isfinite(high) || !(high > low) || !isnormal((float)(high - low)) ||
        !isnormal((float)(1 / (high - low))))
        return tess_fail(error, TESS_BAD_OPTION,
                         "range %g to %g: range_low is the sample that means 0, range_high, which is larger, "
                         "the one that means 1; float32 must be able to hold both and their difference",
                         low, high);
    *type = (tess_sample_type){type->dtype, {low, high}, low == 0 && high == full};
    if (s->on_device && low != 0)
        return tess_fail(error, TESS_UNSUPPORTED, "range_low must be 0 for images on the device");
    if (s->on_device && !type->plain && full == 1)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "floats on the device are taken as they are; leave range_low and range_high 0");
    return TESS_OK;
}

tess_dtype tess_denoiser_moved(const tess_denoiser *plan)
{
    return plan->type.plain ? plan->type.dtype : TESS_F32;
}

static tess_cut_request request_of(const tess_denoiser *plan, const tess_engine *engine)
{
    const tess_denoiser_settings *s = &plan->settings;
    const bool volume = plan->model->loaded.model.volume;
    tess_cut_request request = {
        .size = {s->depth, s->height, s->width},
        .tile = {volume && s->tile_height > 0 ? s->tile_height : 0, s->tile_height, s->tile_width},
        .halo = {s->halo, s->halo, s->halo},
        .batch = volume ? 1 : s->batch,
        .planes = plan->net.planes,
        .separate_memory = engine->separate_memory,
        .host_limit = UINT64_MAX,
        .asked_limit = s->memory_limit};
    if (s->on_device || volume)
        return request;
    const size_t size =
                     tess_dtype_size(engine->separate_memory ? tess_denoiser_moved(plan) : plan->type.dtype),
                 pixel = (size_t)s->channels * size;
    request.in_row_bytes = request.out_row_bytes = (size_t)s->width * pixel;
    if (engine->separate_memory) {
        request.in_pixel_bytes = request.out_pixel_bytes = pixel;
        request.host_limit = tess_host_memory_left() / 4;
    } else {
        request.row_scratch_bytes =
            (size_t)tess_pool_threads(engine->host) * 2 * (size_t)s->channels * sizeof(float);
    }
    return request;
}

/* Counts what a run holds of what was requested: no rows, except those of one strip if a result may overlap its
 * input. */
static void count_bytes(tess_denoiser *plan, const tess_engine *engine)
{
    const tess_denoiser_settings *s = &plan->settings;
    const tess_cut_plan *cut = &plan->plan;
    tess_device *device = engine->device;
    const bool tiled = cut->rows.tiles * cut->cols.tiles > 1;
    plan->staged = 0;
    if (tiled && !s->on_device && !plan->model->loaded.model.volume)
        plan->staged =
            (size_t)(tess_min_i64(tess_axis_largest_window(&cut->rows), s->height) * s->width * s->channels) *
            tess_dtype_size(plan->type.dtype);
    plan->sizes = (tess_queue_sizes){cut->arena_bytes, cut->workspace_bytes, cut->in_stage, cut->out_stage};
    const bool queue = engine->separate_memory && !s->on_device;
    const uint64_t stage = tess_block_granted(plan->staged);
    tess_bytes_init(&plan->bytes);
    plan->bytes.weights = cut->bytes.by[TESS_MEM_WEIGHTS];
    plan->bytes.activations = cut->bytes.by[TESS_MEM_ACTIVATIONS];
    plan->bytes.workspace = cut->bytes.by[TESS_MEM_WORKSPACE];
    if (queue) {
        plan->bytes.io =
            device->memory->granted(device, cut->in_stage) + device->memory->granted(device, cut->out_stage);
        plan->bytes.host = stage + tess_block_granted(tess_queue_host_bytes(&plan->sizes));
    } else {
        plan->bytes.io = stage;
    }
    plan->bytes.total =
        plan->bytes.weights + plan->bytes.activations + plan->bytes.workspace + plan->bytes.io;
}

static tess_status make_plan(tess_denoiser *plan, tess_error *error)
{
    tess_model *model = plan->model;
    tess_engine *engine = &model->opened->engine;
    tess_device *device = engine->device;
    const tess_engine_model *loaded = &model->loaded;
    TESS_TRY(check_sizes(model, &plan->settings, error));
    TESS_TRY(check_cut(model, &plan->settings, error));
    TESS_TRY(choose_type(&plan->settings, &plan->type, error));
    plan->net = (tess_window_net){.bound = loaded->bound,
                                  .weights = loaded->weights.data,
                                  .planes = loaded->model.channels == 1 ? plan->settings.channels : 1};
    tess_cut_request request = request_of(plan, engine);
    device->facts(device, &engine->facts); /* updates the free memory */
    /* The limit includes the weights, which are already loaded. */
    request.limit = plan->settings.memory_limit ? plan->settings.memory_limit
                                                : tess_engine_free_limit(engine) + loaded->weights.bytes;
    TESS_TRY(tess_cut_choose(loaded->bound, &loaded->model, engine->rates, &request, &plan->plan, error));
    plan->cut =
        (tess_cut){.axis = {plan->plan.depth, plan->plan.rows, plan->plan.cols}, .batch = plan->plan.batch};
    count_bytes(plan, engine);
    return TESS_OK;
}

tess_status tess_denoiser_plan(tess_model *model, const tess_denoiser_settings *settings, tess_denoiser **out)
{
    if (out)
        *out = NULL;
    if (!model)
        return TESS_BAD_OPTION;
    tess_error *error = tess_model_error(model);
    if (!out || !settings)
        return tess_fail(error, TESS_BAD_OPTION, "tess_denoiser_plan: `%s` is NULL",
                         out ? "settings" : "out");
    tess_denoiser *plan = tess_small_alloc(1, sizeof *plan);
    if (!plan)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    plan->model = model;
    tess_denoiser_settings_init(&plan->settings);
    tess_status status = tess_struct_take(&plan->settings, sizeof plan->settings, settings)
                             ? make_plan(plan, error)
                             : tess_fail(error, TESS_BAD_OPTION,
                                         "tess_denoiser_plan: the settings have no size; fill them with "
                                         "tess_denoiser_settings_init");
    if (status != TESS_OK) {
        tess_small_free(plan);
        return status;
    }
    *out = plan;
    return TESS_OK;
}

void tess_denoiser_bytes(const tess_denoiser *plan, tess_bytes *bytes)
{
    if (!bytes)
        return;
    tess_bytes answer;
    tess_bytes_init(&answer);
    if (plan)
        answer = plan->bytes;
    tess_bytes_give(&answer, bytes);
}

double tess_denoiser_seconds(const tess_denoiser *plan)
{
    return plan ? plan->plan.seconds : 0;
}

tess_status tess_denoiser_describe(const tess_denoiser *plan, char **record)
{
    if (record)
        *record = NULL;
    if (!plan)
        return TESS_BAD_OPTION;
    tess_error *error = tess_model_error(plan->model);
    if (!record)
        return tess_fail(error, TESS_BAD_OPTION, "tess_denoiser_describe: `record` is NULL");
    const tess_cut_plan *cut = &plan->plan;
    tess_json *json = tess_json_object(), *tile = tess_json_array(), *bytes = tess_json_object();
    if (plan->model->loaded.model.volume)
        tess_json_append_int(&tile, tess_axis_largest_tile(&cut->depth));
    tess_json_append_int(&tile, tess_axis_largest_tile(&cut->rows));
    tess_json_append_int(&tile, tess_axis_largest_tile(&cut->cols));
    tess_json_set_string(&json, "device", plan->model->opened->name);
    tess_json_set_string(&json, "precision", plan->model->precision.name);
    tess_json_set(&json, "tile", tile);
    tess_json_set_int(&json, "tiles", cut->depth.tiles * cut->rows.tiles * cut->cols.tiles);
    tess_json_set_int(&json, "halo", cut->halo);
    tess_json_set_int(&json, "batch", cut->batch);
    tess_json_set_double(&json, "seconds", cut->seconds);
    tess_json_set_bool(&json, "calibrated", cut->calibrated);
    tess_json_set_string(&json, "reason", cut->reason);
    const struct {
        const char *name;
        uint64_t bytes;
    } all[] = {{"weights", plan->bytes.weights},     {"activations", plan->bytes.activations},
               {"workspace", plan->bytes.workspace}, {"io", plan->bytes.io},
               {"total", plan->bytes.total},         {"host", plan->bytes.host}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tess_json_set_int(&bytes, all[i].name, (int64_t)all[i].bytes);
    tess_json_set(&json, "peak_bytes", bytes);
    return tess_record_end(json, record, error);
}
