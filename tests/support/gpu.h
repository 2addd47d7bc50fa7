/* gpu.h: opens the card for a test. Without a card the test is skipped, unless TESSERA_REQUIRE_GPU is set. */
#ifndef TESS_TESTS_GPU_H
#define TESS_TESTS_GPU_H

#include "check.h"
#include "counter.h"
#include "device/device.h"

/* NULL and *status, with which the program ends, when there is no card. */
static inline tess_device *gpu_open(int *status)
{
    const tess_device_options options = {.memory = &test_counter};
    tess_device *device = NULL;
    tess_error error = {{0}};
    const char *required = getenv("TESSERA_REQUIRE_GPU");
    *status = 0;
    if (tess_registry_open("cuda", &options, &device, &error) == TESS_OK)
        return device;
    if (required && *required) {
        fprintf(stderr, "%s\n", error.text);
        *status = 1;
    } else {
        *status = check_skip(error.text);
    }
    return NULL;
}

#endif
