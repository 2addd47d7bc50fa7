/* report: reads records and traces, finds the pictures that records name, and writes one page. */
#include "report/page.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/temp.h"
#include "io/image.h"
#include "job/common/context.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "tessera_report.h"

typedef struct report_job {
    const tess_report_settings *settings;
    tess_memory *memory;
    tess_stop stop;
    tess_store store;
    tess_pictures pictures;
    tess_timelines timelines;
    int64_t bytes; /* of the page */
} report_job;

void tess_report_settings_init(tess_report_settings *settings)
{
    *settings = (tess_report_settings){.without_pictures = false};
    tess_common_init(&settings->common);
}

static bool ends_with(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

static tess_status check(const tess_report_settings *s, tess_error *error)
{
    struct stat about;
    if (!s->output || !*s->output)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`output` is missing: the page to write, such as report.html");
    if (!ends_with(s->output, ".html") && !ends_with(s->output, ".htm"))
        return tess_fail(error, TESS_BAD_OPTION, "%s: the name of the page must end in .html", s->output);
    if (s->input_count < 1)
        return tess_fail(error, TESS_BAD_OPTION, "no file of records is named; name at least one");
    if (stat(s->output, &about) == 0 && !S_ISREG(about.st_mode))
        return tess_fail(error, TESS_BAD_OPTION, "%s: is no regular file; the page needs a name of its own",
                         s->output);
    for (int i = 0; i < s->input_count; i++)
        if (tess_image_same_target(s->output, s->inputs[i]))
            return tess_fail(error, TESS_BAD_OPTION,
                             "%s: the page would be written over the records %s; give another `output`",
                             s->output, s->inputs[i]);
    return tess_record_apart(&s->common, s->inputs, s->input_count, error);
}

static void tell_left_out(const report_job *job)
{
    const tess_common *common = &job->settings->common;
    for (int i = 0; i < job->store.file_count; i++) {
        const tess_stored_file *file = &job->store.files[i];
        if (file->stride > 1)
            tess_note(common, TESS_NOTE_WARNING,
                      "%s: %lld records are too many for a page; one of %lld is shown", file->path,
                      (long long)file->facts.lines, (long long)file->stride);
        if (file->facts.cut_short)
            tess_note(common, TESS_NOTE_WARNING, "%s: the last line is not complete, and left out",
                      file->path);
    }
    for (int i = 0; i < job->timelines.count; i++) {
        const tess_timeline *timeline = &job->timelines.list[i];
        if (timeline->resolution)
            tess_note(common, TESS_NOTE_WARNING,
                      "%s: %lld spans are too many for a page; those shorter than %.3g ms are merged with "
                      "their neighbours",
                      timeline->path, (long long)timeline->all, (double)timeline->resolution * 1e-6);
        if (timeline->facts.cut_short)
            tess_note(common, TESS_NOTE_WARNING, "%s: the trace has no end; what is there is shown",
                      timeline->path);
    }
}

static tess_status write_page(report_job *job, tess_error *error)
{
    const tess_report_settings *s = job->settings;
    tess_temp *temp = NULL;
    tess_status status = tess_temp_create(s->output, &temp, error);
    FILE *file = status == TESS_OK ? tess_temp_open(temp) : NULL;
    if (status == TESS_OK && !file)
        status = tess_temp_fail(errno, error);
    if (status == TESS_OK)
        status = tess_page_write(file, s->title ? s->title : "Tessera report", &job->store, &job->pictures,
                                 &job->timelines, error);
    if (file) {
        job->bytes = ftell(file);
        const bool bad = ferror(file) != 0;
        if ((fclose(file) != 0 || bad) && status == TESS_OK)
            status = tess_temp_fail(errno, error);
    }
    if (status == TESS_OK)
        status = tess_stop_check(&job->stop, error);
    if (status == TESS_OK)
        status = tess_temp_commit(temp, s->output, error);
    tess_temp_remove(temp);
    return status == TESS_OK ? status : tess_fail_prefix(error, status, s->output);
}

static tess_status run(report_job *job, tess_error *error)
{
    const tess_report_settings *s = job->settings;
    for (int i = 0; i < s->input_count; i++)
        TESS_TRY(tess_events_found(s->inputs[i])
                     ? tess_timelines_read(&job->timelines, s->inputs[i], &job->stop, error)
                     : tess_store_read(&job->store, s->inputs[i], &job->stop, error));
    TESS_TRY(tess_timelines_write(&job->timelines, job->store.bytes, error));
    tell_left_out(job);
    if (!s->without_pictures)
        TESS_TRY(tess_pictures_find(&job->pictures, &job->store, job->memory, s->output, &job->stop, error));
    return write_page(job, error);
}

static tess_json *record_of(const report_job *job)
{
    tess_json *record = tess_record_begin("report", NULL), *report = tess_json_object();
    int64_t lines = 0;
    for (int i = 0; i < job->store.file_count; i++)
        lines += job->store.files[i].facts.lines;
    tess_json_set_string(&report, "output", job->settings->output);
    tess_json_set_int(&report, "files", job->store.file_count + job->timelines.count);
    tess_json_set_int(&report, "records", lines);
    tess_json_set_int(&report, "shown", job->store.count);
    tess_json_set_int(&report, "pictures", job->pictures.count);
    tess_json_set_int(&report, "traces", job->timelines.count);
    tess_json_set_int(&report, "bytes", job->bytes);
    tess_json_set(&record, "report", report);
    return record;
}

tess_status tess_report(tess_context *context, const tess_report_settings *settings, char **record)
{
    tess_error *error = &context->error;
    report_job job = {.settings = settings, .memory = &context->memory};
    *record = NULL;
    TESS_TRY(tess_context_alone(context, "report"));
    TESS_TRY(tess_page_check(error));
    TESS_TRY(check(settings, error));
    tess_stop_init(&job.stop, settings->common.progress, settings->common.progress_user);
    tess_status status = run(&job, error);
    if (status == TESS_OK)
        status = tess_record_end(record_of(&job), record, error);
    tess_timelines_clear(&job.timelines);
    tess_pictures_clear(&job.pictures);
    tess_store_clear(&job.store);
    return status;
}
