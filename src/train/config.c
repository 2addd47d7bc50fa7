#include "train/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "train/config_impl.h"

enum { MOST_BYTES = 1 << 20 }; /* of a file */

static void *member(tess_train_config *config, const tess_config_field *field)
{
    return (char *)config + field->offset;
}

static bool is_section(const char *key)
{
    for (int i = 1; tess_config_sections[i]; i++)
        if (strcmp(tess_config_sections[i], key) == 0)
            return true;
    return false;
}

static tess_status read_section(tess_config_reader *reader, const char *section, const tess_json *object,
                                tess_train_config *config)
{
    snprintf(reader->path, sizeof reader->path, "%s", *section ? section : "configuration");
    if (!tess_json_is_object(object))
        return tess_config_refuse(reader, "an object", object);
    for (const char *key = NULL; (key = tess_json_next_key(object, key));) {
        const int field = tess_config_field_find(section, key);
        if (field < 0 && !*section && is_section(key))
            continue;
        if (field < 0)
            return tess_config_unknown(reader, section, key);
        const tess_config_field *row = &tess_config_fields[field];
        tess_config_enter(reader, section, key);
        TESS_TRY(row->kind->read(reader, row, tess_json_get(object, key), member(config, row)));
        config->is_given |= (uint64_t)1 << field;
    }
    return TESS_OK;
}

static tess_status read_all(tess_config_reader *reader, const tess_json *root, tess_train_config *config)
{
    TESS_TRY(read_section(reader, "", root, config));
    for (int i = 1; tess_config_sections[i]; i++) {
        const tess_json *section = tess_json_get(root, tess_config_sections[i]);
        if (section)
            TESS_TRY(read_section(reader, tess_config_sections[i], section, config));
    }
    return tess_config_complete(config, reader);
}

tess_status tess_train_config_parse(const char *text, size_t length, const char *folder,
                                    tess_train_config *out, tess_error *error)
{
    tess_json *root = NULL;
    tess_config_defaults(out);
    TESS_TRY(tess_json_parse(text, length, &root, error));
    tess_config_reader reader = {.folder = folder, .error = error};
    const tess_status status = read_all(&reader, root, out);
    tess_json_free(root);
    if (status != TESS_OK)
        tess_train_config_clear(out);
    return status;
}

static tess_status read_text(const char *path, char *text, size_t *length, tess_error *error)
{
    FILE *file = NULL;
    TESS_TRY(tess_file_open(path, &file, error));
    *length = fread(text, 1, MOST_BYTES, file);
    const bool failed = ferror(file) != 0, more = fgetc(file) != EOF;
    fclose(file);
    if (failed)
        return tess_fail(error, TESS_IO_FAILED, "cannot be read");
    return more ? tess_fail(error, TESS_BAD_INPUT, "is longer than 1 MiB; it is no configuration") : TESS_OK;
}

tess_status tess_train_config_read(const char *path, tess_train_config *out, tess_error *error)
{
    *out = (tess_train_config){0};
    const char *slash = strrchr(path, '/');
    const size_t prefix = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    char *text = tess_small_alloc(MOST_BYTES, 1), *folder = tess_small_alloc(prefix + 1, 1);
    size_t length = 0;
    tess_status status = text && folder ? read_text(path, text, &length, error)
                                        : tess_fail(error, TESS_NO_MEMORY, "no memory to read it");
    if (status == TESS_OK) {
        memcpy(folder, path, prefix);
        status = tess_train_config_parse(text, length, folder, out, error);
    }
    tess_small_free(text);
    tess_small_free(folder);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

static void clear_paths(tess_train_paths *paths)
{
    for (int i = 0; i < paths->count; i++)
        tess_config_clear_path(&paths->list[i]);
}

void tess_train_config_clear(tess_train_config *config)
{
    clear_paths(&config->data.folders);
    clear_paths(&config->data.exclude);
    clear_paths(&config->train);
    tess_json_free(config->pipeline.graph);
    tess_small_free(config->pipeline.name);
    tess_train_path *const single[] = {
        &config->network.weights,   &config->pipeline.fitted, &config->validation.folder,
        &config->checkpoint.folder, &config->output,          &config->log,
        &config->tensorboard};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        tess_config_clear_path(single[i]);
    *config = (tess_train_config){0};
}

tess_op_optimize tess_train_config_optimize(const tess_train_config *config)
{
    const bool sgd = config->optimizer.kind == TESS_SGD;
    return (tess_op_optimize){.kind = config->optimizer.kind,
                              .beta1 = sgd ? 0 : config->optimizer.betas[0],
                              .beta2 = sgd ? 0 : config->optimizer.betas[1],
                              .epsilon = sgd ? 0 : config->optimizer.epsilon,
                              .weight_decay = config->optimizer.weight_decay,
                              .momentum = sgd ? config->optimizer.momentum : 0,
                              .clip = config->optimizer.clip,
                              .nesterov = sgd && config->optimizer.nesterov};
}

tess_op_loss tess_train_config_loss(const tess_train_config *config)
{
    const bool smooth = config->loss.kind == TESS_CHARBONNIER || tess_loss_by_image(config->loss.kind);
    return (tess_op_loss){
        .kind = config->loss.kind, .epsilon = smooth ? config->loss.epsilon : 0, .share = 1};
}
