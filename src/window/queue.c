#include "window/queue.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/trace.h"
#include "window/queue_impl.h"

static tess_status lost(tess_error *error)
{
    return tess_fail(error, TESS_DEVICE_LOST, "the device failed; finished outputs are kept");
}

void tess_queue_lose(tess_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->lost = true;
    pthread_mutex_unlock(&q->mutex);
}

void tess_queue_see_memory(tess_queue *q)
{
    tess_device_facts facts;
    q->device->facts(q->device, &facts);
    pthread_mutex_lock(&q->mutex);
    if (facts.memory_free < q->least_free)
        q->least_free = facts.memory_free;
    pthread_mutex_unlock(&q->mutex);
}

/* The device's own times of a batch, whose events are complete. The origin is told as if it had happened when it was
 * queued: the first upload may still have been under way. */
static void record_batch(const tess_queue *q, const queue_times *t, tess_trace *trace)
{
    const tess_device_streams *streams = q->device->streams;
    tess_device *device = q->device;
    const double start = q->origin_clock + streams->elapsed(device, q->origin, t->start),
                 exporting = q->origin_clock + streams->elapsed(device, q->origin, t->exporting);
    tess_trace_add_device(trace, "network", start, start + streams->elapsed(device, t->start, t->computed));
    tess_trace_add_device(trace, "export", exporting,
                          exporting + streams->elapsed(device, t->exporting, t->over));
}

/* Runs on the queue's thread: copies the results to the image and updates the ticket and the statistics. */
static tess_status download(void *arg, tess_error *error)
{
    tess_queue *q = arg;
    tess_device *device = q->device;
    const queue_batch *b = &q->download_job;
    const queue_times *t = b->times;
    tess_ticket *ticket = b->ticket;
    tess_trace *trace = device->counter->trace;
    device->streams->wait(device, t->over, q->download);
    const double start = tess_trace_begin(trace);
    tess_status status = tess_queue_download(b, error);
    tess_trace_end(trace, TESS_TRACE_DOWNLOAD, "download windows", start);
    double seconds = 0, span = 0;
    if (status == TESS_OK) {
        seconds = device->streams->elapsed(device, t->start, t->computed) +
                  device->streams->elapsed(device, t->exporting, t->over);
        span = device->streams->elapsed(device, q->origin, t->over);
        if (trace)
            record_batch(q, t, trace);
    }
    pthread_mutex_lock(&q->mutex);
    if (status == TESS_OK && q->lost)
        status = lost(error);
    q->last = tess_clock();
    q->busy += seconds;
    q->span = span > q->span ? span : q->span;
    q->lost = q->lost || status != TESS_OK;
    ticket->seconds += seconds;
    if (status != TESS_OK && ticket->status == TESS_OK) {
        ticket->status = status;
        ticket->error = *error;
    }
    ticket->pending--;
    pthread_cond_broadcast(&q->done);
    pthread_mutex_unlock(&q->mutex);
    return status;
}

static tess_status begin(void *user, const tess_window_batch *windows, tess_error *error)
{
    (void)windows;
    queue_batch *b = user;
    tess_queue *q = b->queue;
    pthread_mutex_lock(&q->submit);
    pthread_mutex_lock(&q->mutex);
    const bool failed = q->lost;
    pthread_mutex_unlock(&q->mutex);
    b->has_submit = !failed;
    if (!failed)
        return TESS_OK;
    pthread_mutex_unlock(&q->submit);
    return lost(error);
}

/* Called when the plan exists: reads and uploads the samples, and takes the `order` lock for the batch. */
static tess_status start(queue_batch *b, const tess_window_batch *windows, tess_error *error)
{
    tess_queue *q = b->queue;
    tess_device *device = q->device;
    if (q->windows->shapes != q->shapes_seen && q->windows->shapes <= QUEUE_SHAPES)
        tess_queue_see_memory(q);
    q->shapes_seen = q->windows->shapes;
    if (q->submitted++ == 0)
        q->first = tess_clock();
    TESS_TRY(tess_queue_upload(b, windows, error));
    device->streams->record(device, q->uploaded, q->upload);
    pthread_mutex_lock(&q->order);
    b->has_order = true;
    b->times = &q->times[q->turns % QUEUE_UNDER_WAY];
    device->streams->wait(device, q->uploaded, q->compute);
    if (q->turns == 0)
        device->streams->record(device, q->origin, q->compute), q->origin_clock = tess_clock();
    device->streams->record(device, b->times->start, q->compute);
    return TESS_OK;
}

static tess_op_samples samples_of(const queue_batch *b, int64_t plane)
{
    return (tess_op_samples){.full_scale = b->image->full_scale, .first = b->planes > 1 ? (int32_t)plane : 0};
}

/* Releases `submit` as soon as the input stage is free for the next batch. */
static tess_status gather(void *user, const tess_window_batch *windows, int64_t plane,
                          const tess_window_end *input, tess_error *error)
{
    queue_batch *b = user;
    tess_queue *q = b->queue;
    const tess_queue_image *image = b->image;
    if (plane == 0)
        TESS_TRY(start(b, windows, error));
    tess_op_samples samples = samples_of(b, plane);
    samples.level_channel = image->level_channel;
    samples.level_from = image->level_from;
    if (image->level_count > 0)
        samples.level = image->levels[tess_min_i64(samples.first, image->level_count - 1)];
    const tess_tensor stage = tess_tensor_2d(image->in, windows->n, tess_queue_in_rows(b, windows),
                                             input->tensor.w, image->channels);
    const tess_op op = tess_import_op(&stage, &input->tensor, samples);
    TESS_TRY(
        tess_sample_op_run(q->windows->sample_ops, &op, q->in_stage.data, input->data, q->compute, error));
    if (plane == b->planes - 1) {
        q->device->streams->record(q->device, q->imported, q->compute);
        pthread_mutex_unlock(&q->submit);
        b->has_submit = false;
    }
    return TESS_OK;
}

/* Exports tiles together when they have the same position in their windows and the same width. */
static tess_status export_tiles(const queue_batch *b, const tess_window_batch *windows, int64_t plane,
                                const tess_window_end *output, tess_error *error)
{
    tess_queue *q = b->queue;
    const tess_tensor *whole = &output->tensor;
    size_t stage_at = 0;
    for (int64_t i = 0, n; i < windows->n; i += n) {
        const tess_span cols = tess_queue_core(b, windows, i);
        const int64_t left = cols.from - cols.window_from, width = cols.to - cols.from;
        for (n = 1; i + n < windows->n; n++) {
            const tess_span next = tess_queue_core(b, windows, i + n);
            if (next.from - next.window_from != left || next.to - next.from != width)
                break;
        }
        tess_tensor in = *whole;
        in.n = n;
        const tess_tensor out =
            tess_tensor_2d(b->image->out, n, tess_queue_out_rows(b, windows), width, b->image->channels);
        const tess_op op = tess_export_op(&in, &out, samples_of(b, plane),
                                          windows->rows.from - windows->rows.window_from, left);
        size_t bytes;
        if (!tess_tensor_bytes(&out, &bytes) || stage_at + bytes > q->out_stage.bytes)
            return tess_fail(error, TESS_INTERNAL, "a tile's samples need more than was planned");
        TESS_TRY(tess_sample_op_run(q->windows->sample_ops, &op,
                                    (char *)output->data +
                                        (size_t)(i * whole->stride_n) * tess_dtype_size(whole->dtype),
                                    (char *)q->out_stage.data + stage_at, q->compute, error));
        stage_at += bytes;
    }
    return TESS_OK;
}

static tess_status scatter(void *user, const tess_window_batch *windows, int64_t plane,
                           const tess_window_end *output, tess_error *error)
{
    queue_batch *b = user;
    tess_queue *q = b->queue;
    tess_device *device = q->device;
    if (plane == 0) { /* the previous batch must have left the output stage */
        device->streams->record(device, b->times->computed, q->compute);
        TESS_TRY(tess_worker_wait(q->downloader, error));
        device->streams->record(device, b->times->exporting, q->compute);
    }
    return export_tiles(b, windows, plane, output, error);
}

static void end(void *user, const tess_window_batch *windows, tess_status status)
{
    queue_batch *b = user;
    tess_queue *q = b->queue;
    if (b->has_order) {
        q->turns++;
        if (status == TESS_OK) {
            q->device->streams->record(q->device, b->times->over, q->compute);
            q->download_job = *b;
            q->download_job.windows = *windows;
            pthread_mutex_lock(&q->mutex);
            b->ticket->pending++;
            pthread_mutex_unlock(&q->mutex);
            tess_worker_start(q->downloader, download, q);
        }
        pthread_mutex_unlock(&q->order);
    }
    if (b->has_submit) {
        if (q->windows->capture_failed)
            tess_queue_lose(q);
        pthread_mutex_unlock(&q->submit);
    }
    b->has_submit = b->has_order = false;
}

tess_status tess_queue_prepare(tess_queue *q, const tess_window_net *net, const tess_cut *cut,
                               tess_error *error)
{
    pthread_mutex_lock(&q->submit);
    const tess_status status = tess_windows_prepare(q->windows, net, cut, error);
    pthread_mutex_unlock(&q->submit);
    return status;
}

tess_status tess_queue_submit(tess_queue *q, const tess_window_net *net, const tess_cut *cut, int64_t strip,
                              const tess_queue_image *image, tess_ticket *ticket, tess_error *error)
{
    static const tess_mover mover = {
        .begin = begin, .gather = gather, .scatter = scatter, .end = end, .under_way = QUEUE_UNDER_WAY};
    if (strip == TESS_ALL_STRIPS && cut->axis[TESS_DEPTH].tiles > 1)
        return tess_fail(error, TESS_INTERNAL,
                         "a queue takes images; submit the slices of a volume one by one");
    queue_batch b = {.queue = q, .image = image, .planes = net->planes, .ticket = ticket};
    const tess_window_run run = {.net = net,
                                 .cut = cut,
                                 .strip = strip,
                                 .size = {1, image->height, image->width},
                                 .stream = q->compute,
                                 .mover = &mover,
                                 .user = &b,
                                 .exchanger = image->exchanger,
                                 .exchange_user = image->exchange_user};
    return tess_windows_run(q->windows, &run, error);
}

tess_status tess_queue_wait(tess_queue *q, tess_ticket *ticket, tess_error *error)
{
    pthread_mutex_lock(&q->mutex);
    while (ticket->pending > 0)
        pthread_cond_wait(&q->done, &q->mutex);
    const tess_status status = ticket->status;
    if (status != TESS_OK && error)
        *error = ticket->error;
    pthread_mutex_unlock(&q->mutex);
    return status;
}

void tess_queue_measured(tess_queue *q, tess_queue_figures *figures)
{
    tess_queue_see_memory(q);
    pthread_mutex_lock(&q->submit);
    pthread_mutex_lock(&q->mutex);
    const tess_windows *w = q->windows;
    *figures = (tess_queue_figures){.seconds = q->last > q->first ? q->last - q->first : 0,
                                    .busy = q->span > 0 ? q->busy / q->span : 0,
                                    .shape_seconds = w->shape_seconds,
                                    .shape_mean_seconds = w->shapes ? w->shape_total / (double)w->shapes : 0,
                                    .least_free = q->least_free,
                                    .shapes = w->shapes};
    pthread_mutex_unlock(&q->mutex);
    pthread_mutex_unlock(&q->submit);
}
