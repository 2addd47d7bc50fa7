#include "dist/nccl_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char LIBRARY[] = "libnccl.so.2";
enum { OLDEST = 2700 }; /* 2.7, the first with ncclSend and ncclRecv */

tess_nccl_wish tess_nccl_wished(void)
{
    const char *text = getenv("TESSERA_NCCL");
    if (!text || !*text)
        return (tess_nccl_wish){.file = LIBRARY};
    const bool off = strcmp(text, "0") == 0, required = strcmp(text, "1") == 0;
    return (tess_nccl_wish){
        .off = off, .required = required, .asked = !off, .file = off || required ? LIBRARY : text};
}

tess_status tess_nccl_load(const char *file, tess_nccl_api *api, tess_error *error)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    if (!library)
        return tess_fail(error, TESS_UNSUPPORTED, "%s", dlerror());
#define X(result, name, parameters)                                                                          \
    *(void **)&api->name = dlsym(library, #name);                                                            \
    missing = missing || api->name ? missing : #name;
    TESS_NCCL_FUNCTIONS(X)
#undef X
    if (missing)
        return tess_fail(error, TESS_UNSUPPORTED, "%s has no %s", file, missing);
    if (api->ncclGetVersion(&api->version) != TESS_NCCL_SUCCESS || api->version < OLDEST)
        return tess_fail(error, TESS_UNSUPPORTED, "%s is older than NCCL 2.7", file);
    return TESS_OK;
}
