/* Scores by the networks of pipelines on the card against fp64 and the CPU. Their ops and training steps are in the tables of
 * gradient_cases.h and step_nets.h, which test_gradients_cuda and test_training_cuda run. */
#include "gpu.h"

#include "network_scores.h"

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    tess_registry_close(device);
    check_network_scores("cuda");
    return check_end();
}
