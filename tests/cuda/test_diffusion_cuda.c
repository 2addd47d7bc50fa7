/* The small diffusion network on the card against PyTorch; the bundled one in batches of all sizes of a job. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "gpu.h"

#include "diffusion_net.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_diffusion_net(device, TESS_F32, 1e-4, true);
    check_diffusion_net(device, TESS_F16, 1e-2, true);
    check_diffusion_net(device, TESS_BF16, 5e-2, true);
    check_diffusion_batches(device, 128, 64);
    tess_registry_close(device);
    return check_end();
}
