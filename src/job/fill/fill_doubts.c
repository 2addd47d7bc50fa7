/* Samples that may be voids though nothing declares them.
 *
 * Marks of other programs that are far from all heights count as void, as in a file that declares nothing. Zeros count as
 * heights everywhere, since the sea is 0: a note says how to make them voids. */
#include <math.h>

#include "job/common/note.h"
#include "job/fill/fill_job.h"

static bool declared_only(const tess_fill_job *job)
{
    return job->settings->nodata_given && isnan(job->settings->nodata);
}

static void note_mark(const tess_fill_job *job, double value, int64_t count)
{
    const char *plural = count == 1 ? " is" : "s are";
    if (count > 0 && declared_only(job))
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%s: %lld pixel%s %.9g, far from all others, and count as heights, as `nodata` nan says",
                  job->settings->input, (long long)count, plural, value);
    else if (count > 0)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%s: %lld pixel%s %.9g, far from all heights: taken for voids, besides those that are "
                  "declared",
                  job->settings->input, (long long)count, plural, value);
}

/* A nodata value that is given replaces another one, but NaN is void in any case. */
static void note_zeros(const tess_fill_job *job)
{
    const tess_void_rule *rule = &tess_raster_describe(job->raster)->rule;
    const long long count = (long long)job->map.zeros.count;
    const tess_fill_settings *s = job->settings;
    if (rule->exact && !isnan(rule->value))
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: %lld pixels are 0, far from all others: if they are voids, change them to %.9g, the nodata "
            "value",
            s->input, count, rule->value);
    else
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%s: %lld pixels are 0, far from all others: if they are voids, give `nodata` 0", s->input,
                  count);
}

void tess_fill_note_doubts(const tess_fill_job *job)
{
    const tess_void_watch *marks = &job->map.marks;
    const tess_raster_info *info = tess_raster_describe(job->raster);
    if (info->has_nodata && info->rule.usual)
        tess_note(
            &job->settings->common, TESS_NOTE_WARNING,
            "%s: declares the nodata value %.9g, which samples of %s cannot have: the usual nodata values "
            "count instead",
            job->settings->input, info->nodata, tess_dtype_word(info->dtype));
    for (int i = 0; i < TESS_VOID_MARKS; i++)
        note_mark(job, tess_void_marks[i], marks->counts[i]);
    note_mark(job, marks->farthest, declared_only(job) ? 0 : marks->absurd);
    if (tess_zeros_are_holes(&job->map.zeros))
        note_zeros(job);
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

tess_json *tess_fill_marks_record(const tess_fill_job *job)
{
    const tess_void_watch *marks = &job->map.marks;
    tess_json *array = tess_json_array();
    for (int i = 0; i < TESS_VOID_MARKS && !declared_only(job); i++)
        append(&array, tess_void_marks[i], marks->counts[i]);
    append(&array, marks->farthest, declared_only(job) ? 0 : marks->absurd);
    return array;
}
