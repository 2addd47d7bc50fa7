/* Attention on the card against the plain reference kernel and PyTorch. */
#include "attention_cases.h"
#include "gpu.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_attentions(device, TESS_F32, 1e-5);
    check_attentions(device, TESS_F16, 2e-3);
    check_attentions(device, TESS_BF16, 1.0 / 128);
    check_attention_dumps(device, TESS_F32, 1e-5);
    check_attention_dumps(device, TESS_F16, 2e-3);
    tess_registry_close(device);
    return check_end();
}
