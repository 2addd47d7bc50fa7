/* Runs steps of training and measures them: one JSON line. Used for speed and memory, and by
 * bench/peers/check_training.py to compare losses and weights with PyTorch.
 *
 *   train_rates device=cuda model=random:drunet precision=bf16 batch=64 crop=128 steps=30
 *
 * model: also the file of a diffusion network, whose noise levels are then random vectors, with dropout=0.1.
 * Further words: micro=2 recompute=none|some:N|blocks|all rate=1e-4 optimizer=adam|adamw|sgd average=1 threads=2;
 * recompute=some:N: only the N blocks that free most; memory=BYTES: as few blocks as fit; plan=1: prints the bytes only;
 * update=16: MiB of gradients after which a pass updates their parameters, and keeps no block of all gradients;
 * pairs=0: computes the gradients of kernels one by one;
 * data=FILE: fp32 inputs, then targets, of each step's batch (default: random, the same in every step);
 * ops=1: a line for each kind of op of a pass, the slowest first, each timed by itself;
 * out=FILE: the parameters after the last step, fp32, in the order of the printed names; losses=1: prints all losses. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/process.h"
#include "base/rng.h"
#include "device/device.h"
#include "model/diffusion.h"
#include "model/model.h"
#include "net/training/training_impl.h"
#include "rates.h"
#include "words.h"

static tess_memory counter;
static tess_error error;
static tess_device *device;
static bool diffusion;

static tess_training_settings settings_of(void)
{
    const bool sgd = is("optimizer", "sgd");
    const int micro = (int)number("micro", 1),
              some = strncmp(word("recompute", ""), "some:", 5) == 0 ? atoi(word("recompute", "") + 5) : 0;
    return (tess_training_settings){.dtype = is("precision", "bf16")   ? TESS_BF16
                                             : is("precision", "fp16") ? TESS_F16
                                                                       : TESS_F32,
                                    .n = (int64_t)number("batch", 16) / micro,
                                    .h = (int64_t)number("crop", 128),
                                    .w = (int64_t)number("crop", 128),
                                    .micro_batches = micro,
                                    .recompute = is("recompute", "blocks") || some > 0 ? TESS_RECOMPUTE_BLOCKS
                                                 : is("recompute", "all")              ? TESS_RECOMPUTE_ALL
                                                                                       : TESS_RECOMPUTE_NONE,
                                    .recompute_blocks = some > 0 ? some : TESS_RECOMPUTE_EVERYWHERE,
                                    .loss = {.kind = TESS_MSE},
                                    .optimize = {.kind = sgd                        ? TESS_SGD
                                                         : is("optimizer", "adamw") ? TESS_ADAMW
                                                                                    : TESS_ADAM,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.999,
                                                 .epsilon = 1e-8,
                                                 .weight_decay = is("optimizer", "adamw") ? 0.01 : 0,
                                                 .momentum = sgd ? 0.9 : 0},
                                    .average = number("average", 0) > 0,
                                    .pair_gradients = number("pairs", 1) > 0,
                                    .update_bytes = (size_t)(number("update", 0) * (1 << 20)),
                                    .tf32 = is("precision", "tf32")};
}

static int64_t count_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

/* Fills one of the step's tensors, from the file or with the same random values at every step. */
static void fill(void *to, const tess_tensor *tensor, FILE *file, float *values, uint32_t item)
{
    const int64_t count = count_of(tensor);
    if (!file)
        tess_rng_uniform((tess_rng_key){.seed = 7, .item = item}, 0, count, values);
    else if (fread(values, sizeof *values, (size_t)count, file) != (size_t)count) {
        fprintf(stderr, "the data file ends too early\n");
        exit(1);
    }
    device->memory->copy(device, to, values, (size_t)count * sizeof *values, NULL);
    need(device->streams->sync(device, NULL, &error), &error);
}

static void load(tess_training *training, tess_weights *weights)
{
    const int64_t count = tess_training_parameters(training)->trained;
    float *trained = calloc((size_t)count, sizeof *trained),
          *running = calloc((size_t)tess_training_parameters(training)->running + 1, sizeof *running);
    need(tess_parameters_read(tess_training_parameters(training), weights, trained, running, &error), &error);
    need(tess_training_set(training, TESS_STATE_PARAMETERS, 0, count, trained, &error), &error);
    if (tess_training_state_size(training, TESS_STATE_AVERAGE))
        need(tess_training_set(training, TESS_STATE_AVERAGE, 0, count, trained, &error), &error);
    if (tess_training_state_size(training, TESS_STATE_RUNNING))
        need(tess_training_set(training, TESS_STATE_RUNNING, 0, tess_training_parameters(training)->running,
                               running, &error),
             &error);
    free(trained);
    free(running);
}

static void save(tess_training *training, const char *path)
{
    const tess_parameters *parameters = tess_training_parameters(training);
    float *values[2] = {calloc((size_t)parameters->trained, sizeof(float)),
                        calloc((size_t)parameters->running + 1, sizeof(float))};
    need(tess_training_get(training, TESS_STATE_PARAMETERS, 0, parameters->trained, values[0], &error),
         &error);
    if (parameters->running)
        need(tess_training_get(training, TESS_STATE_RUNNING, 0, parameters->running, values[1], &error),
             &error);
    FILE *file = fopen(path, "wb");
    for (int i = 0; file && i < parameters->count; i++) {
        const tess_parameter *one = &parameters->list[i];
        float *from = values[one->running] + one->offset;
        for (int64_t k = 0; k < one->elements; k++)
            from[k] *= one->factor;
        fwrite(from, sizeof *from, (size_t)one->elements, file);
        printf("%s\"%s\"", i ? ", " : "\"names\": [", one->name);
    }
    printf("], ");
    if (!file || fclose(file) != 0)
        perror(path);
    free(values[0]);
    free(values[1]);
}

/* One step; returns its seconds. */
static double step(tess_training *training, int64_t index, const tess_training_settings *settings, FILE *data,
                   float *values, double *loss)
{
    double control[TESS_CONTROLS] = {0}, norm;
    tess_tensor in, target;
    void *to = tess_training_input(training, 0, &in), *aim = tess_training_target(training, &target);
    control[TESS_CONTROL_RATE] = number("rate", 1e-4);
    control[TESS_CONTROL_CORRECTION1] = 1 - pow(settings->optimize.beta1, (double)index + 1);
    control[TESS_CONTROL_CORRECTION2] = 1 - pow(settings->optimize.beta2, (double)index + 1);
    control[TESS_CONTROL_LOSS_SCALE] = settings->dtype == TESS_F16 ? 1024 : 1;
    control[TESS_CONTROL_DECAY] = 0.999;
    double seconds = 0;
    for (int m = 0; m < settings->micro_batches; m++) {
        if (data || index == 0) {
            fill(to, &in, data, values, 1);
            if (diffusion) {
                void *levels = tess_training_input(training, 1, &in);
                fill(levels, &in, NULL, values, 3);
            }
            fill(aim, &target, data, values, 2);
        }
        const double start = tess_clock();
        if (m == 0)
            tess_training_control(training, control, NULL);
        tess_training_pass(training, m, NULL);
        if (data) /* the data of the next micro-batch replaces this one's */
            need(device->streams->sync(device, NULL, &error), &error);
        seconds += tess_clock() - start;
    }
    const double start = tess_clock();
    tess_training_update(training, NULL);
    need(tess_training_result(training, NULL, loss, &norm, &error), &error);
    return seconds + tess_clock() - start;
}

/* `resident`: the process's bytes before anything of the model existed. */
typedef struct kind_time {
    char name[96];
    int count;
    double ms, flops, bytes;
} kind_time;

static int slower_first(const void *a, const void *b)
{
    const double x = ((const kind_time *)a)->ms, y = ((const kind_time *)b)->ms;
    return (x < y) - (x > y);
}

/* Runs steps [at, at + count) of the program some times and returns the milliseconds of one run. */
static double time_steps(tess_training *t, int at, int count)
{
    enum { RUNS = 10 };
    tess_event *from, *to;
    tess_program one = t->program;
    one.section_end[TESS_SECTION_BEGIN] = at;
    one.section_end[TESS_SECTION_PASS] = at + count;
    need(device->streams->event_create(device, &from, &error), &error);
    need(device->streams->event_create(device, &to, &error), &error);
    tess_program_run(&one, TESS_SECTION_PASS, t->data, t->workspace.data, NULL);
    device->streams->record(device, from, NULL);
    for (int i = 0; i < RUNS; i++)
        tess_program_run(&one, TESS_SECTION_PASS, t->data, t->workspace.data, NULL);
    device->streams->record(device, to, NULL);
    need(device->streams->event_sync(device, to, &error), &error);
    const double ms = device->streams->elapsed(device, from, to) * 1e3 / RUNS;
    device->streams->event_destroy(device, from);
    device->streams->event_destroy(device, to);
    return ms;
}

/* Read as fp32, written in the precision of the op. */
static double packed_bytes(const tess_training *t, const tess_program_step *step)
{
    const double values = (double)count_of(tess_program_shape(&t->program, step->in[0]));
    return values * (double)(sizeof(float) + tess_dtype_size(tess_op_precision(&step->op)));
}

static void report_ops(tess_training *t)
{
    enum { MOST = 400 };
    static kind_time kinds[MOST];
    int count = 0, together = 1;
    const int end = t->program.section_end[TESS_SECTION_PASS];
    for (int i = t->program.section_end[TESS_SECTION_BEGIN]; i < end; i += together) {
        const tess_program_step *step = &t->program.steps[i];
        char class[64], name[96];
        together = tess_program_together(&t->program, i, end);
        tess_op_class(&step->op, class, sizeof class);
        if (step->packs)
            snprintf(name, sizeof name, "pack weights");
        else
            snprintf(name, sizeof name, "%s%s %lldx%lld", class,
                     step->op.masked              ? " masked"
                     : tess_op_is_pair(&step->op) ? " pair"
                     : step->op.inputs > 1        ? " +"
                                                  : "",
                     (long long)step->op.in[0].h, (long long)step->op.in[0].w);
        int k = 0;
        while (k < count && strcmp(kinds[k].name, name) != 0)
            k++;
        if (k == MOST)
            continue;
        count += k == count;
        strcpy(kinds[k].name, name);
        kinds[k].count++;
        kinds[k].ms += time_steps(t, i, together);
        kinds[k].flops += step->packs ? 0 : tess_op_flops(&step->op);
        for (int n = i; n < i + together; n++)
            kinds[k].bytes +=
                step->packs ? packed_bytes(t, &t->program.steps[n]) : tess_op_traffic(&step->op);
    }
    qsort(kinds, (size_t)count, sizeof *kinds, slower_first);
    double all = 0;
    for (int k = 0; k < count; k++)
        all += kinds[k].ms;
    for (int k = 0; k < count; k++)
        printf("{\"op\": \"%s\", \"count\": %d, \"ms\": %.4f, \"share\": %.3f, \"tflops\": %.1f, "
               "\"tb_per_s\": %.2f}\n",
               kinds[k].name, kinds[k].count, kinds[k].ms, kinds[k].ms / all,
               kinds[k].flops / kinds[k].ms * 1e-9, kinds[k].bytes / kinds[k].ms * 1e-9);
    printf("{\"op\": \"sum\", \"ms\": %.4f}\n", all);
}

static void report_bytes(const tess_training *training, const tess_device_facts *before, uint64_t resident)
{
    tess_mem_usage peak;
    tess_device_facts after;
    const tess_mem_bytes planned = tess_training_bytes(training);
    device->facts(device, &after);
    tess_memory_peak(&counter, device->host_memory ? TESS_MEM_OF_PROCESS : TESS_MEM_OF_DEVICE, &peak);
    printf("\"planned_bytes\": %llu, \"counted_bytes\": %llu, \"driver_bytes\": %llu, "
           "\"resident_bytes\": %llu, ",
           (unsigned long long)tess_mem_total(&planned), (unsigned long long)peak.total,
           (unsigned long long)(before->memory_free - after.memory_free),
           (unsigned long long)(tess_process_peak() - resident));
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        printf("\"%s\": %llu, ", tess_mem_category_name((tess_mem_category)i),
               (unsigned long long)planned.by[i]);
}

/* Plans the step: with memory=BYTES, with the fewest recomputed blocks that fit. */
static tess_training *plan_step(const tess_net *net, const tess_training_settings *settings)
{
    const uint64_t limit = (uint64_t)number("memory", 0);
    tess_training_settings s = *settings;
    s.recompute = limit ? TESS_RECOMPUTE_BLOCKS : s.recompute;
    for (s.recompute_blocks = limit ? 0 : s.recompute_blocks;; s.recompute_blocks++) {
        tess_training *training = NULL;
        need(tess_training_create(net, device, &s, &training, &error), &error);
        const tess_mem_bytes bytes = tess_training_bytes(training);
        if (!limit || tess_mem_total(&bytes) <= limit ||
            tess_training_recomputed(training) < s.recompute_blocks)
            return training;
        tess_training_destroy(training);
    }
}

static void recognise(tess_weights *weights, tess_model_net *model)
{
    diffusion = tess_diffusion_has(weights);
    if (diffusion) {
        tess_diffusion_net net;
        need(tess_diffusion_recognise_trained(weights, number("dropout", 0.1), &net, &error), &error);
        *model = (tess_model_net){.architecture = "diffusion", .net = net.step, .channels = net.channels};
    } else
        need(tess_model_recognise_trained(weights, model, &error), &error);
}

int main(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
    const int steps = (int)number("steps", 20);
    const tess_training_settings settings = settings_of();
    const tess_device_options options = {.memory = &counter, .threads = (int)number("threads", 0)};
    tess_weights *weights = NULL;
    tess_model_net model;
    tess_training *training = NULL;
    tess_device_facts facts;
    const uint64_t resident = tess_process_resident();
    need(tess_registry_open(word("device", "cpu"), &options, &device, &error), &error);
    need(tess_model_open(word("model", "random:dncnn"), &weights, &error), &error);
    recognise(weights, &model);
    training = plan_step(model.net, &settings);
    device->facts(device, &facts);
    tess_memory_reset_peak(&counter);
    if (number("plan", 0) > 0) {
        printf("{");
        report_bytes(training, &facts, resident);
        printf("\"recomputed\": %d}\n", tess_training_recomputed(training));
        return 0;
    }
    need(tess_training_prepare(training, &error), &error);
    load(training, weights);
    tess_tensor in, target;
    tess_training_input(training, 0, &in);
    tess_training_target(training, &target);
    float *values = malloc((size_t)(count_of(&in) + count_of(&target)) * sizeof *values);
    FILE *data = word("data", NULL) ? fopen(word("data", ""), "rb") : NULL;
    double *seconds = calloc((size_t)steps, sizeof *seconds), *losses = calloc((size_t)steps, sizeof *losses),
           least_cpu = INFINITY; /* seconds of all threads: what a busy machine disturbs least */
    if (!values || !seconds || !losses || steps < 1 || (word("data", NULL) && !data)) {
        fprintf(stderr, "cannot read the data file, or no memory\n");
        return 1;
    }
    for (int i = 0; i < steps; i++) {
        const clock_t start = clock();
        seconds[i] = step(training, i, &settings, data, values, &losses[i]);
        least_cpu = fmin(least_cpu, (double)(clock() - start) / CLOCKS_PER_SEC);
    }
    printf("{\"study\": \"train\", \"engine\": \"tessera\", \"device\": \"%s\", \"model\": \"%s\", "
           "\"precision\": \"%s\", ",
           facts.name, word("model", "random:dncnn"), word("precision", "fp32"));
    if (word("out", NULL))
        save(training, word("out", ""));
    for (int i = 0; i < steps && number("losses", 0) > 0; i++)
        printf("%s%.9g%s", i ? ", " : "\"losses\": [", losses[i], i + 1 == steps ? "], " : "");
    report_bytes(training, &facts, resident);
    qsort(seconds, (size_t)steps, sizeof *seconds, by_value);
    const double median = seconds[steps / 2];
    printf("\"recomputed\": %d, \"batch\": %g, \"crop\": %g, \"ms\": %.4f, \"least_ms\": %.4f, "
           "\"least_cpu_ms\": %.4f, "
           "\"tflops\": %.2f}\n",
           tess_training_recomputed(training), number("batch", 16), number("crop", 128), median * 1e3,
           seconds[0] * 1e3, least_cpu * 1e3, tess_training_flops(training) / median * 1e-12);
    if (number("ops", 0) > 0)
        report_ops(training);
    if (data)
        fclose(data);
    free(values);
    free(seconds);
    free(losses);
    tess_training_destroy(training);
    tess_model_clear(&model);
    tess_weights_close(weights);
    tess_registry_close(device);
    return 0;
}
