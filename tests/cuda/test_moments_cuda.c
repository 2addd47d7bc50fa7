/* Moments and scores on the card against plain sums in fp64 on the host; large sizes against the CPU's kernels. */
#include "gpu.h"
#include "statistics_cases.h"

/* All numbers of channels of one tile and the first of two, at dense and other places: `gap` and `skip` make the kernels for
 * dense pixels at multiples of 16 bytes give way to those for any. The pixels are some stages and a part of one. */
static void check_channels(tess_device *device)
{
    const int64_t more[] = {191, 224, 255, 256, 300, 390};
    for (int64_t c = 1; c <= 130; c++) {
        char name[32];
        snprintf(name, sizeof name, "%d-channels", (int)c);
        const pixels_case k = {name, {1, 1, 7, 33}, c, 0, 0, 20, 0, c % 3 ? 19 : 0};
        const pixels_case view = {name, {1, 2, 5, 27}, c, c % 2 ? 3 : 0, (size_t)(c % 4),
                                  20,   (int)(c % 3),  0};
        check_moments(device, &k, true, c % 2);
        check_moments(device, &view, c % 5 > 0, c % 2 == 0);
        if (c % 16 == 0 || c % 16 == 15 || c == 1 || c == 17 || c == 129)
            check_score(device, &k, c, 2e-5);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        const pixels_case k = {"many-channels", {1, 1, 7, 33}, more[i], 0, 0, 20, 0, i % 3 ? 19 : 0};
        check_moments(device, &k, true, i % 2);
        check_score(device, &k, more[i], 2e-5);
    }
    for (int64_t rows = 1; rows <= 300; rows += 13) {
        const pixels_case k = {"rows", {1, 1, 3, 71}, 37, 0, 0, 5, 0, 0};
        check_score(device, &k, rows, 2e-5);
    }
}

/* The same bits again: sums are in an order that the sizes decide, whichever warp is first. */
static void check_again(tess_device *device, int64_t c, int mask)
{
    const pixels_case k = {"again", {1, 1, 211, 301}, c, 0, 0, 50, mask, 97};
    train_call call = {
        .op = {.kind = TESS_OP_MOMENTS, .inputs = mask ? 2 : 1, .outputs = 1, .moments = {true}},
        .in = {case_operand(&k)},
        .out = {case_vector(tess_moments_values((int)c, true))}};
    operand got[TESS_OP_OUTPUTS], again[TESS_OP_OUTPUTS];
    if (mask)
        call.in[1] = case_mask(&k);
    tess_moments_clear(call.out[0].f.data, (int)c, true);
    if (train_run(device, &call, got, k.name)) {
        for (int i = 0; i < 3 && train_run(device, &call, again, k.name); i++) {
            CHECK_MSG(memcmp(got[0].f.data, again[0].f.data, got[0].f.bytes) == 0,
                      "%d channels: other bits in run %d", (int)c, i);
            free(again[0].f.data);
        }
        free(got[0].f.data);
    }
    train_free(&call);
}

/* Pixels that do not count at every place of a stage and of the pixels that a warp converts at a time: one value of one pixel
 * in every so many is not finite, and the channel changes with the pixel. */
static void check_bad(tess_device *device)
{
    const int64_t channels[] = {64, 71, 79, 88, 96, 97, 100, 103};
    const int every[] = {1, 2, 7, 8, 15, 16, 17, 33};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        for (size_t j = 0; j < sizeof every / sizeof every[0]; j++) {
            char name[48];
            snprintf(name, sizeof name, "every-%d-of-%d", every[j], (int)channels[i]);
            const pixels_case k = {name, {1, 1, 5, 101}, channels[i], 0, 0, 20, (int)(j % 3), every[j]};
            check_moments(device, &k, true, j % 2);
        }
}

/* The same on both devices. */
static void check_both(tess_device *device, tess_device *cpu, const pixels_case *k)
{
    const int c = (int)k->c;
    train_call call = {
        .op = {.kind = TESS_OP_MOMENTS, .inputs = k->mask ? 2 : 1, .outputs = 1, .moments = {true}},
        .in = {case_operand(k)},
        .out = {case_vector(tess_moments_values(c, true))}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    if (k->mask)
        call.in[1] = case_mask(k);
    tess_moments_clear(call.out[0].f.data, c, true);
    if (train_run(device, &call, got, k->name) && train_run(cpu, &call, want, k->name)) {
        compare_moments(got[0].f.data, want[0].f.data, c, true, 1e-12, k->name);
        free(got[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

/* More pixels than ranges have at least. */
static void check_large(tess_device *device, tess_device *cpu, int64_t side, int64_t c, int mask)
{
    const pixels_case k = {"large", {2, 1, side, side + 3}, c, 0, 0, 50, mask, 97};
    check_both(device, cpu, &k);
}

/* Fewer pixels than a stage, fewer and more than there are ranges, and none that divides by a stage. */
static void check_sizes(tess_device *device, tess_device *cpu)
{
    const int64_t channels[] = {1, 3, 7, 8, 31, 50, 64, 100, 104, 119, 127, 128, 200, 256},
                  pixels[] = {1, 7, 1000, 100003};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        for (size_t j = 0; j < sizeof pixels / sizeof pixels[0]; j++) {
            char name[48];
            snprintf(name, sizeof name, "%d-pixels-of-%d", (int)pixels[j], (int)channels[i]);
            const pixels_case k = {name, {1, 1, 1, pixels[j]},      channels[i],    0, 0,
                                   20,   j == 2 ? (int)(i % 3) : 0, i % 2 ? 0 : 301};
            check_both(device, cpu, &k);
        }
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status), *cpu = NULL;
    if (!device)
        return status;
    const tess_device_options options = {.memory = &test_counter};
    CHECK(tess_registry_open("cpu", &options, &cpu, NULL) == TESS_OK);
    for (int i = 0; i < PIXELS_CASES; i++) {
        const pixels_case *k = &pixels_cases[i];
        check_moments(device, k, true, i % 2);
        check_moments(device, k, true, i % 2 == 0);
        check_moments(device, k, false, i % 2);
        check_score(device, k, k->c, 2e-5);
        check_score(device, k, 1 + k->c / 3, 2e-5);
    }
    check_each_image(device);
    check_channels(device);
    check_bad(device);
    check_again(device, 100, 0);
    check_again(device, 77, 1);
    check_again(device, 130, 2);
    check_sizes(device, cpu);
    check_large(device, cpu, 300, 100, 0);
    check_large(device, cpu, 200, 61, 1);
    check_large(device, cpu, 150, 205, 2);
    check_large(device, cpu, 250, 10, 0);
    tess_registry_close(cpu);
    tess_registry_close(device);
    return check_end();
}
