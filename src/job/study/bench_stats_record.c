/* The lines of bench stats. */
#include <stdio.h>

#include "job/common/record.h"
#include "job/study/bench_stats.h"

void tess_stats_name(const tess_stats_load *l, char text[TESS_STATS_NAME])
{
    snprintf(text, TESS_STATS_NAME, "%s-%lldx%lldx%lldx%lld-b%lld", l->sweep, (long long)l->samples,
             (long long)l->side, (long long)l->side, (long long)l->channels, (long long)l->batch);
}

static tess_json *measured_record(const tess_stats_device *d, const tess_stats_data *data,
                                  const tess_stats_point *p)
{
    /* The last batch of an epoch is a whole one. */
    const double samples = (double)(p->precision ? p->steps * data->load.batch : data->load.samples),
                 bytes = samples * (double)tess_stats_bytes(data) / (double)data->distinct;
    tess_json *measured = tess_json_object();
    tess_json_set_double(&measured, "seconds", p->seconds);
    tess_json_set_double(&measured, "spread", p->spread);
    tess_json_set_double(&measured, "processor_seconds", p->processor_seconds);
    tess_json_set_int(&measured, "repeats", p->repeats);
    tess_json_set_double(&measured, "samples_per_second", samples / p->seconds);
    if (p->precision)
        tess_json_set_double(&measured, "loss", p->loss);
    if (p->condensed)
        tess_json_set_double(&measured, "condense_seconds", p->condense_seconds);
    tess_json_set_double(&measured, "gb_per_second", 1e-9 * bytes / p->seconds);
    if (d->link > 0 && !p->resident) {
        tess_json_set_double(&measured, "link_gb_per_second", 1e-9 * d->link);
        tess_json_set_double(&measured, "link_seconds", bytes / d->link);
        tess_json_set_double(&measured, "of_link_time", p->seconds * d->link / bytes);
    }
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&p->counted.bytes, p->counted.total));
    return measured;
}

tess_json *tess_stats_record(const tess_bench_settings *s, const tess_stats_device *d,
                             const tess_stats_data *data, const tess_stats_point *p)
{
    const tess_stats_load *l = &data->load;
    tess_json *record = tess_record_begin("bench", &d->engine), *input = tess_json_object(),
              *plan = tess_json_object();
    char name[TESS_STATS_NAME];
    tess_stats_name(l, name);
    tess_json_set_string(&record, "study", s->study);
    tess_json_set_string(&record, "engine", "tessera");
    tess_json_set_string(&record, "workload", name);
    tess_json_set_string(&record, "sweep", l->sweep);
    tess_json_set_string(&record, "phase", p->precision ? "training" : "statistics");
    tess_json_set_string(&record, "source", p->resident ? "device" : "host");
    tess_json_set_int(&input, "samples", l->samples);
    tess_json_set_int(&input, "distinct", data->distinct);
    tess_json_set_int(&input, "height", l->side);
    tess_json_set_int(&input, "width", l->side);
    tess_json_set_int(&input, "channels", l->channels);
    tess_json_set_int(&input, "batch", l->batch);
    tess_json_set_double(&input, "seconds", data->seconds);
    tess_json_set(&record, "input", input);
    tess_json_set_double(&record, "open_seconds", d->open_seconds);
    if (p->precision) {
        tess_json_set_string(&record, "precision", p->precision);
        tess_json_set_int(&plan, "steps", p->steps);
        tess_json_set_int(&plan, "micro_batches", p->micro_batches);
        tess_json_set_bool(&plan, "condensed", p->condensed);
    } else
        tess_json_set_int(&plan, "passes", p->passes);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&p->planned, tess_mem_total(&p->planned)));
    tess_json_set(&record, "plan", plan);
    tess_json_set(&record, "measured", measured_record(d, data, p));
    return record;
}
