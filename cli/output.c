/* Standard output, and how a job starts and ends. A failed write to standard output is stored here and reported once,
 * when the program ends: a truncated record or help text must not look like success. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "tessera_trace.h"

static int output_error; /* errno of the first failure; 0: none */
static const char *output_name = "standard output";

void cli_print(FILE *to, const char *format, ...)
{
    if (!cli_speaks())
        return;
    va_list args;
    va_start(args, format);
    if (vfprintf(to, format, args) < 0 && to == stdout && !output_error)
        output_error = errno;
    va_end(args);
}

bool cli_output_failed(void)
{
    if (fflush(stdout) != 0 && !output_error)
        output_error = errno;
    return output_error != 0;
}

int cli_close_output(int status)
{
    if (!cli_output_failed())
        return status;
    cli_complain("%s: %s", output_name, strerror(output_error));
    return CLI_FAILED;
}

/* --trace, --profile and --live; as cli_begin. */
static int begin_recording(const cli_shared *shared)
{
    tess_trace_settings settings;
    tess_context *context = cli_context();
    tess_trace_settings_init(&settings);
    settings.spans = shared->common.trace_file != NULL;
    settings.profile = shared->profile;
    if (!shared->common.trace_file && !shared->profile && shared->live < 0)
        return -1;
    if (tess_context_trace(context, &settings) != TESS_OK) {
        cli_complain("%s", tess_context_error(context));
        return CLI_FAILED;
    }
    return shared->live >= 0 && cli_speaks() ? cli_live_begin(shared, context) : -1;
}

/* A job that failed may not have come to the check of its files, so its trace only replaces nothing or another trace. */
static bool replaces_trace(const char *path)
{
    static const char beginning[] = "{\"displayTimeUnit\"";
    char there[sizeof beginning] = "";
    FILE *file = fopen(path, "rb");
    if (!file)
        return errno == ENOENT;
    const size_t length = fread(there, 1, sizeof beginning - 1, file);
    fclose(file);
    return length == 0 || strcmp(there, beginning) == 0;
}

/* Collective. The job's own failure is reported in any case, so that a trace that cannot be written only changes the
 * status of a job that went well. */
static int write_trace(tess_context *context, const cli_shared *shared, tess_status status, int result)
{
    if (!shared->common.trace_file || status == TESS_BAD_OPTION)
        return result;
    const bool kept = status != TESS_OK && cli_speaks() && !replaces_trace(shared->common.trace_file);
    if (cli_agree(kept ? CLI_FAILED : -1) >= 0)
        return result;
    if (tess_context_trace_write(context, shared->common.trace_file) == TESS_OK)
        return result;
    cli_complain("--trace %s: %s", shared->common.trace_file, tess_context_error(context));
    return result == CLI_DONE ? CLI_FAILED : result;
}

int cli_begin(cli_shared *shared, bool polls, const char *output, tess_context **context)
{
    const int ready = cli_speaks() ? cli_record_ready(shared, output) : -1;
    const int watching = ready < 0 ? begin_recording(shared) : ready, status = cli_agree(watching);
    if (status >= 0) {
        cli_live_end();
        return status;
    }
    *context = cli_context();
    cli_watch_signals(polls);
    return -1;
}

static int exit_status(tess_status status)
{
    if (status == TESS_INTERRUPTED && cli_signal_caught())
        return CLI_SIGNAL + cli_signal_caught();
    return status == TESS_OK ? CLI_DONE : status == TESS_BAD_OPTION ? CLI_USAGE : CLI_FAILED;
}

/* The files that failed, of several, where the summary that lists them is not seen beside the error, which names only one. */
static void complain_of_files(const char *summary)
{
    static const char FAILED[] = "failed    ";
    const size_t length = sizeof FAILED - 1;
    int count = 0;
    for (int say = 0; say < 2; say++)
        for (const char *line = summary; line && *line && (!say || count > 1);) {
            const size_t bytes = strcspn(line, "\n");
            const bool failed = strncmp(line, FAILED, length) == 0;
            count += failed && !say;
            if (failed && say)
                cli_complain("%.*s", (int)(bytes - length), line + length);
            line += bytes + (line[bytes] == '\n');
        }
}

int cli_finish(tess_context *context, tess_status status, char *record, const cli_shared *shared)
{
    char message[CLI_MESSAGE], *text = NULL;
    snprintf(message, sizeof message, "%s", tess_context_error(context));
    cli_live_end();
    int result = write_trace(context, shared, status, exit_status(status));
    if (!cli_speaks()) {
        tess_record_free(record);
        return result;
    }
    const bool to_output = shared->json && strcmp(shared->json, "-") == 0;
    cli_name_options(message);
    if (record)
        cli_name_options_in_record(record);
    cli_end_line();
    char *told = record ? cli_with_command(record) : NULL;
    const char *written = told ? told : record;
    if (record && to_output) {
        output_name = "--json -: standard output";
        cli_print(stdout, "%s\n", written);
    } else if (record && shared->json && !cli_record_write(shared->json, written)) {
        cli_complain("--json %s: %s", shared->json, strerror(errno));
        result = result == CLI_DONE ? CLI_FAILED : result;
    }
    const bool summary = !to_output && !shared->quiet;
    if (record && (summary || status != TESS_OK) && tess_record_summary(context, record, &text) == TESS_OK) {
        cli_name_options(text);
        if (summary)
            cli_print(stdout, "%s", text);
        if (status != TESS_OK && !(summary && isatty(STDOUT_FILENO)))
            complain_of_files(text);
    }
    if (status != TESS_OK)
        cli_complain("%s", *message ? message : "no memory");
    free(told);
    tess_record_free(text);
    tess_record_free(record);
    return result;
}
