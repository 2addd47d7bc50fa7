/* The passes of a point. The input is on the device and is copied to its place in the arena before each run, because
 * a run reuses that place; the measured time includes this copy (0.1 to 0.2 %). Passes follow each other without a
 * gap and events between them give the times, so the host's work shows only if it is the bottleneck. With transfer,
 * two buffers in each direction let upload, run and download overlap. */
#include "base/clock.h"
#include "job/study/bench_point.h"

static const double WARM_SECONDS = 0.1;

tess_window_net tess_bench_net(const tess_bench_point *p)
{
    return (tess_window_net){p->study->model->bound, p->study->model->weights.data, 1};
}

static size_t bytes_of(const tess_window_end *end)
{
    size_t bytes = 0; /* cannot overflow: the plan computed it before */
    (void)tess_tensor_bytes(&end->tensor, &bytes);
    return bytes;
}

static tess_status copy_resident(void *user, const tess_window_batch *batch, int64_t plane,
                                 const tess_window_end *input, tess_error *error)
{
    (void)batch, (void)plane, (void)error;
    const tess_bench_point *p = user;
    p->device->memory->copy(p->device, input->data, p->in[0].data, bytes_of(input), p->study->compute);
    return TESS_OK;
}

static tess_status leave(void *user, const tess_window_batch *batch, int64_t plane,
                         const tess_window_end *output, tess_error *error)
{
    (void)user, (void)batch, (void)plane, (void)output, (void)error;
    return TESS_OK;
}

static tess_status upload(void *user, const tess_window_batch *batch, int64_t plane,
                          const tess_window_end *input, tess_error *error)
{
    (void)batch, (void)plane, (void)error;
    tess_bench_point *p = user;
    tess_device *d = p->device;
    const tess_study *b = p->study;
    const int slot = (int)(p->runs % TESS_BENCH_SLOTS);
    d->streams->wait(d, p->taken[slot], b->up);
    d->memory->copy(d, p->in[slot].data, p->host_in[slot].data, bytes_of(input), b->up);
    d->streams->record(d, p->uploaded[slot], b->up);
    d->streams->wait(d, p->uploaded[slot], b->compute);
    d->memory->copy(d, input->data, p->in[slot].data, bytes_of(input), b->compute);
    d->streams->record(d, p->taken[slot], b->compute);
    return TESS_OK;
}

static tess_status download(void *user, const tess_window_batch *batch, int64_t plane,
                            const tess_window_end *output, tess_error *error)
{
    (void)batch, (void)plane, (void)error;
    tess_bench_point *p = user;
    tess_device *d = p->device;
    const tess_study *b = p->study;
    const int slot = (int)(p->runs++ % TESS_BENCH_SLOTS);
    d->streams->wait(d, p->downloaded[slot], b->compute);
    d->memory->copy(d, p->out[slot].data, output->data, bytes_of(output), b->compute);
    d->streams->record(d, p->computed[slot], b->compute);
    d->streams->wait(d, p->computed[slot], b->down);
    d->memory->copy(d, p->host_out[slot].data, p->out[slot].data, bytes_of(output), b->down);
    d->streams->record(d, p->downloaded[slot], b->down);
    return TESS_OK;
}

/* The stream in which a pass ends. */
static tess_stream *last_stream(const tess_bench_point *p)
{
    return p->work->transfer ? p->study->down : p->study->compute;
}

static tess_status pass(tess_bench_point *p, tess_error *error)
{
    static const tess_mover resident = {.gather = copy_resident, .scatter = leave},
                            transfer = {.gather = upload, .scatter = download};
    const tess_window_net net = tess_bench_net(p);
    const tess_window_run run = {.net = &net,
                                 .cut = &p->work->cut,
                                 .strip = TESS_ALL_STRIPS,
                                 .stream = p->study->compute,
                                 .mover = p->work->transfer ? &transfer : &resident,
                                 .user = p};
    return tess_windows_run(p->windows, &run, error);
}

tess_status tess_bench_time(tess_bench_point *p, tess_error *error)
{
    tess_device *d = p->device;
    tess_stream *last = last_stream(p);
    const double start = tess_clock();
    for (int i = 0; i < 2 || tess_clock() - start < WARM_SECONDS; i++) {
        TESS_TRY(pass(p, error));
        TESS_TRY(d->streams->sync(d, last, error));
    }
    TESS_TRY(pass(p, error)); /* so that no timed pass starts on an idle device */
    d->streams->record(d, p->marks[0], last);
    for (int i = 0; i < p->repeats; i++) {
        TESS_TRY(pass(p, error));
        d->streams->record(d, p->marks[i + 1], last);
    }
    TESS_TRY(d->streams->event_sync(d, p->marks[p->repeats], error));
    TESS_TRY(d->streams->sync(d, last, error));
    for (int i = 0; i < p->repeats; i++)
        p->times[i] = d->streams->elapsed(d, p->marks[i], p->marks[i + 1]);
    return TESS_OK;
}
