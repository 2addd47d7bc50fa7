/* The ops of a diffusion sampler's step on the card, alone and as captured graphs. Without noise the bits are the CPU's. */
#include "gpu.h"

#include "diffuse_cases.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_diffusion_ops(device, 2e-6);
    tess_registry_close(device);
    return check_end();
}
