/* test_separate_upsampling.c: a device that fuses upsampling into the convolution after it cannot compute a strip of an image. Taken
 * apart, the network is the one of a device that fuses nothing, and strips are planned. */
#include "check.h"
#include "counter.h"
#include "net/plan.h"

static tess_error error;
static const tess_device_ops *cpu_ops;

/* The CPU with a kernel for both layers at once, which is never run. */
static tess_status query(tess_device *device, const tess_op *op, tess_op_needs *needs, tess_error *why)
{
    if (op->kind != TESS_OP_UP_CONV)
        return cpu_ops->query(device, op, needs, why);
    *needs = (tess_op_needs){.weights = 1 << 20, .block = 1};
    return TESS_OK;
}

static tess_device *open_device(void)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    tess_device *device = NULL;
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    return device;
}

static tess_net *make_net(void)
{
    enum { WIDE = 16 };
    const tess_conv_settings head = {"head", WIDE, TESS_WINDOW_2D(2, 2, 0)},
                             body = {"body", WIDE, TESS_WINDOW_2D(3, 1, 1)},
                             tail = {"tail", 3, TESS_WINDOW_2D(3, 1, 1)};
    tess_net *net = tess_net_create();
    tess_value x = tess_net_conv(net, tess_net_input(net, 3), head);
    x = tess_net_conv(net, tess_net_upsample(net, x), body);
    CHECK_MSG(tess_net_finish(net, tess_net_conv(net, x, tail), &error) == TESS_OK, "%s", error.text);
    return net;
}

int main(void)
{
    const tess_plan_shape strip = {.n = 1, .h = 64, .w = 32, .below = true};
    tess_net *net = make_net();
    tess_device *plain = open_device(), *fusing = open_device();
    cpu_ops = fusing->ops;
    tess_device_ops ops = *cpu_ops;
    ops.query = query;
    fusing->ops = &ops;
    tess_bound *apart = NULL, *bound = NULL;
    tess_net_plan *plan = NULL;
    CHECK(tess_bound_create(net, plain, TESS_F32, &apart, &error) == TESS_OK);
    CHECK(tess_bound_create(net, fusing, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_bound_weight_bytes(bound) > 1 << 20);
    CHECK(tess_net_plan_create(bound, strip, &plan, &error) == TESS_UNSUPPORTED);
    for (int i = 0; i < 2; i++) {
        CHECK(tess_bound_separate_upsampling(i ? apart : bound, &error) == TESS_OK);
        CHECK(tess_bound_weight_bytes(bound) == tess_bound_weight_bytes(apart) &&
              tess_bound_alignment(bound) == tess_bound_alignment(apart));
    }
    CHECK_MSG(tess_net_plan_create(bound, strip, &plan, &error) == TESS_OK, "%s", error.text);
    CHECK(plan && tess_net_plan_exchange_count(plan) > 0);
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    tess_bound_destroy(apart);
    tess_registry_close(fusing);
    tess_registry_close(plain);
    tess_net_destroy(net);
    return check_end();
}
