/* A network with group norms, scale and shift, SiLU and attention on the card against PyTorch. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "gpu.h"

#include "block_net.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_block_net(device, TESS_F32, 1e-5);
    check_block_net(device, TESS_F16, 5e-3);
    check_block_net(device, TESS_BF16, 3e-2);
    tess_registry_close(device);
    return check_end();
}
