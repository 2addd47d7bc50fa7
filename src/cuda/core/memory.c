/* Memory of the card, and pinned memory of the host for copies to it. What is granted is what the driver takes, so
 * that plans, counters and the card agree. Every allocation also passes the door of small ones, which tests shut. */
#include "base/checked.h"
#include "cuda/core/device_impl.h"

static const size_t GRANULE = (size_t)2 << 20; /* what the driver hands out */

static tess_status cuda_alloc(tess_device *device, tess_block *block, tess_mem_category category,
                              size_t bytes, tess_error *error)
{
    *block = (tess_block){.category = category};
    if (bytes == 0)
        return TESS_OK;
    const size_t granted = device->granted(device, bytes);
    void *door = tess_small_alloc(1, 1);
    tess_small_free(door);
    void *data = NULL;
    tess_cuda_enter(device);
    const cudaError_t result =
        granted < bytes || !door ? cudaErrorMemoryAllocation : cudaMalloc(&data, granted);
    if (result != cudaSuccess && result != cudaErrorMemoryAllocation)
        return tess_cuda_check(result, "cudaMalloc", error);
    if (result != cudaSuccess) {
        size_t total = 0, left = 0;
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&left, &total);
        return tess_fail(error, TESS_NO_MEMORY,
                         "cannot allocate %zu bytes for %s on the card: %zu of %zu are free; set a smaller "
                         "--memory",
                         bytes, tess_mem_category_name(category), left, total);
    }
    *block = (tess_block){.data = data, .bytes = granted, .category = category};
    tess_mem_account(category, (int64_t)granted);
    return TESS_OK;
}

static size_t cuda_granted(tess_device *device, size_t bytes)
{
    (void)device;
    return tess_align_size(bytes, GRANULE);
}

static void cuda_free(tess_device *device, tess_block *block)
{
    if (!block || !block->data)
        return;
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaFree(block->data), "cudaFree");
    tess_mem_account(block->category, -(int64_t)block->bytes);
    *block = (tess_block){.category = block->category};
}

/* Pinned memory is the host's: it is not counted as the card's. */
static tess_status cuda_host_alloc(tess_device *device, tess_block *block, tess_mem_category category,
                                   size_t bytes, tess_error *error)
{
    *block = (tess_block){.category = category};
    if (bytes == 0)
        return TESS_OK;
    void *door = tess_small_alloc(1, 1);
    tess_small_free(door);
    tess_cuda_enter(device);
    const size_t granted = tess_block_granted(bytes);
    void *data = NULL;
    const cudaError_t result = granted < bytes || !door
                                   ? cudaErrorMemoryAllocation
                                   : cudaHostAlloc(&data, granted, cudaHostAllocPortable);
    if (result != cudaSuccess && result != cudaErrorMemoryAllocation)
        return tess_cuda_check(result, "cudaHostAlloc", error);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        return tess_fail(error, TESS_NO_MEMORY,
                         "cannot allocate %zu bytes of pinned memory for %s; free some of the computer's",
                         bytes, tess_mem_category_name(category));
    }
    *block = (tess_block){.data = data, .bytes = granted, .category = category};
    return TESS_OK;
}

static void cuda_host_free(tess_device *device, tess_block *block)
{
    if (!block || !block->data)
        return;
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaFreeHost(block->data), "cudaFreeHost");
    *block = (tess_block){.category = block->category};
}

void tess_cuda_fill_memory(tess_device *device)
{
    device->granted = cuda_granted;
    device->alloc = cuda_alloc;
    device->free = cuda_free;
    device->host_alloc = cuda_host_alloc;
    device->host_free = cuda_host_free;
}
