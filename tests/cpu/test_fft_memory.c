/* test_fft_memory.c: FFTW's plans stay within the bytes counted for an FFT, which are known before the plan is made
 * and released after it; sizes that FFTW cannot handle are refused. */
#if defined(__GLIBC__) || defined(__linux__)
#include <malloc.h>
#endif
#include "counter.h"
#include "solver_ops.h"

static tess_op fft_of(int64_t h, int64_t w, bool inverse)
{
    const tess_tensor real = tess_tensor_2d(TESS_F32, 1, h, w, 1),
                      half = tess_tensor_2d(TESS_F32, 1, h, w / 2 + 1, 2);
    return (tess_op){.kind = TESS_OP_FFT,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {inverse ? half : real},
                     .out = {inverse ? real : half},
                     .kernel = {1, 1, 1},
                     .stride = {1, 1, 1},
                     .fft = {.inverse = inverse}};
}

static size_t heap(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
#else
    return 0; /* nothing to compare with */
#endif
}

static void test_size(tess_device *device, int64_t h, int64_t w, bool inverse)
{
    const tess_op op = fft_of(h, w, inverse);
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {""};
    CHECK_MSG(device->ops->query(device, &op, &needs, &error) == TESS_OK, "%s", error.text);
    const uint64_t before = counted_now();
    const size_t used = heap();
    CHECK_MSG(device->ops->prepare(device, &op, &prepared, &error) == TESS_OK, "%s", error.text);
    const size_t taken = heap() - used;
    CHECK(counted_now() - before == needs.held);
    CHECK_MSG(taken <= needs.held, "%lldx%lld: FFTW took %zu bytes of %zu", (long long)h, (long long)w, taken,
              needs.held);
    device->ops->release(device, prepared);
    CHECK(counted_now() == before);
}

int main(void)
{
    tess_device *device = open_cpu(2);
    const int64_t sizes[] = {1,    2,    16,   17,   101,  137,   509,   512,   683,
                             1021, 1366, 2048, 4093, 8191, 16411, 65521, 131071};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    tess_prepared *first = NULL; /* FFTW's own tables, once for the process */
    const tess_op any = fft_of(8, 8, false);
    CHECK(device->ops->prepare(device, &any, &first, NULL) == TESS_OK);
    for (int i = 0; i < SIZES; i++)
        for (int inverse = 0; inverse < 2; inverse++)
            test_size(device, sizes[i], sizes[SIZES - 1 - i], inverse);
    device->ops->release(device, first);
    const int64_t bad[] = {0, -1, -7, ((int64_t)1 << 20) + 1, (int64_t)1 << 31, (int64_t)1 << 40};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int side = 0; side < 2; side++) {
            const tess_op op = fft_of(side ? 8 : bad[i], side ? bad[i] : 8, false);
            tess_op_needs needs;
            tess_prepared *prepared = NULL;
            CHECK(device->ops->query(device, &op, &needs, NULL) == TESS_UNSUPPORTED);
            CHECK(device->ops->prepare(device, &op, &prepared, NULL) == TESS_UNSUPPORTED && !prepared);
        }
    tess_registry_close(device);
    return check_end();
}
