/* One optimizer step of a network on the CPU; tests/cuda/test_training_cuda.c has the same on a card. Here also: plans of
 * large networks, wrong use, and memory that runs out. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "support.h"

#include "step_checks.h"
#include "step_gradients.h"
#include "step_shares.h"

static tess_device *open_cpu(int threads, const char *isa)
{
    tess_device *device = NULL;
    tess_error error = {{0}};
    const tess_device_options options = {.threads = threads, .memory = &test_counter, .isa = isa};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    if (!device)
        exit(check_end());
    return device;
}

static uint64_t planned_activations(tess_device *device, const tess_net *net, tess_recompute recompute)
{
    tess_training_settings settings = step_settings(4, 128, 0);
    settings.recompute = recompute;
    tess_training *training = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_training_create(net, device, &settings, &training, &error) == TESS_OK, "%s", error.text);
    const uint64_t planned = training ? tess_training_bytes(training).by[TESS_MEM_ACTIVATIONS] : 0;
    tess_training_destroy(training);
    return planned;
}

/* Each further block frees bytes, the first one the most; there are as many as the plan says. */
static void test_some_blocks(tess_device *device, const tess_net *net, const char *name, uint64_t none,
                             uint64_t every)
{
    uint64_t before = 0, most = 0;
    int blocks = 0;
    for (int n = 0, more = 1; more; n++) {
        tess_training_settings settings = step_settings(4, 128, 0);
        settings.recompute = TESS_RECOMPUTE_BLOCKS;
        settings.recompute_blocks = n;
        tess_training *training = NULL;
        tess_error error = {{0}};
        CHECK_MSG(tess_training_create(net, device, &settings, &training, &error) == TESS_OK, "%s",
                  error.text);
        if (!training)
            return;
        const uint64_t now = tess_training_bytes(training).by[TESS_MEM_ACTIVATIONS];
        blocks = tess_training_recomputed(training);
        more = blocks == n;
        tess_training_destroy(training);
        CHECK_MSG(n > 0 || now == none, "%s: no block, but not the bytes of none", name);
        CHECK_MSG(n == 0 || (more ? now < before : now == before), "%s: %d blocks: %llu after %llu", name, n,
                  (unsigned long long)now, (unsigned long long)before);
        most = n == 1 ? before - now : most;
        CHECK_MSG(n == 0 || before - now <= most, "%s: block %d frees more than the first", name, n);
        before = now;
    }
    CHECK_MSG(blocks > 1 && before == every, "%s: %d blocks, %llu bytes, not %llu", name, blocks,
              (unsigned long long)before, (unsigned long long)every);
}

/* Networks of published width are only planned. */
static void test_recomputed_bytes(tess_device *device, const char *name, double blocks_at_most)
{
    tess_weights *weights = NULL;
    tess_model_net model;
    tess_error error = {{0}};
    const bool open = tess_model_open(name, &weights, &error) == TESS_OK &&
                      tess_model_recognise_trained(weights, &model, &error) == TESS_OK;
    CHECK_MSG(open, "%s", error.text);
    if (open) {
        const uint64_t none = planned_activations(device, model.net, TESS_RECOMPUTE_NONE),
                       blocks = planned_activations(device, model.net, TESS_RECOMPUTE_BLOCKS),
                       all = planned_activations(device, model.net, TESS_RECOMPUTE_ALL);
        printf("%s: activations of a step, 4 crops of 128: %llu MiB, blocks %.3f, all %.3f\n", name,
               (unsigned long long)(none >> 20), (double)blocks / (double)none, (double)all / (double)none);
        CHECK_MSG(all > 0 && all < blocks && blocks < none, "%s: %llu, %llu, %llu", name,
                  (unsigned long long)none, (unsigned long long)blocks, (unsigned long long)all);
        CHECK((double)blocks <= blocks_at_most * (double)none);
        test_some_blocks(device, model.net, name, none, blocks);
        tess_model_clear(&model);
    }
    tess_weights_close(weights);
}

/* The sums of every op have one order, whatever the number of threads. */
static void test_threads(void)
{
    for (int i = 0; i < STEP_NETS; i++) {
        tess_training_settings settings = step_settings(2, 20, step_nets[i].depth);
        settings.optimize = step_adam();
        tess_device *one = open_cpu(1, NULL), *three = open_cpu(3, NULL);
        step_outcome a = step_outcome_of(one, &step_nets[i], &settings, 2, 1e-3),
                     b = step_outcome_of(three, &step_nets[i], &settings, 2, 1e-3);
        check_equal(&a, &b, step_nets[i].name, "another number of threads");
        free(a.values), free(b.values);
        tess_registry_close(one);
        tess_registry_close(three);
    }
}

/* ---- the same weights for training and for inference ---- */

/* x - c(up(average(relu(a(x))))), and the name of the file's factor. */
static tess_net *subtracting_net(bool trained)
{
    tess_net *net = tess_net_create();
    tess_error error = {{0}};
    const tess_value x = tess_net_input(net, 3);
    tess_value h = tess_net_upsample(net, tess_net_average_pool(net, step_conv_relu(net, x, "a")));
    h = tess_net_conv(net, h, (tess_conv_settings){"c", 3, TESS_WINDOW_2D(3, 1, 1), true, .scale = -1});
    if (trained)
        tess_net_train(net);
    CHECK_MSG(tess_net_finish(net, tess_net_add(net, x, h), &error) == TESS_OK, "%s", error.text);
    return net;
}

/* The loss that training reports is that of the network as inference computes it from the same file. */
static void test_loss_of_file(tess_device *device)
{
    const char *path = "training_factor.safetensors";
    tensor_list list = {0};
    add_conv(&list, "a", STEP_WIDTH, 3, 3, true);
    add_conv(&list, "c", 3, STEP_WIDTH, 3, true);
    save_tensors(&list, path);
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    tess_net *net = subtracting_net(true), *plain = subtracting_net(false);
    const tess_training_settings settings = step_settings(2, 10, 0);
    step_run run;
    ready r;
    if (step_open(&run, device, net, &settings, "subtracting")) {
        enum { VALUES = 2 * 10 * 10 * 3 };
        float in[VALUES], out[VALUES], target[VALUES];
        float *trained = step_room((size_t)run.parameters->trained, sizeof *trained);
        CHECK(run.parameters->count == 4 && run.parameters->list[0].factor == 1 &&
              run.parameters->list[2].factor == -1 && run.parameters->list[3].factor == -1);
        CHECK_MSG(tess_parameters_read(run.parameters, weights, trained, NULL, &error) == TESS_OK, "%s",
                  error.text);
        step_set(&run, TESS_STATE_PARAMETERS, trained);
        step_passes(&run, 0, 0, true);
        const tess_plan_shape shape = {.n = 2, .h = 10, .w = 10};
        CHECK_MSG(ready_make(plain, device, TESS_F32, weights, shape, &r, &error) == TESS_OK, "%s",
                  error.text);
        tess_rng_uniform((tess_rng_key){9, 0, 0}, 0, VALUES, in); /* as step_data has them */
        tess_rng_uniform((tess_rng_key){9, 10, 0}, 0, VALUES, target);
        ready_run(&r, in, out);
        double want = 0;
        for (int i = 0; i < VALUES; i++)
            want += pow((double)out[i] - (double)target[i], 2) / VALUES;
        CHECK_MSG(fabs(run.loss - want) <= 1e-6 * want, "loss %.9g, of the file's network %.9g", run.loss,
                  want);
        ready_clear(&r);
        free(trained);
        step_close(&run);
    }
    tess_net_destroy(net);
    tess_net_destroy(plain);
    tess_weights_close(weights);
    unlink(path);
}

/* ---- dropout ---- */

/* The loss of one step. */
static double dropout_loss(tess_device *device, uint64_t seed, uint32_t step)
{
    tess_net *net = step_net_make(step_net_named("dropouts"));
    tess_training_settings settings = step_settings(2, 12, 0);
    settings.seed = seed;
    double loss = 0;
    step_run run;
    if (step_open(&run, device, net, &settings, "dropouts")) {
        double control[TESS_CONTROLS] = {[TESS_CONTROL_LOSS_SCALE] = 1, [TESS_CONTROL_STEP] = step};
        tess_error error = {{0}};
        step_data(&run, 0, 0); /* the same at every step */
        tess_training_control(run.training, control, NULL);
        tess_training_pass(run.training, 0, NULL);
        CHECK(tess_training_result(run.training, NULL, &loss, &run.norm, &error) == TESS_OK);
        step_close(&run);
    }
    tess_net_destroy(net);
    return loss;
}

/* It depends on seed and step, and on nothing else; a network that is not trained has none. */
static void test_dropout(tess_device *device)
{
    const double first = dropout_loss(device, 1, 0);
    CHECK(first > 0 && dropout_loss(device, 1, 0) == first);
    CHECK(dropout_loss(device, 2, 0) != first);
    CHECK(dropout_loss(device, 1, 1) != first);
    tess_net *net = tess_net_create();
    tess_error error = {{0}};
    tess_value x = step_conv(net, tess_net_input(net, 3), "a", STEP_WIDTH, 3);
    x = tess_net_activate(net, tess_net_dropout(net, tess_net_dropout(net, x, 0.5), 0.5), TESS_RELU);
    x = tess_net_dropout(net, step_conv(net, tess_net_dropout(net, x, 0.5), "b", 3, 3), 0.5);
    CHECK(tess_net_finish(net, x, &error) == TESS_OK);
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    CHECK_MSG(tess_bound_create(net, device, TESS_F32, &bound, &error) == TESS_OK &&
                  tess_net_plan_create(bound, (tess_plan_shape){1, 8, 8}, &plan, &error) == TESS_OK,
              "%s", error.text);
    CHECK(tess_net_plan_op_count(plan) == 2); /* the ReLU is fused across the dropouts */
    for (int i = 0; i < tess_net_plan_op_count(plan); i++)
        CHECK(tess_net_plan_op(plan, i)->kind == TESS_OP_CONV &&
              tess_net_plan_op(plan, i)->activation == (i == 0 ? TESS_RELU : TESS_LINEAR));
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    tess_net_destroy(net);
}

/* ---- wrong use ---- */

static void check_refused(tess_device *device, const tess_net *net, const tess_training_settings *settings,
                          tess_status status, const char *words)
{
    tess_training *training = NULL;
    tess_error error = {{0}};
    const tess_status got = tess_training_create(net, device, settings, &training, &error);
    CHECK_MSG(got == status && !training && strstr(error.text, words), "status %d: %s", (int)got, error.text);
    CHECK(tess_training_create(net, device, settings, &training, NULL) == status);
    tess_training_destroy(training);
}

static void test_refused(tess_device *device)
{
    tess_net *net = step_net_make(step_net_named("drunet")),
             *volume = step_net_make(step_net_named("volume"));
    tess_training_settings settings = step_settings(2, 18, 0);
    check_refused(device, net, &settings, TESS_BAD_OPTION, "multiple of 4");
    settings = step_settings(0, 16, 0);
    check_refused(device, net, &settings, TESS_BAD_OPTION, "at least one");
    settings = step_settings(2, 16, 0);
    settings.micro_batches = 0;
    check_refused(device, net, &settings, TESS_BAD_OPTION, "at least one");
    settings = step_settings((int64_t)1 << 40, (int64_t)1 << 20, 0);
    check_refused(device, net, &settings, TESS_OVER_LIMIT, "too large");
    settings = step_settings(2, 16, 3);
    check_refused(device, volume, &settings, TESS_BAD_OPTION, "multiple of 2");
    tess_net_destroy(net);
    tess_net_destroy(volume);

    tess_error error = {{0}};
    net = tess_net_create();
    CHECK(tess_net_finish(net, build_plain(net), &error) == TESS_OK);
    settings = step_settings(2, 16, 0);
    check_refused(device, net, &settings, TESS_INTERNAL, "not finished for training");
    tess_net_destroy(net);

    net = tess_net_create(); /* its second stride has no input gradient */
    tess_net_train(net);
    const tess_value h = step_conv_relu(net, tess_net_input(net, 3), "a");
    const tess_conv_settings strided = {"strided", 4, TESS_WINDOW_2D(3, 2, 1)};
    CHECK(tess_net_finish(net, tess_net_conv(net, h, strided), &error) == TESS_OK);
    check_refused(device, net, &settings, TESS_UNSUPPORTED, "conv strided: only strides of 1");
    tess_net_destroy(net);

    net = tess_net_create(); /* its third layer is of a kind without a backward pass, and has no name */
    tess_net_train(net);
    tess_layer side = {.kind = TESS_OP_SIDE_SUM,
                       .inputs = 1,
                       .in = {step_conv(net, step_conv_relu(net, tess_net_input(net, 3), "a"), "b", 4, 1)},
                       .window = TESS_WINDOW_3D(3, 1, 1),
                       .side = 1};
    CHECK(tess_net_finish(net, tess_net_layer_add(net, &side, 1), &error) == TESS_OK);
    check_refused(device, net, &settings, TESS_UNSUPPORTED,
                  "sidesum of layer 3: a layer of this kind cannot be trained");
    tess_net_destroy(net);

    net = tess_net_create();
    tess_net_train(net);
    const tess_value all = tess_net_dropout(net, step_conv_relu(net, tess_net_input(net, 3), "a"), 1);
    CHECK(tess_net_finish(net, step_conv(net, all, "b", 3, 3), &error) == TESS_OK);
    check_refused(device, net, &settings, TESS_UNSUPPORTED, "a rate from 0 to below 1");
    tess_net_destroy(net);
}

/* The n-th allocation fails, for every n: an error and nothing left. */
static void test_no_memory(tess_device *device, const char *name)
{
    const step_net *what = step_net_named(name);
    tess_training_settings settings = step_settings(2, 12, what->depth);
    settings.recompute = TESS_RECOMPUTE_ALL;
    settings.micro_batches = 2;
    settings.average = true;
    settings.optimize = step_adam();
    tess_net *net = step_net_make(what);
    const uint64_t before = counted_now();
    bool done = false;
    for (uint64_t n = 1; !done && n < 5000; n++) {
        tess_training *training = NULL;
        tess_error error = {{0}};
        tess_mem_fail_at(n);
        tess_status status = tess_training_create(net, device, &settings, &training, &error);
        CHECK((status == TESS_OK) == (training != NULL));
        if (status == TESS_OK)
            status = tess_training_prepare(training, &error);
        tess_mem_fail_at(0);
        done = status == TESS_OK;
        CHECK_MSG(done || (status == TESS_NO_MEMORY && error.text[0]), "%s: allocation %llu: status %d: %s",
                  name, (unsigned long long)n, (int)status, error.text);
        tess_training_destroy(training);
        CHECK(counted_now() == before);
    }
    CHECK(done);
    tess_net_destroy(net);
}

int main(void)
{
    tess_device *device = open_cpu(2, NULL), *reference = open_cpu(2, "reference");
    tess_device_facts facts;
    device->facts(device, &facts);
    check_all_gradients(device);
    check_gradients_of_kinds(reference, 1, 8, 1);
    check_bytes(device, TESS_F32);
    check_recompute(device, TESS_F32);
    check_gathered(device, TESS_F32);
    check_pairs(device, TESS_F32);
    check_update_in_pass(device, TESS_F32);
    if (facts.bf16) {
        check_bytes(device, TESS_BF16);
        check_recompute(device, TESS_BF16);
        check_gathered(device, TESS_BF16);
        check_pairs(device, TESS_BF16);
        check_update_in_pass(device, TESS_BF16);
    }
    check_micro_batches(device);
    check_shares(device);
    check_states(device);
    check_gradients_block(device);
    test_recomputed_bytes(device, "random:drunet", 0.75);
    test_recomputed_bytes(device, "random:dncnn", 1);
    test_threads();
    test_loss_of_file(device);
    test_dropout(device);
    test_refused(device);
    test_no_memory(device, "batch-norms");
    test_no_memory(device, "group-norms");
    test_no_memory(device, "unet");
    test_no_memory(device, "dropouts");
    tess_registry_close(device);
    tess_registry_close(reference);
    CHECK(counted_now() == 0);
    return check_end();
}
