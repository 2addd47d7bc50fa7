/* Pixels that stand for images, with moments from the card. */
#include "gpu.h"

#include "condense_checks.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    tess_registry_close(device);
    check_condensing("cuda");
    return check_end();
}
