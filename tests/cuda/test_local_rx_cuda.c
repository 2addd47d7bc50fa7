/* Local scores on the card against plain sums in fp64 on the host; larger images against the CPU's kernel. */
#include "gpu.h"
#include "statistics_cases.h"

/* Numbers of channels at and beside the borders of tiles; the last ones leave no place in shared memory for the matrix. */
static void check_channels(tess_device *device)
{
    const int64_t channels[] = {1, 7, 8, 9, 15, 16, 31, 61, 63, 64, 100, 127, 205, 235, 300};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d-channels", (int)channels[i]);
        const pixels_case k = {name, {1, 1, 5, 6}, channels[i], 0, 0, 20, 0, i % 3 ? 11 : 0};
        check_local(device, &k, 5, 1, TESS_F64);
    }
}

/* Rows of several parts, more items than CTAs, and more pixels in a move than a group holds. */
static void check_large(tess_device *device, tess_device *cpu, int64_t height, int64_t width, int64_t c,
                        int outer, int inner, int mask)
{
    const pixels_case k = {"large", {1, 1, height, width}, c, 0, 0, 50, mask, 97};
    train_call call = {.op = {.kind = TESS_OP_LOCAL_RX,
                              .inputs = mask ? 2 : 1,
                              .outputs = 1,
                              .kernel = {1, outer, outer},
                              .stride = {1, 1, 1},
                              .pad_before = {0, outer / 2, outer / 2},
                              .pad_after = {0, outer / 2, outer / 2},
                              .local_rx = {inner, 0.01}},
                       .in = {case_operand(&k)}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS], again[TESS_OP_OUTPUTS];
    if (mask)
        call.in[1] = case_mask(&k);
    call.out[0].t = tess_tensor_2d(TESS_F64, 1, height, width, 1);
    call.out[0].f.bytes = (size_t)case_pixels(&k) * sizeof(double);
    call.out[0].f.data = calloc(1, call.out[0].f.bytes);
    if (train_run(device, &call, got, k.name) && train_run(device, &call, again, k.name) &&
        train_run(cpu, &call, want, k.name)) {
        compare_scores(&got[0], &want[0], 1e-9, k.name);
        CHECK_MSG(memcmp(got[0].f.data, again[0].f.data, got[0].f.bytes) == 0, "two runs differ");
        free(got[0].f.data), free(again[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status), *cpu = NULL;
    if (!device)
        return status;
    const tess_device_options options = {.memory = &test_counter};
    CHECK(tess_registry_open("cpu", &options, &cpu, NULL) == TESS_OK);
    for (int i = 0; i < LOCAL_CASES; i++) {
        check_local(device, &local_cases[i], 7, 3, TESS_F64);
        check_local(device, &local_cases[i], 9, 1, TESS_F64);
        check_local(device, &local_cases[i], 3, 1, TESS_F32);
    }
    check_channels(device);
    check_large(device, cpu, 40, 300, 20, 25, 9, 0);
    check_large(device, cpu, 24, 70, 100, 25, 9, 1);
    check_large(device, cpu, 9, 33, 205, 31, 5, 2);
    tess_registry_close(cpu);
    tess_registry_close(device);
    return check_end();
}
