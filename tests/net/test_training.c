/* One optimizer step of a network on the CPU. */
#include "step_checks.h"
#include "step_gradients.h"

int main(void)
{
    tess_device *device = NULL;
    tess_error error = {{0}};
    tess_device_facts facts;
    const tess_device_options options = {.threads = 2, .memory = &test_counter};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    if (!device)
        return check_end();
    device->facts(device, &facts);
    if (!getenv("Q")) check_all_gradients(device);
    check_bytes(device, TESS_F32);
    check_recompute(device, TESS_F32);
    if (facts.bf16) {
        check_bytes(device, TESS_BF16);
        check_recompute(device, TESS_BF16);
    }
    check_micro_batches(device);
    check_states(device);
    tess_registry_close(device);
    CHECK(counted_now() == 0);
    return check_end();
}
