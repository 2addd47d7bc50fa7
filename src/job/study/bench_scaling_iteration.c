/* Whole iterations: `reconstruct` on all ranks that were launched, through the public interface, as a user would call it. What it
 * cannot do over ranks is left out of the study with a note. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/study/bench_scaling_strip.h"

enum { FOLDER = 512, MOST_ITERATIONS = 9 };

/* Rank 0 writes the image, into a folder that is removed. */
static tess_status make_folder(tess_dist *dist, char folder[FOLDER], tess_error *error)
{
    const char *temporary = getenv("TMPDIR");
    tess_status status = TESS_OK;
    snprintf(folder, FOLDER, "%.400s/tessera-scaling-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (dist->rank == 0 && !mkdtemp(folder))
        status = tess_fail(error, TESS_IO_FAILED, "%s: no folder can be made there", folder);
    TESS_TRY(tess_dist_agree(dist, status, error));
    return tess_dist_broadcast(dist, 0, folder, FOLDER, error);
}

/* Means over all iterations but the first, which warms up. Only rank 0 has a record. */
static void read_record(const char *text, tess_iteration_times *times)
{
    tess_json *record = NULL;
    if (!text || tess_json_parse(text, strlen(text), &record, NULL) != TESS_OK)
        return;
    const tess_json *list = tess_json_get(tess_json_get(record, "reconstruct"), "iterations");
    const int64_t count = tess_json_length(list);
    for (int64_t i = 1; i < count; i++) {
        const tess_json *one = tess_json_at(list, i);
        times->gradient += tess_json_get_double(one, "gradient_seconds", 0) / (double)(count - 1);
        times->denoiser += tess_json_get_double(one, "denoise_seconds", 0) / (double)(count - 1);
    }
    const tess_json *measured = tess_json_get(record, "measured");
    times->bytes = tess_json_get_double(tess_json_get(measured, "peak_bytes"), "total", 0);
    times->iterations = count > 1 ? count - 1 : 0;
    tess_json_free(record);
}

tess_status tess_iteration_measure(tess_context *context, const tess_bench_settings *s, const char *name,
                                   const tess_scale_problem *problem, tess_iteration_times *times)
{
    tess_error *error = &context->error;
    tess_reconstruct_settings settings;
    char folder[FOLDER], output[FOLDER + 16], *record = NULL;
    *times = (tess_iteration_times){0};
    TESS_TRY(make_folder(context->dist, folder, error));
    snprintf(output, sizeof output, "%s/image.npy", folder);
    tess_reconstruct_settings_init(&settings);
    settings.common = s->common;
    settings.common.record_file = NULL;
    settings.common.note = NULL;
    settings.problem = name;
    settings.output = output;
    settings.model = tess_scaling_model(s, problem);
    settings.size = problem->height;
    settings.size_width = problem->kind == TESS_SCALE_DEBLUR ? problem->width : 0;
    settings.iterations = tess_min_i64(s->repeats, MOST_ITERATIONS) + 1;
    const tess_status status = tess_reconstruct(context, &settings, &record);
    read_record(record, times);
    tess_record_free(record);
    if (context->dist->rank == 0) {
        unlink(output);
        rmdir(folder);
    }
    if (status == TESS_OK || status == TESS_INTERRUPTED || status == TESS_NO_MEMORY)
        return status;
    if (context->dist->rank == 0)
        tess_note(&s->common, TESS_NOTE_WARNING, "%s: whole iterations are not measured: %s", name,
                  error->text);
    return TESS_OK;
}
