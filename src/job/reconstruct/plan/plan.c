/* Plans the memory of a reconstruction. Three phases share the solver's and the host's block: make the measurements;
 * run the network and the solver, without the measurements if the operator absorbed them; write the results. */
#include "job/reconstruct/plan/plan.h"

#include "base/checked.h"
#include "base/process.h"
#include "job/reconstruct/look/contradiction.h"
#include "job/reconstruct/look/noise.h"
#include "job/reconstruct/look/scan.h"
#include "job/reconstruct/plan/rates.h"
#include "job/reconstruct/problem/data.h"
#include "job/reconstruct/run/begin.h"
#include "job/reconstruct/run/quality.h"
#include "job/reconstruct/scan/rings.h"
#include "plan/limit.h"
#include "solve/cg.h"

enum {
    LEAST_SHARE = 1 << 16,
    MOST_TRIED = 1 << 22, /* MiB */
    HALVINGS = 6
};

/* Rows on the host: of the image, of the pictures side by side, of the measurements or of the image's file; or the
 * rows that are compared with the truth at a time. */
static void lay_out_host(const tess_planning *job)
{
    const tess_problem *p = job->problem;
    tess_layout *layout = &job->workspace->layout;
    const tess_extent volume = tess_problem_image_extent(p), measured = tess_problem_measurement_extent(p);
    const int64_t rows[] = {volume.width * volume.channels,     3 * (p->width + TESS_GAP) * p->channels,
                            measured.width * measured.channels, p->image_width * p->channels,
                            p->file_rows * p->file_columns,     tess_rings_row(p)};
    layout->has_truth = tess_problem_has_truth(p);
    layout->ring_values = tess_rings_values(p);
    layout->start_values = tess_reconstruct_keeps_start(p, job->recipe) && !(job->settings->max_seconds > 0)
                               ? tess_workspace_values(&job->workspace->op->image)
                               : 0;
    layout->is_shown = job->settings->side_by_side != NULL;
    layout->image_values = tess_problem_own(p) * tess_problem_row(p);
    layout->above_values = layout->has_truth ? tess_judge_above(p) * tess_problem_row(p) : 0;
    layout->row_values = layout->has_truth ? tess_judge_rows(p) * p->width * p->channels : 0;
    for (int i = 0; i < 6; i++)
        layout->row_values = tess_max_i64(layout->row_values, rows[i]);
    layout->line_bytes = tess_judge_bytes(p);
}

void tess_budget_keep_peak(tess_budget *budget, const tess_engine *engine)
{
    tess_mem_usage peak;
    tess_memory_peak(engine->memory, tess_engine_scope(engine), &peak);
    tess_mem_usage_raise(&budget->peak, &peak);
    tess_memory_reset_peak(engine->memory);
}

/* Reads the counter: what the operator holds, and the most while it was created. */
static tess_status make_operator(const tess_planning *job, size_t slab_bytes, tess_error *error)
{
    tess_workspace *w = job->workspace;
    tess_memory *memory = w->engine->memory;
    const tess_mem_scope scope = tess_engine_scope(w->engine);
    tess_mem_usage before, after;
    tess_memory_reset_peak(memory);
    tess_memory_held(memory, scope, &before);
    TESS_TRY(tess_problem_operator(job->problem, w->device, slab_bytes, &w->op, error));
    tess_budget_keep_peak(job->budget, w->engine);
    tess_memory_held(memory, scope, &after);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        job->budget->operator_bytes.by[c] = after.bytes.by[c] - before.bytes.by[c];
    return TESS_OK;
}

/* Adds what is held at the same time. */
static void add_phase(tess_budget *budget, const tess_mem_bytes *phase)
{
    const tess_mem_usage usage = {*phase, tess_mem_total(phase)};
    tess_mem_usage_raise(&budget->planned, &usage);
}

/* The same, of a phase that does not use the network. */
static void add_phase_beside(const tess_planning *job, tess_mem_bytes phase)
{
    phase.by[TESS_MEM_WEIGHTS] += job->weight_bytes;
    add_phase(job->budget, &phase);
}

/* Host memory counts with the device's unless the device has separate memory. */
static void add_host(const tess_planning *job, tess_mem_bytes *phase, size_t bytes)
{
    phase->by[job->workspace->engine->separate_memory ? TESS_MEM_HOST : TESS_MEM_IO] += bytes;
}

static tess_status choose_cut(const tess_planning *job, uint64_t limit, uint64_t others, uint64_t job_needs,
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
    job->prior->image = job->workspace->op->image;
    return tess_prior_choose(job->prior, &request, error);
}

/* Images of the solver; before it the start, with the baseline or conjugate gradients, which a range that is estimated
 * may need as well. */
static int vectors_of(const tess_planning *job)
{
    const tess_problem *p = job->problem;
    const bool estimated = p->physics != TESS_PHYSICS_BLUR && p->range_from == TESS_RANGE_FROM_DATA;
    const int loop = tess_pnp_vectors(job->workspace->op, job->recipe->inner, job->settings->tolerance),
              start = job->recipe->init == TESS_INIT_CG || estimated ? 1 + TESS_CG_VECTORS : 2;
    return loop > start ? loop : start;
}

/* Whether all but the network is on the host, beside a card. */
static bool is_beside(const tess_planning *job)
{
    return job->workspace->device != job->workspace->engine->device;
}

/* Adds a block of the operator's device, of so many bytes as are granted. */
static void add_work(const tess_planning *job, tess_mem_bytes *phase, size_t granted)
{
    phase->by[is_beside(job) ? TESS_MEM_HOST : TESS_MEM_WORKSPACE] += granted;
}

/* Adds images and measurements, which are on the device or, for a volume in slabs, on the host. */
static void add_images(const tess_planning *job, tess_mem_bytes *phase, size_t bytes)
{
    tess_device *device = job->workspace->device;
    if (job->workspace->layout.hosted)
        add_host(job, phase, tess_block_granted(bytes));
    else
        add_work(job, phase, device->memory->granted(device, bytes));
}

/* The limit is too small for something other than the network. */
static tess_status too_little(const tess_planning *job, uint64_t limit, uint64_t needed, tess_error *error)
{
    const tess_problem *p = job->problem;
    const char *advice = !p->synthetic                     ? "a smaller measurement"
                         : p->resized                      ? "a smaller `image`"
                         : p->physics == TESS_PHYSICS_BLUR ? "fewer `operators`, or a smaller `size`"
                                                           : "fewer `angles`, or a smaller `size`";
    const bool asked = job->settings->common.memory_limit > 0;
    return tess_fail(
        error, TESS_OVER_LIMIT, "%s%s%s too little: images and measurements take %.1fM; %s%s would do, or %s",
        asked ? "`memory_limit` " : "", tess_size_words(limit).text, asked ? " is" : " of free memory are",
        (double)needed / (1 << 20), asked ? "`memory_limit` " : "", tess_size_enough(needed).text, advice);
}

/* Beside a card, the host's memory has a limit of its own. */
static tess_status check_host(const tess_planning *job, tess_error *error)
{
    const uint64_t needed = job->budget->planned.bytes.by[TESS_MEM_HOST], left = job->budget->host_limit;
    if (!is_beside(job) || needed <= left)
        return TESS_OK;
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "images and measurements take %.1fM of the host's memory, of which a rank has %.1fM; use "
        "more hosts, or a smaller `size`",
        (double)needed / (1 << 20), (double)left / (1 << 20));
}

/* Host memory besides the workspace while the measurements are made: to read them, then to estimate their noise, then to
 * compare blurs, then to write them. */
static size_t making_bytes(const tess_planning *job)
{
    const tess_problem *p = job->problem;
    const size_t scan = tess_problem_scan_noise_bytes(p, job->recipe),
                 noise = tess_block_granted(scan ? scan : tess_problem_blur_noise_bytes(p, job->recipe)),
                 compared = tess_block_granted(tess_problem_contradiction_bytes(p)),
                 written = job->held.measurement;
    size_t most = p->held;
    if (p->resized)
        most += tess_block_granted(tess_problem_resize_bytes(p));
    most = noise > most ? noise : most;
    most = compared > most ? compared : most;
    return written > most ? written : most;
}

/* Adds all phases of the operator, which may be a sketch. */
static tess_status add_up(const tess_planning *job, uint64_t limit, tess_error *error)
{
    tess_workspace *w = job->workspace;
    tess_device *device = w->device;
    tess_layout *layout = &w->layout;
    tess_budget *budget = job->budget;
    const tess_operator *op = w->op;
    TESS_TRY(tess_data_term_bytes(op, &layout->term_bytes, &layout->residual_bytes, error));
    layout->vectors = vectors_of(job);
    lay_out_host(job);
    tess_mem_bytes common = budget->operator_bytes, beginning = common;
    add_host(job, &beginning, op->making_bytes);
    add_work(job, &common, device->memory->granted(device, layout->term_bytes));
    add_images(job, &common,
               (size_t)layout->vectors * tess_vector_bytes(&op->image) + layout->residual_bytes);
    add_host(job, &common, tess_block_granted(tess_layout_host_bytes(layout)));
    tess_mem_bytes making = common, solving = common;
    add_images(job, &making, tess_layout_measurement_bytes(op));
    if (!tess_data_term_absorbed(op))
        solving = making;
    tess_mem_bytes writing = solving;
    add_host(job, &making, making_bytes(job));
    add_host(job, &writing, job->held.results);
    budget->planned = budget->peak; /* of all operators created, including one that did not fit */
    add_phase_beside(job, beginning);
    add_phase_beside(job, making);
    add_phase_beside(job, writing);
    tess_cut_plan *choice = &job->prior->choice;
    TESS_TRY(choose_cut(job, limit, tess_mem_total(&solving), budget->planned.total, error));
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        solving.by[c] += choice->bytes.by[c];
    add_phase(budget, &solving);
    budget->seconds = (double)job->recipe->iterations * choice->seconds +
                      tess_physics_seconds(w->rates, op, job->recipe, &choice->calibrated);
    if (budget->planned.total > limit)
        return too_little(job, limit, budget->planned.total, error);
    TESS_TRY(check_host(job, error));
    tess_memory_plan(w->engine->memory, tess_engine_scope(w->engine), budget->planned.total);
    return TESS_OK;
}

/* Refuses an operator that will not fit before it is created, if its size is known. */
static tess_status check_sketch(const tess_planning *job, uint64_t limit, tess_error *error)
{
    tess_workspace *w = job->workspace;
    tess_budget *budget = job->budget;
    bool known;
    tess_operator sketch;
    TESS_TRY(tess_problem_sketch(job->problem, w->device, &sketch, &known, error));
    if (!known)
        return TESS_OK;
    w->op = &sketch;
    budget->operator_bytes = (tess_mem_bytes){{0}};
    add_work(job, &budget->operator_bytes, sketch.held_bytes);
    const tess_status status = add_up(job, limit, error);
    w->op = NULL;
    return status;
}

/* Everything on the device, or with `slab_bytes` only that much of a volume and its views. */
static tess_status plan(const tess_planning *job, uint64_t limit, size_t slab_bytes, tess_error *error)
{
    job->workspace->layout.hosted = slab_bytes > 0;
    TESS_TRY(check_sketch(job, limit, error));
    TESS_TRY(make_operator(job, slab_bytes, error));
    return add_up(job, limit, error);
}

static bool may_use_slabs(const tess_planning *job)
{
    return job->workspace->engine->separate_memory && job->problem->physics == TESS_PHYSICS_CONE &&
           !is_beside(job);
}

/* A volume that does not fit beside the network stays on the host. Larger slabs move less data, but the network gets
 * what they leave, so they start with a quarter. */
static tess_status plan_within(const tess_planning *job, uint64_t limit, tess_error *error)
{
    tess_workspace *w = job->workspace;
    tess_operator_destroy(w->op);
    w->op = NULL;
    tess_status status = plan(job, limit, 0, error);
    if (!may_use_slabs(job))
        return status;
    for (uint64_t share = limit / 4; status == TESS_OVER_LIMIT && share > LEAST_SHARE; share /= 4) {
        tess_error why;
        tess_operator_destroy(w->op);
        w->op = NULL;
        status = plan(job, limit, (size_t)share, &why);
        /* otherwise less would not work either */
        if (status != TESS_OK && (w->op || status != TESS_OVER_LIMIT))
            *error = why;
    }
    return status;
}

/* Slabs use a share of the limit, so the limit they need is searched: doubled until it is accepted, then by
 * bisection. */
static tess_status refuse_slabs(const tess_planning *job, uint64_t limit, tess_error *error)
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
        return TESS_OVER_LIMIT; /* keeps the first message: there is no number to name */
    for (int i = 0; i < HALVINGS && enough - refused > 1; i++) {
        const uint64_t middle = refused + (enough - refused) / 2;
        if (plan_within(job, middle * mib, &why) == TESS_OK)
            enough = middle;
        else
            refused = middle;
    }
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "`memory_limit` %s is too little for the network beside slabs of the volume; `memory_limit` %s would "
        "do, or a smaller `size` or model",
        tess_size_words(limit).text, tess_size_enough(enough * mib).text);
}

tess_status tess_reconstruct_plan(const tess_planning *job, tess_error *error)
{
    const tess_workspace *w = job->workspace;
    const uint64_t asked = job->settings->common.memory_limit,
                   limit = asked ? asked : tess_engine_free_limit(w->engine);
    const tess_dist *dist = w->engine->dist;
    if (is_beside(job))
        job->budget->host_limit =
            tess_host_memory_left() / 10 * 9 / (uint64_t)dist->places[dist->rank].locals;
    const tess_status status = plan_within(job, limit, error);
    if (status == TESS_OVER_LIMIT && asked && may_use_slabs(job))
        return refuse_slabs(job, limit, error);
    const uint64_t left = tess_host_memory_left();
    if (status == TESS_OK && w->layout.hosted && job->budget->planned.bytes.by[TESS_MEM_HOST] > left)
        return tess_fail(
            error, TESS_OVER_LIMIT,
            "the volume does not fit the device, and of the host's memory it takes %.0fM where %.0fM are "
            "left; use a smaller `size`, or a larger `memory_limit` where the device has more",
            (double)job->budget->planned.bytes.by[TESS_MEM_HOST] / (1 << 20), (double)left / (1 << 20));
    return status;
}
