/* A plan for the ranks of another machine: an iteration as `bench scaling` simulates it, with the sizes of this problem and as many
 * steps towards the data as this recipe takes, those of the start included. */
#include "base/checked.h"
#include "job/reconstruct/plan/rates.h"
#include "job/reconstruct/reconstruct_impl.h"
#include "physics/convolve.h"

static tess_scale_problem problem_of(const tess_reconstruct_job *job)
{
    static const tess_scale_kind kinds[] = {[TESS_PHYSICS_BLUR] = TESS_SCALE_DEBLUR,
                                            [TESS_PHYSICS_RADON] = TESS_SCALE_TOMO2D,
                                            [TESS_PHYSICS_CONE] = TESS_SCALE_TOMO3D};
    const tess_problem *p = &job->problem;
    const tess_operator *op = job->workspace.op;
    const double runs = tess_physics_runs(op, &job->recipe) / (tess_data_term_exact(op) ? 1 : 2);
    const bool blur = p->physics == TESS_PHYSICS_BLUR;
    return (tess_scale_problem){.kind = kinds[p->physics],
                                .depth = p->depth + 2 * p->margin_depth,
                                .height = blur ? tess_problem_divided(p) : p->height + 2 * p->margin[0],
                                .width = p->unknown ? tess_convolve_side(p->width, p->margin[1])
                                                    : p->width + 2 * p->margin[1],
                                .channels = p->channels,
                                .views = blur ? 0 : p->count,
                                .rows = p->rows,
                                .columns = p->columns,
                                .vectors = p->vectors,
                                .spacing = p->as_published ? p->spacing : 1,
                                .parallel = p->parallel,
                                .divide = p->depth == 1                    ? TESS_DIVIDE_ROWS
                                          : job->prior.model->model.volume ? TESS_DIVIDE_SLABS
                                                                           : TESS_DIVIDE_SLICES,
                                .planes = tess_prior_planes(&job->prior),
                                .steps = runs / (double)tess_max_i64(job->recipe.iterations, 1),
                                .blurs = p->unknown ? p->count : 0,
                                .reach = p->unknown ? p->margin[0] : 0};
}

tess_status tess_reconstruct_elsewhere(tess_reconstruct_job *job, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    const tess_engine_model *model = job->prior.model;
    if (!s->machine)
        return TESS_OK;
    const tess_elsewhere_request request = {.machine = s->machine,
                                            .ranks = s->ranks,
                                            .model = model->path,
                                            .inflation = job->recipe.volume ? &job->recipe.inflation : NULL,
                                            .precision = s->common.precision,
                                            .problem = problem_of(job),
                                            .times = (double)job->recipe.iterations};
    return tess_elsewhere_predict(&request, &job->elsewhere, error);
}
