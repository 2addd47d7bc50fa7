/* Memory of the card, and pinned host memory for copies to it. The granted size is the size that the driver
 * takes, so that plans, counters and the card agree. Every allocation also makes a small host allocation, so
 * that tests can make it fail. */
#include "base/checked.h"
#include "cuda/core/device_impl.h"

static const size_t GRANULE = (size_t)2 << 20; /* granularity of the driver's allocations */

/* False if a test makes this allocation fail: see tess_mem_fail_at. */
static bool may_allocate(void)
{
    void *probe = tess_small_alloc(1, 1);
    tess_small_free(probe);
    return probe != NULL;
}

static tess_block counted(tess_device *device, void *data, size_t bytes, tess_mem_category category)
{
    tess_memory_count(device->counter, category, (int64_t)bytes);
    return (tess_block){.data = data, .bytes = bytes, .category = category, .memory = device->counter};
}

/* Leaves the block empty. */
static void uncount(tess_block *block)
{
    tess_memory_count(block->memory, block->category, -(int64_t)block->bytes);
    *block = (tess_block){.category = block->category, .memory = block->memory};
}

static tess_status cuda_alloc(tess_device *device, tess_block *block, tess_mem_category category,
                              size_t bytes, tess_error *error)
{
    *block = (tess_block){.category = category, .memory = device->counter};
    if (bytes == 0)
        return TESS_OK;
    const size_t granted = device->memory->granted(device, bytes);
    void *data = NULL;
    tess_cuda_enter(device);
    const cudaError_t result =
        granted < bytes || !may_allocate() ? cudaErrorMemoryAllocation : cudaMalloc(&data, granted);
    if (result != cudaSuccess && result != cudaErrorMemoryAllocation)
        return tess_cuda_check(result, "cudaMalloc", error);
    if (result != cudaSuccess) {
        size_t total = 0, left = 0;
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&left, &total);
        return tess_fail(
            error, TESS_NO_MEMORY,
            "cannot allocate %zu bytes of %s memory on the card: %zu of %zu are free; set a smaller "
            "`memory_limit`",
            bytes, tess_mem_category_name(category), left, total);
    }
    *block = counted(device, data, granted, category);
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
    uncount(block);
}

static tess_status cuda_host_alloc(tess_device *device, tess_block *block, size_t bytes, tess_error *error)
{
    *block = (tess_block){.category = TESS_MEM_HOST, .memory = device->counter};
    if (bytes == 0)
        return TESS_OK;
    tess_cuda_enter(device);
    const size_t granted = tess_block_granted(bytes);
    void *data = NULL;
    const cudaError_t result = granted < bytes || !may_allocate()
                                   ? cudaErrorMemoryAllocation
                                   : cudaHostAlloc(&data, granted, cudaHostAllocPortable);
    if (result != cudaSuccess && result != cudaErrorMemoryAllocation)
        return tess_cuda_check(result, "cudaHostAlloc", error);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        return tess_fail(error, TESS_NO_MEMORY,
                         "cannot allocate %zu bytes of pinned memory; free some of the computer's", bytes);
    }
    *block = counted(device, data, granted, TESS_MEM_HOST);
    return TESS_OK;
}

static void cuda_host_free(tess_device *device, tess_block *block)
{
    if (!block || !block->data)
        return;
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaFreeHost(block->data), "cudaFreeHost");
    uncount(block);
}

const tess_device_memory tess_cuda_memory = {.granted = cuda_granted,
                                             .alloc = cuda_alloc,
                                             .free = cuda_free,
                                             .host_alloc = cuda_host_alloc,
                                             .host_free = cuda_host_free,
                                             .copy = tess_cuda_copy};
