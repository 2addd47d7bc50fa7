/* nvml.c: opens NVML. It is never linked: without it, only the figures that it measures are missing. */
#include "cuda/core/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static tess_nvml_api api;
static bool complete;

static void open_library(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return;
    complete = true;
#define X(name, parameters)                                                                                  \
    *(void **)&api.name = dlsym(library, #name);                                                             \
    complete = complete && api.name;
    TESS_NVML_FUNCTIONS(X)
#undef X
    complete = complete && api.nvmlInit_v2() == 0;
    /* The library stays open and initialised: a device may be opened again. */
}

const tess_nvml_api *tess_nvml(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_library);
    return complete ? &api : NULL;
}
