/* The diffusion sampler on the card, with captured steps: trajectories against fp64, batches, overlaps, memory, interruption. */
#include "gpu.h"

#include "sampler_checks.h"

/* Half precision follows the same path, roughly: a step's error is that of the network. */
static void check_half(tess_device *device)
{
    small_diffusion net = small_open(device, TESS_F16, CASE_CHANNELS, 0.3f);
    check_trajectory(&net, &sampler_cases[0], 0.1);
    check_batches(&net, &sampler_cases[0]);
    small_close(&net);
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 0.3f);
    for (int c = 0; c < SAMPLER_CASES; c++) {
        check_trajectory(&net, &sampler_cases[c], 1e-4);
        check_batches(&net, &sampler_cases[c]);
    }
    check_bytes(&net);
    small_close(&net);
    check_overlap(device);
    check_half(device);
    check_file(device, TESS_F32);
    check_file(device, TESS_F16);
    check_file(device, TESS_BF16);
    tess_registry_close(device);
    check_stop("cuda");
    return check_end();
}
