#include "plan/ranks/cluster.h"

#include <stdio.h>

#include "plan/machine.h"
#include "plan/ranks/sketch.h"

static tess_status read_file(tess_cluster *c, const char *path, bool *has_rates, tess_error *error)
{
    tess_json *json = NULL;
    TESS_TRY(tess_machine_json(path, &json, error));
    *has_rates = tess_json_get(json, "flops") != NULL;
    c->memory = tess_json_get_double(json, "memory", 0);
    snprintf(c->checked, sizeof c->checked, "%s",
             tess_json_get_string(json, "checked", "not checked against real runs"));
    snprintf(c->name, sizeof c->name, "%s", tess_json_get_string(json, "device", path));
    tess_status status = tess_links_parse(json, &c->links, error);
    if (status != TESS_OK)
        status = tess_fail_prefix(error, status, path);
    tess_json_free(json);
    return status;
}

tess_status tess_cluster_open(tess_cluster *c, const char *path, tess_error *error)
{
    bool has_rates;
    *c = (tess_cluster){0};
    TESS_TRY(read_file(c, path, &has_rates, error));
    tess_sketch_open(&c->device);
    return has_rates ? tess_machine_read(path, &c->rates, error) : TESS_OK;
}

void tess_cluster_close(tess_cluster *c)
{
    tess_rates_destroy(c->rates);
    *c = (tess_cluster){0};
}

tess_status tess_cluster_net_open(tess_cluster_net *net, const char *path, const tess_inflation *inflation,
                                  tess_cluster *cluster, tess_dtype dtype, tess_error *error)
{
    *net = (tess_cluster_net){0};
    TESS_TRY(inflation ? tess_model_open_volume(path, *inflation, &net->file, error)
                       : tess_model_open(path, &net->file, error));
    TESS_TRY(tess_model_recognise(net->file, &net->model, error));
    return tess_bound_create(net->model.net, &cluster->device, dtype, &net->bound, error);
}

void tess_cluster_net_close(tess_cluster_net *net)
{
    tess_bound_destroy(net->bound);
    tess_model_clear(&net->model);
    tess_weights_close(net->file);
    *net = (tess_cluster_net){0};
}
