/* test_diffusion.c: the diffusion network against PyTorch, forward and gradients; its published size; files that are incomplete
 * or of another architecture. */
#define _POSIX_C_SOURCE 200809L
#include "model/diffusion.h"

#include "diffusion_net.h"
#include "net/training.h"

static tess_device *open_cpu(int threads, const char *isa)
{
    tess_device *device = NULL;
    const tess_device_options options = {.threads = threads, .memory = &test_counter, .isa = isa};
    return tess_registry_open("cpu", &options, &device, NULL) == TESS_OK ? device : NULL;
}

static void check_devices(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        tess_device *device = open_cpu(s ? 3 : 2, sets[s]);
        tess_device_facts facts;
        if (!device)
            continue;
        check_diffusion_net(device, TESS_F32, 1e-4, s > 0);
        if (s > 0)
            check_diffusion_batches(device, 32, 5);
        device->facts(device, &facts);
        if (facts.bf16)
            check_diffusion_net(device, TESS_BF16, 5e-2, s > 0);
        tess_registry_close(device);
    }
}

/* ---- one step of training ---- */

static void set_data(tess_training *training, const tess_diffusion_net *net)
{
    tess_tensor t;
    float *image = tess_training_input(training, 0, &t);
    CHECK(t.n == 2 && t.c == DIFFUSION_CHANNELS);
    for (int64_t i = 0; i < t.n * t.stride_n; i++)
        image[i] = diffusion_hashed(i);
    float *levels = tess_training_input(training, 1, &t);
    CHECK(t.n == 2 && t.c == net->levels && t.h == 1 && t.w == 1);
    for (int i = 0; i < 2; i++)
        tess_diffusion_level(diffusion_gammas[i], net->levels, levels + i * net->levels);
    float *target = tess_training_target(training, &t);
    for (int64_t i = 0; i < t.n * t.stride_n; i++)
        target[i] = diffusion_hashed(5000 + i);
}

/* SGD of rate 1 subtracts the gradients from the parameters. */
static void check_gradients(const tess_parameters *parameters, const float *before, const float *after,
                            tess_weights *weights)
{
    const char *prefix = "denoise_fn.";
    double worst = 0, whole = 0;
    for (int64_t k = 0; k < parameters->trained; k++)
        whole += pow((double)before[k] - (double)after[k], 2);
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *one = &parameters->list[i];
        char name[160];
        int64_t count;
        snprintf(name, sizeof name, "gradient.%s", one->name + strlen(prefix));
        float *want = diffusion_values(weights, name, &count);
        double off = 0, size = 0;
        for (int64_t k = 0; k < count; k++) {
            const double got = (double)before[one->offset + k] - (double)after[one->offset + k];
            off += (got - (double)want[k]) * (got - (double)want[k]);
            size += (double)want[k] * (double)want[k];
        }
        /* A bias before a norm of one channel a group has no gradient but rounding. */
        CHECK_MSG(count == one->elements && sqrt(off) <= 1e-4 * sqrt(size) + 1e-7 * sqrt(whole),
                  "%s: off by %.3g of %.3g", one->name, sqrt(off), sqrt(size));
        if (size > 1e-14 * whole)
            worst = fmax(worst, sqrt(off / size));
        free(want);
    }
    printf("gradients of %d tensors: worst relative error %.2g\n", parameters->count, worst);
}

static void check_training(const char *isa)
{
    tess_device *device = open_cpu(2, isa);
    tess_weights *weights = diffusion_open("diffusion.safetensors");
    tess_diffusion_net net;
    tess_training *training = NULL;
    tess_error error = {{0}};
    int64_t count;
    CHECK_MSG(tess_diffusion_recognise_trained(weights, 0, &net, &error) == TESS_OK, "%s", error.text);
    CHECK(!net.embedding && net.step && net.levels == 4 && net.channels == DIFFUSION_CHANNELS);
    const tess_training_settings settings = {.dtype = TESS_F32,
                                             .n = 2,
                                             .h = DIFFUSION_H,
                                             .w = DIFFUSION_W,
                                             .micro_batches = 1,
                                             .loss = {.kind = TESS_MSE},
                                             .optimize = {.kind = TESS_SGD}};
    CHECK_MSG(tess_training_create(net.step, device, &settings, &training, &error) == TESS_OK &&
                  tess_training_prepare(training, &error) == TESS_OK,
              "%s", error.text);
    const tess_parameters *parameters = tess_training_parameters(training);
    float *before = room((size_t)parameters->trained * sizeof *before),
          *after = room((size_t)parameters->trained * sizeof *after);
    CHECK_MSG(tess_parameters_read(parameters, weights, before, NULL, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_training_set(training, TESS_STATE_PARAMETERS, 0, parameters->trained, before, &error) ==
          TESS_OK);
    set_data(training, &net);
    double control[TESS_CONTROLS] = {0}, loss, norm;
    control[TESS_CONTROL_RATE] = control[TESS_CONTROL_LOSS_SCALE] = 1;
    tess_training_control(training, control, NULL);
    tess_training_pass(training, 0, NULL);
    tess_training_update(training, NULL);
    CHECK(tess_training_result(training, NULL, &loss, &norm, &error) == TESS_OK);
    float *want = diffusion_values(weights, "0.loss", &count);
    CHECK_MSG(fabs(loss - (double)want[0]) <= 1e-5 * loss, "loss %.9g, PyTorch's %.9g", loss,
              (double)want[0]);
    CHECK(tess_training_get(training, TESS_STATE_PARAMETERS, 0, parameters->trained, after, &error) ==
          TESS_OK);
    check_gradients(parameters, before, after, weights);
    tess_training_destroy(training);
    tess_diffusion_clear(&net);
    tess_weights_close(weights);
    tess_registry_close(device);
    free(before), free(after), free(want);
}

/* ---- the published network ---- */

/* Products of convolutions and attention, by op; others are left out, as they are where such numbers are published. */
static double products(const tess_net_plan *plan, int *ops)
{
    double sum = 0;
    for (int i = 0; i < tess_net_plan_op_count(plan); i++) {
        const tess_op *op = tess_net_plan_op(plan, i);
        ops[op->kind]++;
        if (op->kind == TESS_OP_CONV || op->kind == TESS_OP_UP_CONV || op->kind == TESS_OP_ATTENTION)
            sum += tess_op_flops(op) / 2;
    }
    return sum;
}

static double planned(const tess_net *net, tess_device *device, tess_plan_shape shape, int *ops)
{
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_bound_create(net, device, TESS_F32, &bound, &error) == TESS_OK &&
                  tess_net_plan_create(bound, shape, &plan, &error) == TESS_OK,
              "%s", error.text);
    if (!plan)
        exit(check_end());
    const double sum = products(plan, ops);
    printf(
        "%lld x %lld: %.4f G products, %.2f MiB of activations, %.2f MiB of workspace, %.2f MiB of weights\n",
        (long long)shape.h, (long long)shape.w, sum / 1e9, (double)tess_net_plan_arena_bytes(plan) / 1048576,
        (double)tess_net_plan_workspace_bytes(plan) / 1048576,
        (double)tess_bound_weight_bytes(bound) / 1048576);
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    return sum;
}

static void check_published(tess_device *device)
{
    tess_weights *weights = NULL;
    tess_diffusion_net net;
    tess_error error = {{0}};
    CHECK(tess_model_open("random:diffusion", &weights, &error) == TESS_OK);
    CHECK_MSG(tess_diffusion_recognise(weights, &net, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(net.parameters == 28222881 && tess_weights_count(weights) == 462,
              "%lld parameters in %lld tensors", (long long)net.parameters,
              (long long)tess_weights_count(weights));
    CHECK(net.channels == 2 && net.levels == 32 && net.grid == 16);
    int ops[TESS_OP_KINDS] = {0}, small[TESS_OP_KINDS] = {0}, other[TESS_OP_KINDS] = {0};
    const double step = planned(net.step, device, (tess_plan_shape){.n = 1, .h = 128, .w = 128}, ops),
                 table = planned(net.embedding, device, (tess_plan_shape){.n = 1, .h = 1, .w = 1}, small);
    CHECK_MSG(fabs((step + table) / 1e9 - 15.415) < 0.0006, "%.5f G products", (step + table) / 1e9);
    const double large = planned(net.step, device, (tess_plan_shape){.n = 1, .h = 256, .w = 256}, other);
    CHECK_MSG(fabs((large + table) / 1e9 - 79.80) < 0.006, "%.5f G products", (large + table) / 1e9);
    /* Additions and SiLUs are in other ops, and nothing is copied to be concatenated. */
    CHECK(ops[TESS_OP_CONV] + ops[TESS_OP_UP_CONV] == 72 + 18 + 2 * 11 && ops[TESS_OP_GROUP_NORM] == 82 &&
          ops[TESS_OP_ATTENTION] == 11);
    CHECK_MSG(ops[TESS_OP_ADD] == 0 && ops[TESS_OP_ACTIVATE] == 0 && ops[TESS_OP_CONCAT] == 0 &&
                  ops[TESS_OP_AVERAGE_POOL] == 8 && ops[TESS_OP_UPSAMPLE] + ops[TESS_OP_UP_CONV] == 8,
              "%d additions, %d activations, %d poolings, %d upsamplings", ops[TESS_OP_ADD],
              ops[TESS_OP_ACTIVATE], ops[TESS_OP_AVERAGE_POOL], ops[TESS_OP_UPSAMPLE]);
    CHECK(small[TESS_OP_CONV] == 37 && small[TESS_OP_ACTIVATE] == 2 && small[TESS_OP_UPSAMPLE] == 0);
    tess_diffusion_clear(&net);
    tess_weights_close(weights);
}

/* ---- files ---- */

/* How a copy of a network's list of tensors differs from it. */
typedef struct change {
    const char *without; /* a tensor that is left out */
    const char *bent;    /* one whose first size is one less */
    const char *more;    /* one more, of a single value */
    const char *head;    /* metadata */
    bool bare;           /* names without `denoise_fn.` */
    bool schedule;       /* buffers of a training checkpoint */
    const char *says;    /* in the message; NULL: the copy is a network */
} change;

static tess_weights *changed(const tess_weights *from, const change *c)
{
    const int64_t steps = 2000, one = 1;
    tess_weights *copy = NULL;
    tess_error error = {{0}};
    CHECK(tess_weights_synthetic("copy", 1, &copy, &error) == TESS_OK);
    for (int64_t i = 0; i < tess_weights_count(from); i++) {
        const tess_weight *weight = tess_weights_at(from, i);
        int64_t dims[TESS_WEIGHT_RANK];
        memcpy(dims, weight->dims, sizeof dims);
        if (c->without && strcmp(weight->name, c->without) == 0)
            continue;
        if (c->bent && strcmp(weight->name, c->bent) == 0)
            dims[0]--;
        CHECK(tess_weights_draw(copy, weight->name + (c->bare ? strlen("denoise_fn.") : 0), weight->rank,
                                dims, (tess_weight_draw){0, 0.1f, false}, &error) == TESS_OK);
    }
    if (c->schedule) {
        CHECK(tess_weights_draw(copy, "gammas", 1, &steps, (tess_weight_draw){0}, &error) == TESS_OK);
        CHECK(tess_weights_draw(copy, "posterior_mean_coef2", 1, &steps, (tess_weight_draw){0}, &error) ==
              TESS_OK);
    }
    if (c->more)
        CHECK(tess_weights_draw(copy, c->more, 1, &one, (tess_weight_draw){0}, &error) == TESS_OK);
    if (c->head)
        CHECK(tess_weights_set_metadata(copy, "num_head_channels", c->head, &error) == TESS_OK);
    CHECK(tess_weights_drawn(copy, &error) == TESS_OK);
    return copy;
}

static const tess_model_shape SMALL = {.architecture = "diffusion",
                                       .channels = 5,
                                       .width_count = 3,
                                       .widths = {16, 24, 32},
                                       .blocks = 3,
                                       .attention = {false, true, false}};

enum { SMALL_BLOCKS = 9 + 2 + 2 + 12 + 2 }; /* down, halving, middle, up, doubling */

static int dropouts(const tess_diffusion_net *net)
{
    int count = 0;
    for (int i = 0; net->step && i < tess_net_layer_count(net->step); i++)
        count += tess_net_layer(net->step, i)->kind == TESS_OP_DROPOUT;
    return count;
}

static void check_files(void)
{
    static const change changes[] = {
        {.says = NULL},
        {.bare = true},
        {.schedule = true},
        {.bare = true, .schedule = true},
        {.head = "16", .says = "multiple of 8 groups and of heads of 16"},
        {.head = "4"},
        {.head = "x", .says = "num_head_channels is x"},
        {.without = "denoise_fn.middle_block.1.proj_out.bias",
         .says = "tensor denoise_fn.middle_block.1.proj_out.bias is missing, expected [32]"},
        {.without = "denoise_fn.cond_embed.0.weight", .says = "denoise_fn.cond_embed.0.weight is missing"},
        {.without = "denoise_fn.input_blocks.0.0.weight",
         .says = "denoise_fn.input_blocks.0.0.weight is missing"},
        {.without = "denoise_fn.output_blocks.3.1.in_layers.2.weight",
         .says = "denoise_fn.output_blocks.3.1.in_layers.2.weight is missing, expected [32, 32, 3, 3]"},
        {.without = "denoise_fn.input_blocks.5.1.qkv.weight",
         .says = "denoise_fn.input_blocks.5.1.qkv.weight is missing, expected [72, 24, 1]"},
        {.bent = "denoise_fn.input_blocks.1.0.emb_layers.1.weight",
         .says = "emb_layers.1.weight has the shape [31, 64], expected [32, 64]"},
        {.bent = "denoise_fn.out.0.weight", .says = "out.0.weight has the shape [15], expected [16]"},
        {.more = "denoise_fn.out.5.bias", .says = "denoise_fn.out.5.bias belongs to no layer"},
        {.more = "denoise_fn.input_blocks.4.0.op.bias", .says = "changes scales by convolutions"},
        {.more = "denoise_fn.input_blocks.30.0.in_layers.0.bias",
         .says = "31 input_blocks and 12 output_blocks"},
        {.more = "denoise_fn.output_blocks.2.7.in_layers.0.bias", .says = ", expected ["},
    };
    tess_weights *whole = NULL;
    tess_error error = {{0}};
    CHECK(tess_model_new(&SMALL, &whole, &error) == TESS_OK);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const change *c = &changes[i];
        tess_weights *copy = changed(whole, c);
        tess_diffusion_net net;
        error = (tess_error){{0}};
        const tess_status status = tess_diffusion_recognise(copy, &net, &error);
        CHECK_MSG(
            c->says ? status == TESS_BAD_INPUT && strstr(error.text, c->says) && !net.step && !net.embedding
                    : status == TESS_OK && net.step && net.channels == 5 && net.grid == 4 && net.levels == 16,
            "change %zu: status %d: %s", i, (int)status, error.text);
        tess_diffusion_clear(&net);
        CHECK(tess_diffusion_recognise_trained(copy, 0.2, &net, NULL) == status &&
              dropouts(&net) == (status == TESS_OK ? SMALL_BLOCKS : 0));
        tess_diffusion_clear(&net);
        tess_weights_close(copy);
    }
    tess_weights_close(whole);
}

/* Each verb says what the other's networks are for. */
static void check_other_verbs(void)
{
    tess_weights *diffusion = NULL, *drunet = NULL;
    tess_diffusion_net net;
    tess_model_net model;
    tess_error error = {{0}};
    CHECK(tess_model_open("random:diffusion", &diffusion, &error) == TESS_OK &&
          tess_model_open("random:drunet", &drunet, &error) == TESS_OK);
    CHECK_MSG(tess_model_recognise(diffusion, &model, &error) == TESS_BAD_INPUT && !model.net &&
                  strstr(error.text, "is a diffusion network") && strstr(error.text, "fill"),
              "%s", error.text);
    CHECK_MSG(tess_diffusion_recognise(drunet, &net, &error) == TESS_BAD_INPUT && !net.step &&
                  strstr(error.text, "is a drunet"),
              "%s", error.text);
    tess_weights_close(diffusion);
    tess_weights_close(drunet);
    const change none = {.more = "something"};
    tess_weights *other = NULL;
    CHECK(tess_weights_synthetic("other", 1, &other, &error) == TESS_OK &&
          tess_weights_drawn(other, &error) == TESS_OK);
    tess_weights *copy = changed(other, &none);
    CHECK_MSG(tess_diffusion_recognise(copy, &net, &error) == TESS_BAD_INPUT &&
                  strstr(error.text, "is no diffusion"),
              "%s", error.text);
    tess_weights_close(copy);
    tess_weights_close(other);
}

/* The n-th allocation fails, for every n. */
static void check_no_memory(bool train)
{
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    CHECK(tess_model_new(&SMALL, &weights, &error) == TESS_OK);
    bool done = false;
    for (uint64_t n = 1; !done && n < 1000; n++) {
        tess_diffusion_net net;
        tess_mem_fail_at(n);
        const tess_status status = train ? tess_diffusion_recognise_trained(weights, 0.1, &net, &error)
                                         : tess_diffusion_recognise(weights, &net, &error);
        tess_mem_fail_at(0);
        done = status == TESS_OK;
        CHECK_MSG(done || (status == TESS_NO_MEMORY && !net.step && !net.embedding), "allocation %d: %s",
                  (int)n, error.text);
        tess_diffusion_clear(&net);
    }
    CHECK(done);
    tess_weights_close(weights);
}

int main(void)
{
    check_devices();
    check_training(NULL);
    check_training("reference");
    tess_device *device = open_cpu(2, NULL);
    check_published(device);
    tess_registry_close(device);
    check_files();
    check_other_verbs();
    check_no_memory(false);
    check_no_memory(true);
    return check_end();
}
