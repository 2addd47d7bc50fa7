#include "job/common/record.h"

#include "io/image.h"
#include "job/common/profile.h"

bool tess_same_target(const char *one, const char *other)
{
    return tess_image_same_target(one, other);
}

tess_status tess_record_apart(const tess_common *common, const char *const *files, int count,
                              tess_error *error)
{
    for (int i = 0; i < count && common->record_file; i++)
        if (files[i] && tess_image_same_target(common->record_file, files[i]))
            return tess_fail(error, TESS_BAD_OPTION,
                             "`record_file` %s: is a file of this job; write the record to another name",
                             common->record_file);
    for (int i = 0; i < count && common->trace_file; i++)
        if (files[i] && tess_image_same_target(common->trace_file, files[i]))
            return tess_fail(error, TESS_BAD_OPTION,
                             "`trace_file` %s: is a file of this job; write the trace to another name",
                             common->trace_file);
    return TESS_OK;
}

tess_json *tess_record_begin(const char *command, const tess_engine *engine)
{
    tess_json *record = tess_json_object();
    tess_json_set_string(&record, "command", command);
    tess_json_set_string(&record, "version", TESSERA_VERSION);
    if (engine) {
        tess_json_set_string(&record, "device", engine->device->kind);
        tess_json_set_string(&record, "device_name", engine->facts.name);
        tess_json_set_string(&record, "precision", engine->precision);
        tess_json_set_int(&record, "threads", tess_pool_threads(engine->host));
        tess_json_set_int(&record, "ranks", engine->dist->size);
        tess_record_profile(&record, engine);
    }
    return record;
}

void tess_record_paths(tess_json **record, const tess_record_path *paths, int count)
{
    tess_json *object = tess_json_object();
    for (int i = 0; i < count; i++)
        if (paths[i].path)
            tess_json_set_string(&object, paths[i].what, paths[i].path);
    tess_json_set(record, "paths", object);
}

tess_json *tess_record_bytes(const tess_mem_bytes *bytes, uint64_t total)
{
    tess_json *object = tess_json_object();
    static const bool always[TESS_MEM_CATEGORIES] = {[TESS_MEM_WEIGHTS] = true,
                                                     [TESS_MEM_ACTIVATIONS] = true,
                                                     [TESS_MEM_WORKSPACE] = true,
                                                     [TESS_MEM_IO] = true};
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        if (always[c] || (bytes->by[c] && c != TESS_MEM_HOST))
            tess_json_set_int(&object, tess_mem_category_name((tess_mem_category)c), (int64_t)bytes->by[c]);
    tess_json_set_int(&object, "total", (int64_t)total);
    return object;
}

tess_json *tess_record_level_rows(const tess_level_rows *levels)
{
    tess_json *rows = tess_json_array();
    for (int l = 0; l < TESS_LEVELS && levels->rows[l]; l++)
        tess_json_append_int(&rows, levels->rows[l]);
    return rows;
}

void tess_record_meter(tess_json **measured, const tess_meter_reading *reading)
{
    if (reading->has_busy)
        tess_json_set_double(measured, "gpu_busy", reading->busy);
    if (reading->has_joules)
        tess_json_set_double(measured, "joules", reading->joules);
}

tess_status tess_record_end(tess_json *record, char **text, tess_error *error)
{
    *text = tess_json_dump(record, false);
    tess_json_free(record);
    return *text ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the record");
}
