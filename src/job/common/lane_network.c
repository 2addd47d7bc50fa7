/* What a lane keeps prepared: networks at the sizes seen last, each captured as one graph on the lane's memory,
 * and the ops that import and export samples. A network that is dropped ran at least LANE_NETWORKS windows ago,
 * so the device is done with it: at most three windows are under way. */
#include <string.h>

#include "base/clock.h"
#include "job/common/lane_impl.h"

void tess_lane_look_at_memory(tess_lane *lane)
{
    tess_device_facts facts;
    lane->device->facts(lane->device, &facts);
    pthread_mutex_lock(&lane->mutex);
    if (facts.memory_free < lane->least_free)
        lane->least_free = facts.memory_free;
    pthread_mutex_unlock(&lane->mutex);
}

static void drop(tess_lane *lane, lane_network *network)
{
    if (network->graph)
        lane->device->graph_release(lane->device, network->graph);
    tess_net_plan_destroy(network->plan);
    memset(network, 0, sizeof *network);
}

static tess_status prepare(tess_lane *lane, lane_network *network, const void *weights, tess_error *error)
{
    tess_device *device = lane->device;
    TESS_TRY(tess_net_plan_create(network->bound, network->shape, &network->plan, error));
    TESS_TRY(tess_net_plan_prepare(network->plan, error));
    if (tess_net_plan_arena_bytes(network->plan) > lane->arena.bytes ||
        tess_net_plan_workspace_bytes(network->plan) > lane->workspace.bytes)
        return tess_fail(error, TESS_INTERNAL, "a window of %lld x %lld needs more than was planned",
                         (long long)network->shape.h, (long long)network->shape.w);
    if (!device->capture_begin)
        return TESS_OK;
    TESS_TRY(device->capture_begin(device, lane->capture, error));
    tess_net_plan_run(network->plan, lane->arena.data, lane->workspace.data, weights, lane->capture);
    const tess_status status = device->capture_end(device, lane->capture, &network->graph, error);
    if (status != TESS_OK)
        tess_lane_lose(lane);
    return status;
}

tess_status tess_lane_network(tess_lane *lane, const tess_lane_window *w, lane_network **out,
                              tess_error *error)
{
    const tess_span cols = tess_axis_span(&w->cols, w->first), rows = w->strip.span;
    const tess_plan_shape shape = {w->n, rows.window_to - rows.window_from, cols.window_to - cols.window_from,
                                   TESS_INFER};
    lane_network *oldest = &lane->networks[0];
    for (int i = 0; i < LANE_NETWORKS; i++) {
        lane_network *known = &lane->networks[i];
        if (known->plan && known->bound == w->bound && known->shape.n == shape.n &&
            known->shape.h == shape.h && known->shape.w == shape.w) {
            known->used = lane->boarded;
            *out = known;
            return TESS_OK;
        }
        if (!known->plan || (oldest->plan && known->used < oldest->used))
            oldest = known;
    }
    const double start = tess_clock();
    drop(lane, oldest);
    *oldest = (lane_network){.bound = w->bound, .shape = shape, .used = lane->boarded};
    tess_status status = prepare(lane, oldest, w->weights, error);
    if (status != TESS_OK) {
        drop(lane, oldest);
        return status;
    }
    const double seconds = tess_clock() - start;
    pthread_mutex_lock(&lane->mutex);
    lane->shapes++;
    lane->shape_total += seconds;
    if (seconds > lane->shape_seconds)
        lane->shape_seconds = seconds;
    const bool early = lane->shapes <= LANE_NETWORKS;
    pthread_mutex_unlock(&lane->mutex);
    if (early)
        tess_lane_look_at_memory(lane);
    *out = oldest;
    return TESS_OK;
}

void tess_lane_network_run(tess_lane *lane, const lane_network *network, const void *weights)
{
    if (network->graph)
        lane->device->graph_launch(lane->device, network->graph, lane->compute);
    else
        tess_net_plan_run(network->plan, lane->arena.data, lane->workspace.data, weights, lane->compute);
}

tess_status tess_lane_sample_op(tess_lane *lane, const tess_op *op, const tess_prepared **out,
                                tess_error *error)
{
    tess_device *device = lane->device;
    lane_sample_op *oldest = &lane->sample_ops[0];
    for (int i = 0; i < LANE_SAMPLE_OPS; i++) {
        lane_sample_op *known = &lane->sample_ops[i];
        if (known->prepared && memcmp(&known->op, op, sizeof *op) == 0) {
            known->used = lane->turns;
            *out = known->prepared;
            return TESS_OK;
        }
        if (!known->prepared || (oldest->prepared && known->used < oldest->used))
            oldest = known;
    }
    if (oldest->prepared)
        device->release(device, oldest->prepared);
    oldest->prepared = NULL;
    TESS_TRY(device->prepare(device, op, &oldest->prepared, error));
    memcpy(&oldest->op, op, sizeof *op);
    oldest->used = lane->turns;
    *out = oldest->prepared;
    return TESS_OK;
}

void tess_lane_networks_clear(tess_lane *lane)
{
    for (int i = 0; i < LANE_NETWORKS; i++)
        drop(lane, &lane->networks[i]);
    for (int i = 0; i < LANE_SAMPLE_OPS; i++)
        if (lane->sample_ops[i].prepared)
            lane->device->release(lane->device, lane->sample_ops[i].prepared);
    memset(lane->sample_ops, 0, sizeof lane->sample_ops);
}
