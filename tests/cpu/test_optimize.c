/* Optimizers and losses against PyTorch, with every instruction set; the same bits with any number of threads. */
#include "counter.h"
#include "train_cases.h"

/* A loss and a step over more values than one block, with `threads`. */
static void run_threads(int threads, double *loss, field *gradient)
{
    const tess_device_options options = {.memory = &test_counter, .threads = threads};
    tess_device *device = NULL;
    CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
    double control[TESS_CONTROLS] = {0};
    control[TESS_CONTROL_LOSS_SCALE] = 1;
    train_call call = {
        .op = {.kind = TESS_OP_LOSS, .inputs = 3, .outputs = 2, .loss = {TESS_CHARBONNIER, 1e-3, 1, false}}};
    call.op.in[0] = call.op.in[1] = call.op.out[0] = tess_tensor_2d(TESS_F32, 3, 129, 61, 3);
    call.op.in[2] = vector_of(TESS_F64, TESS_CONTROLS);
    call.op.out[1] = vector_of(TESS_F64, 1);
    call.in[0].f = random_field(&call.op.in[0], 1);
    call.in[1].f = random_field(&call.op.in[1], 2);
    call.in[2].f = over_memory(control, TESS_CONTROLS, TESS_F64);
    call.out[0].f = *gradient = random_field(&call.op.out[0], 3);
    call.out[1].f = over_memory(loss, 1, TESS_F64);
    train_update(device, &call, "threads");
    free(call.in[0].f.data), free(call.in[1].f.data);
    tess_registry_close(device);
}

static void check_threads(void)
{
    double loss[3];
    field gradients[3];
    for (int i = 0; i < 3; i++)
        run_threads(1 + i, &loss[i], &gradients[i]);
    for (int i = 1; i < 3; i++) {
        CHECK(memcmp(&loss[0], &loss[i], sizeof loss[0]) == 0);
        CHECK(memcmp(gradients[0].data, gradients[i].data, gradients[0].bytes) == 0);
    }
    for (int i = 0; i < 3; i++)
        free(gradients[i].data);
}

static void check_refusals(tess_device *device)
{
    tess_op op = {.kind = TESS_OP_OPTIMIZE, .inputs = 3, .outputs = 2, .optimize = {.kind = TESS_ADAM}};
    tess_op_needs needs;
    tess_error error = {{0}};
    op.in[0] = op.out[0] = op.out[1] = op.out[2] = vector_of(TESS_F32, 7);
    op.in[1] = vector_of(TESS_F64, TESS_CONTROLS);
    op.in[2] = vector_of(TESS_F64, 1);
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
    CHECK_MSG(strstr(error.text, "more moments"), "%s", error.text);
    op.outputs = 3;
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_OK);
    op.out[2] = vector_of(TESS_F32, 8);
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED);
}

int main(void)
{
    static const char *const sets[] = {NULL, "reference"};
    for (int s = 0; s < 2; s++)
        for (int threads = 1; threads <= 2; threads++) {
            const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
            check_optimizers(device, 3e-6);
            check_average(device);
            check_losses(device);
            check_refusals(device);
            tess_registry_close(device);
        }
    check_threads();
    return check_end();
}
