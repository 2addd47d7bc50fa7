/* convert_pipeline.c: pipelines of cuvis.ai: to a graph (.json) that detect fits, or with their weights to a fitted pipeline. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/temp.h"
#include "base/yaml.h"
#include "io/cube.h"
#include "io/image.h"
#include "job/common/context.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "model/cuvis/cuvis.h"
#include "model/spectral/state_file.h"
#include "tessera_detect.h"

typedef struct import {
    const tess_import_settings *settings;
    tess_memory *memory;
    bool fitted;
    char *weights_path;
    tess_cuvis_facts facts;
    tess_cuvis cuvis;
    tess_cube *cube;
    tess_weights *weights;
} import;

void tess_import_settings_init(tess_import_settings *settings)
{
    *settings = (tess_import_settings){.input = NULL};
    tess_common_init(&settings->common);
}

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t length = strlen(path), last = strlen(suffix);
    return length > last && strcasecmp(path + length - last, suffix) == 0;
}

static tess_status check_settings(import *im, tess_error *error)
{
    const tess_import_settings *s = im->settings;
    const char *files[] = {s->input, s->output, s->weights, s->cube};
    im->fitted = has_suffix(s->output, ".safetensors");
    if (!im->fitted && !has_suffix(s->output, ".json"))
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: the output's name must end in .json (the graph) or .safetensors (fitted)",
                         s->output);
    for (int i = 0; i < 4; i++)
        if (i != 1 && files[i] && tess_image_same_target(s->output, files[i]))
            return tess_fail(error, TESS_BAD_OPTION, "%s: is read and written; name another output",
                             s->output);
    if (s->weights && !im->fitted)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`weights`: a graph (.json) has none; name a .safetensors as the output");
    return tess_record_apart(&s->common, files, 4, error);
}

/* NAME.pt beside NAME.yaml, as cuvis.ai writes it. */
static tess_status find_weights(import *im, tess_error *error)
{
    const tess_import_settings *s = im->settings;
    const char *point = strrchr(s->input, '.'), *slash = strrchr(s->input, '/');
    const size_t stem = point && (!slash || point > slash) ? (size_t)(point - s->input) : strlen(s->input);
    struct stat facts;
    im->weights_path = s->weights ? tess_small_strdup(s->weights) : tess_small_alloc(stem + 4, 1);
    if (!im->weights_path)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    if (s->weights)
        return TESS_OK;
    memcpy(im->weights_path, s->input, stem);
    strcpy(im->weights_path + stem, ".pt");
    if (stat(im->weights_path, &facts) != 0 && errno == ENOENT)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: there are no weights %s; name them (`weights`), or write a graph (.json) and "
                         "let detect fit it",
                         s->input, im->weights_path);
    return TESS_OK;
}

static tess_status open_cube(import *im, tess_error *error)
{
    const tess_import_settings *s = im->settings;
    if (!s->cube)
        return TESS_OK;
    TESS_TRY(tess_cube_open(s->cube, &(tess_cube_settings){.axes = s->axes, .memory = im->memory}, &im->cube,
                            error));
    im->facts.bands = tess_cube_describe(im->cube)->bands;
    im->facts.wavelengths = tess_cube_describe(im->cube)->wavelengths;
    return TESS_OK;
}

static tess_status write_fitted(import *im, tess_error *error)
{
    const tess_import_settings *s = im->settings;
    tess_spectral_plan *plan = NULL;
    tess_spectral_state state = {0};
    tess_cuvis_facts facts = im->facts;
    tess_status status =
        facts.bands ? TESS_OK : tess_cuvis_bands(&im->cuvis, im->weights, &facts.bands, error);
    if (status == TESS_OK)
        status = tess_cuvis_load(&im->cuvis, &facts, im->weights, im->memory, &plan, &state, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, im->weights_path);
    status = tess_spectral_save(im->memory, s->output, &state, NULL, 0, error);
    tess_spectral_state_free(&state);
    tess_spectral_plan_free(plan);
    return status;
}

static tess_status write_text(const tess_temp *temp, const char *text, tess_error *error)
{
    FILE *file = tess_temp_open(temp);
    if (!file)
        return tess_temp_fail(errno, error);
    errno = 0;
    const bool written = fputs(text, file) >= 0 && fputc('\n', file) != EOF;
    return fclose(file) == 0 && written ? TESS_OK : tess_temp_fail(errno, error);
}

static tess_status write_graph(import *im, tess_error *error)
{
    const char *path = im->settings->output;
    tess_json *json = tess_pipeline_json(&im->cuvis.pipeline);
    char *text = tess_json_dump(json, true);
    tess_json_free(json);
    tess_temp *temp = NULL;
    tess_status status = text ? tess_temp_create(path, &temp, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    if (status == TESS_OK)
        status = write_text(temp, text, error);
    if (status == TESS_OK)
        status = tess_temp_commit(temp, path, error);
    tess_temp_remove(temp);
    tess_small_free(text);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

static tess_json *record_of(import *im)
{
    tess_json *record = tess_record_begin("convert", NULL), *convert = tess_json_object(),
              *nodes = tess_json_array();
    for (int i = 0; i < im->cuvis.pipeline.count; i++) {
        tess_json *one = tess_json_object();
        tess_json_set_string(&one, "name", im->cuvis.pipeline.nodes[i].name);
        tess_json_set_string(&one, "kind", tess_node_kinds[im->cuvis.pipeline.nodes[i].kind].name);
        tess_json_append(&nodes, one);
    }
    tess_json_set_string(&convert, "input", im->settings->input);
    tess_json_set_string(&convert, "format", "cuvis.ai");
    tess_json_set_string(&convert, "output", im->settings->output);
    tess_json_set_bool(&convert, "fitted", im->fitted);
    if (im->weights_path)
        tess_json_set_string(&convert, "weights", im->weights_path);
    tess_json_set(&convert, "nodes", nodes);
    tess_json_set(&convert, "data", im->cuvis.data);
    tess_json_set(&convert, "left_out", im->cuvis.left_out);
    im->cuvis.data = im->cuvis.left_out = NULL;
    tess_json_set(&record, "convert", convert);
    return record;
}

static void note_left_out(const import *im)
{
    char text[400] = "";
    size_t used = 0;
    for (int64_t i = 0; i < tess_json_length(im->cuvis.left_out) && used < sizeof text - 1; i++) {
        const tess_json *one = tess_json_at(im->cuvis.left_out, i);
        const char *class = tess_json_get_string(one, "class", ""), *point = strrchr(class, '.');
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s (%.60s)", used ? ", " : "",
                                 tess_json_get_string(one, "name", ""), point ? point + 1 : class);
    }
    if (used)
        tess_note(&im->settings->common, TESS_NOTE_WARNING, "left out, as scores do not need them: %s%s",
                  text, used >= sizeof text - 1 ? "..." : "");
}

static tess_status run(import *im, const tess_json *yaml, tess_error *error)
{
    im->facts.fitted = im->fitted;
    TESS_TRY(open_cube(im, error));
    const tess_status status = tess_cuvis_graph(yaml, &im->facts, &im->cuvis, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, im->settings->input);
    note_left_out(im);
    if (!im->fitted)
        return write_graph(im, error);
    TESS_TRY(find_weights(im, error));
    TESS_TRY(tess_weights_open_nested(im->weights_path, &im->weights, error));
    return write_fitted(im, error);
}

tess_status tess_import_pipeline(tess_context *context, const tess_import_settings *settings, char **record)
{
    tess_error *error = &context->error;
import im = {.settings = settings, .memory = & context->memory };
    tess_json *yaml = NULL;
    *record = NULL;
    TESS_TRY(tess_context_alone(context, "convert"));
    TESS_TRY(check_settings(&im, error));
    tess_status status = tess_yaml_read(settings->input, &yaml, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, settings->input);
    status = run(&im, yaml, error);
    if (status == TESS_OK)
        status = tess_record_end(record_of(&im), record, error);
    tess_cuvis_free(&im.cuvis);
    tess_weights_close(im.weights);
    tess_cube_close(im.cube);
    tess_small_free(im.weights_path);
    tess_json_free(yaml);
    return status;
}
