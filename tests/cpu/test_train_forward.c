/* Batch norm as it is trained and noise, of every instruction set, against fp64; the same bits with any number of
 * threads. */
#include "counter.h"
#include "train_forward.h"

static void check_threads(void)
{
    field results[3];
    for (int i = 0; i < 3; i++) {
        const tess_device_options options = {.memory = &test_counter, .threads = 1 + i};
        tess_device *device = NULL;
        CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
        const gradient_case c = {.kind = TESS_OP_BATCH_NORM_GRAD, .n = 3, .d = 1, .h = 61, .w = 50, .c = 9};
        const tess_tensor t = values_tensor(&c, TESS_F32, c.h, c.w, c.c),
                          vector = vector_of(TESS_F32, 2 * c.c);
        train_call call = {.op = {.kind = TESS_OP_BATCH_NORM_TRAIN, .batch_norm = {1e-5, 0.1, false}}};
        set_input(&call, t, NULL);
        set_input(&call, vector, NULL);
        set_output(&call, t);
        set_output(&call, vector);
        train_update(device, &call, "threads");
        results[i] = call.out[0].f;
        CHECK(memcmp(results[0].data, results[i].data, results[0].bytes) == 0);
        free(call.in[0].f.data), free(call.in[1].f.data), free(call.out[1].f.data);
        tess_registry_close(device);
    }
    for (int i = 0; i < 3; i++)
        free(results[i].data);
}

int main(void)
{
    static const char *const sets[] = {NULL, "reference"};
    for (int s = 0; s < 2; s++)
        for (int threads = 1; threads <= 2; threads++) {
            const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
            check_batch_norms(device, TESS_F32, 3e-6);
            check_batch_norms(device, TESS_BF16, 1.0 / 128);
            check_noises(device, 1e-6);
            tess_registry_close(device);
        }
    check_threads();
    return check_end();
}
