/* What a lane holds: blocks on the device, pinned chunks, streams, events and the thread that downloads. All is taken at
 * opening, so that a job that has begun does not run out of memory. */
#include "base/checked.h"
#include "job/common/lane_impl.h"

enum { STREAMS = 4 };
static const size_t LARGEST_CHUNK = (size_t)16 << 20, SMALLEST_CHUNK = (size_t)64 << 10;

/* Half a stage, so that copying on the host and over the bus overlap also within one window. */
static size_t chunk_bytes(size_t stage)
{
    size_t half = tess_align_size(stage / 2, 4096);
    return half < SMALLEST_CHUNK ? SMALLEST_CHUNK : half > LARGEST_CHUNK ? LARGEST_CHUNK : half;
}

size_t tess_lane_host_bytes(const tess_lane_sizes *sizes)
{
    return LANE_CHUNKS * (chunk_bytes(sizes->in_stage) + chunk_bytes(sizes->out_stage));
}

static char *carve_chunks(lane_chunks *chunks, size_t stage, char *at)
{
    chunks->bytes = chunk_bytes(stage);
    for (int i = 0; i < LANE_CHUNKS; i++, at += chunks->bytes)
        chunks->chunk[i].data = at;
    return at;
}

/* Every event of the lane, by number; NULL behind the last. */
static tess_event **event_at(tess_lane *lane, int index)
{
    tess_event **const alone[] = {&lane->uploaded, &lane->imported, &lane->origin};
    const int few = 3;
    if (index < few)
        return alone[index];
    if ((index -= few) < LANE_CHUNKS)
        return &lane->up.chunk[index].over;
    if ((index -= LANE_CHUNKS) < LANE_CHUNKS)
        return &lane->down.chunk[index].over;
    index -= LANE_CHUNKS;
    if (index >= 4 * LANE_TIMES)
        return NULL;
    lane_times *times = &lane->times[index / 4];
    tess_event **const of[] = {&times->start, &times->computed, &times->exporting, &times->over};
    return of[index % 4];
}

static tess_status open_parts(tess_lane *lane, const tess_lane_sizes *sizes, tess_error *error)
{
    tess_device *device = lane->device;
    TESS_TRY(device->alloc(device, &lane->arena, TESS_MEM_ACTIVATIONS, sizes->arena, error));
    TESS_TRY(device->alloc(device, &lane->workspace, TESS_MEM_WORKSPACE, sizes->workspace, error));
    TESS_TRY(device->alloc(device, &lane->in_stage, TESS_MEM_IO, sizes->in_stage, error));
    TESS_TRY(device->alloc(device, &lane->out_stage, TESS_MEM_IO, sizes->out_stage, error));
    TESS_TRY(device->host_alloc(device, &lane->pinned, tess_lane_host_bytes(sizes), error));
    carve_chunks(&lane->down, sizes->out_stage, carve_chunks(&lane->up, sizes->in_stage, lane->pinned.data));
    TESS_TRY(device->stream_create(device, &lane->upload, error));
    TESS_TRY(device->stream_create(device, &lane->compute, error));
    TESS_TRY(device->stream_create(device, &lane->download, error));
    TESS_TRY(device->stream_create(device, &lane->capture, error));
    tess_event **event;
    for (int i = 0; (event = event_at(lane, i)); i++)
        TESS_TRY(device->event_create(device, event, error));
    TESS_TRY(tess_worker_create(&lane->downloader, error));
    tess_lane_look_at_memory(lane);
    return TESS_OK;
}

tess_status tess_lane_open(tess_device *device, const tess_lane_sizes *sizes, tess_lane **out,
                           tess_error *error)
{
    *out = NULL;
    tess_lane *lane = tess_small_alloc(1, sizeof *lane);
    if (!lane)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a lane to the device");
    lane->device = device;
    lane->least_free = UINT64_MAX;
    pthread_mutex_init(&lane->boarding, NULL);
    pthread_mutex_init(&lane->running, NULL);
    pthread_mutex_init(&lane->mutex, NULL);
    pthread_cond_init(&lane->landed, NULL);
    tess_status status = open_parts(lane, sizes, error);
    if (status != TESS_OK) {
        tess_lane_close(lane);
        return status;
    }
    *out = lane;
    return TESS_OK;
}

void tess_lane_close(tess_lane *lane)
{
    if (!lane)
        return;
    tess_device *device = lane->device;
    tess_stream *const streams[STREAMS] = {lane->upload, lane->compute, lane->download, lane->capture};
    tess_worker_destroy(lane->downloader); /* waits for what it does */
    for (int i = 0; i < STREAMS; i++)
        if (streams[i])
            (void)!device->sync(device, streams[i], NULL); /* its trouble was told to whom it concerned */
    tess_lane_networks_clear(lane);
    tess_event **event;
    for (int i = 0; (event = event_at(lane, i)); i++)
        if (*event)
            device->event_destroy(device, *event);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i])
            device->stream_destroy(device, streams[i]);
    tess_block *const blocks[] = {&lane->arena, &lane->workspace, &lane->in_stage, &lane->out_stage};
    for (int i = 0; i < 4; i++)
        device->free(device, blocks[i]);
    device->host_free(device, &lane->pinned);
    pthread_mutex_destroy(&lane->boarding);
    pthread_mutex_destroy(&lane->running);
    pthread_mutex_destroy(&lane->mutex);
    pthread_cond_destroy(&lane->landed);
    tess_small_free(lane);
}
