/* Group norms of every instruction set against the plain reference kernel and PyTorch, with one thread and three. */
#include "counter.h"
#include "cpu/conv/kernels.h"
#include "group_norm_cases.h"

/* The order of the sums must not depend on the threads. */
static void check_threads(void)
{
    const norm_case c = {"threads", 2, 1, 130, 37, 40, 8, 0, true, TESS_SILU, false, 0, 0};
    float params[2][40];
    op_call call = norm_call(&c, TESS_F32);
    field results[3];
    for (int i = 0; i < 2; i++) {
        tess_rng_normal((tess_rng_key){7, 5, (uint32_t)i}, 0, 40, params[i]);
        call.param[i] = params[i];
    }
    for (int threads = 1; threads <= 3; threads++) {
        const tess_device_options options = {.memory = &test_counter, .threads = threads};
        tess_device *device = NULL;
        CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
        results[threads - 1] = op_run(device, &call, c.name);
        tess_registry_close(device);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_MSG(memcmp(results[i].data, results[0].data, results[0].bytes) == 0, "%d threads", i + 1);
        if (i)
            free(results[i].data);
    }
    free(results[0].data), free(call.in[0].data), free(call.in[1].data), free(call.out.data);
}

/* Shapes that the table of ops refuses, whatever the device. */
static void check_refusals(void)
{
    const norm_case c = {"refused", 1, 1, 4, 4, 12, 4, 0, true, TESS_LINEAR, false, 0, 0};
    tess_error error = {{0}};
    op_call call = norm_call(&c, TESS_F32);
    CHECK(tess_op_check(&call.op, &error) == TESS_OK);
    tess_op bad = call.op;
    bad.group_norm.groups = 5;
    CHECK(tess_op_check(&bad, &error) == TESS_UNSUPPORTED && !tess_op_same(&bad, &call.op));
    bad = call.op;
    bad.in[1].c = 12;
    CHECK(tess_op_check(&bad, &error) == TESS_UNSUPPORTED);
    bad = call.op;
    bad.group_norm.epsilon = 1e-6;
    CHECK(!tess_op_same(&bad, &call.op) && tess_op_same(&call.op, &call.op));
    CHECK(tess_op_row_of(TESS_OP_GROUP_NORM)->reach == TESS_REACH_EVERYTHING);
    free(call.in[0].data), free(call.in[1].data), free(call.out.data);
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            if (tess_registry_open("cpu", &options, &device, NULL) != TESS_OK)
                continue;
            check_norms(device, TESS_F32, 3e-6);
            check_norms(device, TESS_BF16, 1.0 / 128);
            check_norm_dumps(device, TESS_F32, 1e-5);
            tess_registry_close(device);
        }
    check_threads();
    check_refusals();
    return check_end();
}
