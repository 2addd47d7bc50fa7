/* What is said when a job of several files was stopped: how far it came, and how it can be continued. A result that
 * replaced its input looks like an input that waits, so that only this message and the record tell them apart. */
#include <stdio.h>

#include "job/denoise/denoise.h"

tess_status tess_denoise_stopped(const tess_denoise_job *job, tess_error *error)
{
    int64_t done = 0, todo = 0;
    const tess_denoise_file *last = NULL; /* that is done */
    bool gaps = false, open = false;      /* whether a file before it was left */
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        todo += !file->skipped;
        open = open || (file->status == TESS_INTERRUPTED && !file->done);
        if (!file->done)
            continue;
        done++;
        last = file;
        gaps = gaps || open;
    }
    static const char HEAD[] = "stopped with %lld of %lld files done; no half-written output is left, ";
    char head[sizeof HEAD + 40];
    snprintf(head, sizeof head, HEAD, (long long)done, (long long)todo);
    if (!job->in_place)
        return tess_fail(error, TESS_INTERRUPTED, "%s`skip_existing` goes on", head);
    if (!last)
        return tess_fail(error, TESS_INTERRUPTED, "%sand no input is replaced", head);
    if (gaps)
        return tess_fail(
            error, TESS_INTERRUPTED,
            "%sbut done inputs are replaced: go on with the others alone; the record (`record_file`) "
            "says which are done",
            head);
    return tess_fail(error, TESS_INTERRUPTED,
                     "%sbut done inputs are replaced: go on with the others alone, those after %s", head,
                     last->name);
}
