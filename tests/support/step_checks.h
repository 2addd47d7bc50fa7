/* step_checks.h: what must hold of a training step on every device, apart from its gradients: its memory is as planned, and
 * its results do not depend on recomputation, micro-batches, or an interruption. */
#ifndef TESS_TESTS_STEP_CHECKS_H
#define TESS_TESTS_STEP_CHECKS_H

#include "step_run.h"

static inline tess_op_optimize step_adam(void)
{
    return (tess_op_optimize){.kind = TESS_ADAM, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};
}

static inline bool step_takes(const tess_device *device, const step_net *what, tess_dtype dtype)
{
    return step_trains(device, what) && (dtype == TESS_F32 || (!what->fp32 && !what->depth));
}

/* ---- planned memory ---- */

static inline void step_held(const tess_device *device, tess_mem_usage *held)
{
    tess_memory_held(device->counter, device->host_memory ? TESS_MEM_OF_PROCESS : TESS_MEM_OF_DEVICE, held);
}

static inline void check_bytes_of(tess_device *device, const step_net *what, tess_training_settings settings)
{
    tess_net *net = step_net_make(what);
    tess_mem_usage before, after;
    tess_error error = {{0}};
    step_run run = {.device = device, .net = net, .settings = settings};
    step_held(device, &before);
    const bool created = tess_training_create(net, device, &settings, &run.training, &error) == TESS_OK;
    CHECK_MSG(created, "%s, %s: %s", what->name, tess_dtype_name(settings.dtype), error.text);
    if (created) {
        step_held(device, &after);
        CHECK(after.total == before.total); /* a plan holds no blocks */
        const tess_mem_bytes planned = tess_training_bytes(run.training);
        CHECK_MSG(tess_training_prepare(run.training, &error) == TESS_OK, "%s", error.text);
        run.parameters = tess_training_parameters(run.training);
        step_start(&run);
        step_passes(&run, 0, 0.1, true);
        CHECK_MSG(isfinite(run.loss) && isfinite(run.norm) && run.norm > 0, "%s, %s: loss %g, norm %g",
                  what->name, tess_dtype_name(settings.dtype), run.loss, run.norm);
        step_held(device, &after);
        for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
            CHECK_MSG(after.bytes.by[i] - before.bytes.by[i] == planned.by[i],
                      "%s, %s, n %lld, side %lld, recompute %d: %s planned %llu, counted %llu", what->name,
                      tess_dtype_name(settings.dtype), (long long)settings.n, (long long)settings.h,
                      (int)settings.recompute, tess_mem_category_name((tess_mem_category)i),
                      (unsigned long long)planned.by[i],
                      (unsigned long long)(after.bytes.by[i] - before.bytes.by[i]));
    }
    step_close(&run);
    step_held(device, &after);
    CHECK_MSG(after.total == before.total, "%s: %llu bytes are left", what->name,
              (unsigned long long)(after.total - before.total));
    tess_net_destroy(net);
}

static inline void check_bytes(tess_device *device, tess_dtype dtype)
{
    static const tess_recompute modes[] = {TESS_RECOMPUTE_NONE, TESS_RECOMPUTE_BLOCKS, TESS_RECOMPUTE_ALL};
    static const int64_t sides[] = {8, 20, 36};
    for (int i = 0; i < STEP_NETS; i++)
        for (int k = 0; k < 3; k++) {
            tess_training_settings settings = step_settings(3 - k, sides[(i + k) % 3], step_nets[i].depth);
            settings.dtype = dtype;
            settings.micro_batches = 1 << k;
            settings.recompute = modes[(i + k) % 3];
            settings.average = k == 1;
            if (k)
                settings.optimize = step_adam();
            if (step_takes(device, &step_nets[i], dtype))
                check_bytes_of(device, &step_nets[i], settings);
        }
}

/* ---- results that must be equal ---- */

/* All states after some steps, one after the other, and the loss of the last. */
typedef struct step_outcome {
    float *values;
    size_t count;
    double loss, norm;
} step_outcome;

static inline step_outcome step_all(step_run *run)
{
    step_outcome all = {.loss = run->loss, .norm = run->norm};
    for (int i = 0; i < TESS_STATES; i++)
        all.count += (size_t)tess_training_state_size(run->training, (tess_training_state)i);
    all.values = step_room(all.count, sizeof *all.values);
    float *to = all.values;
    for (int i = 0; i < TESS_STATES; i++) {
        const int64_t count = tess_training_state_size(run->training, (tess_training_state)i);
        if (count)
            step_get(run, (tess_training_state)i, to);
        to += count;
    }
    return all;
}

static inline void step_set_all(step_run *run, const step_outcome *all)
{
    const float *from = all->values;
    tess_error error = {{0}};
    for (int i = 0; i < TESS_STATES; i++) {
        const int64_t count = tess_training_state_size(run->training, (tess_training_state)i),
                      first = count / 3;
        if (count) /* in two pieces, the second first */
            CHECK(tess_training_set(run->training, (tess_training_state)i, first, count - first, from + first,
                                    &error) == TESS_OK &&
                  tess_training_set(run->training, (tess_training_state)i, 0, first, from, &error) ==
                      TESS_OK);
        from += count;
    }
}

static inline step_outcome step_outcome_of(tess_device *device, const step_net *what,
                                           const tess_training_settings *settings, uint32_t steps,
                                           double rate)
{
    tess_net *net = step_net_make(what);
    step_outcome all = {0};
    step_run run;
    if (step_open(&run, device, net, settings, what->name)) {
        step_steps(&run, 0, steps, rate);
        all = step_all(&run);
        step_close(&run);
    }
    tess_net_destroy(net);
    return all;
}

static inline void check_equal(const step_outcome *a, const step_outcome *b, const char *name,
                               const char *reason)
{
    CHECK_MSG(a->count > 0 && a->count == b->count &&
                  memcmp(a->values, b->values, a->count * sizeof *a->values) == 0,
              "%s: %s changes bits", name, reason);
    CHECK_MSG(a->loss == b->loss && a->norm == b->norm, "%s: %s: loss %.17g and %.17g, norm %.17g and %.17g",
              name, reason, a->loss, b->loss, a->norm, b->norm);
}

/* ---- weights packed many at a time ---- */

static int step_repacks; /* calls of the counted function */
static void (*step_repack)(tess_device *, const tess_repack *, int, tess_stream *);

static inline void step_count_repack(tess_device *device, const tess_repack *list, int count,
                                     tess_stream *stream)
{
    step_repacks++;
    step_repack(device, list, count, stream);
}

/* Another limit of the bytes that are packed at once changes when weights are packed, nothing else. */
static inline void check_gathered(tess_device *device, tess_dtype dtype)
{
    static const size_t limits[] = {0, 1, 5000, (size_t)1 << 30};
    enum { LIMITS = sizeof limits / sizeof limits[0] };
    const tess_device_ops *const before = device->ops;
    tess_device_ops ops = *before;
    step_repack = ops.repack;
    ops.repack = step_count_repack;
    device->ops = &ops;
    for (int i = 0; i < STEP_NETS; i++) {
        tess_training_settings settings = step_settings(2, 12, step_nets[i].depth);
        settings.dtype = dtype;
        settings.optimize = step_adam();
        settings.recompute = i % 2 ? TESS_RECOMPUTE_BLOCKS : TESS_RECOMPUTE_NONE;
        step_outcome first = {0};
        int calls[LIMITS] = {0};
        for (int k = 0; k < LIMITS && step_takes(device, &step_nets[i], dtype); k++) {
            ops.repack_bytes = limits[k];
            step_repacks = 0;
            check_bytes_of(device, &step_nets[i], settings);
            calls[k] = step_repacks;
            step_outcome one = step_outcome_of(device, &step_nets[i], &settings, 2, 1e-3);
            if (k == 0) {
                first = one;
                continue;
            }
            check_equal(&first, &one, step_nets[i].name, "packing more weights at once");
            CHECK_MSG(calls[k] <= calls[k - 1], "%s: %d calls at a limit of %zu, %d before",
                      step_nets[i].name, calls[k], limits[k], calls[k - 1]);
            free(one.values);
        }
        /* Its constants are packed with its parameters. */
        CHECK_MSG(strcmp(step_nets[i].name, "autoencoder") != 0 || calls[LIMITS - 1] <= 3,
                  "autoencoder: %d calls with no limit", calls[LIMITS - 1]);
        CHECK_MSG(calls[0] < 8 || calls[LIMITS - 1] < calls[0], "%s: %d calls are %d with no limit",
                  step_nets[i].name, calls[0], calls[LIMITS - 1]);
        free(first.values);
    }
    device->ops = before;
}

/* ---- pairs of gradients ---- */

/* The device with an op for pairs, which it does one by one. */
enum { STEP_PAIRS = 64 };
static const tess_device_ops *step_plain_ops;
static const tess_prepared *step_pairs[STEP_PAIRS];
static int step_pair_count, step_pair_runs;

static inline tess_op step_half(const tess_op *op)
{
    tess_op half = *op;
    half.inputs = 2;
    half.outputs = 1;
    return half;
}

static tess_status step_pair_query(tess_device *device, const tess_op *op, tess_op_needs *needs,
                                   tess_error *error)
{
    const tess_op half = step_half(op);
    return step_plain_ops->query(device, tess_op_is_pair(op) ? &half : op, needs, error);
}

static tess_status step_pair_prepare(tess_device *device, const tess_op *op, tess_prepared **out,
                                     tess_error *error)
{
    const tess_op half = step_half(op);
    TESS_TRY(step_plain_ops->prepare(device, tess_op_is_pair(op) ? &half : op, out, error));
    if (tess_op_is_pair(op) && step_pair_count < STEP_PAIRS)
        step_pairs[step_pair_count++] = *out;
    return TESS_OK;
}

static void step_pair_run(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    step_plain_ops->run(device, prepared, buffers, stream);
    for (int i = 0; i < step_pair_count; i++)
        if (step_pairs[i] == prepared) {
            tess_op_buffers second = *buffers;
            second.in[0] = buffers->in[2];
            second.in[1] = buffers->in[3];
            second.out[0] = buffers->out[1];
            step_plain_ops->run(device, prepared, &second, stream);
            step_pair_runs++;
        }
}

/* Pairs change when gradients are computed, nothing else, whatever is computed again and updated inside the pass. */
static inline void check_pairs(tess_device *device, tess_dtype dtype)
{
    step_plain_ops = device->ops;
    tess_device_ops ops = *device->ops;
    ops.query = step_pair_query;
    ops.prepare = step_pair_prepare;
    ops.run = step_pair_run;
    for (int i = 0; i < STEP_NETS; i++) {
        tess_training_settings settings = step_settings(2, 12, step_nets[i].depth);
        if (!step_takes(device, &step_nets[i], dtype))
            continue;
        settings.dtype = dtype;
        settings.optimize = step_adam();
        settings.pair_gradients = false;
        step_outcome one_by_one = step_outcome_of(device, &step_nets[i], &settings, 2, 1e-3);
        settings.pair_gradients = true;
        for (int k = 0; k < 4; k++) {
            settings.recompute = k % 2 ? TESS_RECOMPUTE_BLOCKS : TESS_RECOMPUTE_NONE;
            settings.update_bytes = k / 2 ? 1000 : 0;
            device->ops = &ops;
            step_pair_count = step_pair_runs = 0;
            check_bytes_of(device, &step_nets[i], settings);
            step_pair_count = 0; /* those were released */
            step_outcome pairs = step_outcome_of(device, &step_nets[i], &settings, 2, 1e-3);
            device->ops = step_plain_ops;
            if (settings.update_bytes)
                pairs.norm = one_by_one.norm; /* summed in another order */
            check_equal(&one_by_one, &pairs, step_nets[i].name, "pairs of gradients");
            CHECK_MSG(step_pair_runs > 0 || strcmp(step_nets[i].name, "drunet") != 0, "%s has no pairs",
                      step_nets[i].name);
            free(pairs.values);
        }
        free(one_by_one.values);
    }
}

/* ---- parameters updated inside the pass ---- */

/* Changes where gradients are and when parameters change, not the results; the norm is summed in another order. */
static inline void check_update_in_pass(tess_device *device, tess_dtype dtype)
{
    static const size_t limits[] = {1, 3000, 20000};
    for (int i = 0; i < STEP_NETS; i++) {
        tess_training_settings settings = step_settings(2, 12, step_nets[i].depth);
        settings.dtype = dtype;
        settings.average = i % 2;
        if (i % 3)
            settings.optimize = step_adam();
        settings.recompute = i % 2 ? TESS_RECOMPUTE_NONE : TESS_RECOMPUTE_BLOCKS;
        if (!step_takes(device, &step_nets[i], dtype))
            continue;
        step_outcome want = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-3);
        for (int k = 0; k < 3; k++) {
            settings.update_bytes = limits[k];
            check_bytes_of(device, &step_nets[i], settings);
            step_outcome got = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-3);
            CHECK_MSG(fabs(got.norm - want.norm) <= 1e-9 * want.norm, "%s: norm %.17g and %.17g",
                      step_nets[i].name, got.norm, want.norm);
            got.norm = want.norm;
            check_equal(&want, &got, step_nets[i].name, "an update inside the pass");
            free(got.values);
        }
        free(want.values);
    }
}

/* The block of all gradients is there only if something needs it. */
static inline void check_gradients_block_of(tess_device *device, const char *name)
{
    tess_net *net = step_net_make(step_net_named(name));
    for (int k = 0; k < 5; k++) {
        tess_training_settings settings = step_settings(2, 16, 0);
        settings.update_bytes = k == 1 ? 0 : 1;
        settings.optimize.clip = k == 2 ? 0.5 : 0;
        settings.micro_batches = k == 3 ? 2 : 1;
        if (k == 4 && !device->host_memory)
            settings.dtype = TESS_F16;
        const bool none = k == 0 || (k == 4 && device->host_memory);
        tess_training *training = NULL;
        tess_error error = {{0}};
        CHECK_MSG(tess_training_create(net, device, &settings, &training, &error) == TESS_OK, "%s",
                  error.text);
        CHECK_MSG(training && (tess_training_bytes(training).by[TESS_MEM_GRADIENTS] == 0) == none,
                  "%s, case %d: %llu bytes of gradients", name, k,
                  (unsigned long long)(training ? tess_training_bytes(training).by[TESS_MEM_GRADIENTS] : 0));
        tess_training_destroy(training);
    }
    tess_net_destroy(net);
}

static inline void check_gradients_block(tess_device *device)
{
    check_gradients_block_of(device, "drunet");
    check_gradients_block_of(device, "diffusion");
}

static inline void check_recompute(tess_device *device, tess_dtype dtype)
{
    for (int i = 0; i < STEP_NETS; i++) {
        tess_training_settings settings = step_settings(2, 12, step_nets[i].depth);
        if (!step_takes(device, &step_nets[i], dtype))
            continue;
        settings.dtype = dtype;
        settings.optimize = step_adam();
        step_outcome kept = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-2),
                     again = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-2);
        check_equal(&kept, &again, step_nets[i].name, "a second run");
        free(again.values);
        settings.recompute = TESS_RECOMPUTE_BLOCKS;
        again = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-2);
        check_equal(&kept, &again, step_nets[i].name, "recomputing blocks");
        free(again.values);
        settings.recompute_blocks = 1;
        again = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-2);
        check_equal(&kept, &again, step_nets[i].name, "recomputing one block");
        free(again.values);
        settings.recompute_blocks = TESS_RECOMPUTE_EVERYWHERE;
        settings.recompute = TESS_RECOMPUTE_ALL;
        again = step_outcome_of(device, &step_nets[i], &settings, 3, 1e-2);
        check_equal(&kept, &again, step_nets[i].name, "recomputing all");
        free(again.values), free(kept.values);
    }
}

/* Two steps of a batch of four, in one, two and four parts. */
static inline void check_micro_batches(tess_device *device)
{
    for (int i = 0; i < STEP_NETS; i++) {
        if (step_nets[i].batch_norm || !step_trains(device, &step_nets[i]))
            continue;
        tess_training_settings settings = step_settings(4, 12, step_nets[i].depth);
        settings.optimize.momentum = 0.9;
        step_outcome whole = step_outcome_of(device, &step_nets[i], &settings, 2, 1e-2);
        for (int parts = 2; parts <= 4; parts *= 2) {
            settings.n = 4 / parts;
            settings.micro_batches = parts;
            step_outcome divided = step_outcome_of(device, &step_nets[i], &settings, 2, 1e-2);
            double worst = 0, most = 0;
            for (size_t k = 0; k < whole.count && k < divided.count; k++) {
                const double off = fabs((double)whole.values[k] - (double)divided.values[k]);
                worst = off <= worst ? worst : off; /* NaN counts */
                most = fmax(most, fabs((double)whole.values[k]));
            }
            CHECK_MSG(whole.count == divided.count && most > 0 && worst <= 2e-5 * most,
                      "%s in %d parts: states differ by %g of %g", step_nets[i].name, parts, worst, most);
            CHECK_MSG(fabs(whole.loss - divided.loss) <= 1e-5 * whole.loss &&
                          fabs(whole.norm - divided.norm) <= 1e-4 * whole.norm,
                      "%s in %d parts: loss %g and %g, norm %g and %g", step_nets[i].name, parts, whole.loss,
                      divided.loss, whole.norm, divided.norm);
            free(divided.values);
        }
        free(whole.values);
    }
}

/* Three steps, and two, then all states taken to another training, and one more. */
static inline void check_states_of(tess_device *device, const step_net *what,
                                   const tess_training_settings *settings, const char *reason)
{
    const double rate = 1e-3;
    step_outcome straight = step_outcome_of(device, what, settings, 3, rate),
                 halfway = step_outcome_of(device, what, settings, 2, rate);
    tess_net *net = step_net_make(what);
    step_run run;
    if (step_open(&run, device, net, settings, what->name)) {
        step_set_all(&run, &halfway);
        step_steps(&run, 2, 1, rate);
        step_outcome resumed = step_all(&run);
        check_equal(&straight, &resumed, what->name, reason);
        CHECK(resumed.count == halfway.count &&
              memcmp(resumed.values, halfway.values, resumed.count * sizeof *resumed.values) != 0);
        free(resumed.values);
        step_close(&run);
    }
    tess_net_destroy(net);
    free(straight.values), free(halfway.values);
}

static inline void check_states(tess_device *device)
{
    const step_net *norms = step_net_named("batch-norms"), *plain = step_net_named("drunet");
    tess_training_settings settings = step_settings(2, 12, 0);
    settings.average = true;
    settings.optimize = step_adam();
    check_states_of(device, norms, &settings, "resuming Adam");
    settings.micro_batches = 2;
    settings.recompute = TESS_RECOMPUTE_ALL;
    settings.optimize.kind = TESS_ADAMW;
    settings.optimize.weight_decay = 0.01;
    settings.optimize.clip = 0.1;
    check_states_of(device, norms, &settings, "resuming AdamW");
    settings.average = false;
    settings.optimize = (tess_op_optimize){.kind = TESS_SGD, .momentum = 0.9, .nesterov = true};
    check_states_of(device, plain, &settings, "resuming SGD");
}

#endif
