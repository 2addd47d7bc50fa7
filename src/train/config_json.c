/* config_json.c: the complete configuration as JSON, for checkpoints and for the metadata of the result, and the
 * comparison of a checkpoint's with today's. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/config_impl.h"

static bool is_null(const tess_json *value)
{
    return value && !tess_json_is_object(value) && !tess_json_is_array(value) &&
           !tess_json_is_string(value) && !tess_json_is_number(value) && !tess_json_is_bool(value);
}

static tess_json *section_json(const tess_train_config *config, const char *section)
{
    tess_json *object = tess_json_object();
    for (int i = 0; i < tess_config_field_count; i++) {
        const tess_config_field *field = &tess_config_fields[i];
        if (strcmp(field->section, section) != 0 || !tess_config_field_used(field, config))
            continue;
        tess_json *value = field->kind->write(field, (const char *)config + field->offset);
        if (is_null(value))
            tess_json_free(value);
        else
            tess_json_set(&object, field->key, value);
    }
    return object;
}

tess_json *tess_train_config_json(const tess_train_config *config)
{
    tess_json *root = section_json(config, "");
    for (int i = 1; tess_config_sections[i]; i++)
        tess_json_set(&root, tess_config_sections[i], section_json(config, tess_config_sections[i]));
    return root;
}

static const tess_json *value_of(const tess_json *root, const tess_config_field *field)
{
    return tess_json_get(*field->section ? tess_json_get(root, field->section) : root, field->key);
}

/* Compares the texts. They have 12 digits: more than anyone writes. */
static tess_status compare(const tess_config_field *field, const tess_json *old, const tess_json *new,
                           tess_error *error)
{
    char *before = tess_json_dump(old, false), *after = tess_json_dump(new, false);
    tess_status status = TESS_OK;
    if ((old && !before) || (new && !after))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to compare the configurations");
    else if (!before != !after || (before && strcmp(before, after) != 0))
        status =
            tess_fail(error, TESS_BAD_INPUT,
                      "%s%s%s: was %.80s when the run started, and is %.80s now; set it back, or start a "
                      "new run with another checkpoint.folder (network.weights can take this one's result)",
                      field->section, *field->section ? "." : "", field->key, before ? before : "left out",
                      after ? after : "left out");
    tess_small_free(before);
    tess_small_free(after);
    return status;
}

tess_status tess_train_config_continues(const tess_json *before, const tess_train_config *config,
                                        tess_error *error)
{
    tess_json *now = tess_train_config_json(config);
    tess_status status =
        now ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to compare the configurations");
    for (int i = 0; i < tess_config_field_count && status == TESS_OK; i++) {
        const tess_config_field *field = &tess_config_fields[i];
        /* The plateau schedule follows the validation. */
        const bool followed =
            config->schedule.kind == TESS_RATE_PLATEAU && strcmp(field->section, "validation") == 0;
        if (field->matters || followed)
            status = compare(field, value_of(before, field), value_of(now, field), error);
    }
    tess_json_free(now);
    return status;
}
