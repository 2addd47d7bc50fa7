/* The resources of a queue: blocks on the device, pinned chunks, streams, events and the download thread. All
 * are allocated at opening, so that a running job does not run out of memory. */
#include "base/checked.h"
#include "window/queue_impl.h"

enum { STREAMS = 3 };
static const size_t LARGEST_CHUNK = (size_t)16 << 20, SMALLEST_CHUNK = (size_t)64 << 10;

/* Half a stage, so that copies on the host and over the bus overlap even within one window. */
static size_t chunk_bytes(size_t stage)
{
    size_t half = tess_align_size(stage / 2, 4096);
    return half < SMALLEST_CHUNK ? SMALLEST_CHUNK : half > LARGEST_CHUNK ? LARGEST_CHUNK : half;
}

size_t tess_queue_host_bytes(const tess_queue_sizes *sizes)
{
    return QUEUE_CHUNKS * (chunk_bytes(sizes->in_stage) + chunk_bytes(sizes->out_stage));
}

static char *carve_chunks(queue_chunks *chunks, size_t stage, char *at)
{
    chunks->bytes = chunk_bytes(stage);
    for (int i = 0; i < QUEUE_CHUNKS; i++, at += chunks->bytes)
        chunks->chunk[i].data = at;
    return at;
}

/* Every event of the queue by index; NULL after the last. */
static tess_event **event_at(tess_queue *q, int index)
{
    tess_event **const single[] = {&q->uploaded, &q->imported, &q->origin};
    const int few = 3;
    if (index < few)
        return single[index];
    if ((index -= few) < QUEUE_CHUNKS)
        return &q->up.chunk[index].over;
    if ((index -= QUEUE_CHUNKS) < QUEUE_CHUNKS)
        return &q->down.chunk[index].over;
    index -= QUEUE_CHUNKS;
    if (index >= 4 * QUEUE_UNDER_WAY)
        return NULL;
    queue_times *times = &q->times[index / 4];
    tess_event **const of[] = {&times->start, &times->computed, &times->exporting, &times->over};
    return of[index % 4];
}

static tess_status open_parts(tess_queue *q, const tess_queue_sizes *sizes, tess_error *error)
{
    tess_device *device = q->device;
    const tess_windows_settings windows = {.device = device, .keep = QUEUE_SHAPES, .graphs = true};
    TESS_TRY(tess_windows_create(&windows, &q->windows, error));
    TESS_TRY(tess_windows_alloc(q->windows, sizes->arena, sizes->workspace, error));
    TESS_TRY(device->memory->alloc(device, &q->in_stage, TESS_MEM_IO, sizes->in_stage, error));
    TESS_TRY(device->memory->alloc(device, &q->out_stage, TESS_MEM_IO, sizes->out_stage, error));
    TESS_TRY(device->memory->host_alloc(device, &q->pinned, tess_queue_host_bytes(sizes), error));
    carve_chunks(&q->down, sizes->out_stage, carve_chunks(&q->up, sizes->in_stage, q->pinned.data));
    TESS_TRY(device->streams->create(device, &q->upload, error));
    TESS_TRY(device->streams->create(device, &q->compute, error));
    TESS_TRY(device->streams->create(device, &q->download, error));
    tess_event **event;
    for (int i = 0; (event = event_at(q, i)); i++)
        TESS_TRY(device->streams->event_create(device, event, error));
    TESS_TRY(tess_worker_create(&q->downloader, error));
    tess_queue_see_memory(q);
    return TESS_OK;
}

tess_status tess_queue_open(tess_device *device, const tess_queue_sizes *sizes, tess_queue **out,
                            tess_error *error)
{
    *out = NULL;
    tess_queue *q = tess_small_alloc(1, sizeof *q);
    if (!q)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a queue to the device");
    q->device = device;
    q->least_free = UINT64_MAX;
    pthread_mutex_init(&q->submit, NULL);
    pthread_mutex_init(&q->order, NULL);
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->done, NULL);
    tess_status status = open_parts(q, sizes, error);
    if (status != TESS_OK) {
        tess_queue_close(q);
        return status;
    }
    *out = q;
    return TESS_OK;
}

void tess_queue_close(tess_queue *q)
{
    if (!q)
        return;
    tess_device *device = q->device;
    tess_stream *const streams[STREAMS] = {q->upload, q->compute, q->download};
    tess_worker_destroy(q->downloader); /* waits for a running download */
    for (int i = 0; i < STREAMS; i++)
        if (streams[i])
            (void)!device->streams->sync(device, streams[i], NULL); /* errors are in the tickets already */
    tess_windows_destroy(q->windows);
    tess_event **event;
    for (int i = 0; (event = event_at(q, i)); i++)
        if (*event)
            device->streams->event_destroy(device, *event);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i])
            device->streams->destroy(device, streams[i]);
    device->memory->free(device, &q->in_stage);
    device->memory->free(device, &q->out_stage);
    device->memory->host_free(device, &q->pinned);
    pthread_mutex_destroy(&q->submit);
    pthread_mutex_destroy(&q->order);
    pthread_mutex_destroy(&q->mutex);
    pthread_cond_destroy(&q->done);
    tess_small_free(q);
}
