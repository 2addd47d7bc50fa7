/* The ops of a diffusion sampler's step on the CPU, with any instruction set and number of threads. */
#include "counter.h"
#include "diffuse_cases.h"

int main(void)
{
    static const char *const sets[] = {NULL, "reference"};
    for (int s = 0; s < 2; s++)
        for (int threads = 1; threads <= 3; threads++) {
            const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
            check_diffusion_ops(device, 0);
            tess_registry_close(device);
        }
    return check_end();
}
