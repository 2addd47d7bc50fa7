/* One optimizer step of a network on the card, where its parts are captured graphs: the checks of tests/net/test_training.c. */
#include "gpu.h"

#include "step_checks.h"
#include "step_gradients.h"
#include "step_shares.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    static const tess_dtype types[] = {TESS_F32, TESS_BF16, TESS_F16};
    check_all_gradients(device);
    for (int i = 0; i < 3; i++) {
        check_bytes(device, types[i]);
        check_recompute(device, types[i]);
        check_gathered(device, types[i]);
        if (types[i] != TESS_F16)
            check_update_in_pass(device, types[i]);
    }
    check_micro_batches(device);
    check_shares(device);
    check_states(device);
    check_gradients_block(device);
    tess_registry_close(device);
    return check_end();
}
