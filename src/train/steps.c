#include "train/steps.h"

bool tess_steps_overlap(tess_dtype dtype, int micro_batches)
{
    return dtype != TESS_F16 && micro_batches == 1;
}

int tess_steps_depth(bool overlap, int micro_batches)
{
    return micro_batches + 2 + overlap;
}

tess_status tess_steps_feed(tess_steps *s, tess_error *error)
{
    tess_batch *batch = &s->held[s->holds];
    TESS_TRY(tess_data_take(s->queue, batch, error));
    s->holds++;
    tess_feed_batch(s->feed, batch);
    return TESS_OK;
}

/* Those of steps up to this one. */
static void release(tess_steps *s, int64_t step)
{
    int kept = 0;
    for (int i = 0; i < s->holds; i++)
        if (s->held[i].step <= step)
            tess_data_release(s->queue, &s->held[i]);
        else
            s->held[kept++] = s->held[i];
    s->holds = kept;
}

tess_status tess_steps_result(tess_steps *s, int64_t step, double *loss, double *norm, tess_error *error)
{
    const bool only = tess_training_queued(s->training) <= 1; /* then all copies are waited for too */
    TESS_TRY(tess_training_result(s->training, NULL, loss, norm, error));
    release(s, only ? INT64_MAX : step);
    return TESS_OK;
}

void tess_steps_stop(tess_steps *s)
{
    double loss, norm;
    tess_status ignored = TESS_OK;
    while (s->training && tess_training_queued(s->training) > 0)
        ignored = tess_training_result(s->training, NULL, &loss, &norm, NULL);
    (void)ignored;
    release(s, INT64_MAX);
    s->fed = false;
}
