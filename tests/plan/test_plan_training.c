/* test_plan_training.c: a limit is kept by computing as few blocks again as it requires, and the plan says how many. */
#define _XOPEN_SOURCE 700
#include "plan/training.h"

#include "counter.h"
#include "model/model.h"
#include "support.h"

static tess_device *device;
static tess_rates *rates;

static tess_training_request request_of(uint64_t limit)
{
    return (tess_training_request){.settings = {.dtype = TESS_F32,
                                                .n = 4,
                                                .h = 64,
                                                .w = 64,
                                                .micro_batches = 1,
                                                .loss = {.kind = TESS_MSE},
                                                .optimize = {.kind = TESS_ADAM}},
                                   .recompute_auto = true,
                                   .limit = limit};
}

/* The bytes of the step that computes so many blocks again. */
static uint64_t bytes_with(const tess_net *net, tess_recompute recompute, int blocks)
{
    tess_training_settings settings = request_of(0).settings;
    tess_training *training = NULL;
    tess_error error = {{0}};
    settings.recompute = recompute;
    settings.recompute_blocks = blocks;
    CHECK_MSG(tess_training_create(net, device, &settings, &training, &error) == TESS_OK, "%s", error.text);
    const tess_mem_bytes none = {{0}}, all = training ? tess_training_bytes(training) : none;
    tess_training_destroy(training);
    return tess_mem_total(&all);
}

static void check_limit(const tess_net *net, uint64_t limit, bool whole)
{
    const tess_training_request request = request_of(limit);
    tess_training_choice choice;
    tess_training *training = NULL;
    tess_error error = {{0}};
    uint64_t least = 0;
    char words[32];
    const tess_status status =
        tess_plan_training(net, device, rates, &request, &choice, &training, &least, &error);
    CHECK_MSG(status == TESS_OK, "%s", error.text);
    if (status != TESS_OK)
        return;
    const tess_mem_bytes planned = tess_training_bytes(training);
    CHECK(choice.bytes <= limit && choice.bytes == tess_mem_total(&planned));
    CHECK(choice.blocks == tess_training_recomputed(training) && choice.blocks <= choice.blocks_of);
    CHECK_MSG(whole == (choice.recompute == TESS_RECOMPUTE_NONE), "%s", choice.why);
    CHECK(bytes_with(net, choice.recompute, choice.blocks) == choice.bytes);
    if (!whole) /* one block fewer is too much */
        CHECK_MSG(choice.blocks > 0 && bytes_with(net, choice.recompute, choice.blocks - 1) > limit,
                  "limit %llu: %s", (unsigned long long)limit, choice.why);
    snprintf(words, sizeof words, "(%d of %d)", choice.blocks, choice.blocks_of);
    CHECK_MSG((choice.blocks < choice.blocks_of) == (strstr(choice.why, words) != NULL), "%s", choice.why);
    tess_training_destroy(training);
}

int main(void)
{
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    tess_model_net model;
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    const bool open = tess_registry_open("cpu", &options, &device, &error) == TESS_OK &&
                      tess_rates_open(device, &rates, &error) == TESS_OK &&
                      tess_model_open("random:drunet", &weights, &error) == TESS_OK &&
                      tess_model_recognise_trained(weights, &model, &error) == TESS_OK;
    CHECK_MSG(open, "%s", error.text);
    if (!open)
        return check_end();
    const uint64_t none = bytes_with(model.net, TESS_RECOMPUTE_NONE, 0),
                   blocks = bytes_with(model.net, TESS_RECOMPUTE_BLOCKS, TESS_RECOMPUTE_EVERYWHERE),
                   all = bytes_with(model.net, TESS_RECOMPUTE_ALL, TESS_RECOMPUTE_EVERYWHERE);
    check_limit(model.net, none + 1, true);
    check_limit(model.net, none, true);
    check_limit(model.net, none - 1, false);
    for (int i = 1; i < 8; i++)
        check_limit(model.net, blocks + (none - blocks) * (uint64_t)i / 8, false);
    check_limit(model.net, blocks, false);
    check_limit(model.net, all + (blocks - all) / 2, false);
    check_limit(model.net, all, false);
    tess_model_clear(&model);
    tess_weights_close(weights);
    tess_rates_destroy(rates);
    tess_registry_close(device);
    return check_end();
}
