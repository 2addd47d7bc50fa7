/* What a reconstruction takes. Three phases share the solver's block and the
 * host's: measurements are made; the network and the solver run, without the
 * measurements where the operator absorbed them; results are written. */
#include "base/checked.h"
#include "base/process.h"
#include "job/denoise.h"
#include "job/reconstruct.h"
#include "solve/cg.h"
#include "tensor/quality.h"

enum { ALIGN = 64, LEAST_SHARE = 1 << 16 };

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
    tess_mem_bytes peak;
    uint64_t total;
    tess_mem_peak(&peak, &total);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        if (peak.by[c] > job->peak.by[c])
            job->peak.by[c] = peak.by[c];
    if (total > job->peak_total)
        job->peak_total = total;
    if (tess_mem_host_peak() > job->host_peak)
        job->host_peak = tess_mem_host_peak();
    tess_mem_reset_peak();
}

/* By the counting door itself: what the operator holds, and the most while it
 * was made. */
static tess_status make_operator(tess_reconstruct_job *job, size_t slab_bytes, tess_error *error)
{
    tess_mem_bytes before;
    uint64_t total;
    tess_mem_reset_peak();
    tess_mem_peak(&before, &total);
    TESS_TRY(tess_problem_operator(&job->problem, job->engine.device, slab_bytes, &job->op, error));
    keep_peak(job);
    tess_mem_peak(&job->operator_bytes, &total);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        job->operator_bytes.by[c] -= before.by[c];
    return TESS_OK;
}

/* What is held at once: with the device's memory, and on the host where that is apart. */
typedef struct phase {
    tess_mem_bytes bytes;
    uint64_t host;
} phase;

static void add_phase(tess_reconstruct_job *job, const phase *p)
{
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        if (p->bytes.by[c] > job->planned.by[c])
            job->planned.by[c] = p->bytes.by[c];
    const uint64_t total = tess_mem_total(&p->bytes);
    if (total > job->planned_total)
        job->planned_total = total;
    if (p->host > job->host_bytes)
        job->host_bytes = p->host;
}

/* The host's own memory counts with the device's unless that is apart. */
static void add_host(const tess_reconstruct_job *job, phase *p, size_t bytes)
{
    if (job->engine.apart)
        p->host += bytes;
    else
        p->bytes.by[TESS_MEM_IO] += bytes;
}

/* Gradients, and what the step and the start cost before them. */
static double physics_seconds(const tess_reconstruct_job *job)
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
    return gradients * (tess_data_term_exact(op) ? 1 : 2) * once;
}

static tess_status choose_cut(tess_reconstruct_job *job, uint64_t limit, uint64_t others, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    const tess_prior_wish wish = {.tile_depth = s->tile_depth,
                                  .tile_height = s->tile_height,
                                  .tile_width = s->tile_width,
                                  .halo = s->halo,
                                  .batch = s->batch,
                                  .limit = limit,
                                  .others = others,
                                  .asked_limit = s->common.memory_limit};
    job->prior.image = job->op->image;
    return tess_prior_choose(&job->prior, &wish, error);
}

/* Images that the solver works on; before it the start, and the baseline or conjugate gradients beside it. */
static int vectors_of(const tess_reconstruct_job *job)
{
    const int loop = tess_pnp_vectors(job->op, job->recipe.inner, job->settings->tolerance),
              start = job->recipe.init == TESS_INIT_CG ? 1 + TESS_CG_VECTORS : 2;
    return loop > start ? loop : start;
}

/* Images and measurements, which lie on the device or, for a volume in slabs, on the host. */
static void add_images(const tess_reconstruct_job *job, phase *p, size_t bytes)
{
    tess_device *device = job->engine.device;
    if (job->hosted)
        add_host(job, p, tess_block_granted(bytes));
    else
        p->bytes.by[TESS_MEM_WORKSPACE] += device->granted(device, bytes);
}

/* All phases of job->op, which may be a sketch. */
static tess_status add_up(tess_reconstruct_job *job, uint64_t limit, tess_error *error)
{
    tess_device *device = job->engine.device;
    const tess_problem *p = &job->problem;
    size_t held_measurement, held_output;
    job->host_bytes = 0;
    TESS_TRY(tess_reconstruct_check_outputs(job, &held_measurement, &held_output, error));
    TESS_TRY(tess_data_term_bytes(job->op, &job->term_bytes, &job->residual_bytes, error));
    job->vector_count = vectors_of(job);
    phase common = {.bytes = job->operator_bytes}, beginning = common;
    add_host(job, &beginning, job->op->making_bytes);
    common.bytes.by[TESS_MEM_WORKSPACE] += device->granted(device, job->term_bytes);
    add_images(job, &common,
               (size_t)job->vector_count * tess_vector_bytes(&job->op->image) + job->residual_bytes);
    add_host(job, &common, tess_block_granted(tess_reconstruct_carve_io(job, NULL)));
    phase making = common, solving = common;
    size_t reading = p->held;
    if (p->resized)
        reading +=
            tess_block_granted((size_t)(p->image_height * p->image_width * p->channels) * sizeof(float));
    add_images(job, &making, tess_reconstruct_measurement_bytes(job));
    if (!tess_data_term_absorbed(job->op))
        solving = making;
    phase writing = solving;
    add_host(job, &making, reading > held_measurement ? reading : held_measurement);
    add_host(job, &writing, held_output);
    TESS_TRY(choose_cut(job, limit, tess_mem_total(&solving.bytes), error));
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        solving.bytes.by[c] += job->prior.choice.bytes.by[c];
    job->planned = job->peak; /* of operators that were made, also of one that turned out not to fit */
    job->planned_total = job->peak_total;
    add_phase(job, &beginning);
    add_phase(job, &making);
    add_phase(job, &solving);
    add_phase(job, &writing);
    job->planned_seconds = (double)job->recipe.iterations * job->prior.choice.seconds + physics_seconds(job);
    if (job->planned_total > limit)
        return tess_fail(error, TESS_OVER_LIMIT,
                         "the measurements take %.0fM while they are made, and "
                         "%.0fM are allowed; allow more, "
                         "or use fewer --operators",
                         (double)job->planned_total / (1 << 20), (double)limit / (1 << 20));
    return TESS_OK;
}

/* What will not fit is refused before it is made, where that can be told. */
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
tess_status tess_reconstruct_plan(tess_reconstruct_job *job, tess_error *error)
{
    const uint64_t limit = job->settings->common.memory_limit ? job->settings->common.memory_limit
                                                              : tess_denoise_free_limit(&job->engine);
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
    const uint64_t left = tess_host_memory_left();
    if (status == TESS_OK && job->hosted && job->host_bytes > left)
        return tess_fail(
            error, TESS_OVER_LIMIT,
            "the volume does not fit the device, and of the host's memory it takes %.0fM where %.0fM are "
            "left; use a smaller --size, or a larger --memory where the device has more",
            (double)job->host_bytes / (1 << 20), (double)left / (1 << 20));
    return status;
}
