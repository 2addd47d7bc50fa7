/* Simulated points: the plans of the strips are real, times are those of a machine file. If the file has no "flops", times of ops
 * are those measured on the device at hand. */
#include <string.h>

#include "job/common/record.h"
#include "job/study/bench_scaling.h"

typedef struct simulation {
    const tess_bench_settings *settings;
    tess_cluster cluster;
    tess_scale_peer peer;
    tess_dtype dtype;
    tess_engine engine; /* open if times of ops are those of this device */
} simulation;

static bool is_here(const simulation *m)
{
    return m->cluster.rates == NULL;
}

static tess_status run_point(const simulation *m, const tess_scale_setup *setup,
                             const tess_scale_problem *problem, int ranks, tess_scale_point *point,
                             tess_error *error)
{
    if (strcmp(m->settings->scheme, "strips") == 0)
        return tess_scale_ours(setup, problem, ranks, point, error);
    const tess_bench_settings *s = m->settings;
    tess_scale_peer peer = m->peer;
    const int64_t side = s->patch_count ? s->patches[0] : 448, halo = s->halo >= 0 ? s->halo : 32;
    peer.batch = s->batch_count ? s->batches[0] : problem->depth > 1 ? 4 : 32;
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        static const int64_t volume_tile[] = {8, 256, 256}, volume_halo[] = {2, 16, 16};
        peer.tile[axis] = problem->depth > 1 ? volume_tile[axis] : side;
        peer.halo[axis] = problem->depth > 1 ? volume_halo[axis] : halo;
        if (ranks == 1 && !s->patch_count)
            peer.tile[axis] = 0; /* one rank denoises the whole image unless tiles were asked for */
    }
    return tess_scale_deepinv(setup, problem, &peer, ranks, point, error);
}

static tess_status set_losses(const simulation *m, const tess_scale_setup *setup,
                              const tess_scale_problem *problem, const tess_scale_point *p,
                              const tess_scale_point *base, tess_json **record, tess_error *error)
{
    tess_scale_setup other = *setup;
    tess_scale_point quick, wide;
    other.links = tess_scale_without_latency(&setup->links);
    TESS_TRY(run_point(m, &other, problem, p->ranks, &quick, error));
    other.links = tess_scale_without_limit(&setup->links);
    TESS_TRY(run_point(m, &other, problem, p->ranks, &wide, error));
    const tess_scale_losses l = tess_scale_losses_of(p, base, &quick, &wide);
    tess_json *losses = tess_json_object();
    tess_json_set_double(&losses, "latency", l.latency);
    tess_json_set_double(&losses, "bandwidth", l.bandwidth);
    tess_json_set_double(&losses, "computing", l.computing);
    tess_json_set(record, "lost_seconds", losses);
    tess_json_set_string(record, "binds", l.binds);
    return TESS_OK;
}

/* Time of one rank against that of P ranks with P times the rows. */
static tess_status weak(const simulation *m, const tess_scale_setup *setup, const tess_scale_problem *problem,
                        int ranks, double *efficiency, tess_error *error)
{
    tess_scale_problem taller = *problem;
    tess_scale_point one, all;
    taller.height *= ranks;
    TESS_TRY(run_point(m, setup, problem, 1, &one, error));
    TESS_TRY(run_point(m, setup, &taller, ranks, &all, error));
    *efficiency = (one.denoiser + one.denoiser_communication) / (all.denoiser + all.denoiser_communication);
    return TESS_OK;
}

static tess_status tell(const simulation *m, const tess_scale_setup *setup, tess_scaling_line *line,
                        tess_error *error)
{
    const bool ours = strcmp(m->settings->scheme, "strips") == 0;
    tess_json *record = tess_json_object();
    tess_json_set_string(&record, "command", "bench");
    tess_json_set_string(&record, "version", TESSERA_VERSION);
    tess_json_set_bool(&record, "simulated", true);
    tess_json_set_string(&record, "checked", m->cluster.checked);
    tess_json_set_string(&record, "machine", m->cluster.name);
    tess_json_set_string(&record, "precision", tess_dtype_name(m->dtype));
    tess_json_set_string(&record, "scheme", m->settings->scheme);
    tess_json_set_string(&record, "op_times", is_here(m) ? "measured on this device" : "of the machine file");
    tess_json_set_int(&record, "nodes", tess_links_nodes(&m->cluster.links, line->point->ranks));
    tess_status status = TESS_OK;
    if (ours)
        status = weak(m, setup, line->problem, line->point->ranks, &line->weak_efficiency, error);
    tess_scaling_record(&record, line);
    if (ours) {
        tess_json_set_string(&record, "cut", line->point->slabs ? "slices" : "rows");
        tess_json_set_int(&record, "avoided", line->point->avoided);
    }
    if (m->cluster.memory > 0)
        tess_json_set_bool(&record, "fits", line->point->bytes <= m->cluster.memory);
    if (status == TESS_OK)
        status = set_losses(m, setup, line->problem, line->point, line->base, &record, error);
    if (status != TESS_OK) {
        tess_json_free(record);
        return status;
    }
    return tess_scaling_tell(m->settings, record, error);
}

static tess_status points(const simulation *m, const tess_scale_setup *setup, const char *name,
                          const tess_scale_problem *problem, tess_error *error)
{
    const tess_bench_settings *s = m->settings;
    tess_scale_point base = {0};
    for (int i = 0; i < s->simulate_count; i++) {
        tess_scale_point point;
        TESS_TRY(run_point(m, setup, problem, (int)s->simulate[i], &point, error));
        if (i == 0)
            base = point;
        tess_scaling_line line = {.problem_name = name, .problem = problem, .point = &point, .base = &base};
        TESS_TRY(tell(m, setup, &line, error));
    }
    return TESS_OK;
}

static tess_status one_here(simulation *m, const char *name, const tess_scale_problem *problem,
                            tess_error *error)
{
    tess_engine_model *model = NULL;
    const bool volume = problem->depth > 1;
    const char *network = tess_scaling_model(m->settings, problem);
    TESS_TRY(volume ? tess_engine_volume_of(&m->engine, network, TESS_INFLATE_HALVES, &model, error)
                    : tess_engine_model_of(&m->engine, network, &model, error));
    const int64_t side = volume ? 32 : 128;
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(
        model->bound, (tess_plan_shape){.n = 1, .h = side, .w = side, .d = volume ? 16 : 1}, &plan, error));
    const tess_rates_budget budget = {TESS_BENCH_CALIBRATION, tess_engine_free_limit(&m->engine)};
    const tess_status status = tess_rates_measure(m->engine.rates, plan, budget, error);
    tess_net_plan_destroy(plan);
    TESS_TRY(status);
    tess_scale_setup setup =
        tess_scale_setup_of(model->bound, model->model.net, m->engine.rates, &m->cluster.links);
    setup.avoid = (int)m->settings->avoid;
    return points(m, &setup, name, problem, error);
}

static tess_status one(void *user, const char *name, const tess_scale_problem *problem, tess_error *error)
{
    simulation *m = user;
    char path[4096];
    const char *model = tess_scaling_model(m->settings, problem);
    if (is_here(m))
        return one_here(m, name, problem, error);
    if (!tess_model_is_random(model)) {
        TESS_TRY(tess_model_find(model, path, sizeof path, error));
        model = path;
    }
    tess_cluster_net net;
    static const tess_inflation halves = TESS_INFLATE_HALVES;
    tess_status status =
        tess_cluster_net_open(&net, model, problem->depth > 1 ? &halves : NULL, &m->cluster, m->dtype, error);
    if (status == TESS_OK) {
        tess_scale_setup setup =
            tess_scale_setup_of(net.bound, net.model.net, m->cluster.rates, &m->cluster.links);
        setup.avoid = (int)m->settings->avoid;
        setup.slabs = m->settings->slabs;
        status = points(m, &setup, name, problem, error);
    }
    tess_cluster_net_close(&net);
    return status;
}

static tess_status open(simulation *m, tess_memory *memory, tess_error *error)
{
    const tess_bench_settings *s = m->settings;
    tess_precision precision;
    TESS_TRY(tess_cluster_open(&m->cluster, s->machines[0], error));
    if (strcmp(s->scheme, "deepinv") == 0)
        TESS_TRY(tess_scale_peer_read(s->machines[0], &m->peer, error));
    if (is_here(m)) {
        TESS_TRY(tess_engine_open(&m->engine, memory, &s->common, error));
        m->dtype = m->engine.dtype;
        return TESS_OK;
    }
    TESS_TRY(tess_precision_of(tess_rates_facts(m->cluster.rates), s->common.precision, &precision, error));
    m->dtype = precision.dtype;
    return TESS_OK;
}

tess_status tess_scaling_simulate(const tess_bench_settings *s, tess_memory *memory, tess_error *error)
{
    if (s->machine_count != 1)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`simulate` needs one machine file in `machines`, such as %s",
                         "bench/machines/v100-cluster.json");
    simulation *m = tess_small_alloc(1, sizeof *m);
    if (!m)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a simulation");
    *m = (simulation){.settings = s};
    tess_status status = open(m, memory, error);
    if (status == TESS_OK)
        status = tess_scaling_each(s, one, m, error);
    tess_cluster_close(&m->cluster);
    tess_engine_close(&m->engine);
    tess_small_free(m);
    return status;
}
