/* The functions of tessera_trace.h. The events of all ranks come to rank 0 as text, which writes one file. */
#include "tessera_trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/temp.h"
#include "base/trace.h"
#include "job/library/library.h"

static const int64_t MOST_SPANS = (int64_t)1 << 18, MOST_ANYONE = (int64_t)1 << 26;

void tess_trace_settings_fill(tess_trace_settings *settings, size_t size)
{
    const tess_trace_settings usual = {.most_spans = 0};
    tess_struct_give(settings, size, &usual, sizeof usual);
}

void tess_job_state_fill(tess_job_state *state, size_t size)
{
    const tess_job_state empty = {.loss = NAN, .psnr_db = NAN};
    tess_struct_give(state, size, &empty, sizeof empty);
}

tess_status tess_context_trace(tess_context *context, const tess_trace_settings *settings)
{
    tess_trace_settings s = {.size = 0};
    tess_error *error = &context->error;
    if (!tess_struct_take(&s, sizeof s, settings) || s.most_spans < 0 || s.most_spans > MOST_ANYONE)
        return tess_fail(error, TESS_BAD_OPTION,
                         "the settings of a trace: call tess_trace_settings_init, and use at most %lld spans",
                         (long long)MOST_ANYONE);
    if (context->memory.trace)
        return tess_fail(error, TESS_BAD_OPTION, "this context records already");
    const int64_t most = !s.spans ? 0 : s.most_spans ? s.most_spans : MOST_SPANS;
    context->memory.trace = tess_trace_create(most, s.profile);
    if (!context->memory.trace)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to record %lld spans", (long long)most);
    context->dist->trace = context->memory.trace;
    return TESS_OK;
}

typedef struct events {
    double epoch;
    int64_t left_out;
    size_t bytes;
} events;

static tess_status write_events(const char *path, const events *of, int ranks, const char *all,
                                tess_error *error)
{
    tess_temp *temp = NULL;
    TESS_TRY(tess_temp_create(path, &temp, error));
    int64_t left_out = 0;
    for (int r = 0; r < ranks; r++)
        left_out += of[r].left_out;
    FILE *file = tess_temp_open(temp);
    bool good = file != NULL;
    if (good)
        fprintf(file,
                "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"tessera\",\"version\":\"%s\","
                "\"ranks\":%d,\"left_out\":%lld},\"traceEvents\":[\n",
                TESSERA_VERSION, ranks, (long long)left_out);
    for (int r = 0; r < ranks && good; all += of[r].bytes, r++)
        good = fwrite(all, 1, of[r].bytes, file) == of[r].bytes &&
               fputs(r + 1 < ranks ? ",\n" : "\n]}\n", file) >= 0;
    const int why = errno;
    if (file && fclose(file) != 0)
        good = false;
    tess_status status = good ? TESS_OK : tess_temp_fail(why ? why : errno, error);
    if (status == TESS_OK)
        status = tess_temp_commit(temp, path, error);
    tess_temp_remove(temp);
    return status;
}

/* Collective. Rank 0 gets the text of all ranks, whose sizes are in `of`. */
static tess_status collect(tess_dist *dist, const events *of, char *mine, char **all, tess_error *error)
{
    size_t total = 0, *sizes = tess_small_alloc((size_t)dist->size, sizeof *sizes);
    for (int r = 0; r < dist->size && sizes; r++)
        total += sizes[r] = of[r].bytes;
    *all = dist->rank == 0 ? tess_small_alloc(total + 1, 1) : NULL;
    tess_status status = sizes && (*all || dist->rank)
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for the traces of all ranks");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_collect(dist, 0, mine, sizes, *all, error);
    tess_small_free(sizes);
    return status;
}

/* Collective. `of` has room for each rank. */
static tess_status write_all(tess_dist *dist, const tess_trace *trace, events *of, const char *path,
                             tess_error *error)
{
    events mine = {.epoch = tess_trace_epoch(trace), .left_out = tess_trace_left_out(trace)};
    TESS_TRY(tess_dist_gather(dist, &mine, sizeof mine, of, error));
    double first = mine.epoch;
    for (int r = 0; r < dist->size; r++)
        first = fmin(first, of[r].epoch);
    char *text = tess_trace_text(trace, dist->rank, mine.epoch - first, &mine.bytes), *all = NULL;
    tess_status status =
        text ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the text of a trace");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_gather(dist, &mine, sizeof mine, of, error);
    if (status == TESS_OK && dist->size > 1)
        status = collect(dist, of, text, &all, error);
    if (status == TESS_OK && dist->rank == 0)
        status = write_events(path, of, dist->size, all ? all : text, error);
    tess_small_free(all);
    tess_small_free(text);
    return tess_dist_agree(dist, status, error);
}

tess_status tess_context_trace_write(tess_context *context, const char *path)
{
    tess_trace *trace = context->memory.trace;
    tess_dist *dist = context->dist;
    tess_error *error = &context->error;
    if (!trace)
        return tess_fail(error, TESS_BAD_OPTION, "nothing was recorded: call tess_context_trace first");
    tess_trace_add(trace, TESS_TRACE_JOB, "job", NULL, 0, tess_clock());
    dist->trace = NULL; /* what follows is no part of the job */
    events *of = tess_small_alloc((size_t)dist->size, sizeof *of);
    tess_status status =
        of ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the traces of all ranks");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = write_all(dist, trace, of, path, error);
    dist->trace = trace;
    tess_small_free(of);
    return status;
}

void tess_context_state(const tess_context *context, tess_job_state *state)
{
    tess_mem_scope scope;
    tess_mem_usage held, peak;
    const uint64_t planned = tess_memory_planned(&context->memory, &scope);
    tess_memory_held(&context->memory, scope, &held);
    tess_memory_peak(&context->memory, scope, &peak);
    const tess_job_state now = {.held_bytes = held.total,
                                .peak_bytes = peak.total,
                                .planned_bytes = planned,
                                .loss = tess_trace_figure(context->memory.trace, TESS_FIGURE_LOSS),
                                .psnr_db = tess_trace_figure(context->memory.trace, TESS_FIGURE_PSNR)};
    tess_struct_give(state, state->size, &now, sizeof now);
}
