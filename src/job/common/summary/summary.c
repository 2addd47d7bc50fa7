/* A short readable summary of a record, for the terminal. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "job/common/context.h"
#include "job/common/record.h"
#include "job/common/summary/summary_impl.h"

void tess_say(tess_summary *w, const char *format, ...)
{
    if (!w->text)
        return;
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
    if (wanted > 0)
        w->used += (size_t)wanted < w->size - w->used ? (size_t)wanted : w->size - w->used - 1;
}

static void say_converting(tess_summary *w, const tess_json *record)
{
    const tess_json *convert = tess_json_get(record, "convert");
    if (tess_json_get(convert, "nodes"))
        tess_say(w, "%s: %lld nodes%s -> %s\n", tess_json_get_string(convert, "input", "?"),
                 (long long)tess_json_length(tess_json_get(convert, "nodes")),
                 tess_json_get_bool(convert, "fitted", false) ? ", fitted" : "",
                 tess_json_get_string(convert, "output", "?"));
    else if (convert)
        tess_say(w, "%s (%s): %lld tensors, %lld values, %s -> %s\n",
                 tess_json_get_string(convert, "input", "?"), tess_json_get_string(convert, "format", "?"),
                 (long long)tess_json_get_int(convert, "tensors", 0),
                 (long long)tess_json_get_int(convert, "values", 0),
                 tess_json_get_string(convert, "architecture", "unknown architecture"),
                 tess_json_get_string(convert, "output", "?"));
}

/* Whether all files were skipped, so that nothing was planned or measured. */
static bool is_idle(const tess_json *record)
{
    const int64_t skipped = tess_json_get_int(tess_json_get(record, "denoise"), "skipped", 0);
    return skipped > 0 && skipped == tess_json_get_int(tess_json_get(record, "input"), "files", 0);
}

tess_status tess_record_summary(tess_context *context, const char *record, char **text)
{
    *text = NULL;
    tess_json *json = NULL;
    TESS_TRY(tess_json_parse(record, strlen(record), &json, &context->error));
    tess_summary w = {.size = strlen(record) + 8192};
    w.text = tess_small_alloc(w.size, 1);
    const bool own = tess_json_get(json, "train") || tess_json_get(json, "fill") ||
                     tess_json_get(json, "detect") || is_idle(json);
    tess_say_training(&w, json);
    tess_say_filling(&w, json);
    tess_say_detecting(&w, json);
    if (!own)
        tess_say_plan(&w, json);
    tess_say_samples(&w, json);
    tess_say_reconstructing(&w, json);
    if (!own)
        tess_say_measured(&w, json);
    tess_say_reporting(&w, json);
    tess_say_left_out(&w, json);
    tess_say_profile(&w, json);
    tess_say_info(&w, json);
    say_converting(&w, json);
    tess_json_free(json);
    *text = w.text;
    return w.text ? TESS_OK : tess_fail(&context->error, TESS_NO_MEMORY, "no memory for a summary");
}
