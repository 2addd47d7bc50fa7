/* A trace as text: the trace event format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
 * Names come from weight files, so that only printable ASCII without quotes and backslashes is let through. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/trace_impl.h"

enum { LONGEST = 512 }; /* bytes of an event: two names, numbers, words */

typedef struct text {
    char *data;
    size_t used, size;
    bool failed;
} text;

/* Room for one more event; NULL: no memory. */
static char *room(text *t)
{
    if (t->failed || t->size - t->used >= LONGEST)
        return t->failed ? NULL : t->data + t->used;
    const size_t size = 2 * t->size + 16 * LONGEST;
    char *grown = tess_small_realloc(t->data, size, 1);
    t->failed = !grown;
    if (!grown)
        return NULL;
    t->data = grown;
    t->size = size;
    return t->data + t->used;
}

static void added(text *t, int length)
{
    if (!t->failed && length > 0 && length < LONGEST)
        t->used += (size_t)length;
}

static void clean(const char *from, char to[TRACE_NAME])
{
    size_t i = 0;
    for (; from[i] && i < TRACE_NAME - 1; i++)
        to[i] = from[i] < ' ' || from[i] > '~' || from[i] == '"' || from[i] == '\\' ? '?' : from[i];
    to[i] = '\0';
}

static const char *category_of(tess_trace_kind kind)
{
    static const char *const names[TESS_TRACE_KINDS] = {
        [TESS_TRACE_JOB] = "job",           [TESS_TRACE_OP] = "op",
        [TESS_TRACE_LAUNCH] = "launch",     [TESS_TRACE_LOOP] = "loop",
        [TESS_TRACE_BATCH] = "batch",       [TESS_TRACE_READ] = "read",
        [TESS_TRACE_WRITE] = "write",       [TESS_TRACE_UPLOAD] = "upload",
        [TESS_TRACE_DOWNLOAD] = "download", [TESS_TRACE_EXCHANGE] = "exchange",
        [TESS_TRACE_WAIT] = "wait",         [TESS_TRACE_PLAN] = "plan",
        [TESS_TRACE_DEVICE] = "device",     [TESS_TRACE_FIGURE] = "figure",
    };
    return names[kind];
}

static void add_tracks(text *t, const tess_trace *trace, int rank, bool device)
{
    char *to = room(t);
    if (to)
        added(t, snprintf(to, LONGEST,
                          "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank "
                          "%d\"}}",
                          rank, rank));
    for (int i = 0; i <= trace->tracks && (to = room(t)); i++) {
        const bool last = i == trace->tracks;
        char name[32];
        snprintf(name, sizeof name, last ? "device, compute stream" : i == 0 ? "main" : "thread %d", i);
        if (!last || device)
            added(t, snprintf(to, LONGEST,
                              ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{"
                              "\"name\":\"%s\"}}",
                              rank, last ? TRACE_DEVICE : i, name));
    }
}

static int write_span(const tess_trace *trace, const trace_span *span, int rank, int64_t shift, char *to)
{
    char name[TRACE_NAME], detail[TRACE_NAME], args[TRACE_NAME + 32] = "";
    const char *category = category_of((tess_trace_kind)span->kind);
    clean(span->name ? trace->names[span->name] : category, name);
    const int64_t start = span->start + shift;
    if (span->kind == TESS_TRACE_FIGURE) {
        double value;
        memcpy(&value, &span->duration, sizeof value);
        return snprintf(to, LONGEST,
                        ",\n{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%d,\"ts\":%lld.%03d,\"args\":{\"value\":"
                        "%.9g}}",
                        name, rank, (long long)(start / 1000), (int)(start % 1000), value);
    }
    if (span->detail) {
        clean(trace->names[span->detail], detail);
        snprintf(args, sizeof args, ",\"args\":{\"op\":\"%s\"}", detail);
    }
    return snprintf(to, LONGEST,
                    ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%lld.%03d,"
                    "\"dur\":%lld.%03d%s}",
                    name, category, rank, (int)span->track, (long long)(start / 1000), (int)(start % 1000),
                    (long long)(span->duration / 1000), (int)(span->duration % 1000), args);
}

char *tess_trace_text(const tess_trace *trace, int rank, double shift, size_t *bytes)
{
    text t = {NULL, 0, 0, false};
    const int64_t count = tess_trace_count(trace);
    const int64_t later = shift > 0 ? (int64_t)(shift * 1e9) : 0;
    bool device = false;
    for (int64_t i = 0; i < count && !device; i++)
        device = trace->spans[i].track == TRACE_DEVICE;
    add_tracks(&t, trace, rank, device);
    for (int64_t i = 0; i < count; i++) {
        char *to = room(&t);
        if (to)
            added(&t, write_span(trace, &trace->spans[i], rank, later, to));
    }
    if (t.failed) {
        tess_small_free(t.data);
        t.data = NULL;
    }
    *bytes = t.used;
    return t.data;
}
