/* config_lists.c: how values that are lists are read from JSON and written to it. An element that is wrong is named by its
 * place: "data.folders[1]". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/config_impl.h"

/* Appends "[i]" to the reader's path; leave() removes it. */
static void enter(tess_config_reader *reader, int64_t index)
{
    const size_t used = strlen(reader->path);
    snprintf(reader->path + used, sizeof reader->path - used, "[%lld]", (long long)index);
}

static void leave(tess_config_reader *reader)
{
    *strrchr(reader->path, '[') = '\0';
}

static bool is_list(const tess_json *value, int64_t least, int64_t most)
{
    return tess_json_is_array(value) && tess_json_length(value) >= least && tess_json_length(value) <= most;
}

static bool in_range(const tess_config_field *field, double number)
{
    return number >= field->low && number <= field->high;
}

static tess_json *numbers_json(const double *list, int count)
{
    tess_json *array = tess_json_array();
    for (int i = 0; i < count; i++)
        tess_json_append_double(&array, list[i]);
    return array;
}

static tess_status read_pair(tess_config_reader *reader, const tess_config_field *field,
                             const tess_json *value, void *target)
{
    double *pair = target;
    for (int i = 0; i < 2; i++) {
        const double number = tess_json_as_double(tess_json_at(value, i), NAN);
        if (!is_list(value, 2, 2) || !in_range(field, number))
            return tess_config_refuse(reader, field->expected, value);
        pair[i] = number;
    }
    return TESS_OK;
}

static tess_json *write_pair(const tess_config_field *field, const void *target)
{
    (void)field;
    return numbers_json(target, 2);
}

static tess_status read_range(tess_config_reader *reader, const tess_config_field *field,
                              const tess_json *value, void *target)
{
    double *range = target;
    const double number = tess_json_as_double(value, NAN);
    if (in_range(field, number)) {
        range[0] = range[1] = number;
        return TESS_OK;
    }
    TESS_TRY(read_pair(reader, field, value, range));
    return range[0] <= range[1] ? TESS_OK : tess_config_refuse(reader, "the lowest level first", value);
}

static tess_json *write_range(const tess_config_field *field, const void *target)
{
    const double *range = target;
    return range[0] == range[1] ? tess_json_double(range[0]) : write_pair(field, target);
}

static tess_status read_widths(tess_config_reader *reader, const tess_config_field *field,
                               const tess_json *value, void *target)
{
    tess_train_widths *widths = target;
    if (!is_list(value, 1, TESS_CONFIG_WIDTHS))
        return tess_config_refuse(reader, field->expected, value);
    widths->count = (int)tess_json_length(value);
    for (int i = 0; i < widths->count; i++) {
        enter(reader, i);
        TESS_TRY(tess_config_read_integer(reader, tess_json_at(value, i), (int64_t)field->low,
                                          (int64_t)field->high, "a width from 1 to 4096", &widths->list[i]));
        leave(reader);
    }
    return TESS_OK;
}

static tess_json *write_widths(const tess_config_field *field, const void *target)
{
    (void)field;
    const tess_train_widths *widths = target;
    tess_json *array = tess_json_array();
    for (int i = 0; i < widths->count; i++)
        tess_json_append_int(&array, widths->list[i]);
    return array;
}

/* A number has weight 1; [number, weight] says it. */
static tess_status read_scales(tess_config_reader *reader, const tess_config_field *field,
                               const tess_json *value, void *target)
{
    tess_train_numbers *scales = target;
    if (!is_list(value, 1, TESS_CONFIG_SCALES))
        return tess_config_refuse(reader, field->expected, value);
    scales->count = (int)tess_json_length(value);
    for (int i = 0; i < scales->count; i++) {
        const tess_json *entry = tess_json_at(value, i);
        const bool pair = is_list(entry, 2, 2);
        scales->list[i] = tess_json_as_double(pair ? tess_json_at(entry, 0) : entry, NAN);
        scales->weight[i] = pair ? tess_json_as_double(tess_json_at(entry, 1), NAN) : 1;
        enter(reader, i);
        if (!in_range(field, scales->list[i]) || !(scales->weight[i] > 0 && scales->weight[i] < 1e6))
            return tess_config_refuse(reader, "a scale from 0.05 to 4, or [scale, share]", entry);
        leave(reader);
    }
    return TESS_OK;
}

static tess_json *write_scales(const tess_config_field *field, const void *target)
{
    (void)field;
    const tess_train_numbers *scales = target;
    tess_json *array = tess_json_array();
    for (int i = 0; i < scales->count; i++)
        if (scales->weight[i] == 1)
            tess_json_append_double(&array, scales->list[i]);
        else
            tess_json_append(&array, numbers_json((double[]){scales->list[i], scales->weight[i]}, 2));
    return array;
}

static tess_status read_numbers(tess_config_reader *reader, const tess_config_field *field,
                                const tess_json *value, void *target)
{
    tess_train_numbers *numbers = target;
    if (!is_list(value, 1, TESS_CONFIG_LEVELS))
        return tess_config_refuse(reader, field->expected, value);
    numbers->count = (int)tess_json_length(value);
    for (int i = 0; i < numbers->count; i++) {
        numbers->list[i] = tess_json_as_double(tess_json_at(value, i), NAN);
        numbers->weight[i] = 1;
        enter(reader, i);
        if (!in_range(field, numbers->list[i]))
            return tess_config_refuse(reader, "a noise level from 0 to 1 (25 of 255 is 0.098)",
                                      tess_json_at(value, i));
        leave(reader);
    }
    return TESS_OK;
}

static tess_json *write_numbers(const tess_config_field *field, const void *target)
{
    (void)field;
    const tess_train_numbers *numbers = target;
    return numbers_json(numbers->list, numbers->count);
}

static tess_status read_folders(tess_config_reader *reader, const tess_config_field *field,
                                const tess_json *value, void *target)
{
    tess_train_paths *paths = target;
    if (!is_list(value, 1, TESS_CONFIG_PATHS))
        return tess_config_refuse(reader, field->expected, value);
    for (int64_t i = 0; i < tess_json_length(value); i++) {
        enter(reader, i);
        paths->count++; /* before it is read: clearing frees what a failure leaves */
        TESS_TRY(tess_config_read_path(reader, tess_json_at(value, i), "a folder", &paths->list[i]));
        leave(reader);
    }
    return TESS_OK;
}

static tess_status read_names(tess_config_reader *reader, const tess_config_field *field,
                              const tess_json *value, void *target)
{
    tess_train_paths *names = target;
    if (!is_list(value, 0, TESS_CONFIG_PATHS))
        return tess_config_refuse(reader, field->expected, value);
    for (int64_t i = 0; i < tess_json_length(value); i++) {
        const char *name = tess_json_as_string(tess_json_at(value, i), "");
        enter(reader, i);
        if (!*name || strchr(name, '/'))
            return tess_config_refuse(reader, "the name of a file, without its folder",
                                      tess_json_at(value, i));
        if (!(names->list[names->count++].given = tess_small_strdup(name)))
            return tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the configuration");
        leave(reader);
    }
    return TESS_OK;
}

static tess_json *write_paths(const tess_config_field *field, const void *target)
{
    (void)field;
    const tess_train_paths *paths = target;
    tess_json *array = tess_json_array();
    for (int i = 0; i < paths->count; i++)
        tess_json_append_string(&array, paths->list[i].given);
    return array;
}

const tess_config_kind tess_config_pair = {read_pair, write_pair},
                       tess_config_range = {read_range, write_range},
                       tess_config_widths = {read_widths, write_widths},
                       tess_config_scales = {read_scales, write_scales},
                       tess_config_numbers = {read_numbers, write_numbers},
                       tess_config_folders = {read_folders, write_paths},
                       tess_config_names = {read_names, write_paths};
