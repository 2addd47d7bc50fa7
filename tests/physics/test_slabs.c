/* Volumes in slabs, on the CPU. */
#include "counter.h"
#include "slabs.h"

int main(void)
{
    tess_device *cpu = NULL;
    tess_error error = {{0}};
    slabs_need(tess_registry_open("cpu", &(tess_device_options){.memory = &test_counter, .threads = 2}, &cpu,
                                  &error),
               &error);
    check_slabs(cpu, cpu);
    tess_registry_close(cpu);
    return check_end();
}
