#include "job/common/elsewhere.h"

#include "job/common/blur_exchange.h"

#include <stdio.h>

enum { MOST_RANKS = 4096 };

tess_status tess_elsewhere_check(const char *machine, int64_t ranks, bool plan_only, tess_error *error)
{
    if (!machine && !ranks)
        return TESS_OK;
    if (!plan_only)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`%s` is for plans only: tessera plan; a job takes the ranks that mpirun starts",
                         machine ? "machine" : "ranks");
    if (!machine || !ranks)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`ranks` and `machine` belong together: a number and a file");
    if (ranks < 1 || ranks > MOST_RANKS)
        return tess_fail(error, TESS_BAD_OPTION, "`ranks` %lld: use 1 to %d", (long long)ranks, MOST_RANKS);
    return TESS_OK;
}

static tess_status point_of(const tess_scale_setup *setup, const tess_elsewhere_request *request,
                            int64_t ranks, tess_scale_point *point, tess_error *error)
{
    return tess_scale_ours(setup, &request->problem, (int)ranks, point, error);
}

static tess_status predict(const tess_scale_setup *setup, const tess_elsewhere_request *request,
                           tess_elsewhere *out, tess_error *error)
{
    tess_scale_setup other = *setup;
    tess_scale_point one, quick, wide;
    TESS_TRY(point_of(setup, request, request->ranks, &out->point, error));
    TESS_TRY(point_of(setup, request, 1, &one, error));
    other.links = tess_scale_without_latency(&setup->links);
    TESS_TRY(point_of(&other, request, request->ranks, &quick, error));
    other.links = tess_scale_without_limit(&setup->links);
    TESS_TRY(point_of(&other, request, request->ranks, &wide, error));
    out->one_rank = one.seconds;
    out->losses = tess_scale_losses_of(&out->point, &one, &quick, &wide);
    return TESS_OK;
}

static tess_status on_cluster(tess_cluster *cluster, const tess_elsewhere_request *request,
                              tess_elsewhere *out, tess_error *error)
{
    tess_precision precision;
    tess_cluster_net net;
    if (!cluster->rates)
        return tess_fail(error, TESS_BAD_INPUT, "%s: flops: must be there, for times of ops",
                         request->machine);
    TESS_TRY(tess_precision_of(tess_rates_facts(cluster->rates), request->precision, &precision, error));
    tess_status status =
        tess_cluster_net_open(&net, request->model, request->inflation, cluster, precision.dtype, error);
    if (status == TESS_OK) {
        const tess_scale_setup setup =
            tess_scale_setup_of(net.bound, net.model.net, cluster->rates, &cluster->links);
        status = predict(&setup, request, out, error);
    }
    tess_cluster_net_close(&net);
    out->precision = precision.name;
    out->times = request->times;
    out->iterates = request->problem.kind != TESS_SCALE_DENOISE;
    out->reach = request->problem.blurs ? request->problem.reach : -1;
    out->fits = !(cluster->memory > 0) || out->point.bytes <= cluster->memory;
    snprintf(out->machine, sizeof out->machine, "%s", cluster->name);
    snprintf(out->checked, sizeof out->checked, "%s", cluster->checked);
    return status;
}

tess_status tess_elsewhere_predict(const tess_elsewhere_request *request, tess_elsewhere *out,
                                   tess_error *error)
{
    tess_cluster cluster;
    *out = (tess_elsewhere){.times = request->times};
    tess_status status = tess_cluster_open(&cluster, request->machine, error);
    if (status == TESS_OK)
        status = on_cluster(&cluster, request, out, error);
    tess_cluster_close(&cluster);
    return status;
}

tess_json *tess_elsewhere_record(const tess_elsewhere *e)
{
    tess_json *record = tess_json_object();
    tess_json_set_string(&record, "machine", e->machine);
    tess_json_set_int(&record, "ranks", e->point.ranks);
    tess_json_set_int(&record, "busy_ranks", e->point.used);
    tess_json_set_int(&record, e->point.slabs ? "slices" : "rows", e->point.rows);
    if (e->point.across) {
        tess_json_set_int(&record, "columns", e->point.columns);
        tess_json_set_int(&record, "blocks_across", e->point.across);
    }
    tess_json_set_string(&record, "precision", e->precision);
    tess_json_set_double(&record, "seconds", e->times * e->point.seconds);
    tess_json_set_double(&record, "denoiser_seconds", e->times * e->point.denoiser);
    if (e->iterates)
        tess_json_set_double(&record, "gradient_seconds", e->times * e->point.gradient);
    tess_json_set_double(&record, "communication_seconds", e->times * tess_scale_communication(&e->point));
    tess_json_set_double(&record, "speedup", e->one_rank / e->point.seconds);
    tess_json_set_int(&record, "bytes_per_rank", (int64_t)e->point.bytes);
    tess_json_set_bool(&record, "fits", e->fits);
    tess_json_set_string(&record, "binds", e->losses.binds);
    if (e->reach >= 0 && e->point.used > 1) {
        tess_blur_exchange exchange = {.reach = e->reach, .way = e->point.blurs};
        for (int i = 0; i < TESS_BLURS_WAYS; i++)
            exchange.costs[i] = e->point.blur_costs[i];
        tess_json_set(&record, "blur_exchange", tess_blur_exchange_record(&exchange));
    }
    tess_json_set_bool(&record, "simulated", true);
    tess_json_set_string(&record, "checked", e->checked);
    return record;
}
