/* test_ends.c: networks with several inputs and outputs. Two inputs that are concatenated cannot share storage, so the plan copies
 * them (COPY steps); the result is that of one input which holds both. An activation that follows no convolution is an op. */
#include <string.h>

#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "net/plan.h"

enum { FIRST = 3, SECOND = 2, OUT = 16, HEIGHT = 12, WIDTH = 20 };

static tess_error error;

typedef struct machine {
    tess_net *net;
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block arena, workspace;
} machine;

static void make_ready(machine *m, tess_device *device)
{
    CHECK_MSG(tess_bound_create(m->net, device, TESS_F32, &m->bound, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_net_plan_create(m->bound, (tess_plan_shape){1, HEIGHT, WIDTH}, &m->plan, &error) ==
                  TESS_OK,
              "%s", error.text);
    CHECK(tess_net_plan_prepare(m->plan, &error) == TESS_OK);
    CHECK(tess_block_alloc(&test_counter, &m->arena, TESS_MEM_ACTIVATIONS, tess_net_plan_arena_bytes(m->plan),
                           &error) == TESS_OK);
    CHECK(tess_block_alloc(&test_counter, &m->workspace, TESS_MEM_WORKSPACE,
                           tess_net_plan_workspace_bytes(m->plan), &error) == TESS_OK);
}

static void clear(machine *m)
{
    tess_net_plan_destroy(m->plan);
    tess_bound_destroy(m->bound);
    tess_net_destroy(m->net);
    tess_block_free(&m->arena);
    tess_block_free(&m->workspace);
}

static float *end_of(const machine *m, bool input, int index)
{
    size_t offset;
    const tess_tensor t = input ? tess_net_plan_input_at(m->plan, index, &offset)
                                : tess_net_plan_output_at(m->plan, index, &offset);
    CHECK(t.h == HEIGHT && t.w == WIDTH && t.stride_w == t.c);
    return (float *)((char *)m->arena.data + offset);
}

int main(void)
{
    const tess_device_options options = {.threads = 2, .memory = &test_counter};
    const tess_conv_settings conv = {"conv", OUT, TESS_WINDOW_2D(3, 1, 1)};
    tess_device *device = NULL;
    CHECK(tess_registry_open("cpu", &options, &device, &error) == TESS_OK);
    machine two = {.net = tess_net_create()}, one = {.net = tess_net_create()};
    const tess_value a = tess_net_input(two.net, FIRST), b = tess_net_input(two.net, SECOND);
    tess_net_output(two.net, tess_net_activate(two.net, a, TESS_RELU));
    CHECK(tess_net_finish(two.net, tess_net_conv(two.net, tess_net_concat(two.net, a, b), conv), &error) ==
          TESS_OK);
    CHECK(tess_net_finish(one.net, tess_net_conv(one.net, tess_net_input(one.net, FIRST + SECOND), conv),
                          &error) == TESS_OK);
    CHECK(tess_net_input_count(two.net) == 2 && tess_net_output_count(two.net) == 2);
    make_ready(&two, device);
    make_ready(&one, device);
    CHECK(tess_net_plan_op_count(two.plan) == 4 && tess_net_plan_op_count(one.plan) == 1);
    CHECK(tess_bound_weight_bytes(two.bound) == tess_bound_weight_bytes(one.bound));
    tess_block weights;
    CHECK(tess_block_alloc(&test_counter, &weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(one.bound),
                           &error) == TESS_OK);
    tess_rng_normal((tess_rng_key){1, 2, 3}, 0, (int64_t)(tess_bound_weight_bytes(one.bound) / sizeof(float)),
                    weights.data);
    float *first = end_of(&two, true, 0), *second = end_of(&two, true, 1), *both = end_of(&one, true, 0);
    tess_rng_normal((tess_rng_key){4, 5, 6}, 0, HEIGHT * WIDTH * FIRST, first);
    tess_rng_normal((tess_rng_key){7, 8, 9}, 0, HEIGHT * WIDTH * SECOND, second);
    float kept[HEIGHT * WIDTH * FIRST];
    memcpy(kept, first, sizeof kept);
    for (int p = 0; p < HEIGHT * WIDTH; p++) {
        memcpy(both + p * (FIRST + SECOND), first + p * FIRST, FIRST * sizeof(float));
        memcpy(both + p * (FIRST + SECOND) + FIRST, second + p * SECOND, SECOND * sizeof(float));
    }
    tess_net_plan_run(two.plan, two.arena.data, two.workspace.data, weights.data, NULL);
    tess_net_plan_run(one.plan, one.arena.data, one.workspace.data, weights.data, NULL);
    const float *relu = end_of(&two, false, 0);
    int wrong = 0;
    for (int i = 0; i < HEIGHT * WIDTH * FIRST; i++)
        wrong += relu[i] != (kept[i] > 0 ? kept[i] : 0);
    CHECK_MSG(wrong == 0, "%d values of the first output are wrong", wrong);
    CHECK(memcmp(end_of(&two, false, 1), end_of(&one, false, 0), HEIGHT * WIDTH * OUT * sizeof(float)) == 0);
    tess_block_free(&weights);
    clear(&two);
    clear(&one);
    tess_registry_close(device);
    return check_end();
}
