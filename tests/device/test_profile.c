/* test_profile.c: layers of a device that computes later than its functions return are timed by the device itself. */
#define _POSIX_C_SOURCE 200809L
#include "device/traced.h"

#include "base/trace.h"
#include "counter.h"
#include "late_device.h"
#include "support.h"

enum { SIDE = 16, RUNS = 120 }; /* more ops than the profile has pairs of events */

static void check_rows(tess_device *device, int64_t ops, bool lost)
{
    const tess_profile_row *rows;
    const int count = tess_device_profile(device, &rows);
    int64_t calls = 0;
    CHECK(count > 10);
    for (int i = 0; i < count; i++) {
        calls += rows[i].calls;
        CHECK_MSG(lost ? rows[i].seconds < 0.5 * (double)rows[i].calls
                       : rows[i].seconds == 0.5 * (double)rows[i].calls,
                  "%s: %g s for %lld calls", rows[i].name, rows[i].seconds, (long long)rows[i].calls);
    }
    CHECK_MSG(calls == ops, "%lld calls of %lld", (long long)calls, (long long)ops);
}

int main(void)
{
    static const tess_device_graphs graphs = {0};
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    const tess_plan_shape shape = {1, SIDE, SIDE};
    tess_device *device = NULL;
    tess_weights *weights = NULL;
    tess_model_net model;
    tess_stream *stream = NULL;
    tess_error error;
    ready r;
    CHECK(tess_registry_open("cpu", &options, &device, &error) == TESS_OK);
    CHECK(tess_model_open("random:dncnn", &weights, &error) == TESS_OK);
    CHECK(tess_model_recognise(weights, &model, &error) == TESS_OK);
    CHECK_MSG(ready_make(model.net, device, TESS_F32, weights, shape, &r, &error) == TESS_OK, "%s",
              error.text);
    memset(r.arena.data, 0, r.arena.bytes);
    late_device(device);
    device->graphs = &graphs;
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK);

    test_counter.trace = tess_trace_create(16, true);
    CHECK(test_counter.trace && tess_device_record(device, &error) == TESS_OK);
    CHECK(!device->graphs); /* ops inside of a graph could not be timed one by one */
    const int64_t ops = tess_net_plan_op_count(r.plan);
    for (int i = 0; i < RUNS; i++)
        tess_net_plan_run(r.plan, r.arena.data, r.workspace.data, r.weights.data, stream);
    check_rows(device, RUNS * ops, false);
    late_is_lost = true; /* what cannot be waited for has no time */
    tess_net_plan_run(r.plan, r.arena.data, r.workspace.data, r.weights.data, stream);
    check_rows(device, (RUNS + 1) * ops, true);
    late_is_lost = false;
    tess_trace_hush(test_counter.trace, true);
    tess_net_plan_run(r.plan, r.arena.data, r.workspace.data, r.weights.data, stream);
    tess_trace_hush(test_counter.trace, false);
    check_rows(device, (RUNS + 1) * ops, true);

    CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
    tess_device_record_end(device);
    CHECK(device->graphs == &graphs && !device->traced);
    tess_trace_destroy(test_counter.trace);
    test_counter.trace = NULL;
    device->streams->destroy(device, stream);
    device->graphs = NULL;
    ready_clear(&r);
    tess_model_clear(&model);
    tess_weights_close(weights);
    tess_registry_close(device);
    return check_end();
}
