/* test_operators_cuda.c: the adjoint of every operator is the transpose of its forward, on the card. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "operators.h"

int main(void)
{
    int status = 0;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    check_operators(device);
    tess_registry_close(device);
    return check_end();
}
