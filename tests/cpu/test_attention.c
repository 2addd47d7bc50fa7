/* Attention of every instruction set against the plain reference kernel and PyTorch, with one thread and three. */
#include "attention_cases.h"
#include "counter.h"

/* A matrix of pixels by pixels would be 64 MiB here. */
static void check_workspace(tess_device *device)
{
    tess_op op = attention_op(1, true);
    tess_op_needs needs;
    tess_error error = {{0}};
    op.in[0] = tess_tensor_2d(TESS_F32, 1, 64, 64, 24);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 64, 64, 8);
    CHECK_MSG(device->ops->query(device, &op, &needs, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(needs.workspace <= 1 << 20, "%zu bytes of workspace", needs.workspace);
}

/* Results must not depend on the threads. */
static void check_threads(void)
{
    const attention_case c = {"threads", 2, 1, 13, 11, 2, 8, true, 0, 0, 1};
    op_call call = attention_call(&c, TESS_F32);
    field results[2];
    for (int i = 0; i < 2; i++) {
        const tess_device_options options = {.memory = &test_counter, .threads = 1 + 2 * i};
        tess_device *device = NULL;
        CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
        results[i] = op_run(device, &call, c.name);
        tess_registry_close(device);
    }
    CHECK(memcmp(results[0].data, results[1].data, results[0].bytes) == 0);
    free(results[0].data), free(results[1].data), free(call.in[0].data), free(call.out.data);
}

/* Shapes that the table of ops refuses, whatever the device. */
static void check_refusals(void)
{
    tess_op op = attention_op(4, true), other;
    tess_error error = {{0}};
    op.in[0] = tess_tensor_2d(TESS_F32, 1, 3, 5, 96);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 3, 5, 32);
    CHECK(tess_op_check(&op, &error) == TESS_OK && tess_op_same(&op, &op));
    other = op;
    other.attention.heads = 5;
    CHECK(tess_op_check(&other, &error) == TESS_UNSUPPORTED && !tess_op_same(&op, &other));
    other = op;
    other.in[0].c = 64;
    CHECK(tess_op_check(&other, &error) == TESS_UNSUPPORTED);
    other = op;
    other.attention.by_head = false;
    CHECK(!tess_op_same(&op, &other));
    CHECK(tess_op_row_of(TESS_OP_ATTENTION)->reach == TESS_REACH_EVERYTHING);
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
            check_attentions(device, TESS_F32, 3e-6);
            check_attentions(device, TESS_BF16, 1.0 / 128);
            check_attention_dumps(device, TESS_F32, 1e-5);
            check_workspace(device);
            tess_registry_close(device);
        }
    check_threads();
    check_refusals();
    return check_end();
}
