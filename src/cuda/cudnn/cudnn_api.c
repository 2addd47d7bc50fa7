/* cudnn_api.c: opens cuDNN and wraps its descriptors. cuDNN is never linked: one binary runs with and without
 * it. libcudnn.so.9 is a thin shim that opens its parts on first use. */
#include "cuda/cudnn/cudnn_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static tess_status find_functions(tess_cudnn *cudnn, tess_error *error)
{
    static const char *const names[] = {"libcudnn.so.9", "libcudnn.so"};
    for (int i = 0; i < 2 && !cudnn->library; i++)
        cudnn->library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    if (!cudnn->library)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "cuDNN (libcudnn.so.9) is not installed; Tessera's own kernels are used instead");
    const char *missing = NULL;
#define X(name)                                                                                              \
    *(void **)&cudnn->api.name = dlsym(cudnn->library, #name);                                               \
    if (!cudnn->api.name)                                                                                    \
        missing = #name;
    TESS_CUDNN_FUNCTIONS(X)
#undef X
    if (missing)
        return tess_fail(error, TESS_UNSUPPORTED, "the installed cuDNN lacks %s; version 9 is needed",
                         missing);
    size_t version = cudnn->api.cudnnGetVersion();
    snprintf(cudnn->version, sizeof cudnn->version, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    if (version / 10000 != 9)
        return tess_fail(error, TESS_UNSUPPORTED, "cuDNN 9 is needed, and version %zu is installed", version);
    return TESS_OK;
}

static tess_status make_zeros(tess_cudnn *cudnn, tess_error *error)
{
    const size_t bytes = TESS_CUDNN_CHANNELS * sizeof(float);
    TESS_TRY(tess_cuda_check(cudaMalloc(&cudnn->zeros, bytes), "cudaMalloc", error));
    TESS_TRY(tess_cuda_check(cudaMemset(cudnn->zeros, 0, bytes), "cudaMemset", error));
    /* cudaMemset ran on a stream that the device's streams do not wait for. */
    return tess_cuda_check(cudaStreamSynchronize(cudaStreamLegacy), "cudaMemset", error);
}

tess_status tess_cudnn_open(tess_cudnn **out, tess_error *error)
{
    *out = NULL;
    tess_cudnn *cudnn = tess_small_alloc(1, sizeof *cudnn);
    if (!cudnn)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open cuDNN");
    cudnn->kernels.api = &cudnn->api;
    tess_status status = find_functions(cudnn, error);
    if (status == TESS_OK)
        status = tess_cudnn_check(&cudnn->api, cudnn->api.cudnnCreate(&cudnn->handle), "opening", error);
    if (status == TESS_OK)
        status = make_zeros(cudnn, error);
    if (status != TESS_OK) {
        tess_cudnn_close(cudnn);
        return status;
    }
    *out = cudnn;
    return TESS_OK;
}

void tess_cudnn_close(tess_cudnn *cudnn)
{
    if (!cudnn)
        return;
    tess_cudnn_bag_free(&cudnn->kernels);
    tess_small_free(cudnn->kernel_keys);
    cudaFree(cudnn->zeros);
    if (cudnn->handle)
        cudnn->api.cudnnDestroy(cudnn->handle);
    /* The library stays mapped: it registers code with the CUDA runtime, which unmapping would leave dangling. */
    tess_small_free(cudnn);
}

const char *tess_cudnn_version(const tess_cudnn *cudnn)
{
    return cudnn->version;
}

tess_status tess_cudnn_check(const tess_cudnn_api *api, cudnnStatus_t result, const char *what,
                             tess_error *error)
{
    if (result == CUDNN_STATUS_SUCCESS)
        return TESS_OK;
    tess_status status = TESS_INTERNAL;
    if (result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        status = TESS_NO_MEMORY;
    else if (CUDNN_STATUS_CATEGORY(result) == CUDNN_STATUS_NOT_SUPPORTED)
        status = TESS_UNSUPPORTED;
    else if (CUDNN_STATUS_CATEGORY(result) == CUDNN_STATUS_EXECUTION_FAILED)
        status = TESS_DEVICE_LOST;
    return tess_fail(error, status, "cuDNN: %s: %s", what, api->cudnnGetErrorString(result));
}

cudnnBackendDescriptor_t tess_cudnn_make(tess_cudnn_bag *bag, cudnnBackendDescriptorType_t type)
{
    if (bag->failed)
        return NULL;
    if (bag->count == bag->room) {
        int room = bag->room ? 2 * bag->room : 32;
        void *items = tess_small_realloc(bag->items, (size_t)room, sizeof *bag->items);
        if (!items) {
            bag->failed = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
            bag->doing = "a descriptor";
            return NULL;
        }
        bag->items = items;
        bag->room = room;
    }
    cudnnBackendDescriptor_t item = NULL;
    bag->failed = bag->api->cudnnBackendCreateDescriptor(type, &item);
    if (bag->failed) {
        bag->doing = "a descriptor";
        return NULL;
    }
    return bag->items[bag->count++] = item;
}

void tess_cudnn_set(tess_cudnn_bag *bag, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (bag->failed)
        return;
    bag->failed = bag->api->cudnnBackendSetAttribute(item, name, type, count, values);
    bag->doing = "an attribute of a graph";
}

void tess_cudnn_seal(tess_cudnn_bag *bag, cudnnBackendDescriptor_t item, const char *doing)
{
    if (bag->failed)
        return;
    bag->failed = bag->api->cudnnBackendFinalize(item);
    bag->doing = doing;
}

int tess_cudnn_get(tess_cudnn_bag *bag, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int room, void *values)
{
    int64_t count = 0;
    if (bag->failed ||
        bag->api->cudnnBackendGetAttribute(item, name, type, room, &count, values) != CUDNN_STATUS_SUCCESS)
        return 0;
    return room && count > room ? room : (int)count;
}

tess_status tess_cudnn_bag_check(const tess_cudnn_bag *bag, tess_error *error)
{
    return tess_cudnn_check(bag->api, bag->failed, bag->doing, error);
}

void tess_cudnn_bag_cut(tess_cudnn_bag *bag, int count)
{
    while (bag->count > count)
        bag->api->cudnnBackendDestroyDescriptor(bag->items[--bag->count]);
}

void tess_cudnn_bag_free(tess_cudnn_bag *bag)
{
    tess_cudnn_bag_cut(bag, 0);
    tess_small_free(bag->items);
    bag->items = NULL;
    bag->room = 0;
}
