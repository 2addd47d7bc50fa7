/* Packing of what a block exchanges. In host memory it is done by memcpy. On a device with separate memory an op for each neighbour
 * does it in the order of the stream, so that only the compact buffer is copied to the host and back. */
#include "net/plan_impl.h"

/* The neighbours of a step whose copies are ops. */
static int sides_of(const tess_net_plan *plan, const tess_exchange *e,
                    tess_exchange_side sides[TESS_EXCHANGE_SIDES])
{
    return plan->bound->device->host_memory || !tess_exchange_in_block(e) ? 0 : tess_exchange_sides(e, sides);
}

tess_status tess_plan_prepare_copies(const tess_net_plan *plan, tess_step *step, tess_error *error)
{
    tess_device *device = plan->bound->device;
    const tess_exchange e = tess_plan_exchange(plan, step, NULL);
    tess_exchange_side sides[TESS_EXCHANGE_SIDES];
    const int count = sides_of(plan, &e, sides);
    for (int i = 0; i < count; i++) {
        int64_t at;
        const tess_op op = tess_exchange_copy(&e, &sides[i], step->kind == TESS_STEP_ARRIVAL, &at);
        if (!step->copies[i])
            TESS_TRY(device->ops->prepare(device, &op, &step->copies[i], error));
    }
    return TESS_OK;
}

void tess_plan_release_copies(const tess_net_plan *plan, tess_step *step)
{
    for (int i = 0; i < TESS_EXCHANGE_SIDES; i++)
        if (step->copies[i])
            plan->bound->device->ops->release(plan->bound->device, step->copies[i]);
}

void tess_plan_run_copies(const tess_net_plan *plan, const tess_step *step, const tess_exchange *e,
                          tess_stream *stream)
{
    tess_device *device = plan->bound->device;
    const bool received = step->kind == TESS_STEP_ARRIVAL;
    tess_exchange_side sides[TESS_EXCHANGE_SIDES];
    if (!tess_exchange_in_block(e))
        return;
    if (device->host_memory) {
        (received ? tess_exchange_unpack : tess_exchange_pack)(e);
        return;
    }
    const int count = sides_of(plan, e, sides);
    for (int i = 0; i < count; i++) {
        int64_t at;
        (void)tess_exchange_copy(e, &sides[i], received, &at);
        char *edge = (char *)e->data + at,
             *packed = (char *)e->packed + (received ? sides[i].received : sides[i].sent);
        const tess_op_buffers buffers = {.in = {received ? packed : edge}, .out = {received ? edge : packed}};
        device->ops->run(device, step->copies[i], &buffers, stream);
    }
}
