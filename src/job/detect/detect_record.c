#include <math.h>

#include "base/clock.h"
#include "job/common/choice.h"
#include "job/common/cube_marks.h"
#include "job/common/record.h"
#include "job/detect/detect_job.h"

enum { ROC_POINTS = 200 };

static tess_json *plan_record(const tess_detect_job *job)
{
    tess_json *plan = tess_json_object();
    tess_pixel_stage_sizes sizes;
    if (tess_pixel_stage_plan(&job->stage, job->plan, &job->all, &sizes, NULL) == TESS_OK)
        tess_json_set_int(&plan, "block_rows", sizes.rows);
    tess_json_set(&plan, "passes", job->fits ? tess_spectral_passes_json(job->plan) : tess_json_array());
    tess_json_set_int(&plan, "fit_readings", job->fits ? tess_statistics_fit_readings(job->plan) : 0);
    tess_json_set_int(&plan, "score_readings", tess_statistics_score_readings(job->plan));
    bool calibrated;
    tess_json_set_double(&plan, "seconds", tess_detect_predicted(job, &calibrated));
    tess_json_set_bool(&plan, "calibrated", calibrated);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&job->planned, job->planned_total));
    tess_choice_record(&job->engine, &plan);
    if (job->engine.separate_memory)
        tess_json_set_int(&plan, "host_bytes", (int64_t)job->planned.by[TESS_MEM_HOST]);
    return plan;
}

static tess_json *phase_record(const char *name, double seconds, int readings, double pixels)
{
    tess_json *phase = tess_json_object();
    tess_json_set_string(&phase, "name", name);
    tess_json_set_double(&phase, "seconds", seconds);
    tess_json_set_int(&phase, "readings", readings);
    if (seconds > 0)
        tess_json_set_double(&phase, "megapixels_per_second", 1e-6 * pixels * readings / seconds);
    return phase;
}

static tess_json *measured_record(const tess_detect_job *job)
{
    tess_json *measured = tess_json_object(), *phases = tess_json_array();
    const tess_pixel_cubes *fitted = job->fits_other ? &job->other : &job->input;
    const tess_engine_figures *figures = &job->figures;
    if (job->fits)
        tess_json_append(&phases,
                         phase_record("statistics", job->fit_seconds, tess_statistics_fit_readings(job->plan),
                                      (double)fitted->list.pixels));
    tess_json_append(&phases,
                     phase_record("scores", job->score_seconds, tess_statistics_score_readings(job->plan),
                                  (double)job->input.list.pixels));
    tess_json_append(&phases, phase_record("decisions", job->decide_seconds, 0, 0));
    tess_json_set(&measured, "phases", phases);
    tess_json_set_double(&measured, "seconds", job->fit_seconds + job->score_seconds + job->decide_seconds);
    tess_json_set_double(&measured, "wall_seconds", tess_clock() - job->begin);
    tess_json_set_int(&measured, "bytes_read", figures->units);
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&figures->peak.bytes, figures->peak.total));
    tess_json_set_int(&measured, "resident_bytes", (int64_t)figures->resident);
    tess_json_set_int(&measured, "overhead_bytes", (int64_t)figures->overhead);
    return measured;
}

static void set_result(tess_json **detect, const tess_detect_job *job)
{
    const tess_statistics_report facts = tess_statistics_facts(job->statistics);
    const int64_t fitted = job->fitted.pixels ? job->fitted.pixels : facts.pixels;
    if (job->fits && fitted)
        tess_json_set_int(detect, "fitted_pixels", fitted);
    if (facts.rank)
        tess_json_set_int(detect, "rank", facts.rank);
    tess_json_set_int(detect, "pixels", job->pixels);
    tess_json_set_int(detect, "pixels_without_score", job->without_score);
    if (!job->decides)
        return;
    tess_json_set_int(detect, "anomalous_pixels", job->anomalies);
    if (job->input.set.images == 1 && isfinite(job->threshold))
        tess_json_set_double(detect, "threshold", job->threshold);
    if (job->objects)
        tess_json_set_int(detect, "detections", tess_objects_count(job->objects));
}

/* Pairs of rate of false alarms and recall. */
static tess_json *roc_record(const tess_curve *curve)
{
    double points[2 * ROC_POINTS];
    const int count = tess_curve_points(curve, ROC_POINTS, points);
    tess_json *list = tess_json_array();
    for (int i = 0; i < count; i++) {
        tess_json *pair = tess_json_array();
        tess_json_append_double(&pair, points[2 * i]);
        tess_json_append_double(&pair, points[2 * i + 1]);
        tess_json_append(&list, pair);
    }
    return list;
}

static tess_json *quality_record(const tess_detect_job *job)
{
    tess_json *quality = tess_json_object();
    const tess_curve_result curve = tess_curve_end(&job->curve);
    tess_json_set_int(&quality, "anomalies", curve.positives);
    tess_json_set_int(&quality, "others", curve.negatives);
    if (curve.known) {
        tess_json_set_double(&quality, "auroc", curve.auroc);
        tess_json_set_double(&quality, "average_precision", curve.average_precision);
        tess_json_set(&quality, "roc", roc_record(&job->curve));
    }
    if (job->decides) {
        tess_json_set_double(&quality, "precision", tess_confusion_precision(&job->confusion));
        tess_json_set_double(&quality, "recall", tess_confusion_recall(&job->confusion));
        tess_json_set_double(&quality, "f1", tess_confusion_f1(&job->confusion));
        tess_json_set_double(&quality, "iou", tess_confusion_iou(&job->confusion));
        const int64_t others = job->confusion.false_positives + job->confusion.true_negatives;
        if (others)
            tess_json_set_double(&quality, "false_alarm_rate",
                                 (double)job->confusion.false_positives / (double)others);
    }
    return quality;
}

tess_json *tess_detect_record(const tess_detect_job *job, bool ran)
{
    tess_json *record = tess_record_begin("detect", &job->engine), *input = tess_json_object(),
              *detect = tess_json_object();
    tess_json_set_int(&input, "height", job->input.image[0].height);
    tess_json_set_int(&input, "width", job->input.image[0].width);
    tess_json_set_int(&input, "channels", job->plan->bands);
    tess_json_set_int(&input, "files", job->input.list.count);
    tess_json_set_int(&input, "images", job->input.list.images);
    tess_json_set_bool(&input, "wavelengths", job->input.list.wavelengths != NULL);
    if (job->input.list.entries[0].info.bad_bands)
        tess_json_set_int(&input, "bad_bands", job->input.list.entries[0].info.bad_bands);
    tess_json *undeclared = tess_marks_record(&job->input);
    if (undeclared)
        tess_json_set(&input, "undeclared", undeclared);
    tess_json_set(&record, "input", input);
    const tess_detect_settings *s = job->settings;
    const tess_record_path paths[] = {
        {"input", s->input}, {"output", s->output}, {"overlay", s->overlay}, {"truth", s->truth}};
    tess_record_paths(&record, paths, sizeof paths / sizeof paths[0]);
    tess_json_set(&record, "plan", plan_record(job));
    if (ran)
        tess_json_set(&record, "measured", measured_record(job));
    if (ran && tess_detect_rates(job))
        tess_json_set(&record, "quality", quality_record(job));
    tess_json_set_string(&detect, "pipeline", job->settings->pipeline ? job->settings->pipeline : "rx");
    tess_json_set(&detect, "graph", tess_pipeline_json(&job->plan->pipeline));
    if (ran)
        set_result(&detect, job);
    tess_json_set(&record, "detect", detect);
    return record;
}
