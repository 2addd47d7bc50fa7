/* config_pipeline.c: a configuration that trains a hyperspectral pipeline: the pipeline itself, and what the others leave out.
 * The defaults of the optimizer are those of cuvis.ai. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/mem.h"
#include "train/config_impl.h"

#define GIVEN(config, member) tess_config_given(config, offsetof(tess_train_config, member))

enum { MOST_BYTES = 1 << 20, MOST_CROP = 128, EPOCHS = 20 };

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* A copy, through its text. */
static tess_status copy_graph(tess_config_reader *reader, const tess_json *value, tess_json **out)
{
    char *text = tess_json_dump(value, false);
    const tess_status status = text ? tess_json_parse(text, strlen(text), out, reader->error)
                                    : tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the pipeline");
    tess_small_free(text);
    return status;
}

static tess_status read_graph(tess_config_reader *reader, const char *path, tess_json **out)
{
    FILE *file = NULL;
    TESS_TRY(tess_file_open(path, &file, reader->error));
    char *text = tess_small_alloc(MOST_BYTES + 1, 1);
    const size_t length = text ? fread(text, 1, MOST_BYTES + 1, file) : 0;
    fclose(file);
    tess_status status = !text ? tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the pipeline")
                         : length > MOST_BYTES
                             ? tess_fail(reader->error, TESS_BAD_INPUT,
                                         "has more than %d bytes; it is no pipeline", MOST_BYTES)
                             : tess_json_parse(text, length, out, reader->error);
    tess_small_free(text);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(reader->error, status, path);
}

static tess_status read_pipeline(tess_config_reader *reader, const tess_config_field *field,
                                 const tess_json *value, void *target)
{
    tess_train_pipeline *pipeline = target;
    const char *text = tess_json_as_string(value, NULL);
    if (tess_json_is_object(value))
        return copy_graph(reader, value, &pipeline->graph);
    if (!text || !*text)
        return tess_config_refuse(reader, field->expected, value);
    if (ends_in(text, ".safetensors"))
        return tess_config_read_path(reader, value, field->expected, &pipeline->fitted);
    if (ends_in(text, ".json")) {
        tess_train_path file = {0};
        tess_status status = tess_config_read_path(reader, value, field->expected, &file);
        if (status == TESS_OK)
            status = read_graph(reader, file.path, &pipeline->graph);
        tess_config_clear_path(&file);
        return status;
    }
    pipeline->name = tess_small_strdup(text);
    return pipeline->name ? TESS_OK
                          : tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the configuration");
}

/* A graph is written as such, also if it was a file's: a resumed run must have the same. */
static tess_json *write_pipeline(const tess_config_field *field, const void *target)
{
    const tess_train_pipeline *pipeline = target;
    tess_config_reader reader = {0};
    tess_json *copy = NULL;
    (void)field;
    if (pipeline->graph)
        return copy_graph(&reader, pipeline->graph, &copy) == TESS_OK ? copy : NULL;
    return pipeline->name           ? tess_json_string(pipeline->name)
           : pipeline->fitted.given ? tess_json_string(pipeline->fitted.given)
                                    : tess_json_null();
}

const tess_config_kind tess_config_pipeline = {read_pipeline, write_pipeline};

tess_status tess_config_complete_pipeline(tess_train_config *config, tess_config_reader *reader)
{
    tess_error *error = reader->error;
    if (GIVEN(config, network.architecture) || config->network.weights.given)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "pipeline: takes the place of network.architecture and network.weights; remove one of them");
    if (config->data.folders.count > 1)
        return tess_fail(error, TESS_BAD_INPUT, "data.folders: a pipeline takes one folder of cubes, got %d",
                         config->data.folders.count);
    config->network.architecture = TESS_TRAIN_PIPELINE;
    config->data.sigma[0] = config->data.sigma[1] = 0;
    config->data.cache = 0;
    if (!GIVEN(config, data.shuffle))
        config->data.shuffle = true;
    if (!GIVEN(config, optimizer.betas))
        config->optimizer.betas[1] = 0.999;
    if (!GIVEN(config, optimizer.clip))
        config->optimizer.clip = 1;
    if (!GIVEN(config, schedule.kind))
        config->schedule.kind = TESS_RATE_CONSTANT;
    if (!GIVEN(config, average))
        config->average = 0;
    return TESS_OK;
}

tess_status tess_train_config_pipeline(tess_train_config *config, int64_t images, int64_t side,
                                       tess_error *error)
{
    tess_config_reader reader = {.error = error};
    if (!GIVEN(config, data.crop))
        config->data.crop = tess_min_i64(MOST_CROP, side);
    if (!GIVEN(config, epochs) && !GIVEN(config, steps))
        config->epochs = EPOCHS;
    const int64_t steps = tess_ceil_div(config->epochs * images, config->batch);
    if (config->epochs && GIVEN(config, steps) && steps != config->steps)
        return tess_fail(error, TESS_BAD_INPUT,
                         "epochs: %lld of %lld images are %lld steps, and steps is %lld; give one of them",
                         (long long)config->epochs, (long long)images, (long long)steps,
                         (long long)config->steps);
    if (config->epochs)
        config->steps = steps;
    if (!GIVEN(config, validation.every)) /* once an epoch */
        config->validation.every = tess_max_i64(1, tess_ceil_div(images, config->batch));
    if (config->steps < 1 || config->steps >= UINT32_MAX)
        return tess_fail(error, TESS_BAD_INPUT,
                         "epochs: %lld of %lld images make %lld steps; 1 to 4294967294 are possible",
                         (long long)config->epochs, (long long)images, (long long)config->steps);
    return tess_config_complete_steps(config, &reader);
}
