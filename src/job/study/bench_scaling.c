/* What simulated and measured points of the study share. */
#include "job/study/bench_scaling.h"

#include <string.h>

#include "job/common/context.h"
#include "job/common/record.h"

const char *tess_scaling_model(const tess_bench_settings *s, const tess_scale_problem *problem)
{
    return s->model_count ? s->models[0] : problem->channels == 3 ? "random:drunet" : "random:drunet-gray";
}

static void set_speedups(tess_json **record, const tess_scaling_line *line)
{
    const tess_scale_point *p = line->point, *base = line->base;
    const double speedup = base->seconds / p->seconds,
                 denoiser = (base->denoiser + base->denoiser_communication) /
                            (p->denoiser + p->denoiser_communication);
    tess_json_set_int(record, "base_ranks", base->ranks);
    tess_json_set_double(record, "speedup", speedup);
    tess_json_set_double(record, "efficiency", speedup * base->ranks / p->ranks);
    tess_json_set_double(record, "denoiser_speedup", denoiser);
    tess_json_set_double(record, "denoiser_efficiency", denoiser * base->ranks / p->ranks);
    if (line->weak_efficiency > 0)
        tess_json_set_double(record, "weak_efficiency", line->weak_efficiency);
}

void tess_scaling_record(tess_json **record, const tess_scaling_line *line)
{
    const tess_scale_problem *problem = line->problem;
    const tess_scale_point *p = line->point;
    const bool iterates = p->gradient > 0 || p->gradient_communication > 0;
    tess_json *input = tess_json_object();
    tess_json_set_string(record, "study", "scaling");
    tess_json_set_string(record, "engine", "tessera");
    tess_json_set_string(record, "problem", line->problem_name);
    tess_json_set_int(&input, "depth", problem->depth);
    tess_json_set_int(&input, "height", problem->height);
    tess_json_set_int(&input, "width", problem->width);
    tess_json_set_int(&input, "channels", problem->channels);
    tess_json_set(record, "input", input);
    tess_json_set_int(record, "ranks", p->ranks);
    tess_json_set_int(record, "busy_ranks", p->used);
    tess_json_set_int(record, "rows", p->rows);
    tess_json_set_double(record, "seconds", p->seconds);
    if (iterates) /* else only the denoiser was measured */
        tess_json_set_double(record, "gradient_seconds", p->gradient);
    tess_json_set_double(record, "denoiser_seconds", p->denoiser);
    tess_json_set_double(record, "communication_seconds", tess_scale_communication(p));
    if (iterates)
        tess_json_set_double(record, "gradient_communication_seconds", p->gradient_communication);
    tess_json_set_double(record, "denoiser_communication_seconds", p->denoiser_communication);
    if (p->other > 0)
        tess_json_set_double(record, "other_seconds", p->other);
    set_speedups(record, line);
    tess_json_set_int(record, "bytes_per_rank", (int64_t)p->bytes);
    tess_json_set_int(record, "sent_bytes", (int64_t)p->sent);
}

tess_status tess_scaling_tell(const tess_bench_settings *s, tess_json *record, tess_error *error)
{
    char *text = NULL;
    TESS_TRY(tess_record_end(record, &text, error));
    const bool go_on = s->line(s->line_user, text);
    tess_small_free(text);
    return go_on ? TESS_OK
                 : tess_fail(error, TESS_INTERRUPTED, "stopped; the points reported so far are valid");
}

tess_status tess_scaling_each(const tess_bench_settings *s, tess_scaling_fn point, void *user,
                              tess_error *error)
{
    static const char *const all[] = {"deblur", "tomo2d", "tomo3d"};
    static const int64_t images[] = {1024, 2048, 4096}, volumes[] = {512};
    const int problems = s->problem_count ? s->problem_count : 3;
    for (int i = 0; i < problems; i++) {
        const char *name = s->problem_count ? s->problems[i] : all[i];
        tess_scale_problem problem;
        const bool volume = strcmp(name, "tomo3d") == 0;
        const int64_t *sizes = s->size_count ? s->sizes : volume ? volumes : images;
        const int count = s->size_count ? s->size_count : volume ? 1 : 3;
        for (int k = 0; k < count; k++) {
            if (!tess_scale_problem_of(name, sizes[k], s->square, &problem))
                return tess_fail(error, TESS_BAD_OPTION, "`problems` %s: use deblur, tomo2d or tomo3d", name);
            TESS_TRY(point(user, name, &problem, error));
        }
    }
    return TESS_OK;
}

tess_status tess_bench_scaling(const tess_bench_settings *s, tess_context *context)
{
    tess_error *error = &context->error;
    if (strcmp(s->scheme, "strips") != 0 && strcmp(s->scheme, "deepinv") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`scheme` %s: use strips or deepinv", s->scheme);
    if (s->simulate_count > 0)
        return tess_scaling_simulate(s, &context->memory, error);
    if (strcmp(s->scheme, "strips") != 0 || s->avoid > 1 || s->machine_count > 0)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`%s` is only simulated; set `simulate` to numbers of ranks, such as 1,2,4",
                         s->machine_count > 0 ? "machines"
                         : s->avoid > 1       ? "avoid"
                                              : "scheme");
    return tess_scaling_measure(s, context);
}
