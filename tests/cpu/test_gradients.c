/* Backward ops of every instruction set against central differences in fp64, with one thread and two, to the same
 * bits. */
#include "counter.h"
#include "gradient_cases.h"

/* Of equal values, the first of a window gets the gradient. */
static void check_ties(tess_device *device)
{
    enum { COUNT = 16 };
    float gradient[COUNT / 4] = {1, 2, 3, 4}, values[COUNT] = {0}, got[COUNT];
    const float want[COUNT] = {1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4};
    train_call call = {.op = {.kind = TESS_OP_POOL_GRAD, .inputs = 2, .outputs = 1, .stride = {1, 2, 2}}};
    call.op.in[0] = tess_tensor_2d(TESS_F32, 1, 2, 2, 1);
    call.op.in[1] = call.op.out[0] = tess_tensor_2d(TESS_F32, 1, 4, 4, 1);
    call.in[0].f = over_memory(gradient, COUNT / 4, TESS_F32);
    call.in[1].f = over_memory(values, COUNT, TESS_F32);
    call.out[0].f = over_memory(got, COUNT, TESS_F32);
    memset(got, 0, sizeof got);
    train_update(device, &call, "ties");
    CHECK(memcmp(got, want, sizeof got) == 0);
}

static void check_threads(const gradient_case *c)
{
    operand results[2][TESS_OP_OUTPUTS];
    int outputs = 0;
    for (int i = 0; i < 2; i++) {
        const tess_device_options options = {.memory = &test_counter, .threads = 1 + i};
        tess_device *device = NULL;
        CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
        point p = point_of(c, TESS_F32);
        train_call call = bind_call(&p, TESS_F32);
        train_update(device, &call, c->name);
        outputs = call.op.outputs;
        memcpy(results[i], call.out, sizeof results[i]);
        for (int k = 0; k < call.op.inputs; k++)
            free(call.in[k].f.data);
        point_clear(&p);
        tess_registry_close(device);
    }
    for (int k = 0; k < outputs; k++) {
        CHECK_MSG(memcmp(results[0][k].f.data, results[1][k].f.data, results[0][k].f.bytes) == 0,
                  "%s: threads change the result", c->name);
        free(results[0][k].f.data), free(results[1][k].f.data);
    }
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        const tess_device_options options = {.memory = &test_counter, .threads = 2, .isa = sets[s]};
        tess_device *device = NULL;
        if (tess_registry_open("cpu", &options, &device, NULL) != TESS_OK)
            continue;
        check_gradients(device, TESS_F32, 3e-6);
        check_gradients(device, TESS_BF16, 1.0 / 128);
        check_ties(device);
        tess_registry_close(device);
    }
    for (size_t i = 0; i < sizeof gradient_cases / sizeof gradient_cases[0]; i++)
        check_threads(&gradient_cases[i]);
    return check_end();
}
