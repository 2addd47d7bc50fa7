/* Measured points, under mpirun: the denoiser over strips of an image, as `denoise` runs it, with random pixels; and with all ranks
 * whole iterations of `reconstruct`. Each point also says
 * what the simulation makes of it, with the rates of ops and the link that were measured here, so that it is known how far it can
 * be trusted. All ranks measure their rates at the same time, because they share the memory's bandwidth; the mean of all counts, and
 * how fast each rank is beside the others. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/common/record.h"
#include "job/study/bench_scaling_passes.h"
#include "plan/ranks/mean_rates.h"

typedef struct measuring {
    const tess_bench_settings *settings;
    tess_context *context;
    tess_dist *dist;
    tess_engine engine;
    tess_links links;
    int64_t *ranks;
    int rank_count;
    bool warm; /* a pass need not warm up before others */
} measuring;

/* 1, 2, 4 and so on, and all. */
static tess_status list_ranks(measuring *m, tess_error *error)
{
    const tess_bench_settings *s = m->settings;
    enum { MOST = 64 };
    m->ranks = tess_small_alloc((size_t)tess_max_i64(MOST, s->rank_count), sizeof *m->ranks);
    if (!m->ranks)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    for (int i = 0; i < s->rank_count; i++) {
        if (s->ranks[i] > m->dist->size)
            return tess_fail(error, TESS_BAD_OPTION,
                             "`ranks` %lld: only %d were launched; use mpirun -n %lld, or `simulate`",
                             (long long)s->ranks[i], m->dist->size, (long long)s->ranks[i]);
        m->ranks[m->rank_count++] = s->ranks[i];
    }
    for (int64_t r = 1; !s->rank_count && m->rank_count < MOST; r *= 2) {
        m->ranks[m->rank_count++] = tess_min_i64(r, m->dist->size);
        if (r >= m->dist->size)
            break;
    }
    return TESS_OK;
}

static tess_status calibrate(measuring *m, const tess_engine_model *model, const tess_scale_problem *problem,
                             tess_error *error)
{
    tess_net_plan *plan = NULL;
    const tess_bound *bound = model->bound;
    const int64_t side = tess_min_i64(256, tess_round_up(problem->width, tess_bound_alignment(bound)));
    tess_status status =
        tess_net_plan_create(bound, (tess_plan_shape){.n = 1, .h = side, .w = side}, &plan, error);
    TESS_TRY(tess_dist_agree(m->dist, status, error));
    const tess_rates_budget budget = {
        .seconds = TESS_BENCH_CALIBRATION, .bytes = tess_engine_free_limit(&m->engine), .again = false};
    status = tess_rates_measure(m->engine.rates, plan, budget, error);
    if (status == TESS_OK)
        status = tess_rates_measure_run(m->engine.rates, model->bound,
                                        tess_net_grid(model->model.net, TESS_HEIGHT), model->weights.data,
                                        budget, error);
    tess_net_plan_destroy(plan);
    TESS_TRY(tess_dist_agree(m->dist, status, error));
    return tess_mean_rates(m->engine.rates, m->dist, error);
}

/* Rank 0 reports, and its decision to go on is everybody's. */
static tess_status tell(const measuring *m, tess_json *record, tess_error *error)
{
    tess_status status = TESS_OK;
    if (m->dist->rank == 0)
        status = tess_scaling_tell(m->settings, record, error);
    else
        tess_json_free(record);
    return tess_dist_agree(m->dist, status, error);
}

static tess_json *link_record(const tess_links *links)
{
    tess_json *record = tess_json_object();
    tess_json_set_double(&record, "latency", links->inside.latency);
    tess_json_set_double(&record, "bytes_per_second", links->inside.rate);
    return record;
}

static tess_json *iteration_record(const tess_iteration_times *times)
{
    tess_json *record = tess_json_object();
    tess_json_set_int(&record, "iterations", times->iterations);
    tess_json_set_double(&record, "seconds", times->gradient + times->denoiser);
    tess_json_set_double(&record, "gradient_seconds", times->gradient);
    tess_json_set_double(&record, "denoiser_seconds", times->denoiser);
    tess_json_set_int(&record, "bytes_per_rank", (int64_t)times->bytes);
    return record;
}

/* The rows of each rank, and the speeds by which they were divided. */
static void add_division(tess_json **record, const tess_strips *strips, const double *speeds)
{
    tess_json *rows = tess_json_array(), *list = tess_json_array(), *levels = tess_json_array();
    for (int64_t i = 0; i < strips->count; i++) {
        const tess_level_rows of_rank = tess_strips_level_rows(strips, i);
        tess_json_append_int(&rows, tess_strips_rows(strips, i));
        tess_json_append(&levels, tess_record_level_rows(&of_rank));
        tess_json_append_double(&list, speeds ? speeds[i] : 1);
    }
    tess_json_set(record, "rows_per_rank", rows);
    if (strips->by_level)
        tess_json_set(record, "level_rows_per_rank", levels);
    else
        tess_json_free(levels);
    if (speeds)
        tess_json_set(record, "speeds", list);
    else
        tess_json_free(list);
}

/* What independent copies of the program would reach: seconds for an image, when each rank has one to itself, and their share of those
 * of one image over all ranks. */
static tess_json *copies_record(const tess_point_passes *p)
{
    tess_json *record = tess_json_object(), *seconds = tess_json_array();
    double sum = 0;
    for (int i = 0; i < p->copy_count; i++) {
        tess_json_append_double(&seconds, p->copies[i]);
        sum += p->copies[i];
    }
    tess_json_set(&record, "seconds", seconds);
    tess_json_set_double(&record, "efficiency", sum / p->copy_count / tess_passes_median(p)->times.seconds);
    return record;
}

static tess_status report(const measuring *m, const tess_scaling_line *line,
                          const tess_passes_prediction *predicted, const tess_point_passes *p,
                          const tess_iteration_times *whole, tess_error *error)
{
    const tess_strip_times *times = &tess_passes_median(p)->times;
    tess_json *record = tess_record_begin("bench", &m->engine), *simulated = tess_json_object(),
              *passes = tess_json_array();
    const double measured = line->point->seconds;
    tess_json_set_bool(&record, "simulated", false);
    tess_json_set_string(&record, "measures", "denoiser");
    tess_json_set_int(&record, "launched_ranks", m->dist->size);
    tess_scaling_record(&record, line);
    add_division(&record, &times->strips, tess_passes_median(p)->speeds);
    for (int i = 0; i < p->count; i++)
        tess_json_append_double(&passes, p->seconds[i]);
    tess_json_set(&record, "pass_seconds", passes);
    tess_json_set_double(&record, "spread", p->spread);
    tess_json_set_double(&record, "busy_seconds", times->busy);
    tess_json_set_int(&record, "helped", times->helped);
    if (p->copy_count > 0)
        tess_json_set(&record, "copies", copies_record(p));
    tess_json_set_int(&record, "planned_bytes_per_rank", (int64_t)times->planned_bytes);
    tess_json_set(&record, "link", link_record(&m->links));
    tess_json_set_double(&simulated, "seconds", predicted->seconds);
    tess_json_set_double(&simulated, "denoiser_seconds", predicted->by_stage.denoiser);
    tess_json_set_double(&simulated, "communication_seconds", predicted->by_stage.denoiser_communication);
    tess_json_set_double(&simulated, "ratio", predicted->seconds / measured);
    tess_json_set_double(&simulated, "seconds_by_rates", predicted->seconds_by_rates);
    tess_json_set_double(&simulated, "ratio_by_rates", predicted->seconds_by_rates / measured);
    tess_json_set_bool(&simulated, "calibrated", predicted->by_stage.measured);
    tess_json_set(&record, "prediction", simulated);
    if (whole->iterations > 0)
        tess_json_set(&record, "iteration", iteration_record(whole));
    return tell(m, record, error);
}

/* The study's own weights would be counted with the reconstruction's. */
static tess_status iterate(measuring *m, const char *name, const tess_scale_problem *problem,
                           tess_iteration_times *whole, tess_error *error)
{
    tess_engine_unload(&m->engine);
    TESS_TRY(tess_iteration_measure(m->context, m->settings, name, problem, whole));
    return tess_dist_agree(m->dist, tess_engine_load(&m->engine, error), error);
}

static tess_passes_job passes_of(measuring *m, tess_engine_model *model, const tess_scale_problem *problem,
                                 int ranks)
{
    return (tess_passes_job){.engine = &m->engine,
                             .model = model,
                             .problem = problem,
                             .ranks = ranks,
                             .repeats = m->settings->repeats,
                             .warm = m->warm,
                             .copies = ranks == m->dist->size && ranks > 1 ? m->settings->copies : 0,
                             .seed = m->settings->common.seed};
}

static tess_status time_strips(measuring *m, tess_engine_model *model, const tess_scale_problem *problem,
                               int ranks, tess_scale_point *point, tess_point_passes *p, tess_error *error)
{
    const tess_passes_job job = passes_of(m, model, problem, ranks);
    TESS_TRY(tess_passes_measure(&job, p, error));
    const tess_strip_times *times = &tess_passes_median(p)->times;
    *point = (tess_scale_point){.ranks = ranks,
                                .used = (int)times->strips.count,
                                .rows = tess_strips_most(&times->strips),
                                .denoiser = times->seconds - times->waiting,
                                .denoiser_communication = times->waiting,
                                .seconds = times->seconds,
                                .bytes = (double)times->bytes,
                                .sent = times->sent,
                                .avoided = 1,
                                .measured = true};
    return TESS_OK;
}

/* How long a taller image takes, with as many rows a rank as the base: one pass, since it takes as long as the base alone. */
static tess_status time_taller(measuring *m, tess_engine_model *model, const tess_scale_problem *problem,
                               int ranks, double *seconds, tess_error *error)
{
    tess_scale_problem taller = *problem;
    tess_scale_point point = {0};
    tess_point_passes p;
    taller.height *= ranks;
    tess_bench_settings settings = *m->settings;
    settings.copies = 0;
    settings.repeats = 1;
    measuring other = *m;
    other.settings = &settings;
    other.warm = true;
    const tess_status status = time_strips(&other, model, &taller, ranks, &point, &p, error);
    *seconds = point.seconds;
    tess_passes_release(&p);
    return status;
}

/* The first point is the base. */
static tess_status one_point(measuring *m, tess_engine_model *model, const char *name,
                             const tess_scale_problem *problem, int ranks, tess_point_passes *p,
                             tess_scale_point *base, tess_error *error)
{
    tess_scale_setup setup = tess_scale_setup_of(model->bound, model->model.net, m->engine.rates, &m->links);
    tess_scale_point point;
    tess_passes_prediction predicted = {0};
    const tess_passes_job job = passes_of(m, model, problem, ranks);
    tess_iteration_times whole = {0};
    tess_scaling_line line = {.problem_name = name, .problem = problem, .point = &point, .base = base};
    TESS_TRY(time_strips(m, model, problem, ranks, &point, p, error));
    if (base->ranks == 0)
        *base = point;
    if (base->ranks == 1 && ranks > 1) {
        double tall;
        TESS_TRY(time_taller(m, model, problem, ranks, &tall, error));
        line.weak_efficiency = base->seconds / tall;
    }
    TESS_TRY(tess_dist_agree(m->dist, tess_passes_predict(p, &job, &setup, &predicted, error), error));
    if (ranks == m->dist->size)
        TESS_TRY(iterate(m, name, problem, &whole, error));
    return report(m, &line, &predicted, p, &whole, error);
}

static tess_status one_image(measuring *m, tess_engine_model *model, const char *name,
                             const tess_scale_problem *problem, tess_error *error)
{
    tess_scale_point base = {0};
    for (int i = 0; i < m->rank_count; i++) {
        tess_point_passes p;
        const tess_status status = one_point(m, model, name, problem, (int)m->ranks[i], &p, &base, error);
        tess_passes_release(&p);
        TESS_TRY(status);
    }
    return TESS_OK;
}

/* Ranks do not share a 3-D network, so only whole iterations are measured, with the network that `reconstruct` takes. */
static tess_status one_volume(measuring *m, const char *name, const tess_scale_problem *problem,
                              tess_error *error)
{
    tess_iteration_times whole;
    TESS_TRY(tess_iteration_measure(m->context, m->settings, name, problem, &whole));
    TESS_TRY(tess_dist_broadcast(m->dist, 0, &whole, sizeof whole, error));
    if (whole.iterations == 0)
        return TESS_OK;
    const tess_scale_point point = {.ranks = m->dist->size,
                                    .used = m->dist->size,
                                    .gradient = whole.gradient,
                                    .denoiser = whole.denoiser,
                                    .seconds = whole.gradient + whole.denoiser,
                                    .bytes = whole.bytes};
    const tess_scaling_line line = {
        .problem_name = name, .problem = problem, .point = &point, .base = &point};
    tess_json *record = tess_record_begin("bench", &m->engine);
    tess_json_set_bool(&record, "simulated", false);
    tess_json_set_string(&record, "measures", "iteration");
    tess_json_set_int(&record, "launched_ranks", m->dist->size);
    tess_scaling_record(&record, &line);
    tess_json_set(&record, "iteration", iteration_record(&whole));
    return tell(m, record, error);
}

static tess_status one(void *user, const char *name, const tess_scale_problem *problem, tess_error *error)
{
    measuring *m = user;
    tess_engine_model *model = NULL;
    if (problem->depth > 1)
        return one_volume(m, name, problem, error);
    tess_status status =
        tess_engine_model_of(&m->engine, tess_scaling_model(m->settings, problem), &model, error);
    if (status == TESS_OK)
        status = tess_engine_load(&m->engine, error);
    TESS_TRY(tess_dist_agree(m->dist, status, error));
    TESS_TRY(calibrate(m, model, problem, error));
    return one_image(m, model, name, problem, error);
}

tess_status tess_scaling_measure(const tess_bench_settings *s, tess_context *context)
{
    tess_error *error = &context->error;
    tess_dist *dist = context->dist;
    measuring *m = tess_small_alloc(1, sizeof *m);
    tess_status status = m ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a study");
    TESS_TRY(tess_dist_agree(dist, status, error));
    *m = (measuring){.settings = s, .context = context, .dist = dist};
    status = tess_dist_agree(dist, list_ranks(m, error), error);
    if (status == TESS_OK)
        status = tess_engine_open_ranks(&m->engine, dist, &context->memory, &s->common, error);
    if (status == TESS_OK && m->engine.separate_memory) /* the same on all ranks */
        status = tess_fail(error, TESS_UNSUPPORTED,
                           "ranks are measured on the CPU only; set `device` cpu, or `simulate`");
    if (status == TESS_OK) {
        tess_engine_help(&m->engine);
        tess_rates_among(m->engine.rates, dist->places ? dist->places[dist->rank].locals : 1);
        status = tess_link_measure(dist, &m->links, error);
    }
    if (status == TESS_OK)
        status = tess_scaling_each(s, one, m, error);
    tess_engine_close(&m->engine);
    tess_small_free(m->ranks);
    tess_small_free(m);
    return status;
}
