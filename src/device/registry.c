/* The linked drivers. The CPU is always linked. The others are weak symbols, so that a backend can be left out
 * of the build without a change here. Faster kinds come first: "auto" takes the first that opens. */
#include <string.h>

#include "device/device.h"
#include "device/traced.h"

extern const tess_driver tess_cpu_driver;
extern const tess_driver tess_cuda_driver __attribute__((weak));

const tess_driver *const *tess_device_drivers(void)
{
    /* Constant, because two threads may open devices at the same time. */
    static const tess_driver *const all[] = {&tess_cuda_driver, &tess_cpu_driver, NULL};
    return &tess_cuda_driver ? all : all + 1;
}

tess_status tess_registry_open(const char *kind, const tess_device_options *options, tess_device **out,
                               tess_error *error)
{
    *out = NULL;
    bool any = strcmp(kind, "auto") == 0;
    if (!any && strcmp(kind, "cpu") != 0 && strcmp(kind, "cuda") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`device` %s: use auto, cpu, cuda or cuda:K", kind);
    if (!options->memory)
        return tess_fail(error, TESS_INTERNAL, "a device was opened without a counter of its memory");
    tess_status status = TESS_OK;
    for (const tess_driver *const *driver = tess_device_drivers(); *driver; driver++) {
        if (!any && strcmp((*driver)->kind, kind) != 0)
            continue;
        status = (*driver)->open(options, out, error);
        if (status == TESS_OK) {
            (*out)->counter = options->memory;
            (*out)->stop = options->stop;
            status = tess_device_record(*out, error);
            if (status != TESS_OK) {
                tess_registry_close(*out);
                *out = NULL;
                return status;
            }
        }
        if (status == TESS_OK && error)
            error->text[0] = '\0'; /* of a device that was tried before */
        if (status == TESS_OK || !any)
            return status;
    }
    return status != TESS_OK ? status
                             : tess_fail(error, TESS_UNSUPPORTED,
                                         "`device` %s: this build has no such device; use auto or cpu", kind);
}

void tess_registry_close(tess_device *device)
{
    if (!device)
        return;
    tess_device_record_end(device);
    device->destroy(device);
}
