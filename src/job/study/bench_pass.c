/* The passes of a point. The input lies on the device and is copied to its place in the arena before each run,
 * because a run reuses that place; the copy is in the time (a thousandth or two of it). Passes follow each other
 * without a gap and events between them give the times, so the host's part shows only when it is the bottleneck.
 * With transfer, two buffers each way let upload, run and download overlap. */
#include "base/clock.h"
#include "job/study/bench_point.h"

static const double WARM_SECONDS = 0.1;

static void run_network(const tess_bench_point *p, const tess_bench_prepared *s)
{
    tess_study *b = p->study;
    if (s->graph)
        p->device->graph_launch(p->device, s->graph, b->compute);
    else
        tess_net_plan_run(s->plan, p->arena.data, p->workspace.data, b->model->weights.data, b->compute);
}

static void run_resident(const tess_bench_point *p, const tess_bench_prepared *s)
{
    p->device->copy(p->device, (char *)p->arena.data + s->in_at, p->in[0].data, s->in_bytes,
                    p->study->compute);
    run_network(p, s);
}

static void run_transfer(tess_bench_point *p, const tess_bench_prepared *s)
{
    tess_device *d = p->device;
    tess_study *b = p->study;
    const int slot = (int)(p->runs++ % TESS_BENCH_SLOTS);
    d->wait(d, p->taken[slot], b->up);
    d->copy(d, p->in[slot].data, p->host_in[slot].data, s->in_bytes, b->up);
    d->record(d, p->uploaded[slot], b->up);
    d->wait(d, p->uploaded[slot], b->compute);
    d->copy(d, (char *)p->arena.data + s->in_at, p->in[slot].data, s->in_bytes, b->compute);
    d->record(d, p->taken[slot], b->compute);
    run_network(p, s);
    d->wait(d, p->downloaded[slot], b->compute);
    d->copy(d, p->out[slot].data, (char *)p->arena.data + s->out_at, s->out_bytes, b->compute);
    d->record(d, p->computed[slot], b->compute);
    d->wait(d, p->computed[slot], b->down);
    d->copy(d, p->host_out[slot].data, p->out[slot].data, s->out_bytes, b->down);
    d->record(d, p->downloaded[slot], b->down);
}

/* The stream on which a pass ends. */
static tess_stream *last_stream(const tess_bench_point *p)
{
    return p->work->transfer ? p->study->down : p->study->compute;
}

static void pass(tess_bench_point *p)
{
    for (int i = 0; i < p->work->count; i++)
        for (int64_t k = 0; k < p->work->shapes[i].times; k++)
            if (p->work->transfer)
                run_transfer(p, &p->shapes[i]);
            else
                run_resident(p, &p->shapes[i]);
}

tess_status tess_bench_time(tess_bench_point *p, tess_error *error)
{
    tess_device *d = p->device;
    tess_stream *last = last_stream(p);
    const double start = tess_clock();
    for (int i = 0; i < 2 || tess_clock() - start < WARM_SECONDS; i++) {
        pass(p);
        TESS_TRY(d->sync(d, last, error));
    }
    pass(p); /* so that no pass begins on an idle device */
    d->record(d, p->marks[0], last);
    for (int i = 0; i < p->repeats; i++) {
        pass(p);
        d->record(d, p->marks[i + 1], last);
    }
    TESS_TRY(d->event_sync(d, p->marks[p->repeats], error));
    TESS_TRY(d->sync(d, last, error));
    for (int i = 0; i < p->repeats; i++)
        p->times[i] = d->elapsed(d, p->marks[i], p->marks[i + 1]);
    return TESS_OK;
}
