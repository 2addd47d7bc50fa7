/* A stub of the library behind the same header, to test how the program handles options, notes, signals and records
 * without running a job. The record of denoise is the settings; the variable STUB selects what happens:
 *   no-memory  the context cannot be created
 *   settings   a note, an error, a record and a summary that name settings
 *   talk       a warning, a detail, and two files in progress for 30 seconds of the job's clock
 *   poll       works until it is asked to stop, and then returns a record
 *   hang       never polls; has the temporary file STUB_TEMP
 *   lost       the other one of two ranks is lost, and then the job fails because of it
 *   elsewhere  the same, but another rank reports the loss
 *   failed     the job fails, and then a rank is lost */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stub_ranks.h"
#include "tessera_detect.h"
#include "tessera_fill.h"
#include "tessera_report.h"
#include "tessera_study.h"
#include "tessera_trace.h"
#include "tessera_train.h"

struct tess_context {
    char error[256];
};

tess_status tess_context_create(tess_context **out)
{
    *out = stub_is("no-memory") ? NULL : calloc(1, sizeof **out);
    return *out ? TESS_OK : TESS_NO_MEMORY;
}

void tess_context_destroy(tess_context *context)
{
    if (stub_is("failed")) {
        stub_lose_rank();
        for (;;)
            pause();
    }
    free(context);
}

const char *tess_context_error(const tess_context *context)
{
    return context->error;
}

void tess_emergency_cleanup(void)
{
    const char *temporary = getenv("STUB_TEMP");
    if (temporary)
        unlink(temporary);
}

void tess_common_init(tess_common *common)
{
    *common = (tess_common){.device = "auto", .precision = "auto"};
}

void tess_denoise_settings_init(tess_denoise_settings *settings)
{
    *settings = (tess_denoise_settings){.sigma = -1, .strength = 1, .halo = TESS_HALO_AUTO};
    tess_common_init(&settings->common);
}

void tess_bench_settings_init(tess_bench_settings *settings)
{
    *settings = (tess_bench_settings){.height = 2048};
    tess_common_init(&settings->common);
}

void tess_train_settings_init(tess_train_settings *settings)
{
    *settings = (tess_train_settings){.config = NULL};
    tess_common_init(&settings->common);
}

void tess_fill_settings_init(tess_fill_settings *settings)
{
    *settings = (tess_fill_settings){.samples = 1};
    tess_common_init(&settings->common);
}

void tess_detect_settings_init(tess_detect_settings *settings)
{
    *settings = (tess_detect_settings){.input = NULL};
    tess_common_init(&settings->common);
}

void tess_reconstruct_settings_init(tess_reconstruct_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    tess_common_init(&settings->common);
}

bool tess_same_target(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static void say(char *text, const char *format, ...) TESS_PRINTF(2, 3);

static void say(char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text + strlen(text), 8192 - strlen(text), format, args);
    va_end(args);
}

static void say_string(char *text, const char *name, const char *value)
{
    if (value)
        say(text, "\"%s\":\"%s\",", name, value);
}

static char *describe(const tess_denoise_settings *s)
{
    char *text = calloc(1, 8192);
    say(text, "{");
    say_string(text, "input", s->input);
    say_string(text, "output", s->output);
    say_string(text, "model", s->model);
    say_string(text, "truth", s->truth);
    say_string(text, "sigma_map", s->sigma_map);
    say_string(text, "axes", s->axes);
    say_string(text, "device", s->common.device);
    say_string(text, "precision", s->common.precision);
    say_string(text, "record_file", s->common.record_file);
    say(text, "\"inputs\":[");
    for (int i = 0; i < s->input_count; i++)
        say(text, "%s\"%s\"", i ? "," : "", s->inputs[i]);
    say(text, "],\"sigma\":%.9g,\"add_noise\":%.9g,\"strength\":%.9g,\"range\":[%d,%.9g,%.9g],", s->sigma,
        s->add_noise, s->strength, (int)s->range, s->range_low, s->range_high);
    say(text, "\"flags\":[%d,%d,%d,%d],\"tile\":[%lld,%lld],\"halo\":%lld,\"batch\":%lld,", s->recursive,
        s->skip_existing, s->overwrite, s->dither, (long long)s->tile_height, (long long)s->tile_width,
        (long long)s->halo, (long long)s->batch);
    say(text, "\"threads\":%d,\"memory\":%llu,\"seed\":%llu}", s->common.threads,
        (unsigned long long)s->common.memory_limit, (unsigned long long)s->common.seed);
    return text;
}

static void talk(const tess_common *common)
{
    void *user = common->progress_user;
    const int64_t pixels = getenv("STUB_SLOW") ? 3000 : 1000000; /* a second */
    common->note(user, TESS_NOTE_WARNING, "a warning");
    for (int64_t second = 0; second < 30; second++) {
        if (second % 15 == 0)
            common->file(user, second / 15, 2, second ? "second\033[31m.png" : "first.png");
        (void)common->progress(user, second * pixels, 30 * pixels, (double)second);
    }
    common->note(user, TESS_NOTE_DETAIL, "a detail");
    (void)common->progress(user, 30 * pixels, 30 * pixels, 30);
}

static tess_status name_settings(tess_context *context, const tess_common *common, char **record)
{
    common->note(common->progress_user, TESS_NOTE_WARNING,
                 "`threads` 9: `line` stays, `sigma_map` and `sigma");
    strcpy(context->error,
           "`memory_limit` 9M is too little; `memory_limit` 12M would do, or a smaller `tile``");
    free(*record);
    *record = strdup(
        "{\"output\":\"`sigma`.png\",\"plan\":{\"reason\":\"\\\"`memory_limit`\\\", `skip_existing`\"},"
        "\"files\":[{\"input\":\"a \\\"error\\\": `halo`\",\"error\":\"`record_file` x\"},"
        "{\"error\":null,\"input\":\"`halo`\"}]}");
    return TESS_BAD_OPTION;
}

static void wait_a_little(void)
{
    nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static void mark_started(void)
{
    const char *name = getenv("STUB_TEMP");
    const int file = name ? open(name, O_CREAT | O_WRONLY, 0666) : -1;
    if (file >= 0)
        close(file);
}

tess_status tess_denoise(tess_context *context, const tess_denoise_settings *settings, char **record)
{
    const tess_common *common = &settings->common;
    *record = describe(settings);
    if (stub_is("talk"))
        talk(common);
    if (stub_is("settings"))
        return name_settings(context, common, record);
    if (stub_is("lost") || stub_is("elsewhere"))
        stub_lose_rank();
    if (stub_has_ranks()) {
        strcpy(context->error, "out.npy: cannot take its final name");
        return TESS_IO_FAILED;
    }
    if (stub_is("hang") || stub_is("poll"))
        mark_started();
    while (stub_is("hang"))
        wait_a_little();
    if (!stub_is("poll"))
        return TESS_OK;
    while (common->progress(common->progress_user, 0, 1, 0))
        wait_a_little();
    strcpy(context->error, "stopped");
    return TESS_INTERRUPTED;
}

tess_status tess_plan_denoise(tess_context *context, const tess_denoise_settings *settings, char **record)
{
    return tess_denoise(context, settings, record);
}

tess_status tess_convert(tess_context *context, const char *input, const char *output, char **record)
{
    (void)context, (void)input, (void)output;
    mark_started();
    while (stub_is("hang"))
        wait_a_little();
    *record = strdup("{}");
    return TESS_OK;
}

void tess_import_settings_init(tess_import_settings *settings)
{
    memset(settings, 0, sizeof *settings);
}

tess_status tess_import_pipeline(tess_context *context, const tess_import_settings *settings, char **record)
{
    return tess_convert(context, settings->input, settings->output, record);
}

tess_status tess_info(tess_context *context, const tess_common *common, bool calibrate, char **record)
{
    (void)context, (void)common, (void)calibrate;
    *record = strdup("{}");
    return TESS_OK;
}

tess_status tess_bench(tess_context *context, const tess_bench_settings *settings)
{
    (void)context;
    return settings->line(settings->line_user, "{}") ? TESS_OK : TESS_INTERRUPTED;
}

tess_status tess_train(tess_context *context, const tess_train_settings *settings, char **record)
{
    (void)context, (void)settings;
    *record = strdup("{}");
    return TESS_OK;
}

tess_status tess_plan_train(tess_context *context, const tess_train_settings *settings, char **record)
{
    return tess_train(context, settings, record);
}

tess_status tess_fill(tess_context *context, const tess_fill_settings *settings, char **record)
{
    (void)context, (void)settings;
    *record = strdup("{}");
    return TESS_OK;
}

tess_status tess_plan_fill(tess_context *context, const tess_fill_settings *settings, char **record)
{
    return tess_fill(context, settings, record);
}

tess_status tess_detect(tess_context *context, const tess_detect_settings *settings, char **record)
{
    (void)context, (void)settings;
    *record = strdup("{}");
    return TESS_OK;
}

tess_status tess_plan_detect(tess_context *context, const tess_detect_settings *settings, char **record)
{
    return tess_detect(context, settings, record);
}

void tess_report_settings_init(tess_report_settings *settings)
{
    memset(settings, 0, sizeof *settings);
}

tess_status tess_report(tess_context *context, const tess_report_settings *settings, char **record)
{
    (void)context, (void)settings;
    *record = strdup("{}");
    return TESS_OK;
}

tess_status tess_reconstruct(tess_context *context, const tess_reconstruct_settings *settings, char **record)
{
    (void)context, (void)settings;
    *record = strdup("{}");
    return TESS_OK;
}

tess_status tess_plan_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                  char **record)
{
    return tess_reconstruct(context, settings, record);
}

tess_status tess_record_summary(tess_context *context, const char *record, char **text)
{
    (void)context, (void)record;
    *text = strdup(stub_is("settings") ? "stopped by `max_seconds`\n" : "a summary\n");
    return TESS_OK;
}

void tess_record_free(char *record)
{
    free(record);
}

void tess_trace_settings_fill(tess_trace_settings *settings, size_t size)
{
    memset(settings, 0, size);
    settings->size = size;
}

tess_status tess_context_trace(tess_context *context, const tess_trace_settings *settings)
{
    (void)context, (void)settings;
    return TESS_OK;
}

tess_status tess_context_trace_write(tess_context *context, const char *path)
{
    FILE *file = fopen(path, "w");
    (void)context;
    return file && fputs("{}\n", file) >= 0 && fclose(file) == 0 ? TESS_OK : TESS_IO_FAILED;
}

void tess_job_state_fill(tess_job_state *state, size_t size)
{
    memset(state, 0, size);
    state->size = size;
}

void tess_context_state(const tess_context *context, tess_job_state *state)
{
    (void)context;
    state->planned_bytes = 1 << 20;
}
