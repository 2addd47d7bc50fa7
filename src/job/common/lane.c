#include "job/common/lane.h"

#include <string.h>

#include "base/clock.h"
#include "job/common/lane_impl.h"

static tess_status lost(tess_error *error)
{
    return tess_fail(error, TESS_DEVICE_LOST, "the device failed; finished outputs are kept");
}

void tess_lane_lose(tess_lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    lane->lost = true;
    pthread_mutex_unlock(&lane->mutex);
}

/* On the lane's own thread: the stage out to the rows, then the books. */
static tess_status download(void *arg, tess_error *error)
{
    tess_lane *lane = arg;
    tess_device *device = lane->device;
    const lane_times *t = lane->job.times;
    tess_flight *flight = lane->job.flight;
    device->wait(device, t->over, lane->download);
    tess_status status = tess_lane_download(lane, &lane->job.window, error);
    double seconds = 0, span = 0;
    if (status == TESS_OK) {
        seconds =
            device->elapsed(device, t->start, t->computed) + device->elapsed(device, t->exporting, t->over);
        span = device->elapsed(device, lane->origin, t->over);
    }
    pthread_mutex_lock(&lane->mutex);
    if (status == TESS_OK && lane->lost)
        status = lost(error);
    lane->last = tess_clock();
    lane->busy += seconds;
    lane->span = span > lane->span ? span : lane->span;
    lane->lost = lane->lost || status != TESS_OK;
    flight->seconds += seconds;
    if (status != TESS_OK && flight->status == TESS_OK) {
        flight->status = status;
        flight->error = *error;
    }
    flight->pending--;
    pthread_cond_broadcast(&lane->landed);
    pthread_mutex_unlock(&lane->mutex);
    return status;
}

static tess_op blank_op(tess_op_kind kind, tess_tensor in, tess_tensor out, const tess_pixels *pixels)
{
    tess_op op;
    memset(&op, 0, sizeof op); /* padding too: ops are compared as bytes */
    op.kind = kind;
    op.inputs = op.outputs = 1;
    op.in[0] = in;
    op.out[0] = out;
    for (int s = 0; s < TESS_SPATIAL; s++)
        op.kernel[s] = op.stride[s] = 1;
    op.samples.full_scale = pixels->image.full_scale;
    return op;
}

static tess_status import(tess_lane *lane, const tess_lane_window *w, const lane_network *network,
                          int64_t plane, tess_error *error)
{
    const tess_pixels *p = w->pixels;
    size_t at;
    tess_tensor out = tess_net_plan_input(network->plan, &at);
    tess_op op = blank_op(
        TESS_OP_IMPORT,
        tess_tensor_2d(tess_lane_in_dtype(p), w->n, tess_lane_in_rows(w), out.w, p->image.channels), out, p);
    op.samples.first = p->planes > 1 ? (int32_t)plane : 0;
    op.samples.level_channel = p->noise_map;
    op.samples.level = tess_pixels_sigma(p, op.samples.first);
    op.samples.level_from = p->sigma_channel ? (int32_t)p->colours : 0;
    const tess_prepared *prepared;
    TESS_TRY(tess_lane_sample_op(lane, &op, &prepared, error));
    const tess_op_buffers buffers = {.in = {lane->in_stage.data}, .out = {(char *)lane->arena.data + at}};
    lane->device->run(lane->device, prepared, &buffers, lane->compute);
    return TESS_OK;
}

/* Tiles that lie alike in their windows are exported together. */
static tess_status export_tiles(tess_lane *lane, const tess_lane_window *w, const lane_network *network,
                                int64_t plane, tess_error *error)
{
    const tess_pixels *p = w->pixels;
    size_t at, stage_at = 0;
    tess_tensor whole = tess_net_plan_output(network->plan, &at);
    for (int64_t i = 0, n; i < w->n; i += n) {
        const tess_span cols = tess_lane_core(w, w->first + i);
        const int64_t left = cols.from - cols.window_from, width = cols.to - cols.from;
        for (n = 1; i + n < w->n; n++) {
            tess_span next = tess_lane_core(w, w->first + i + n);
            if (next.from - next.window_from != left || next.to - next.from != width)
                break;
        }
        tess_tensor in = whole;
        in.n = n;
        tess_op op =
            blank_op(TESS_OP_EXPORT, in,
                     tess_tensor_2d(tess_lane_out_dtype(p), n, w->strip.count, width, p->image.channels), p);
        op.samples.first = p->planes > 1 ? (int32_t)plane : 0;
        op.pad_before[TESS_HEIGHT] = (int32_t)(w->strip.first - w->strip.span.window_from);
        op.pad_before[TESS_WIDTH] = (int32_t)left;
        size_t bytes;
        if (!tess_tensor_bytes(&op.out[0], &bytes) || stage_at + bytes > lane->out_stage.bytes)
            return tess_fail(error, TESS_INTERNAL, "a tile's samples need more than was planned");
        const tess_prepared *prepared;
        TESS_TRY(tess_lane_sample_op(lane, &op, &prepared, error));
        const tess_op_buffers buffers = {.in = {(char *)lane->arena.data + at +
                                                (size_t)(i * whole.stride_n) * tess_dtype_size(whole.dtype)},
                                         .out = {(char *)lane->out_stage.data + stage_at}};
        lane->device->run(lane->device, prepared, &buffers, lane->compute);
        stage_at += bytes;
    }
    return TESS_OK;
}

/* The rows are read and on their way; the network is there. */
static tess_status board(tess_lane *lane, const tess_lane_window *w, lane_network **network,
                         tess_error *error)
{
    tess_device *device = lane->device;
    pthread_mutex_lock(&lane->mutex);
    const bool failed = lane->lost;
    pthread_mutex_unlock(&lane->mutex);
    if (failed)
        return lost(error);
    TESS_TRY(tess_lane_network(lane, w, network, error));
    if (lane->boarded++ == 0)
        lane->first = tess_clock();
    TESS_TRY(tess_lane_upload(lane, w, error));
    device->record(device, lane->uploaded, lane->upload);
    return TESS_OK;
}

/* From the stage in to the stage out, into the device's queue. `boarding` is left as soon as the stage in is free
 * for the next window. */
static tess_status run_window(tess_lane *lane, const tess_lane_window *w, const lane_network *network,
                              const lane_times *times, bool *boarding, tess_error *error)
{
    tess_device *device = lane->device;
    device->wait(device, lane->uploaded, lane->compute);
    if (lane->turns == 0)
        device->record(device, lane->origin, lane->compute);
    device->record(device, times->start, lane->compute);
    for (int64_t plane = 0; plane < w->pixels->planes; plane++) {
        TESS_TRY(import(lane, w, network, plane, error));
        if (plane == w->pixels->planes - 1) {
            device->record(device, lane->imported, lane->compute);
            pthread_mutex_unlock(&lane->boarding);
            *boarding = false;
        }
        tess_lane_network_run(lane, network, w->weights);
        if (plane == 0) { /* the window before must have left the stage */
            device->record(device, times->computed, lane->compute);
            TESS_TRY(tess_worker_wait(lane->downloader, error));
            device->record(device, times->exporting, lane->compute);
        }
        TESS_TRY(export_tiles(lane, w, network, plane, error));
    }
    device->record(device, times->over, lane->compute);
    return TESS_OK;
}

static void start_download(tess_lane *lane, const tess_lane_window *w, tess_flight *flight,
                           const lane_times *times)
{
    lane->job = (lane_download){*w, flight, times};
    pthread_mutex_lock(&lane->mutex);
    flight->pending++;
    pthread_mutex_unlock(&lane->mutex);
    tess_worker_start(lane->downloader, download, lane);
}

tess_status tess_lane_submit(tess_lane *lane, const tess_lane_window *window, tess_flight *flight,
                             tess_error *error)
{
    lane_network *network = NULL;
    bool boarding = true;
    pthread_mutex_lock(&lane->boarding);
    tess_status status = board(lane, window, &network, error);
    if (status == TESS_OK) {
        pthread_mutex_lock(&lane->running);
        const lane_times *times = &lane->times[lane->turns % LANE_TIMES];
        status = run_window(lane, window, network, times, &boarding, error);
        lane->turns++;
        if (status == TESS_OK)
            start_download(lane, window, flight, times);
        pthread_mutex_unlock(&lane->running);
    }
    if (boarding)
        pthread_mutex_unlock(&lane->boarding);
    return status;
}

tess_status tess_lane_settle(tess_lane *lane, tess_flight *flight, tess_error *error)
{
    pthread_mutex_lock(&lane->mutex);
    while (flight->pending > 0)
        pthread_cond_wait(&lane->landed, &lane->mutex);
    const tess_status status = flight->status;
    if (status != TESS_OK && error)
        *error = flight->error;
    pthread_mutex_unlock(&lane->mutex);
    return status;
}

void tess_lane_measured(tess_lane *lane, tess_lane_figures *figures)
{
    tess_lane_look_at_memory(lane);
    pthread_mutex_lock(&lane->mutex);
    *figures =
        (tess_lane_figures){.seconds = lane->last > lane->first ? lane->last - lane->first : 0,
                            .busy = lane->span > 0 ? lane->busy / lane->span : 0,
                            .shape_seconds = lane->shape_seconds,
                            .shape_mean_seconds = lane->shapes ? lane->shape_total / (double)lane->shapes : 0,
                            .least_free = lane->least_free,
                            .shapes = lane->shapes};
    pthread_mutex_unlock(&lane->mutex);
}
