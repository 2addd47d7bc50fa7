/* stage_read.c: reading ahead: a thread reads the next block into the other of two buffers while the device computes. */
#include "base/clock.h"
#include "base/stop.h"
#include "train/statistics/stage_impl.h"

static const double POLL = 0.05; /* seconds between two looks at the stop flag */

static tess_status read_ahead(void *arg, tess_error *error)
{
    tess_pixel_stage *stage = arg;
    const tess_pixel_ahead *a = &stage->ahead;
    const double start = tess_clock();
    const tess_status status = a->set.read(a->set.user, a->image, a->rows.first, a->rows.rows,
                                           stage->samples[1 - stage->turn].data, error);
    stage->ahead.seconds = tess_clock() - start;
    return status;
}

static bool is_ahead(const tess_pixel_ahead *a, const tess_pixel_set *set, int64_t image,
                     tess_pixel_rows rows)
{
    return a->active && a->set.user == set->user && a->set.read == set->read && a->image == image &&
           a->rows.first == rows.first && a->rows.rows == rows.rows;
}

tess_status tess_pixel_stage_fetch(tess_pixel_stage *stage, const tess_pixel_set *set, int64_t image,
                                   tess_pixel_rows now, tess_pixel_rows next, tess_error *error)
{
    const bool ready = is_ahead(&stage->ahead, set, image, now);
    if (stage->ahead.active) {
        tess_error unused; /* what nobody wanted may fail */
        while (tess_worker_busy(stage->reader, POLL))
            tess_stop_poll(stage->settings.stop);
        const tess_status status = tess_worker_wait(stage->reader, ready ? error : &unused);
        stage->ahead.active = false;
        stage->read_seconds += stage->ahead.seconds;
        if (ready) {
            TESS_TRY(status);
            stage->turn = 1 - stage->turn;
        }
    }
    const double start = tess_clock();
    if (!ready)
        TESS_TRY(set->read(set->user, image, now.first, now.rows, stage->samples[stage->turn].data, error));
    stage->read_seconds += ready ? 0 : tess_clock() - start;
    if (next.rows > 0 && stage->samples[1].data) {
        stage->ahead = (tess_pixel_ahead){.active = true, .set = *set, .image = image, .rows = next};
        tess_worker_start(stage->reader, read_ahead, stage);
    }
    return TESS_OK;
}
