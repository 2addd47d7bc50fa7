/* Runs one step of a diffusion network and measures it: a JSON line with seconds, planned bytes and products; used for speed, and by
 * bench/peers/check_diffusion.py to compare results with PyTorch.
 *
 *   diffusion_rates device=cuda model=random:diffusion precision=bf16 batch=64 side=128 repeats=20
 *
 * Further words: threads=2 gamma=0.5; ops=1: a line for each kind of op, the slowest first, each timed within the step;
 * in=FILE: fp32 image (batch, side, side, channels); out=FILE: fp32 noise (batch, side, side). On a device with graphs the step is
 * captured and replayed. */
#include <string.h>

#include "base/rng.h"
#include "device/device.h"
#include "model/diffusion.h"
#include "net/plan_impl.h"
#include "rates.h"
#include "words.h"

enum { KINDS = 128, REPEATS = 1000 };

static tess_memory counter;
static tess_error error;
static tess_device *device;

static tess_dtype precision(void)
{
    const char *name = word("precision", "fp32");
    return strcmp(name, "bf16") == 0 ? TESS_BF16 : strcmp(name, "fp16") == 0 ? TESS_F16 : TESS_F32;
}

/* A network on the device, ready to run. */
typedef struct machine {
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block weights, arena, workspace;
} machine;

static void make(machine *m, const tess_net *net, tess_weights *file, tess_dtype dtype, tess_plan_shape shape)
{
    *m = (machine){0};
    need(tess_bound_create(net, device, dtype, &m->bound, &error), &error);
    if (strcmp(word("precision", ""), "tf32") == 0)
        tess_bound_allow_tf32(m->bound);
    need(tess_net_plan_create(m->bound, shape, &m->plan, &error), &error);
    const tess_device_memory *memory = device->memory;
    need(memory->alloc(device, &m->weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(m->bound), &error),
         &error);
    need(memory->alloc(device, &m->arena, TESS_MEM_ACTIVATIONS, tess_net_plan_arena_bytes(m->plan), &error),
         &error);
    need(memory->alloc(device, &m->workspace, TESS_MEM_WORKSPACE, tess_net_plan_workspace_bytes(m->plan) + 1,
                       &error),
         &error);
    need(tess_net_plan_prepare(m->plan, &error), &error);
    need(tess_bound_load(m->bound, file, m->weights.data, &error), &error);
}

static void run(machine *m, tess_stream *stream)
{
    tess_net_plan_run(m->plan, m->arena.data, m->workspace.data, m->weights.data, stream);
}

static void clear(machine *m)
{
    tess_net_plan_destroy(m->plan);
    tess_bound_destroy(m->bound);
    device->memory->free(device, &m->weights);
    device->memory->free(device, &m->arena);
    device->memory->free(device, &m->workspace);
}

static void *room(size_t count, size_t size)
{
    void *data = calloc(count, size);
    if (!data)
        exit(1);
    return data;
}

static void sync(void)
{
    need(device->streams->sync(device, NULL, &error), &error);
}

/* The table of one noise level, by the embedding network in fp32. */
static float *table_of(const tess_diffusion_net *net, tess_weights *file)
{
    machine m;
    size_t at;
    float *levels = room((size_t)net->levels, sizeof *levels),
          *table = room((size_t)net->table, sizeof *table);
    tess_diffusion_level(number("gamma", 0.5), net->levels, levels);
    make(&m, net->embedding, file, TESS_F32, (tess_plan_shape){.n = 1, .h = 1, .w = 1});
    tess_net_plan_input(m.plan, &at);
    device->memory->copy(device, (char *)m.arena.data + at, levels, (size_t)net->levels * sizeof *levels,
                         NULL);
    run(&m, NULL);
    tess_net_plan_output(m.plan, &at);
    device->memory->copy(device, table, (char *)m.arena.data + at, (size_t)net->table * sizeof *table, NULL);
    sync();
    clear(&m);
    free(levels);
    return table;
}

static void fill_input(machine *m, const float *table, int64_t table_count)
{
    size_t at;
    const tess_tensor t = tess_net_plan_input_at(m->plan, 0, &at);
    const int64_t count = t.n * t.stride_n;
    float *values = room((size_t)count, sizeof *values);
    FILE *file = word("in", NULL) ? fopen(word("in", NULL), "rb") : NULL;
    if (word("in", NULL) && (!file || fread(values, sizeof *values, (size_t)count, file) != (size_t)count)) {
        fprintf(stderr, "%s: cannot read %lld values\n", word("in", ""), (long long)count);
        exit(1);
    }
    if (file)
        fclose(file);
    else
        tess_rng_normal((tess_rng_key){1, 0, 0}, 0, count, values);
    device->memory->copy(device, (char *)m->arena.data + at, values, (size_t)count * sizeof *values, NULL);
    tess_net_plan_input_at(m->plan, 1, &at);
    device->memory->copy(device, (char *)m->arena.data + at, table, (size_t)table_count * sizeof *table,
                         NULL);
    sync();
    free(values);
}

static void write_output(const machine *m)
{
    size_t at;
    const tess_tensor t = tess_net_plan_output(m->plan, &at);
    const size_t count = (size_t)(t.n * t.stride_n);
    float *values = room(count, sizeof *values);
    device->memory->copy(device, values, (const char *)m->arena.data + at, count * sizeof *values, NULL);
    sync();
    FILE *file = fopen(word("out", ""), "wb");
    const bool good = file && fwrite(values, sizeof *values, count, file) == count;
    if (!file || fclose(file) != 0 || !good) {
        fprintf(stderr, "%s: cannot be written\n", word("out", ""));
        exit(1);
    }
    free(values);
}

/* Median seconds of a step; also through a graph, if the device has them. */
static void time_step(machine *m, double *plain, double *graphed)
{
    static double times[REPEATS];
    const int repeats = (int)number("repeats", 5);
    tess_graph *graph = NULL;
    tess_stream *stream = NULL;
    *graphed = 0;
    for (int mode = 0; mode < (device->graphs ? 2 : 1); mode++) {
        if (mode) {
            need(device->streams->create(device, &stream, &error), &error);
            need(device->graphs->begin(device, stream, &error), &error);
            run(m, stream);
            need(device->graphs->end(device, stream, &graph, &error), &error);
        }
        for (int i = -2; i < repeats && i < REPEATS; i++) {
            const double start = tess_clock();
            if (mode)
                device->graphs->launch(device, graph, NULL);
            else
                run(m, NULL);
            sync();
            times[i < 0 ? 0 : i] = tess_clock() - start;
        }
        qsort(times, (size_t)repeats, sizeof *times, by_value);
        *(mode ? graphed : plain) = times[repeats / 2];
    }
    if (graph)
        device->graphs->release(device, graph);
    if (stream)
        device->streams->destroy(device, stream);
}

typedef struct rate {
    char name[96];
    int count;
    double seconds, flops, bytes;
} rate;

static int dearest(const void *a, const void *b)
{
    const rate *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static double time_op(const machine *m, const tess_step *step)
{
    double best = 1e9;
    tess_op_buffers buffers = {.weights = (const char *)m->weights.data + m->bound->weight_at[step->layer],
                               .workspace = m->workspace.data};
    for (int i = 0; i < step->op.inputs; i++)
        buffers.in[i] = (char *)m->arena.data + m->plan->offset[step->in[i]];
    buffers.out[0] = (char *)m->arena.data + m->plan->offset[step->out[0]] +
                     (size_t)step->channel * tess_dtype_size(step->op.out[0].dtype);
    for (int i = 0; i < 3; i++) {
        const double start = tess_clock();
        device->ops->run(device, step->prepared, &buffers, NULL);
        sync();
        best = tess_clock() - start < best ? tess_clock() - start : best;
    }
    return best;
}

static void time_ops(const machine *m)
{
    static rate rates[KINDS];
    int kinds = 0;
    for (int s = 0; s < m->plan->step_count; s++) {
        const tess_op *op = &m->plan->steps[s].op;
        char class[64], name[96];
        int at = 0;
        tess_op_class(op, class, sizeof class);
        snprintf(name, sizeof name, "%s%s, %lldx%lld", class, tess_op_residuals(op) > 0 ? " +" : "",
                 (long long)op->out[0].h, (long long)op->out[0].w);
        while (at < kinds && strcmp(rates[at].name, name) != 0)
            at++;
        if (at == KINDS)
            return;
        kinds += at == kinds;
        memcpy(rates[at].name, name, sizeof name);
        rates[at].count++;
        rates[at].seconds += time_op(m, &m->plan->steps[s]);
        rates[at].flops += tess_op_flops(op);
        rates[at].bytes += tess_op_traffic(op);
    }
    qsort(rates, (size_t)kinds, sizeof *rates, dearest);
    for (int i = 0; i < kinds; i++)
        printf("{\"op\": \"%s\", \"count\": %d, \"all_ms\": %.4f, \"gflops\": %.1f, "
               "\"gigabytes_per_second\": %.1f}\n",
               rates[i].name, rates[i].count, 1e3 * rates[i].seconds,
               1e-9 * rates[i].flops / rates[i].seconds, 1e-9 * rates[i].bytes / rates[i].seconds);
}

int main(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
    const tess_device_options options = {.memory = &counter, .threads = (int)number("threads", 0)};
    const int64_t side = (int64_t)number("side", 128), batch = (int64_t)number("batch", 1);
    tess_weights *file = NULL;
    tess_diffusion_net net;
    machine m;
    double plain, graphed, flops = 0;
    need(tess_registry_open(word("device", "cpu"), &options, &device, &error), &error);
    need(tess_model_open(word("model", "random:diffusion"), &file, &error), &error);
    need(tess_diffusion_recognise(file, &net, &error), &error);
    float *table = table_of(&net, file);
    make(&m, net.step, file, precision(), (tess_plan_shape){.n = batch, .h = side, .w = side});
    fill_input(&m, table, net.table);
    time_step(&m, &plain, &graphed);
    for (int i = 0; i < tess_net_plan_op_count(m.plan); i++)
        flops += tess_op_flops(tess_net_plan_op(m.plan, i));
    if (word("out", NULL)) {
        run(&m, NULL);
        write_output(&m);
    }
    printf("{\"study\": \"diffusion step\", \"engine\": \"tessera\", \"device\": \"%s\", \"precision\": "
           "\"%s\", \"side\": "
           "%lld, \"batch\": %lld, \"seconds\": %.6f, \"graph_seconds\": %.6f, \"ops\": %d, \"gflop\": %.3f, "
           "\"gflops\": %.1f, \"tile_steps_per_second\": %.3f, \"activations\": %zu, \"workspace\": %zu, "
           "\"weights\": %zu, \"parameters\": %lld}\n",
           device->kind, word("precision", "fp32"), (long long)side, (long long)batch, plain, graphed,
           tess_net_plan_op_count(m.plan), 1e-9 * flops, 1e-9 * flops / (graphed > 0 ? graphed : plain),
           (double)batch / (graphed > 0 ? graphed : plain), tess_net_plan_arena_bytes(m.plan),
           tess_net_plan_workspace_bytes(m.plan), tess_bound_weight_bytes(m.bound),
           (long long)net.parameters);
    if (number("ops", 0) > 0)
        time_ops(&m);
    clear(&m);
    free(table);
    tess_diffusion_clear(&net);
    tess_weights_close(file);
    tess_registry_close(device);
    return 0;
}
