#include "base/stop.h"

#include "base/clock.h"

void tess_stop_init(tess_stop *stop, tess_progress_fn progress, void *user)
{
    stop->progress = progress;
    stop->user = user;
    stop->owner = pthread_self();
    atomic_init(&stop->wanted, false);
    atomic_init(&stop->done, 0);
    stop->total = stop->shown = stop->current = 0;
    stop->start = tess_clock();
    stop->next = 0;
}

static bool owned(const tess_stop *stop)
{
    return stop && stop->progress && pthread_equal(pthread_self(), stop->owner);
}

/* A loop with several passes starts counting again in each pass, so the reported progress never goes below what
 * was shown before. */
static void report(tess_stop *stop, int64_t done)
{
    done = done > stop->total ? stop->total : done;
    stop->shown = done > stop->shown ? done : stop->shown;
    const double now = tess_clock();
    stop->next = now + TESS_STOP_SECONDS;
    if (!stop->progress(stop->user, stop->shown, stop->total, now - stop->start))
        atomic_store(&stop->wanted, true);
}

void tess_stop_begin(tess_stop *stop, int64_t total)
{
    if (!stop)
        return;
    atomic_store(&stop->done, 0);
    stop->total = total;
    stop->shown = stop->current = 0;
    stop->start = tess_clock();
}

void tess_stop_add(tess_stop *stop, int64_t units)
{
    if (!stop)
        return;
    const int64_t done = atomic_fetch_add(&stop->done, units) + units;
    if (!owned(stop))
        return;
    stop->current = 0;
    if (units > 0 && !tess_stop_wanted(stop))
        report(stop, done);
}

void tess_stop_end(tess_stop *stop)
{
    if (!owned(stop) || tess_stop_wanted(stop))
        return;
    atomic_store(&stop->done, stop->total);
    if (stop->shown < stop->total)
        report(stop, stop->total);
}

bool tess_stop_poll_part(tess_stop *stop, int64_t item, int64_t items)
{
    if (!owned(stop) || tess_stop_wanted(stop))
        return tess_stop_wanted(stop);
    if (tess_clock() >= stop->next) {
        const double share = items > 0 ? (double)item / (double)items : 0;
        report(stop, atomic_load(&stop->done) + (int64_t)((double)stop->current * share));
    }
    return tess_stop_wanted(stop);
}

bool tess_stop_poll(tess_stop *stop)
{
    return tess_stop_poll_part(stop, 0, 0);
}

void tess_stop_current(tess_stop *stop, int64_t units)
{
    if (owned(stop))
        stop->current = units;
}

tess_status tess_stop_check(tess_stop *stop, tess_error *error)
{
    return tess_stop_poll(stop)
               ? tess_fail(error, TESS_INTERRUPTED, "stopped; no half-written output is left")
               : TESS_OK;
}
