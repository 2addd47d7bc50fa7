/* test_steps.c: steps that are queued before the result of the one before is taken give the bits of steps one by one, on a device that
 * does its work as late as the order of streams allows, and on one that is done with all of it when somebody waits: numbers, keys,
 * results and batches of a step stay as they are until it is complete. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "late_device.h"
#include "step_run.h"
#include "train/steps.h"

enum { STEPS = 14, SIDE = 8, BATCH = 4, WAIT_EVERY = 5 };

typedef struct trial {
    const char *name;
    tess_device *device;
    int parts;
    bool overlap;
    int64_t end; /* the loop is left after so many steps, with one in work if they overlap */
    tess_op_optimize optimize;
    size_t update_bytes;
} trial;

typedef struct outcome {
    double loss[STEPS], norm[STEPS];
    float *parameters;
    int64_t count;
} outcome;

/* ---- data: random numbers by step, index and array ---- */

static size_t no_bytes(const tess_source *source, int workers)
{
    (void)source, (void)workers;
    return 0;
}

static tess_status begin(tess_source *source, int workers, tess_error *error)
{
    (void)source, (void)workers, (void)error;
    return TESS_OK;
}

static tess_status draw(tess_source *source, const tess_sample *sample, void *const arrays[TESS_DATA_ARRAYS],
                        tess_error *error)
{
    const int64_t values = SIDE * SIDE * source->array[0].c;
    (void)error;
    for (int a = 0; a < source->arrays; a++)
        tess_rng_uniform((tess_rng_key){3, (uint32_t)a, (uint32_t)sample->step}, sample->index * values,
                         (1 + sample->more) * values, arrays[a]);
    return TESS_OK;
}

static const tess_source_table table = {.name = "numbers", .bytes = no_bytes, .begin = begin, .draw = draw};

/* ---- the loop ---- */

typedef struct loop {
    const trial *t;
    step_run run;
    tess_source source;
    tess_feed feed;
    tess_steps steps;
} loop;

/* Long enough for the workers to fill whatever was released. */
static void let_workers_draw(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void open_data(loop *l)
{
    const tess_tensor item = tess_tensor_2d(TESS_F32, 1, SIDE, SIDE, 3);
    tess_error error;
    l->source = (tess_source){.table = &table,
                              .arrays = 2,
                              .role = {TESS_DATA_TARGET, TESS_DATA_INPUT},
                              .array = {item, item},
                              .items = 1,
                              .copies = true};
    const tess_data_settings settings = {.source = &l->source,
                                         .device = l->t->device,
                                         .batch = BATCH,
                                         .parts = l->t->parts,
                                         .depth = tess_steps_depth(l->t->overlap, l->t->parts),
                                         .workers = 2};
    l->steps = (tess_steps){.training = l->run.training, .feed = &l->feed};
    CHECK(tess_feed_open(&l->feed, l->t->device, l->run.training, &l->source, 0, &error) == TESS_OK);
    CHECK_MSG(tess_data_open(&settings, &l->steps.queue, &error) == TESS_OK, "%s", error.text);
}

static void queue_step(loop *l, int64_t step)
{
    tess_error error;
    const double control[TESS_CONTROLS] = {[TESS_CONTROL_RATE] = 0.01 * (double)(1 + step % 3),
                                           [TESS_CONTROL_CORRECTION1] = 1 - pow(0.9, (double)step + 1),
                                           [TESS_CONTROL_CORRECTION2] = 1 - pow(0.999, (double)step + 1),
                                           [TESS_CONTROL_LOSS_SCALE] = 1,
                                           [TESS_CONTROL_STEP] = (double)step};
    tess_training_control(l->run.training, control, NULL);
    for (int m = 0; m < l->t->parts; m++) {
        if (!l->steps.fed)
            CHECK_MSG(tess_steps_feed(&l->steps, &error) == TESS_OK, "%s", error.text);
        l->steps.fed = false;
        tess_training_pass(l->run.training, m, NULL);
    }
    tess_training_update(l->run.training, NULL);
    tess_training_end(l->run.training, NULL);
}

static void run_steps(loop *l, outcome *o)
{
    tess_error error;
    for (int64_t step = 0; step < l->t->end; step++) {
        if (!tess_training_queued(l->run.training))
            queue_step(l, step);
        if (step + 1 < STEPS) {
            CHECK_MSG(tess_steps_feed(&l->steps, &error) == TESS_OK, "%s", error.text);
            l->steps.fed = true;
        }
        /* Now and then a step is waited for first, as before a checkpoint: then only the batch of the next is on its way. */
        const bool ahead = l->t->overlap && l->steps.fed && (step + 1) % WAIT_EVERY;
        if (ahead)
            queue_step(l, step + 1);
        CHECK(tess_training_queued(l->run.training) == 1 + ahead);
        CHECK_MSG(tess_steps_result(&l->steps, step, &o->loss[step], &o->norm[step], &error) == TESS_OK, "%s",
                  error.text);
        CHECK_MSG(l->steps.holds == ahead, "%s: %d batches are held after step %lld", l->t->name,
                  l->steps.holds, (long long)step);
        let_workers_draw();
    }
}

/* Pinned bytes are planned as they are counted. */
static void check_bytes(const trial *t, const tess_training *training, const tess_mem_usage *before)
{
    const tess_mem_bytes planned = tess_training_bytes(training);
    tess_mem_usage after;
    tess_memory_held(&test_counter, TESS_MEM_OF_DEVICE, &after);
    for (int c = 0; c < TESS_MEM_CATEGORIES && !t->device->host_memory; c++)
        CHECK_MSG(after.bytes.by[c] - before->bytes.by[c] == planned.by[c], "%s: %s: %llu bytes planned",
                  t->name, tess_mem_category_name((tess_mem_category)c), (unsigned long long)planned.by[c]);
}

static outcome run(const trial *t)
{
    loop *l = step_room(1, sizeof *l);
    outcome o = {{0}};
    tess_training_settings settings = step_settings(BATCH / t->parts, SIDE, 0);
    tess_net *net = step_net_make(step_net_named("dropouts"));
    tess_mem_usage before;
    tess_memory_held(&test_counter, TESS_MEM_OF_DEVICE, &before);
    settings.micro_batches = t->parts;
    settings.optimize = t->optimize;
    settings.update_bytes = t->update_bytes;
    settings.seed = 4;
    l->t = t;
    if (step_open(&l->run, t->device, net, &settings, t->name)) {
        check_bytes(t, l->run.training, &before);
        open_data(l);
        run_steps(l, &o);
        tess_steps_stop(&l->steps);
        CHECK(l->steps.holds == 0 && tess_training_queued(l->run.training) == 0);
        tess_data_close(l->steps.queue);
        tess_feed_close(&l->feed);
        o.count = tess_training_state_size(l->run.training, TESS_STATE_PARAMETERS);
        o.parameters = step_state(&l->run, TESS_STATE_PARAMETERS);
        step_close(&l->run);
    }
    tess_net_destroy(net);
    free(l);
    return o;
}

/* Against the CPU, one step after the other. */
static void check_trial(trial t, tess_device *cpu)
{
    const trial plain = {.name = "one by one",
                         .device = cpu,
                         .parts = t.parts,
                         .end = t.end,
                         .optimize = t.optimize,
                         .update_bytes = t.update_bytes};
    outcome expected = run(&plain);
    for (int hurry = 0; hurry < 2; hurry++) {
        late_hurries = hurry;
        outcome got = run(&t);
        for (int64_t i = 0; i < t.end; i++)
            CHECK_MSG(got.loss[i] == expected.loss[i] && got.norm[i] == expected.norm[i],
                      "%s, %s: step %lld: loss %.9g, expected %.9g, norm %.9g, expected %.9g", t.name,
                      hurry ? "early" : "late", (long long)i, got.loss[i], expected.loss[i], got.norm[i],
                      expected.norm[i]);
        if (t.end == STEPS && got.parameters && expected.parameters)
            CHECK_MSG(memcmp(got.parameters, expected.parameters, (size_t)got.count * sizeof(float)) == 0,
                      "%s: parameters differ", t.name);
        free(got.parameters);
    }
    free(expected.parameters);
}

int main(void)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    const tess_op_optimize clipped = {
        .kind = TESS_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .clip = 1};
    tess_op_optimize free_of_clip = clipped;
    free_of_clip.clip = 0;
    tess_device *cpu = NULL, *late = NULL;
    tess_stream *stream = NULL;
    tess_error error;
    CHECK(tess_registry_open("cpu", &options, &cpu, &error) == TESS_OK);
    CHECK(tess_registry_open("cpu", &options, &late, &error) == TESS_OK);
    late_device(late);
    CHECK(late->streams->create(late, &stream, &error) == TESS_OK);
    late_default = (late_stream *)stream;
    const trial trials[] = {{"two steps", late, 1, true, STEPS, clipped, 0},
                            {"two steps, updated in the pass", late, 1, true, STEPS, free_of_clip, 1},
                            {"one step", late, 1, false, STEPS, clipped, 0},
                            {"one step in parts", late, 2, false, STEPS, clipped, 0},
                            {"left with a step in work", late, 1, true, STEPS / 2, clipped, 0}};
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        check_trial(trials[i], cpu);
    CHECK(tess_steps_overlap(TESS_F32, 1) && tess_steps_overlap(TESS_BF16, 1));
    CHECK(!tess_steps_overlap(TESS_F16, 1) && !tess_steps_overlap(TESS_F32, 2));
    late->streams->destroy(late, stream);
    tess_registry_close(late);
    tess_registry_close(cpu);
    return check_end();
}
