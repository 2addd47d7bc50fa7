/* Order of work on the card: copies, streams, events, and graphs captured from a stream. */
#include "cuda/core/device_impl.h"

#include <stdio.h>

#include "base/stop.h"

void tess_cuda_enter(tess_device *device)
{
    tess_cuda_keep(device, cudaSetDevice(tess_cuda_of(device)->index), "cudaSetDevice");
}

void tess_cuda_keep_text(tess_device *device, tess_status status, const char *text)
{
    tess_cuda *cuda = tess_cuda_of(device);
    pthread_mutex_lock(&cuda->lock);
    if (cuda->kept == TESS_OK) {
        cuda->kept = status;
        snprintf(cuda->kept_error.text, sizeof cuda->kept_error.text, "%s", text);
    }
    pthread_mutex_unlock(&cuda->lock);
}

void tess_cuda_keep(tess_device *device, cudaError_t result, const char *what)
{
    tess_error error;
    if (result != cudaSuccess)
        tess_cuda_keep_text(device, tess_cuda_check(result, what, &error), error.text);
}

/* The sticky error. Every later sync returns it, because any result since may be wrong, and the first thread
 * that asks may not be the one whose work failed. */
static tess_status sticky_error(tess_device *device, tess_error *error)
{
    tess_cuda *cuda = tess_cuda_of(device);
    pthread_mutex_lock(&cuda->lock);
    const tess_status status = cuda->kept;
    if (status != TESS_OK)
        tess_fail(error, status, "%s", cuda->kept_error.text);
    pthread_mutex_unlock(&cuda->lock);
    return status;
}

void tess_cuda_copy(tess_device *device, void *to, const void *from, size_t bytes, tess_stream *stream)
{
    tess_cuda_enter(device);
    if (bytes > 0)
        tess_cuda_keep(
            device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, tess_cuda_stream_of(device, stream)),
            "cudaMemcpyAsync");
}

static tess_status cuda_sync(tess_device *device, tess_stream *stream, tess_error *error)
{
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaStreamSynchronize(tess_cuda_stream_of(device, stream)),
                   "cudaStreamSynchronize");
    TESS_TRY(sticky_error(device, error));
    return tess_stop_check(device->stop, error);
}

static tess_status cuda_stream_create(tess_device *device, tess_stream **out, tess_error *error)
{
    cudaStream_t stream = NULL;
    tess_cuda_enter(device);
    tess_status status =
        tess_cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate", error);
    *out = (tess_stream *)stream;
    return status;
}

static void cuda_stream_destroy(tess_device *device, tess_stream *stream)
{
    tess_cuda_enter(device);
    if (stream)
        tess_cuda_keep(device, cudaStreamDestroy(tess_cuda_stream(stream)), "cudaStreamDestroy");
}

static tess_status cuda_event_create(tess_device *device, tess_event **out, tess_error *error)
{
    cudaEvent_t event = NULL;
    tess_cuda_enter(device);
    tess_status status =
        tess_cuda_check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "cudaEventCreate", error);
    *out = (tess_event *)event;
    return status;
}

static void cuda_event_destroy(tess_device *device, tess_event *event)
{
    tess_cuda_enter(device);
    if (event)
        tess_cuda_keep(device, cudaEventDestroy((cudaEvent_t)event), "cudaEventDestroy");
}

static void cuda_record(tess_device *device, tess_event *event, tess_stream *stream)
{
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaEventRecord((cudaEvent_t)event, tess_cuda_stream_of(device, stream)),
                   "cudaEventRecord");
}

static void cuda_wait(tess_device *device, tess_event *event, tess_stream *stream)
{
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaStreamWaitEvent(tess_cuda_stream_of(device, stream), (cudaEvent_t)event, 0),
                   "cudaStreamWaitEvent");
}

static tess_status cuda_event_sync(tess_device *device, tess_event *event, tess_error *error)
{
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaEventSynchronize((cudaEvent_t)event), "cudaEventSynchronize");
    return sticky_error(device, error);
}

static double cuda_elapsed(tess_device *device, tess_event *from, tess_event *to)
{
    float milliseconds = 0;
    tess_cuda_enter(device);
    cudaError_t result = cudaEventElapsedTime(&milliseconds, (cudaEvent_t)from, (cudaEvent_t)to);
    tess_cuda_keep(device, result, "cudaEventElapsedTime");
    return result == cudaSuccess ? milliseconds * 1e-3 : 0;
}

static tess_status cuda_capture_begin(tess_device *device, tess_stream *stream, tess_error *error)
{
    tess_cuda_enter(device);
    return tess_cuda_check(
        cudaStreamBeginCapture(tess_cuda_stream_of(device, stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture", error);
}

/* Uploads the graph at once, so that its memory on the card is allocated before the run. */
static tess_status cuda_capture_end(tess_device *device, tess_stream *stream, tess_graph **out,
                                    tess_error *error)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaStream_t on = tess_cuda_stream_of(device, stream);
    *out = NULL;
    tess_cuda_enter(device);
    tess_status status = tess_cuda_check(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture", error);
    tess_status before = sticky_error(device, error); /* an error of a run is the cause of a failed capture */
    status = before != TESS_OK ? before : status;
    if (status == TESS_OK)
        status = tess_cuda_check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate", error);
    if (status == TESS_OK)
        status = tess_cuda_check(cudaGraphUpload(ready, on), "cudaGraphUpload", error);
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (status != TESS_OK && ready)
        (void)cudaGraphExecDestroy(ready);
    else
        *out = (tess_graph *)ready;
    return status;
}

static void cuda_graph_launch(tess_device *device, tess_graph *graph, tess_stream *stream)
{
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaGraphLaunch((cudaGraphExec_t)graph, tess_cuda_stream_of(device, stream)),
                   "cudaGraphLaunch");
}

static void cuda_graph_release(tess_device *device, tess_graph *graph)
{
    tess_cuda_enter(device);
    if (graph)
        tess_cuda_keep(device, cudaGraphExecDestroy((cudaGraphExec_t)graph), "cudaGraphExecDestroy");
}

const tess_device_streams tess_cuda_streams = {.sync = cuda_sync,
                                               .create = cuda_stream_create,
                                               .destroy = cuda_stream_destroy,
                                               .event_create = cuda_event_create,
                                               .event_destroy = cuda_event_destroy,
                                               .record = cuda_record,
                                               .wait = cuda_wait,
                                               .event_sync = cuda_event_sync,
                                               .elapsed = cuda_elapsed};

const tess_device_graphs tess_cuda_graphs = {.begin = cuda_capture_begin,
                                             .end = cuda_capture_end,
                                             .launch = cuda_graph_launch,
                                             .release = cuda_graph_release};
