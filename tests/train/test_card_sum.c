/* test_card_sum.c: sums over ranks in the memory of their devices, whose work is done as late as possible. */
#define _POSIX_C_SOURCE 200809L
#include "card_sum_trial.h"
#include "late_nccl.h"

int main(void)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    tess_device *device = NULL;
    tess_error error;
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    late_device(device);
    hub_open(&late_nccl, device);
    test_card_sums("cpu");
    hub_close();
    tess_registry_close(device);
    return check_end();
}
