/* Samples that may be voids though nothing declares them.
 *
 * Marks of other programs that are far from all heights count as void, as in a file that declares nothing. Zeros count as
 * heights everywhere, since the sea is 0: a note says how to make them voids. */
#include <math.h>

#include "job/common/note.h"
#include "job/fill/fill_job.h"

/* One of the maps that a job reads. */
typedef struct map {
    const char *path, *key; /* of the record */
    tess_raster *raster;
    const tess_fill_look *look;
    bool declared_only; /* `nodata` nan, which is said of the input alone */
} map;

enum { MAPS = 3 };

static void list_maps(const tess_fill_job *job, map maps[MAPS])
{
    const tess_fill_settings *s = job->settings;
    maps[0] = (map){s->input, "undeclared", job->raster, &job->map.look, s->nodata_given && isnan(s->nodata)};
    maps[1] = (map){s->second, "undeclared_second", job->second, &job->second_look, false};
    maps[2] = (map){s->truth, "undeclared_truth", job->truth, &job->truth_look, false};
}

static void note_mark(const tess_fill_job *job, const map *m, double value, int64_t count)
{
    const char *plural = count == 1 ? " is" : "s are";
    if (count > 0 && m->declared_only)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%s: %lld pixel%s %.9g, far from all others, and count as heights, as `nodata` nan says",
                  m->path, (long long)count, plural, value);
    else if (count > 0)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%s: %lld pixel%s %.9g, far from all heights: taken for voids%s", m->path, (long long)count,
                  plural, value,
                  tess_raster_describe(m->raster)->rule.usual ? "" : ", besides those that are declared");
}

/* A nodata value that is given replaces another one, but NaN is void in any case. */
static void note_zeros(const tess_fill_job *job, const map *m)
{
    const tess_void_rule *rule = &tess_raster_describe(m->raster)->rule;
    const long long count = (long long)m->look->zeros.count;
    const tess_common *common = &job->settings->common;
    if (rule->exact && !isnan(rule->value))
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: %lld pixels are 0, far from all others: if they are voids, change them to %.9g, the nodata "
            "value",
            m->path, count, rule->value);
    else if (m->raster == job->raster)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: %lld pixels are 0, far from all others: if they are voids, give `nodata` 0", m->path,
                  count);
    else
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: %lld pixels are 0, far from all others: if they are voids, declare them with "
                  "gdal_edit.py -a_nodata 0",
                  m->path, count);
}

static void note_map(const tess_fill_job *job, const map *m)
{
    const tess_void_watch *marks = &m->look->marks;
    const tess_raster_info *info = tess_raster_describe(m->raster);
    if (info->has_nodata && info->rule.usual)
        tess_note(
            &job->settings->common, TESS_NOTE_WARNING,
            "%s: declares the nodata value %.9g, which samples of %s cannot have: the usual nodata values "
            "count instead",
            m->path, info->nodata, tess_dtype_word(info->dtype));
    for (int i = 0; i < TESS_VOID_MARKS; i++)
        note_mark(job, m, tess_void_marks[i], marks->counts[i]);
    note_mark(job, m, marks->farthest, m->declared_only ? 0 : marks->absurd);
    if (tess_zeros_are_holes(&m->look->zeros))
        note_zeros(job, m);
}

void tess_fill_note_doubts(const tess_fill_job *job)
{
    map maps[MAPS];
    list_maps(job, maps);
    for (int i = 0; i < MAPS; i++)
        if (maps[i].raster)
            note_map(job, &maps[i]);
}

static void append(tess_json **array, double value, int64_t count)
{
    if (count == 0)
        return;
    tess_json *one = tess_json_object();
    tess_json_set_double(&one, "value", value);
    tess_json_set_int(&one, "pixels", count);
    tess_json_append(array, one);
}

void tess_fill_marks_record(const tess_fill_job *job, tess_json **voids)
{
    map maps[MAPS];
    list_maps(job, maps);
    for (int k = 0; k < MAPS; k++) {
        const tess_void_watch *marks = &maps[k].look->marks;
        tess_json *array = tess_json_array();
        for (int i = 0; i < TESS_VOID_MARKS && !maps[k].declared_only; i++)
            append(&array, tess_void_marks[i], marks->counts[i]);
        append(&array, marks->farthest, maps[k].declared_only ? 0 : marks->absurd);
        if (tess_json_length(array) > 0)
            tess_json_set(voids, maps[k].key, array);
        else
            tess_json_free(array);
    }
}
