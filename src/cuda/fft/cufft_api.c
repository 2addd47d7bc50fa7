/* cufft_api.c: opens cuFFT. It is never linked: one binary runs with and without it. */
#include "cuda/fft/cufft_api.h"

#include <dlfcn.h>
#include <pthread.h>

static tess_cufft_api api;
static bool complete;

static void open_library(void)
{
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
    void *library = NULL;
    for (int i = 0; i < 3 && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return;
    complete = true;
#define X(name, parameters)                                                                                  \
    *(void **)&api.name = dlsym(library, #name);                                                             \
    complete = complete && api.name;
    TESS_CUFFT_FUNCTIONS(X)
#undef X
    /* The library stays mapped: it registers code with the CUDA runtime, which unmapping would leave dangling. */
}

const tess_cufft_api *tess_cufft(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_library);
    return complete ? &api : NULL;
}

tess_status tess_cufft_check(int result, const char *what, tess_error *error)
{
    static const struct {
        int result;
        tess_status status;
        const char *reason;
    } known[] = {{0x2, TESS_NO_MEMORY, "it got no memory; free some of the card's"},
                 {0x4, TESS_UNSUPPORTED, "it does not take this layout"},
                 {0x6, TESS_DEVICE_LOST, "the card failed"},
                 {0x8, TESS_UNSUPPORTED, "it does not transform this size"},
                 {0x9, TESS_UNSUPPORTED, "the data is not aligned"},
                 {0xe, TESS_UNSUPPORTED, "it does not do this"},
                 {0x10, TESS_UNSUPPORTED, "it does not do this"}};
    if (result == 0)
        return TESS_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].result == result)
            return tess_fail(error, known[i].status, "cuFFT: %s: %s", what, known[i].reason);
    return tess_fail(error, TESS_INTERNAL, "cuFFT: %s: error %d", what, result);
}
