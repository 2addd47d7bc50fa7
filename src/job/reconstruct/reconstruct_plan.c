/* What a reconstruction takes. Three phases share the solver's block and the
 * host's: measurements are made; the network and the solver run, without the
 * measurements where the operator absorbed them; results are written. */
#include <math.h>

#include "base/checked.h"
#include "base/process.h"
#include "job/reconstruct/reconstruct.h"
#include "plan/limit.h"
#include "solve/cg.h"
#include "tensor/quality.h"

enum {
    ALIGN = 64,
    LEAST_SHARE = 1 << 16,
    MOST_TRIED = 1 << 22, /* MiB */
    HALVINGS = 6
};

static size_t take(char *at, size_t *used, size_t bytes, bool wanted, void *out)
{
    if (!wanted)
        return 0;
    if (at)
        *(void **)out = at + *used;
    *used += tess_align_size(bytes, ALIGN);
    return bytes;
}

size_t tess_reconstruct_carve_io(tess_reconstruct_job *job, char *at)
{
    const tess_problem *p = &job->problem;
    const tess_extent volume = tess_problem_image_extent(p), measured = tess_problem_measurement_extent(p);
    const size_t image = (size_t)(tess_problem_rows(p) * tess_problem_row(p)) * sizeof(float);
    const int64_t rows[] = {volume.width * volume.channels, 3 * (p->width + TESS_GAP) * p->channels,
                            measured.width * measured.channels, p->image_width * p->channels};
    int64_t row = tess_problem_has_truth(p) ? tess_reconstruct_quality_rows(p) * p->width * p->channels : 0;
    for (int i = 0; i < 4; i++)
        row = tess_max_i64(row, rows[i]);
    size_t used = 0;
    take(at, &used, image, tess_problem_has_truth(p), &job->truth);
    take(at, &used, image, job->settings->side_by_side != NULL, &job->shown);
    take(at, &used, TESS_PIECE * sizeof(float), true, &job->piece);
    for (int i = 0; i < 2; i++)
        take(at, &used, (size_t)row * sizeof(float), true, &job->rows[i]);
    take(at, &used, tess_reconstruct_quality_bytes(p), tess_problem_has_truth(p), &job->lines);
    return used;
}

bool tess_reconstruct_scratch_apart(const tess_operator *op)
{
    return tess_data_term_absorbed(op) && op->step_scratch_bytes < op->scratch_bytes;
}

size_t tess_reconstruct_measurement_bytes(const tess_reconstruct_job *job)
{
    const tess_operator *op = job->op;
    return tess_vector_bytes(&op->measurement) + (tess_reconstruct_scratch_apart(op) ? op->scratch_bytes : 0);
}

/* Peaks begin anew; those so far stay in the job. */
static void keep_peak(tess_reconstruct_job *job)
{
    tess_mem_usage peak;
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &peak);
    tess_mem_usage_raise(&job->peak, &peak);
    tess_memory_reset_peak(job->engine.memory);
}

/* By the counter itself: what the operator holds, and the most while it was made. */
static tess_status make_operator(tess_reconstruct_job *job, size_t slab_bytes, tess_error *error)
{
    tess_memory *memory = job->engine.memory;
    const tess_mem_scope scope = tess_engine_scope(&job->engine);
    tess_mem_usage before, after;
    tess_memory_reset_peak(memory);
    tess_memory_held(memory, scope, &before);
    TESS_TRY(tess_problem_operator(&job->problem, job->engine.device, slab_bytes, &job->op, error));
    keep_peak(job);
    tess_memory_held(memory, scope, &after);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        job->operator_bytes.by[c] = after.bytes.by[c] - before.bytes.by[c];
    return TESS_OK;
}

/* What is held at once. */
static void add_phase(tess_reconstruct_job *job, const tess_mem_bytes *phase)
{
    const tess_mem_usage usage = {*phase, tess_mem_total(phase)};
    tess_mem_usage_raise(&job->planned, &usage);
}

/* The host's own memory counts with the device's unless that has its own. */
static void add_host(const tess_reconstruct_job *job, tess_mem_bytes *phase, size_t bytes)
{
    phase->by[job->engine.apart ? TESS_MEM_HOST : TESS_MEM_IO] += bytes;
}

/* Gradients, and what the step and the start cost before them. */
static double physics_seconds(tess_reconstruct_job *job)
{
    const tess_operator *op = job->op;
    const tess_device_facts *facts = &job->engine.facts;
    const double once = op->forward_flops / facts->flops + op->forward_bytes / facts->bytes;
    double gradients =
        (double)job->recipe.iterations * (double)(tess_data_term_exact(op) ? 1 : job->recipe.inner + 1) + 2;
    if (job->recipe.step == 0 && op->norm_squared == 0 && (job->recipe.inner == 0 || job->recipe.relax > 0))
        gradients += job->recipe.absolute_power ? TESS_START_POWER : 20;
    if (job->recipe.init == TESS_INIT_CG)
        gradients += TESS_START_CG;
    return gradients * (tess_data_term_exact(op) ? 1 : 2) * once *
           tess_rates_operator(job->engine.rates, op->name, &job->prior.choice.calibrated);
}

/* The fastest iteration shows how long the operator takes: others shared the machine. */
void tess_reconstruct_calibrate(tess_reconstruct_job *job)
{
    const tess_operator *op = job->op;
    const tess_device_facts *facts = &job->engine.facts;
    const bool exact = tess_data_term_exact(op);
    const double once = op->forward_flops / facts->flops + op->forward_bytes / facts->bytes,
                 runs = exact ? 1 : 2 * (double)(job->recipe.inner + 1);
    double best = INFINITY;
    for (int64_t i = 0; i < job->result.iterations; i++)
        best = fmin(best, job->iterations[i].gradient_seconds);
    if (!isfinite(best) || !(best > 0))
        return;
    tess_rates_set_operator(job->engine.rates, op->name, best / (runs * once));
    (void)tess_rates_save(job->engine.rates, NULL);
}

static tess_status choose_cut(tess_reconstruct_job *job, uint64_t limit, uint64_t others, uint64_t job_needs,
                              tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    const tess_prior_request request = {.tile_depth = s->tile_depth,
                                        .tile_height = s->tile_height,
                                        .tile_width = s->tile_width,
                                        .halo = s->halo,
                                        .batch = s->batch,
                                        .limit = limit,
                                        .others = others,
                                        .asked_limit = s->common.memory_limit,
                                        .job_needs = job_needs};
    job->prior.image = job->op->image;
    return tess_prior_choose(&job->prior, &request, error);
}

/* Images that the solver works on; before it the start, and the baseline or conjugate gradients beside it. */
static int vectors_of(const tess_reconstruct_job *job)
{
    const int loop = tess_pnp_vectors(job->op, job->recipe.inner, job->settings->tolerance),
              start = job->recipe.init == TESS_INIT_CG ? 1 + TESS_CG_VECTORS : 2;
    return loop > start ? loop : start;
}

/* Images and measurements, which lie on the device or, for a volume in slabs, on the host. */
static void add_images(const tess_reconstruct_job *job, tess_mem_bytes *phase, size_t bytes)
{
    tess_device *device = job->engine.device;
    if (job->hosted)
        add_host(job, phase, tess_block_granted(bytes));
    else
        phase->by[TESS_MEM_WORKSPACE] += device->granted(device, bytes);
}

/* Where the network is not what is too large. */
static tess_status too_little(const tess_reconstruct_job *job, uint64_t limit, uint64_t needed,
                              const char *advice, tess_error *error)
{
    const bool asked = job->settings->common.memory_limit > 0;
    return tess_fail(
        error, TESS_OVER_LIMIT, "%s%s%s too little: images and measurements take %.1fM; %s%s would do, or %s",
        asked ? "--memory " : "", tess_size_words(limit).text, asked ? " is" : " of free memory are",
        (double)needed / (1 << 20), asked ? "--memory " : "", tess_size_enough(needed).text, advice);
}

/* All phases of job->op, which may be a sketch. */
static tess_status add_up(tess_reconstruct_job *job, uint64_t limit, tess_error *error)
{
    tess_device *device = job->engine.device;
    const tess_problem *p = &job->problem;
    size_t held_measurement, held_output;
    TESS_TRY(tess_reconstruct_check_outputs(job, &held_measurement, &held_output, error));
    TESS_TRY(tess_data_term_bytes(job->op, &job->term_bytes, &job->residual_bytes, error));
    job->vector_count = vectors_of(job);
    tess_mem_bytes common = job->operator_bytes, beginning = common;
    add_host(job, &beginning, job->op->making_bytes);
    common.by[TESS_MEM_WORKSPACE] += device->granted(device, job->term_bytes);
    add_images(job, &common,
               (size_t)job->vector_count * tess_vector_bytes(&job->op->image) + job->residual_bytes);
    add_host(job, &common, tess_block_granted(tess_reconstruct_carve_io(job, NULL)));
    tess_mem_bytes making = common, solving = common;
    size_t reading = p->held;
    if (p->resized)
        reading +=
            tess_block_granted((size_t)(p->image_height * p->image_width * p->channels) * sizeof(float));
    add_images(job, &making, tess_reconstruct_measurement_bytes(job));
    if (!tess_data_term_absorbed(job->op))
        solving = making;
    tess_mem_bytes writing = solving;
    add_host(job, &making, reading > held_measurement ? reading : held_measurement);
    add_host(job, &writing, held_output);
    job->planned = job->peak; /* of operators that were made, also of one that turned out not to fit */
    add_phase(job, &beginning);
    add_phase(job, &making);
    add_phase(job, &writing);
    TESS_TRY(choose_cut(job, limit, tess_mem_total(&solving), job->planned.total, error));
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        solving.by[c] += job->prior.choice.bytes.by[c];
    add_phase(job, &solving);
    job->planned_seconds = (double)job->recipe.iterations * job->prior.choice.seconds + physics_seconds(job);
    if (job->planned.total > limit)
        return too_little(job, limit, job->planned.total, "fewer --operators", error);
    return TESS_OK;
}

/* What will not fit is refused before it is made, where its size is known before. */
static tess_status check_sketch(tess_reconstruct_job *job, uint64_t limit, tess_error *error)
{
    bool known;
    tess_operator sketch;
    TESS_TRY(tess_problem_sketch(&job->problem, job->engine.device, &sketch, &known, error));
    if (!known)
        return TESS_OK;
    job->op = &sketch;
    job->operator_bytes = (tess_mem_bytes){{0}};
    job->operator_bytes.by[TESS_MEM_WORKSPACE] = sketch.held_bytes;
    const tess_status status = add_up(job, limit, error);
    job->op = NULL;
    return status;
}

/* Everything on the device, or with `slab_bytes` only as much of a volume and its views. */
static tess_status plan(tess_reconstruct_job *job, uint64_t limit, size_t slab_bytes, tess_error *error)
{
    job->hosted = slab_bytes > 0;
    TESS_TRY(check_sketch(job, limit, error));
    TESS_TRY(make_operator(job, slab_bytes, error));
    return add_up(job, limit, error);
}

/* A volume that does not fit beside the network stays on the host. The more its slabs may take, the less is moved; what
 * they leave is the network's, so they begin with a quarter. */
static tess_status plan_within(tess_reconstruct_job *job, uint64_t limit, tess_error *error)
{
    tess_operator_destroy(job->op);
    job->op = NULL;
    tess_status status = plan(job, limit, 0, error);
    if (!job->engine.apart || job->problem.physics != TESS_PHYSICS_CONE)
        return status;
    for (uint64_t share = limit / 4; status == TESS_OVER_LIMIT && share > LEAST_SHARE; share /= 4) {
        tess_error why;
        tess_operator_destroy(job->op);
        job->op = NULL;
        status = plan(job, limit, (size_t)share, &why);
        if (status != TESS_OK && (job->op || status != TESS_OVER_LIMIT)) /* else less will not do either */
            *error = why;
    }
    return status;
}

/* Slabs take a share of the limit, so what they need is found by trying: twice as much until it is accepted, then
 * halfway between. */
static tess_status refuse_slabs(tess_reconstruct_job *job, uint64_t limit, tess_error *error)
{
    const uint64_t mib = 1 << 20;
    uint64_t refused = limit / mib, enough = refused + 1;
    tess_error why;
    tess_status status;
    while ((status = plan_within(job, enough * mib, &why)) == TESS_OVER_LIMIT && enough < MOST_TRIED) {
        refused = enough;
        enough *= 2;
    }
    if (status != TESS_OK)
        return TESS_OVER_LIMIT; /* the first message stays: there is no number to name */
    for (int i = 0; i < HALVINGS && enough - refused > 1; i++) {
        const uint64_t middle = refused + (enough - refused) / 2;
        if (plan_within(job, middle * mib, &why) == TESS_OK)
            enough = middle;
        else
            refused = middle;
    }
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "--memory %s is too little for the network beside slabs of the volume; --memory %s would "
        "do, or a smaller --size or model",
        tess_size_words(limit).text, tess_size_enough(enough * mib).text);
}

tess_status tess_reconstruct_plan(tess_reconstruct_job *job, tess_error *error)
{
    const uint64_t asked = job->settings->common.memory_limit,
                   limit = asked ? asked : tess_engine_free_limit(&job->engine);
    const tess_status status = plan_within(job, limit, error);
    if (status == TESS_OVER_LIMIT && asked && job->engine.apart && job->problem.physics == TESS_PHYSICS_CONE)
        return refuse_slabs(job, limit, error);
    const uint64_t left = tess_host_memory_left();
    if (status == TESS_OK && job->hosted && job->planned.bytes.by[TESS_MEM_HOST] > left)
        return tess_fail(
            error, TESS_OVER_LIMIT,
            "the volume does not fit the device, and of the host's memory it takes %.0fM where %.0fM are "
            "left; use a smaller --size, or a larger --memory where the device has more",
            (double)job->planned.bytes.by[TESS_MEM_HOST] / (1 << 20), (double)left / (1 << 20));
    return status;
}
