/* Volumes in host memory that pass through the card in slabs. */
#include "counter.h"
#include "gpu.h"
#include "slabs.h"

int main(void)
{
    int status;
    tess_device *cpu = NULL, *card = gpu_open(&status);
    tess_error error = {{0}};
    if (!card)
        return status;
    slabs_need(tess_registry_open("cpu", &(tess_device_options){.memory = &test_counter}, &cpu, &error),
               &error);
    check_slabs(card, cpu);
    tess_registry_close(cpu);
    tess_registry_close(card);
    return check_end();
}
