/* Backward ops of the card against central differences in fp64; optimizers and losses against PyTorch; batch norm and noise
 * against their formulas. */
#include "gpu.h"
#include "gradient_cases.h"
#include "train_cases.h"
#include "train_forward.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_gradients(device, TESS_F32, 1e-5);
    check_gradients(device, TESS_F16, 1.0 / 256);
    check_gradients(device, TESS_BF16, 1.0 / 64);
    check_optimizers(device, 3e-6);
    check_average(device);
    check_losses(device);
    check_batch_norms(device, TESS_F32, 1e-5);
    check_batch_norms(device, TESS_F16, 1.0 / 512);
    check_batch_norms(device, TESS_BF16, 1.0 / 128);
    check_noises(device, 1e-5);
    tess_registry_close(device);
    return check_end();
}
