/* How near a layer comes to what the device can do: its operations a second, or its bytes a second, whichever is the
 * larger part of the limit. The limit of operations is the best rate at which a class of ops of this job was
 * calibrated; Winograd's kernels count the operations of direct sums, so that it may be more than the multipliers
 * give. The limit of bytes is the same, but at least the device's built-in rate, since a job may have no op that only
 * moves data. */
#include "job/common/profile.h"

#include <math.h>
#include <stdlib.h>

#include "base/trace.h"
#include "device/traced.h"

enum { SHOWN = 10 };

/* Their rows count an operation for each value of the output, and the work is many times that: a rate would mislead. */
static bool is_counted(tess_op_kind kind)
{
    static const tess_op_kind not_counted[] = {TESS_OP_PROJECT, TESS_OP_BACKPROJECT, TESS_OP_RAY_SPREAD,
                                               TESS_OP_FFT, TESS_OP_FILTER};
    for (size_t i = 0; i < sizeof not_counted / sizeof not_counted[0]; i++)
        if (kind == not_counted[i])
            return false;
    return true;
}

typedef struct limits {
    double flops, bytes;
    bool calibrated;
} limits;

static limits limits_of(const tess_engine *engine, const tess_profile_row *rows, int count)
{
    limits best = {.bytes = engine->facts.bytes};
    for (int i = 0; i < count; i++) {
        bool measured = true;
        const double seconds = tess_rates_op_seconds(engine->rates, &rows[i].op, &measured);
        if (!measured || !(seconds > 0) || !is_counted(rows[i].op.kind))
            continue;
        best.calibrated = true;
        best.flops = fmax(best.flops, tess_op_flops(&rows[i].op) / seconds);
        best.bytes = fmax(best.bytes, tess_op_traffic(&rows[i].op) / seconds);
    }
    if (!best.calibrated)
        best.flops = engine->facts.flops;
    return best;
}

static int slower_first(const void *a, const void *b)
{
    const tess_profile_row *one = *(const tess_profile_row *const *)a,
                           *other = *(const tess_profile_row *const *)b;
    return (one->seconds < other->seconds) - (one->seconds > other->seconds);
}

static tess_json *layer_of(const tess_profile_row *row, double all, const limits *limit)
{
    tess_json *layer = tess_json_object();
    const double flops = row->seconds > 0 ? row->flops / row->seconds : 0,
                 bytes = row->seconds > 0 ? row->bytes / row->seconds : 0;
    const double of_flops = limit->flops > 0 ? flops / limit->flops : 0,
                 of_bytes = limit->bytes > 0 ? bytes / limit->bytes : 0;
    tess_json_set_string(&layer, "name", row->name);
    tess_json_set_string(&layer, "op", tess_op_kind_name(row->op.kind));
    tess_json_set_int(&layer, "calls", row->calls);
    tess_json_set_double(&layer, "seconds", row->seconds);
    tess_json_set_double(&layer, "share", all > 0 ? row->seconds / all : 0);
    if (!is_counted(row->op.kind))
        return layer;
    tess_json_set_double(&layer, "flops_per_second", flops);
    tess_json_set_double(&layer, "bytes_per_second", bytes);
    tess_json_set_double(&layer, "of_limit", fmax(of_flops, of_bytes));
    tess_json_set_string(&layer, "bound", of_bytes > of_flops ? "bytes" : "flops");
    return layer;
}

/* Seconds that the row would take at the limit. */
static double least_seconds(const tess_profile_row *row, const limits *limit)
{
    return fmax(limit->flops > 0 ? row->flops / limit->flops : 0,
                limit->bytes > 0 ? row->bytes / limit->bytes : 0);
}

/* All layers of a kind of op together; `order` is sorted, so that the kind with the slowest layer comes first. */
static tess_json *ops_of(const tess_profile_row **order, int count, double all, const limits *limit)
{
    tess_json *ops = tess_json_array();
    for (int i = 0; i < count; i++) {
        const tess_op_kind kind = order[i]->op.kind;
        bool known = false;
        for (int k = 0; k < i; k++)
            known |= order[k]->op.kind == kind;
        if (known)
            continue;
        int64_t layers = 0;
        double seconds = 0, least = 0;
        for (int k = i; k < count; k++)
            if (order[k]->op.kind == kind) {
                layers++;
                seconds += order[k]->seconds;
                least += least_seconds(order[k], limit);
            }
        tess_json *op = tess_json_object();
        tess_json_set_string(&op, "op", tess_op_kind_name(kind));
        tess_json_set_int(&op, "layers", layers);
        tess_json_set_double(&op, "seconds", seconds);
        tess_json_set_double(&op, "share", all > 0 ? seconds / all : 0);
        if (is_counted(kind))
            tess_json_set_double(&op, "of_limit", seconds > 0 ? least / seconds : 0);
        tess_json_append(&ops, op);
    }
    return ops;
}

static void add_layers(tess_json **profile, const tess_engine *engine, const tess_profile_row *rows,
                       const tess_profile_row **order, int count)
{
    tess_json *layers = tess_json_array(), *limit = tess_json_object();
    const limits most = limits_of(engine, rows, count);
    double all = 0;
    for (int i = 0; i < count; i++) {
        order[i] = &rows[i];
        all += rows[i].seconds;
    }
    qsort(order, (size_t)count, sizeof *order, slower_first);
    for (int i = 0; i < count && i < SHOWN; i++)
        tess_json_append(&layers, layer_of(order[i], all, &most));
    tess_json_set_double(&limit, "flops_per_second", most.flops);
    tess_json_set_double(&limit, "bytes_per_second", most.bytes);
    tess_json_set_bool(&limit, "calibrated", most.calibrated);
    tess_json_set_int(profile, "layer_count", count);
    tess_json_set_double(profile, "seconds", all);
    tess_json_set(profile, "limit", limit);
    tess_json_set(profile, "layers", layers);
    tess_json_set(profile, "ops", ops_of(order, count, all, &most));
}

void tess_record_profile(tess_json **record, const tess_engine *engine)
{
    const tess_profile_row *rows;
    if (!tess_trace_profiles(engine->memory->trace))
        return;
    const int count = tess_device_profile(engine->device, &rows);
    tess_json *profile = tess_json_object();
    const tess_profile_row **order =
        count ? tess_small_alloc((size_t)count, sizeof(const tess_profile_row *)) : NULL;
    if (order)
        add_layers(&profile, engine, rows, order, count);
    tess_small_free(order);
    if (count)
        tess_json_set(record, "profile", profile);
    else
        tess_json_free(profile);
}
