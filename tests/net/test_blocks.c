/* A network with group norms, scale and shift, SiLU and attention: what is fused, that it computes what PyTorch does, and that no
 * halo is said to make a tile or a strip of it exact. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "block_net.h"
#include "counter.h"

static void check_fused(tess_device *device)
{
    tess_net *net = block_net();
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    tess_error error = {{0}};
    int left = 0, silu = 0;
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        left += !layer->dropped;
        silu += !layer->dropped && layer->kind == TESS_OP_GROUP_NORM && layer->activation == TESS_SILU;
    }
    CHECK_MSG(left == BLOCK_LAYERS && silu == 2, "%d layers, %d of them norms with SiLU", left, silu);
    CHECK(tess_bound_create(net, device, TESS_F32, &bound, &error) == TESS_OK);
    tess_plan_shape shape = {.n = 1, .h = 40, .w = 40};
    CHECK(tess_net_plan_create(bound, shape, &plan, &error) == TESS_OK);
    CHECK(tess_net_plan_op_count(plan) == BLOCK_LAYERS);
    /* At the attention there are the residual, what it reads and what it writes; norms write over their input. */
    const size_t values = 40 * 40 * (1 + 3 + 1) * BLOCK_CHANNELS;
    CHECK_MSG(tess_net_plan_arena_bytes(plan) < values * sizeof(float) + 4096, "%zu bytes of activations",
              tess_net_plan_arena_bytes(plan));
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    tess_net_destroy(net);
}

static void check_reach(tess_device *device)
{
    tess_net *net = block_net();
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    tess_error error = {{0}};
    CHECK(tess_bound_create(net, device, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_bound_reach(bound) == TESS_REACH_ALL && tess_bound_reach_depth(bound) == TESS_REACH_ALL);
    tess_plan_shape strip = {.n = 1, .h = 16, .w = 16, .below = true};
    CHECK_MSG(tess_net_plan_create(bound, strip, &plan, &error) == TESS_UNSUPPORTED && !plan, "%s",
              error.text);
    tess_bound_destroy(bound);
    tess_net_destroy(net);
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            tess_device_facts facts;
            if (tess_registry_open("cpu", &options, &device, NULL) != TESS_OK)
                continue;
            check_block_net(device, TESS_F32, 1e-5);
            device->facts(device, &facts);
            if (facts.bf16)
                check_block_net(device, TESS_BF16, 3e-2);
            check_fused(device);
            check_reach(device);
            tess_registry_close(device);
        }
    return check_end();
}
