/* Group norms on the card against the plain reference kernel and PyTorch. */
#include "gpu.h"
#include "group_norm_cases.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_norms(device, TESS_F32, 1e-5);
    check_norms(device, TESS_F16, 2e-3);
    check_norms(device, TESS_BF16, 1.0 / 128);
    check_norm_dumps(device, TESS_F32, 1e-5);
    check_norm_dumps(device, TESS_F16, 2e-3);
    tess_registry_close(device);
    return check_end();
}
